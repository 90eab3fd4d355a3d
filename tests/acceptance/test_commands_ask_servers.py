"""Commands that a server answers say what they say when they open the data themselves."""

import json
import signal
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import httpx
import pytest
import yaml
from _pytest.mark.structures import ParameterSet

from app.adapters.private_folders import PREFIX
from app.adapters.running import notice
from app.bootstrap.asking.servers import AskedServer
from tests import draws
from tests.acceptance.server_process import ServerProcess
from tests.command_line import ROOT, database_running, redra
from tests.patience import PATIENCE_SECONDS
from tests.redra_process import PROGRAM, RedraProcess
from tests.redra_program import shared_program

RECORDING = ROOT / "examples" / "recordings" / "maintenance"
RULE = """\
apiVersion: resource.k8s.io/v1beta2
kind: DeviceTaintRule
metadata: {name: worker-1-is-serviced}
spec:
  deviceSelector: {driver: gpu.example.com, pool: worker-1}
  taint: {key: example.com/serviced, effect: NoExecute}
"""

pytestmark = pytest.mark.database


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A server with a recording in its data folder; the processes of its jobs are forks.

    Another server of this module, and those of `tests/api/test_jobs.py`, start them anew.
    """
    jobs = {PROGRAM: str(shared_program())}
    server = ServerProcess(tmp_path_factory.mktemp("asked"), **jobs)
    with database_running(server.data, recorded=True):
        fork = ("fork", "prod@505", "--history", "forked", "--inputs", "recorded")
        code, _, error = redra(*fork, data=server.data)
        assert code == 0, error
    server.start()
    try:
        yield server
    finally:
        server.end()


def job_folders(temporary: Path) -> set[Path]:
    """The folders of the jobs of a server with this temporary folder."""
    return set(temporary.glob(f"{PREFIX}*"))


def job_list(client: httpx.Client) -> list[object]:
    """The jobs of no single history."""
    items: list[object] = client.get("/redra/v1/jobs").json()["items"]
    return items


def wait_until(holds: Callable[[], object]) -> None:
    """Wait until a condition holds that nothing reports."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        assert time.monotonic() < deadline, "in vain"
        time.sleep(0.02)  # waits: a folder tells nobody of itself


QUESTIONS = {
    "why": ("why", "pod/n-3", "-n", "taints", "--history", "prod", "--at", "369"),
    "why of a short name": ("why", "po", "taints/blocked", "--history", "prod", "--at", "328"),
    "why of a device": ("why", "device/gpu.example.com/worker-1/gpu-0", "--history", "prod"),
    "what would help": ("why", "pod/n-3", "-n", "taints", "--history", "prod", "--at", "369",
                        "--what-would-help"),
    "timeline": ("timeline", "prod"),
    "timeline of a namespace": ("timeline", "prod", "-n", "taints", "--last", "20"),
    "timeline of an object": ("timeline", "prod", "--object", "pod/n-3", "--decisions"),
    "timeline of an author": ("timeline", "prod", "--by", "admin", "--from", "300", "--to", "500"),
    "timeline without entries": ("timeline", "prod", "--kind", "PodEvicted", "--until", "2"),
    "timeline of a time": ("timeline", "prod", "--since", "20s", "--until", "500"),
    "find": ("find", "worker", "--history", "prod"),
    "findings": ("findings", "prod"),
    "findings of then": ("findings", "prod", "--at", "200"),
    "map": ("map", "--history", "prod", "--at", "200", "--devices"),
    "scan": ("scan", "prod"),
    "log": ("log", "prod", "--after", "10", "--limit", "40"),
    "log of an author": ("log", "prod", "--from", "300", "--to", "400", "--author", "scheduler"),
    "log of labels": ("log", "prod", "-l", "app=web", "--limit", "9"),
    "log of other labels": ("log", "prod", "-n", "taints", "-l", "!app"),
    "histories": ("histories",),
    "head": ("head", "prod"),
    "head of then": ("head", "prod", "--to", "40"),
    "diff": ("diff", "prod", "prod@300"),
    "diff with a fork": ("diff", "prod", "forked", "--at", "520"),
    "diff with a parent": ("diff", "forked", "prod", "--at", "520"),
    "diff with a fork at its own revision": ("diff", "prod@520", "forked", "--at", "520"),
    "diff of objects": ("diff", "prod@300", "prod", "--by", "objects"),
    "blast": ("blast", "--delete", "devicetaintrule/pool-ns", "--history", "prod", "--at", "369"),
    "blast of a file": ("blast", "-f", "-", "--history", "prod", "--at", "300"),
    "fit": ("fit", "--history", "prod", "--at", "369"),
    "capacity": ("capacity", "prod"),
    "lint": ("lint", "--history", "prod", "--fail-on", "note"),
    "lint of then": ("lint", "--history", "prod@200", "--profile", "1.36", "--ignore",
                     "claim-never-fits"),
    "report": ("report", "prod", "-o", "-"),
    "report of then": ("report", "prod", "-o", "-", "--at", "200"),
    "trace": ("report", "prod", "-o", "-", "--format", "perfetto"),
}  # fmt: skip

IN_JSON = [name for name, words in QUESTIONS.items() if words[0] not in ("log", "head", "report")]

MISTAKES = {
    "no history": ("findings", "nowhere"),
    "no such revision": ("findings", "prod", "--at", "99999"),
    "no moment": ("findings", "prod", "--at", "yesterday"),
    "no kind": ("why", "pot/n-3", "--history", "prod"),
    "no object": ("why", "pod/n-99", "-n", "taints", "--history", "prod"),
    "object of another namespace": ("why", "pod/n-3", "--history", "prod", "--at", "369"),
    "object of another history": ("why", "pod/n-3", "-n", "taints"),
    "timeline of a name that is none": ("timeline", "prod", "--name", "n-33"),
    "timeline of an author that is none": ("timeline", "prod", "--by", "kube-schedler"),
    "log of an author that is none": ("log", "prod", "--by", "kube-schedler"),
    "log with two beginnings": ("log", "prod", "--from", "3", "--after", "3"),
    "timeline of no history": ("timeline", "nowhere"),
    "timeline of nothing": ("timeline", "prod", "--since", "300", "--until", "200"),
    "log of no history": ("log", "nowhere"),
    "log of no labels": ("log", "prod", "-l", "app=(web"),
    "head of no history": ("head", "nowhere"),
    "fit of no class": ("fit", "--class", "nothing.example.com", "--history", "prod"),
    "lint of no history": ("lint", "--history", "nowhere"),
    "lint of no rule": ("lint", "--history", "prod", "--ignore", "no-rule"),
    "lint of no release": ("lint", "--history", "prod", "--profile", "0.9"),
    "lint of no revision": ("lint", "--history", "prod", "--at", "99999"),
    "blast of nothing": ("blast", "--delete", "devicetaintrule/none", "--history", "prod"),
}  # fmt: skip


def by_day_unless_compared(names: Iterable[str]) -> list[str | ParameterSet]:
    """The rows of questions: a defect was found in those that compare moments.

    `tests/web/test_same_facts.py` asks each question, too.
    """
    return [name if name.startswith("diff") else draws.by_day(name) for name in names]


@pytest.mark.parametrize("name", by_day_unless_compared(QUESTIONS))
def test_text_of_a_server_is_the_text_of_the_data(server: ServerProcess, name: str) -> None:
    words = QUESTIONS[name]
    asked = redra(*words, data=server.data, stdin=RULE)
    opened = redra(*words, "--server", "none", data=server.data, stdin=RULE)
    assert asked == opened
    assert asked[1]


@pytest.mark.parametrize("name", by_day_unless_compared(IN_JSON))
def test_json_of_a_server_is_the_json_of_the_data(server: ServerProcess, name: str) -> None:
    words = (*QUESTIONS[name], "-o", "json")
    asked = redra(*words, data=server.data, stdin=RULE)
    assert asked == redra(*words, "--server", "none", data=server.data, stdin=RULE)
    json.loads(asked[1])


def test_log_of_labels_has_each_event_in_which_an_object_has_them(server: ServerProcess) -> None:
    lines = redra("log", "prod", data=server.data)[1].splitlines()
    trees = [(line, json.loads(line)["payload"]["object"]) for line in lines]
    labels = [(line, tree["metadata"].get("labels") or {}) for line, tree in trees
              if "metadata" in tree]  # fmt: skip
    for selector, holds in (("app=web", lambda has: has.get("app") == "web"),
                            ("!app", lambda has: "app" not in has)):  # fmt: skip
        shown = redra("log", "prod", "-l", selector, data=server.data)[1].splitlines()
        assert shown == [line for line, has in labels if holds(has)]
        assert shown


@draws.in_turn("rows of refusals")
@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_told_alike(server: ServerProcess, name: str) -> None:
    words = MISTAKES[name]
    code, out, error = redra(*words, data=server.data)
    assert (code, out, error) == redra(*words, "--server", "none", data=server.data)
    assert (code in (1, 2), out, error.count("\n")) == (True, "", 1)


GALLERY = {
    "list": ("incidents", "list"),
    "list in JSON": ("incidents", "list", "-o", "json"),
    "show": ("incidents", "show", "rules-not-seen"),
    "show of none": ("incidents", "show", "no-such-thing"),
}


@pytest.mark.parametrize("name", GALLERY)
def test_gallery_of_a_named_server_is_that_of_the_program(server: ServerProcess, name: str) -> None:
    words = GALLERY[name]
    assert redra(*words, "--server", server.url) == redra(*words)


PLANS = {
    "histories": """\
histories: [prod@150]
profiles: ["1.36.2", "1.37"]
changes: [{name: one node, delete: [node/worker-1]}]
""",
    "fleet": "fleets: [{name: two, profile: a100-mig, nodes: 2, apply: [pods.yaml]}]",
}


@draws.in_turn("ways")
@pytest.mark.parametrize("name", PLANS)
def test_sweep_of_a_server_has_the_tables_of_the_data(
    server: ServerProcess, name: str, tmp_path: Path
) -> None:
    plan = tmp_path / "plan.yaml"
    plan.write_text(PLANS[name])
    (tmp_path / "pods.yaml").write_text(
        "{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: default}, spec: "
        "{containers: [{name: c, image: i}]}}"
    )
    outcomes = []
    for place, form in ((server.url, "json"), ("none", "json"), ("none", "text")):
        folder = tmp_path / "out"
        words = ("sweep", plan, "-o", folder, "--output", form, "--server", place, "--force")
        code, out, _ = redra(*words, data=server.data)
        tables = [(folder / name).read_bytes() for name in ("table.csv", "index.html")]
        outcomes.append((code, out, tables))
        if place == "none" and form == "json":
            rows = json.loads(out)["rows"]
            assert all(row["placed"] is not None for row in rows)
    asked, opened, text = outcomes
    assert asked == opened
    assert text[2] == opened[2]


@draws.in_turn("ways")
def test_smallest_history_of_a_server_is_that_of_the_data(
    server: ServerProcess, tmp_path: Path
) -> None:
    outcomes = []
    for place in (server.url, "none"):
        file = tmp_path / "small.zip"
        words = ("minimise", "prod@68s", "--keep", "unschedulable", "-o", file, "--force")
        words = (*words, "--output", "json")
        code, out, error = redra(*words, "--server", place, data=server.data)
        assert code == 0, error
        result = json.loads(out)
        assert result["asOf"].startswith("68s before the last event at ")
        outcomes.append(({**result, "seconds": 0}, file.read_bytes()))
    assert outcomes[0] == outcomes[1]


EXPORTS = {
    "bundle": ("forked", "out.zip", ()),
    "test": ("prod@160", "test_out.py", ("--as", "pytest", "--redact")),
    "manifests": ("prod@60", "out", ("--as", "manifests")),
    "case": ("prod@160", "case.json", ("--as", "go-allocator-case")),
    "audit log": ("prod@60", "audit.jsonl", ("--as", "audit")),
    "watches": ("prod@60", "out", ("--as", "watch")),
    "bundle without names": ("prod@60", "out.zip", ("--redact",)),
}


def content_of(path: Path) -> dict[str, tuple[int, bytes]]:
    """The modes and contents of a file, or of the files of a folder."""
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    return {file.name: (file.stat().st_mode, file.read_bytes()) for file in files}


@draws.BY_DAY
@pytest.mark.parametrize("name", EXPORTS)
def test_export_of_a_server_is_that_of_the_data(
    server: ServerProcess, name: str, tmp_path: Path
) -> None:
    history, file, words = EXPORTS[name]
    outcomes = []
    for place in (server.url, "none"):
        path = tmp_path / file
        line = ("export", history, "-o", path, *words, "--server", place)
        code, out, error = redra(*line, data=server.data)
        assert code == 0, error
        outcomes.append((out, error, content_of(path)))
        path.rename(tmp_path / str(len(outcomes)))
    assert outcomes[0] == outcomes[1]


@draws.in_turn("ways")
@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("prod@120", "--to", "1.34"), 1),
        (("prod@1h", "--to", "1.37", "-o", "json"), 2),
        # Its parent's doubts are its own.
        (("forked@60", "--to", "1.36", "-o", "json"), 0),
    ],
)
def test_rehearsal_of_a_server_is_that_of_the_data(
    server: ServerProcess, words: tuple[str, ...], code: int
) -> None:
    asked, opened = [
        redra("rehearse", *words, "--server", place, data=server.data)
        for place in (server.url, "none")
    ]
    assert asked[:2] == opened[:2]
    assert asked[0] == code
    assert asked[1]


IN_VAIN = {
    "fact that is not there": ("minimise", "prod@10", "--keep", "unschedulable"),
    "no history": ("minimise", "nowhere", "--keep", "unschedulable"),
    "no revision": ("minimise", "prod@99999", "--keep", "unschedulable"),
    "no release": ("minimise", "prod", "--keep", "unschedulable", "--profile", "0.9"),
    "no quirk": ("minimise", "prod", "--keep", "unschedulable", "--quirk", "nope=on"),
    "test of nothing": ("export", "prod@60", "--as", "pytest", "--never", "evicted"),
    "test of no predicate": ("export", "prod@60", "--as", "pytest", "--never", "rubbish"),
    "export of no history": ("export", "nowhere", "--as", "pytest"),
    "export of no revision": ("export", "prod@99999"),
    "case of no pod": ("export", "prod@60", "--as", "go-allocator-case", "--pod", "nobody"),
    "never in manifests": ("export", "prod", "--as", "manifests", "--never", "evicted"),
}


@draws.BY_DAY
@pytest.mark.parametrize("name", IN_VAIN)
def test_search_in_vain_is_told_alike(server: ServerProcess, name: str, tmp_path: Path) -> None:
    words = (*IN_VAIN[name], "-o", tmp_path / "small.zip")
    outcomes = [
        redra(*words, "--server", place, data=server.data) for place in (server.url, "none")
    ]
    assert [(code, out) for code, out, _ in outcomes] == [(2, "")] * 2
    asked, opened = [error.splitlines()[-1] for _, _, error in outcomes]
    assert asked == opened
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("words", [("nowhere", "--to", "1.37"), ("prod", "--to", "0.9"),
                                   ("prod", "--to", "1.37", "--gate", "Nope=true"),
                                   ("prod", "--to", ""),
                                   ("prod@99999", "--to", "1.37")])  # fmt: skip
def test_rehearsal_in_vain_is_told_alike(server: ServerProcess, words: tuple[str, ...]) -> None:
    asked, opened = [
        redra("rehearse", *words, "--server", place, data=server.data)
        for place in (server.url, "none")
    ]
    assert asked == opened
    assert (asked[0], asked[1], asked[2].count("\n")) == (2, "", 1)


def test_incidents_are_run_by_a_named_server(server: ServerProcess) -> None:
    words = ("incidents", "run", "rules-not-seen")
    assert redra(*words, "--server", server.url) == redra(*words)


REFUSED = {
    "command": ("minimise", "prod", "--keep", "command true", "-o", "{}"),
    "workers": ("minimise", "prod", "--keep", "unschedulable", "--workers", "2", "-o", "{}"),
    "file": ("minimise", RECORDING, "--keep", "unschedulable", "-o", "{}"),
    "keys": ("export", "prod", "--with-secrets", "-o", "{}"),
}
SAID = {
    "command": "keep: a server runs no commands; use `redra minimise` where the data is",
    "workers": "--workers: a server does this work in a process of its own; leave it out, or "
    "leave out --server",
    "keys": "--with-secrets: a server hands out no keys of Secrets; run the command on the machine "
    "that has the data",
    "file": f"{RECORDING}: it is a file, and a server reads only its histories; import it there, "
    "or leave out --server",
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_a_server_does_not_do_is_refused(
    server: ServerProcess, name: str, tmp_path: Path
) -> None:
    words = [tmp_path / "small.zip" if word == "{}" else word for word in REFUSED[name]]
    outcome = redra(*words, "--server", server.url, data=server.data)
    assert outcome == (2, "", f"redra: {SAID[name]}\n")
    assert list(tmp_path.iterdir()) == []


def test_interrupted_command_cancels_its_job(server: ServerProcess) -> None:
    words = ["incidents", "run", "--server", server.url]
    process = RedraProcess(words)
    with server.client() as client:
        wait_until(lambda: job_list(client) or process.poll() is not None)
        assert process.poll() is None, process.communicate()
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)
        assert process.returncode == 130
        assert job_list(client) == []


def test_files_are_not_linted_by_a_server(server: ServerProcess) -> None:
    code, out, error = redra("lint", RECORDING, "--server", server.url, data=server.data)
    assert (code, out) == (2, "")
    assert error == (
        "redra: --server: files are checked by this command itself; leave it out, or name a "
        "history of the server: --history NAME\n"
    )


def test_server_is_asked_although_the_data_cannot_be_opened(
    server: ServerProcess, tmp_path: Path
) -> None:
    # A folder that has nothing but the notice of the server.
    empty = tmp_path / "elsewhere"
    code, out, error = redra("histories", "--server", server.url, data=empty)
    assert (code, error) == (0, "")
    assert "prod" in out
    assert not empty.exists()


def test_context_of_a_kubeconfig_names_history_and_moment(
    server: ServerProcess, tmp_path: Path
) -> None:
    words = ("kubeconfig", "--history", "prod", "--at", "200")
    code, text, error = redra(*words, data=server.data)
    assert (code, error) == (0, "")
    file = tmp_path / "config"
    file.write_text(text)
    named = ("--context", "prod@200", "--kubeconfig", file)
    expected = redra("findings", "prod", "--at", "200", data=server.data)
    assert redra("findings", *named) == expected
    assert redra("findings", "--context", "prod@200", KUBECONFIG=str(file)) == expected
    code, _, error = redra("findings", "--context", "nope", "--kubeconfig", file)
    assert code == 2
    assert "nope" in error


@draws.in_turn("ways")
def test_server_that_is_gone_is_not_asked(tmp_path: Path) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    data = tmp_path / "data"
    data.mkdir()
    server = ServerProcess(data, TMPDIR=str(temporary))
    server.start()
    assert notice.read(server.data, database="") is not None
    with server.client() as client:
        assert client.post("/redra/v1/incidents/run", json={}).status_code == 202
        wait_until(lambda: job_folders(temporary))
    # Killed, it leaves its notice behind. The process of its job ends by itself and tidies up.
    server.end(signal.SIGKILL)
    wait_until(lambda: not job_folders(temporary))
    assert (server.data / notice.FILE).read_text()
    assert notice.read(server.data, database="") is None
    code, out, error = redra("histories", data=server.data)
    assert (code, error) == (0, "")
    assert "default" in out


def test_server_that_is_named_must_answer(tmp_path: Path) -> None:
    code, out, error = redra("histories", "--server", "http://127.0.0.1:1", data=tmp_path)
    assert (code, out) == (4, "")
    assert error == "redra: http://127.0.0.1:1: Connection refused\n"
    code, _, error = redra("histories", "--server", "ftp://nowhere", data=tmp_path)
    assert code == 2
    assert "is not the address of a server" in error


@draws.in_turn("ways")
def test_server_with_tls_and_roles_lets_in_whom_its_kubeconfig_names(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path, "--tls", "--authorization", "rbac")
    server.start()
    try:
        code, out, error = redra("histories", data=server.data)
        assert (code, error) == (0, "")
        assert "default" in out
        # Another folder has no certificate for it, and the authority is unknown there.
        code, _, error = redra("histories", "--server", server.url, data=tmp_path / "other")
        assert code == 4
        assert "not trusted" in error
        assert "the server's authority in REDRA_SERVER_AUTHORITY_FILE" in error
        authority = server.data / "pki" / "ca.crt"
        trusting = {"REDRA_SERVER_AUTHORITY_FILE": str(authority)}
        words = ("histories", "--server", server.url)
        code, _, error = redra(*words, data=tmp_path / "other", **trusting)
        assert code == 4
        assert "Unauthorized" in error or "unauthorized" in error.lower()
        tree = yaml.safe_load(server.kubeconfig.read_text())
        assert tree["users"][0]["user"].keys() >= {"client-certificate-data", "client-key-data"}
        named = ("--context", "redra", "--kubeconfig", server.kubeconfig)
        code, out, error = redra("histories", *named)
        assert (code, error) == (0, "")
        assert "default" in out
    finally:
        server.end()


class Followed:
    """`redra timeline --follow` as a process of its own."""

    def __init__(self, *words: str) -> None:
        self.process = RedraProcess(["timeline", "--follow", *words])
        self._timer = threading.Timer(60, self.process.kill)
        self._timer.start()

    def line_with(self, text: str) -> str:
        """The next line that holds a text."""
        for line in self.process.stdout:
            if text in line:
                return line
        raise AssertionError(f"it ended: {self.process.communicate()}")

    def interrupt(self) -> tuple[int | None, str | None]:
        """End it as Ctrl-C does; exit code and standard error."""
        self.process.send_signal(signal.SIGINT)
        _, error = self.process.communicate(timeout=30)
        self._timer.cancel()
        return self.process.returncode, error


@pytest.mark.parametrize("place", ["auto", "none"])
def test_timeline_is_followed_until_it_is_interrupted(server: ServerProcess, place: str) -> None:
    name = f"followed-{place}"
    followed = Followed("--data", str(server.data), "--server", place)
    followed.line_with("namespaces default")
    with server.client() as client:
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        assert client.post("/api/v1/namespaces", json=body).status_code == 201
    line = followed.line_with(f"namespaces {name}")
    assert "NamespaceCreated" in line
    assert followed.interrupt() == (130, "")


def test_followed_timeline_ends_where_it_was_to_end(server: ServerProcess) -> None:
    words = ("timeline", "prod", "--until", "100", "--follow", "-o", "json")
    for place in ("auto", "none"):
        code, out, error = redra(*words, "--server", place, data=server.data)
        assert (code, error) == (0, "")
        rows = [json.loads(line) for line in out.splitlines()]
        assert rows[-1]["revision"] <= 100
        assert all(row["time"].endswith("Z") for row in rows)
        # Of nothing but a title nobody can tell whether the name is wrong.
        nothing = redra(*words, "-n", "nosuch", "--server", place, data=server.data)
        assert nothing[:2] == (0, "")
        assert "no entry matches until 100: the history goes from revision 1 " in nothing[2]
        assert "; waiting for entries that match" in nothing[2]


FORKS = {
    "live": ("prod@505",),
    "with notes": ("prod@505", "-f", "-", "--profile", "1.36"),
    "with edits": ("prod", "--at", "369", "--delete", "devicetaintrule/pool-ns",
                   "--patch", 'node/worker-1={"spec":{"unschedulable":true}}'),
    "recorded": ("prod@505", "--inputs", "recorded", "--until", "525", "--quirk", "q3=off",
                 "--delete", "node/worker-1"),
}  # fmt: skip

NO_FORKS = {
    "no history": ("prud@505", "--history", "new"),
    "no such revision": ("prod@99999", "--history", "new"),
    "before the first event": ("prod@0", "--history", "new"),
    "name that is taken": ("prod@505", "--history", "forked"),
    "name that is none": ("prod@505", "--history", "New"),
    "edit that is refused": ("prod@505", "--history", "new", "--delete", "pod/taints/n-99"),
    "patch that is refused": ("prod@505", "--history", "new", "--patch",
                              'node/worker-1={"spec":{"unschedulable":"perhaps"}}'),
    "no inputs": ("prod@505", "--history", "new", "--inputs", "recorded", "--until", "505"),
    "end after the end": ("prod@505", "--history", "new", "--inputs", "recorded", "--until",
                          "99999"),
    "gate that is none": ("prod@505", "--history", "new", "--gate", "DRASomething=true"),
    "release that is none": ("prod@505", "--history", "new", "--profile", "1.12"),
    "two patches": ("prod@505", "--history", "new", "--patch", "node/worker-1={}", "--patch",
                    "node/worker-1={}"),
}  # fmt: skip


@draws.in_turn("wrongs")
@pytest.mark.parametrize("output", ["text", "json"])
@pytest.mark.parametrize("name", FORKS)
def test_named_server_forks_and_says_what_a_fork_without_it_says(
    server: ServerProcess, name: str, output: str
) -> None:
    words = ("fork", *FORKS[name], "-o", output)
    file = RULE if "-f" in words else ""
    here = redra(*words, "--history", "new", data=server.data, stdin=file)
    assert here[0] == 0, here[2]
    assert redra("histories", "delete", "new", "--yes", data=server.data)[0] == 0
    there = redra(*words, "--history", "new", "--server", server.url, stdin=file)
    assert redra("histories", "delete", "new", "--yes", data=server.data)[0] == 0
    assert there == here


@pytest.mark.parametrize("name", NO_FORKS)
def test_fork_that_a_server_refuses_is_refused_in_one_sentence(
    server: ServerProcess, name: str
) -> None:
    before = names_at(server)
    refused = redra("fork", *NO_FORKS[name], "--server", server.url)
    assert (refused[:2], refused[2].count("\n")) == ((2, ""), 1)
    if name == "two patches":
        assert "--patch node/worker-1: a server makes one patch of an object" in refused[2]
    else:
        assert refused == redra("fork", *NO_FORKS[name], data=server.data)
    assert names_at(server) == before


def test_interrupted_fork_is_said_to_be_finished_by_the_server(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(AskedServer, "fork", interrupt)
    code, out, error = redra("fork", "prod", "--history", "new", "--server", "http://127.0.0.1:1")
    assert (code, out) == (130, "")
    assert "interrupted: the server finishes the fork all the same\n" in error


def names_at(server: ServerProcess) -> set[str]:
    with server.client() as client:
        return {each["name"] for each in client.get("/redra/v1/histories").json()["items"]}


def test_histories_are_created_and_deleted_by_a_named_server(server: ServerProcess) -> None:
    before = names_at(server)
    create = ("histories", "create", "--server", server.url)
    gate = "DRAPartitionableDevices=false"
    assert redra(*create, "one", "--profile", "1.36.2", "--gate", gate) == (
        0, "history one is created\n", "",
    )  # fmt: skip
    assert redra(*create, "other")[0] == 0
    with server.client() as client:
        made = client.get("/redra/v1/histories/one").json()
    assert made["profile"] == "1.36.2"
    assert "DRAPartitionableDevices" in json.dumps(made)
    delete = ("histories", "delete", "--server", server.url)
    code, out, error = redra(*delete, "one", "nowhere", "--yes")
    assert (code, out) == (2, "")
    assert "no history 'nowhere'" in error
    code, out, error = redra(*delete, "one")
    assert (code, out) == (2, "")
    assert f"{server.url}: delete one for good? there is no terminal" in error
    assert names_at(server) == {*before, "one", "other"}
    said = "history one is deleted\nhistory other is deleted\n"
    assert redra(*delete, "one", "other", "one", "--yes") == (0, said, "")
    assert names_at(server) == before


def test_fleet_of_a_named_server_is_in_the_history_that_is_named(server: ServerProcess) -> None:
    """Without the history in its URL the option had no effect, and the default history grew."""
    fleet = ("fleet", "--profile", "nic")
    assert redra("histories", "create", "racks", "--server", server.url)[0] == 0
    with server.client() as client:
        before = client.get("/redra/v1/histories/default").json()["revision"]
        code, out, error = redra(*fleet, "--history", "racks", "--server", server.url)
        assert (code, error) == (0, "")
        assert "1 node made" in out
        code, out, _ = redra(*fleet, "--history", "racks", "--server", f"{server.url}/h/racks")
        assert (code, "0 nodes made" in out) == (0, True)
        assert client.get("/redra/v1/histories/default").json()["revision"] == before
    other = redra(*fleet, "--history", "racks", "--server", f"{server.url}/h/prod")
    assert other == (2, "", "redra: the history is named twice, 'prod' and 'racks'; name it once\n")
    code, _, error = redra(*fleet, "--history", "nowhere", "--server", server.url)
    assert (code, 'history "nowhere" not found' in error) == (2, True)
    assert redra("histories", "delete", "racks", "--yes", "--server", server.url)[0] == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("delete", "default", "--yes"), "is served at / and stays while a server runs"),
        (("delete", "forked", "--unfinished"), "--unfinished: a server does not know the remains"),
        (("delete", "prod", "--yes"), "forked"),
        (("create", "prod"), "already exists"),
        (("create", "new", "--quirk", "c2=off"), "--quirk: a server creates histories without"),
        (("rename", "prod", "new"), "--server: `histories rename` works on the data"),
        (("copy", "prod", "new"), "--server: `histories copy` works on the data"),
    ],
)
def test_management_that_a_server_does_not_do_is_refused(
    server: ServerProcess, words: tuple[str, ...], said: str
) -> None:
    """Commands that only the data can do took the option of their group and changed the data."""
    before = names_at(server)
    code, out, error = redra("histories", "--server", server.url, *words, data=server.data)
    assert (code, out, error.count("\n")) == (2, "", 1)
    assert said in error
    assert names_at(server) == before
