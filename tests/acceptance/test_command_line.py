"""What the commands say and how they end, as a person at a terminal meets them."""

import fcntl
import gc
import gzip
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor, wait
from functools import partial
from pathlib import Path

import httpx
import pytest
from typer.core import TyperGroup

from app.adapters.running import notice
from app.api.server import listening
from app.bootstrap import child_processes, kubeconfigs
from app.cli.application import SECTIONS, program
from app.domain.errors import InputError
from tests import draws
from tests.acceptance.server_process import wait_for_own_objects
from tests.command_line import database_running, redra
from tests.patience import PATIENCE_SECONDS
from tests.prepared_data import prepare
from tests.redra_process import RedraProcess

ROOT = Path(__file__).resolve().parent.parent.parent
EXAMPLES = ROOT / "examples" / "cluster"

pytestmark = [pytest.mark.slow]


@pytest.mark.parametrize("command", ["up", "histories", "import", "why"])
def test_empty_data_folder_is_refused_and_is_not_the_working_folder(command: str) -> None:
    code, out, error = redra(command, "--data", "")
    assert (code, out) == (2, "")
    assert "--data: it is empty, as if a variable were not set" in error


def test_own_processes_do_not_import_a_package_app_of_the_working_folder(tmp_path: Path) -> None:
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "__init__.py").write_text("raise SystemExit(3)\n")
    done = subprocess.run(
        child_processes.command("project", "--help"), cwd=tmp_path, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_help_lists_every_command_once_in_a_line_that_fits() -> None:
    code, out, _ = redra("--help")
    assert code == 0
    listed = [name for texts in SECTIONS.values() for name in texts]
    group = program()
    assert isinstance(group, TyperGroup)
    assert set(listed) == set(group.commands)
    assert len(listed) == len(set(listed))
    _, *lines = out.splitlines()
    assert [line for line in lines if len(line) > 80 or line.endswith("...")] == []


@pytest.mark.parametrize("group", ["incidents", "histories"])
def test_help_of_a_group_has_no_sentence_that_is_cut(group: str) -> None:
    code, out, _ = redra(group, "--help")
    assert code == 0
    commands = out.partition("Commands:")[2].splitlines()[1:]
    assert len(commands) > 2
    assert [line for line in commands if line.endswith("...")] == []


def test_version_is_printed() -> None:
    code, out, _ = redra("--version")
    assert (code, out.split()[0]) == (0, "redra")
    assert out.split()[1][0].isdigit()


@pytest.mark.parametrize("words", [["pod"], ["pod/"], ["pod/a", "b"], ["pod", "a", "b"]])
def test_words_that_name_no_object_are_refused(words: list[str], tmp_path: Path) -> None:
    code, out, error = redra("why", *words, data=tmp_path)
    assert (code, out) == (2, "")
    assert f"{' '.join(words)!r} does not name an object" in error


@pytest.mark.parametrize("command", ["log", "timeline"])
def test_history_is_named_once_as_argument_or_option(command: str, tmp_path: Path) -> None:
    code, out, error = redra(command, "one", "--history", "two", data=tmp_path)
    assert (code, out) == (2, "")
    assert "the history is named twice, 'one' and 'two'" in error
    for words in (("one",), ("--history", "one"), ("one", "--history", "one")):
        _, _, error = redra(command, *words, data=tmp_path)
        assert "the folder has no data of redra" in error


@draws.in_turn("refusals")
@pytest.mark.parametrize("lines", [1, 2_000])
def test_reader_that_goes_early_is_no_error(lines: int) -> None:
    # Less than a buffer is written at the end only, more while the command runs.
    scenario = {"name": "a", "input": {"nodes": [], "classes": [], "slices": [], "claims": []}}
    work = subprocess.Popen(
        [sys.executable, "-m", "app.cli", "allocate", "-"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert work.stdout is not None
    work.stdout.close()
    work.stdout = None
    _, error = work.communicate((json.dumps(scenario) + "\n") * lines, timeout=120)
    assert (work.returncode, error) == (0, "")


def test_programs_get_utf_8_whatever_the_locale(tmp_path: Path) -> None:
    given = {"nodes": [], "classes": [], "slices": [], "claims": []}
    file = tmp_path / "lines.jsonl"
    file.write_text(json.dumps({"name": "é└", "input": given}, ensure_ascii=False))
    done = subprocess.run(
        [sys.executable, "-m", "app.cli", "allocate", file],
        cwd=ROOT,
        capture_output=True,
        timeout=120,
        env=os.environ | {"PYTHONIOENCODING": "ascii"},
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert json.loads(done.stdout)["name"] == "é└"


def test_unknown_format_of_a_recording_is_refused(tmp_path: Path) -> None:
    prepare(tmp_path / "data")
    for source in (EXAMPLES, EXAMPLES / "01-nodes.yaml"):
        words = ("import", source, "--history", "x", "--format", "nonsense")
        code, _, error = redra(*words, data=tmp_path / "data")
        assert code == 2
        assert error.startswith(
            "redra: --format: there is no format 'nonsense'; choose from auto, "
        )


@pytest.mark.parametrize(
    "address",
    [
        "nonsense",
        "postgresql://[::1",
        "postgresql://host:abc/name",
        "postgresql://one:1,two:b/name",
        "postgresql:///name?port=5432,abc",
    ],
)
def test_address_of_no_database_is_told_as_that(address: str) -> None:
    code, _, error = redra("histories", REDRA_DATABASE_URL=address)
    assert code == 4
    assert error.startswith("redra: the address of the database cannot be used (")
    assert "; write REDRA_DATABASE_URL as postgresql://" in error


@pytest.mark.parametrize(
    "words",
    [
        ("find", "\udcff"),
        ("why", "pod/x", "-n", "\udcff"),
        ("log", "\udcff"),
        ("sql", "select '\udcff'"),
        ("fork", "--history", "new", "default", "--apply", "half.json"),
        ("blast", "-f", "half.json"),
        ("lint", "half.json"),
    ],
)
def test_text_with_half_of_a_character_is_refused(tmp_path: Path, words: tuple[str, ...]) -> None:
    """JSON names it as `\\ud800`; an argument that is not UTF-8 has it."""
    tree = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": "a", "annotations": {"x": "\ud800"}},
    }
    (tmp_path / "half.json").write_text(json.dumps(tree))
    data = tmp_path / "data"
    prepare(data)
    assert redra("histories", "create", "default", data=data)[0] in (0, 2)
    code, out, error = redra(*words, data=None if words[0] == "lint" else data, folder=tmp_path)
    assert (code, out) == (2, "")
    assert error.startswith("redra: ")
    assert '"new"' not in redra("histories", "-o", "json", data=data)[1]


@pytest.mark.parametrize(
    ("line", "expected"),
    [("redra wh", "why"), ("redra replay --mo", "--mode"), ("redra replay --mode v", "verify")],
)
def test_shells_complete_commands_options_and_choices(line: str, expected: str) -> None:
    words = {"COMP_WORDS": line, "COMP_CWORD": str(line.count(" "))}
    code, out, error = redra(_REDRA_COMPLETE="complete_bash", **words)
    assert (code, out.split(), error) == (0, [expected], "")


@pytest.mark.parametrize("options", [[], ["--tls"]])
def test_data_folder_that_cannot_be_made_is_refused(tmp_path: Path, options: list[str]) -> None:
    (tmp_path / "file").touch()
    data = tmp_path / "file" / "data"
    code, _, error = redra("up", "--listen", "127.0.0.1:0", *options, data=data)
    assert code == 2
    assert error == (
        f"redra: {data}: the folder cannot be written: Not a directory; "
        "choose another with --data\n"
    )


def test_unknown_command_ends_with_2() -> None:
    code, _, error = redra("nonsense")
    assert code == 2
    assert "nonsense" in error


def test_bad_scenario_line_is_named_with_its_column(tmp_path: Path) -> None:
    file = tmp_path / "scenarios.jsonl"
    good = {"name": "a", "input": {"nodes": [], "classes": [], "slices": [], "claims": []}}
    file.write_text(json.dumps(good) + '\n{"name": bad}\n')
    code, out, error = redra("allocate", file)
    assert code == 2
    assert json.loads(out)["name"] == "a"
    assert f"{file}:2: column 10" in error


def test_scenario_with_a_wrong_field_names_the_field() -> None:
    code, _, error = redra("allocate", "-", stdin='{"name":"a","input":{"nodes":3}}\n')
    assert code == 2
    assert "input.nodes: must be a list" in error


@pytest.mark.parametrize("text", ["", "\n\n", '{"cases": []}'])
def test_file_of_scenarios_without_any_is_refused(text: str, tmp_path: Path) -> None:
    file = tmp_path / "scenarios.jsonl"
    file.write_text(text)
    assert redra("allocate", file) == (2, "", f"redra: {file}: it holds no case\n")
    code, out, error = redra("allocate", "-", stdin=text)
    assert (code, out, error) == (2, "", "redra: standard input: it holds no case\n")


def test_unknown_quirk_is_refused_in_words() -> None:
    code, _, error = redra("allocate", "-", "--quirk", "q99=off", stdin="")
    assert code == 2
    assert "there is no quirk 'q99'" in error


def test_selector_that_does_not_compile_ends_with_1() -> None:
    slices = EXAMPLES / "03-gpu-slices.yaml"
    code, _, error = redra("cel", "device.nope", "--slices", slices)
    assert code == 1
    assert "undefined field 'nope'" in error


def test_selector_shows_where_it_failed() -> None:
    slices = EXAMPLES / "03-gpu-slices.yaml"
    expression = 'device.attributes["gpu.example.com"].nope == 1'
    code, out, _ = redra("cel", expression, "--slices", slices, "-o", "json")
    assert code == 0
    first = json.loads(out)["devices"][0]
    assert first["error"].startswith("no such key: nope")
    assert first["failedAt"].endswith('device.attributes["gpu.example.com"].nope')


def test_address_beyond_loopback_is_refused(tmp_path: Path) -> None:
    code, _, error = redra("up", "--listen", "0.0.0.0:0", data=tmp_path)
    assert code == 2
    assert "0.0.0.0" in error


def test_command_that_serves_leaves_the_garbage_of_the_tests_to_be_collected(
    tmp_path: Path,
) -> None:
    """What serves excludes from later looks what is left after each, in whatever process it is."""
    before = gc.get_threshold(), [*gc.callbacks]
    code, _, _ = redra("up", "--listen", "0.0.0.0:0", data=tmp_path)
    assert code == 2
    assert (gc.get_threshold(), gc.callbacks) == before


def test_fleet_for_a_server_that_does_not_answer_may_be_tried_again() -> None:
    words = ("fleet", "--profile", "a100-mig", "--server", "http://127.0.0.1:1")
    code, out, error = redra(*words)
    assert (code, out) == (4, "")
    assert error.startswith("redra: http://127.0.0.1:1: Connection refused; for a server with TLS")


@pytest.mark.parametrize(
    ("history", "path", "said"),
    [
        ("default", "", "http://127.0.0.1:1/h/default: Connection refused"),
        ("other", "", "http://127.0.0.1:1/h/other: Connection refused"),
        ("other", "/h/other/", "http://127.0.0.1:1/h/other: Connection refused"),
        ("other", "/h/third", "the history is named twice, 'third' and 'other'"),
    ],
)
def test_fleet_goes_to_the_history_of_a_server(history: str, path: str, said: str) -> None:
    server = f"http://127.0.0.1:1{path}"
    words = ("fleet", "--profile", "nic", "--history", history, "--server", server)
    assert redra(*words)[2].startswith(f"redra: {said}")


def test_policy_that_is_no_yaml_is_named_with_its_line(tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text("rules: [1\nb: 2\n")
    code, _, error = redra("up", "--tls", "--policy", policy, data=tmp_path / "data")
    assert code == 2
    assert error.startswith(f"redra: {policy}: it is not YAML: while parsing a flow sequence at ")
    assert error.endswith("at line 2, column 2\n")


def test_database_that_does_not_answer_is_one_sentence() -> None:
    url = "postgresql://nobody@127.0.0.1:1/none"
    code, _, error = redra("histories", REDRA_DATABASE_URL=url)
    assert code == 4
    assert len(error.strip().splitlines()) == 1
    assert error.startswith("redra: ")


def test_kubeconfig_is_printed_when_the_database_does_not_answer(tmp_path: Path) -> None:
    access = kubeconfigs.Access(url="http://127.0.0.1:1", token="t")
    kubeconfigs.write(tmp_path / "kubeconfig", access)
    code, out, error = redra(
        "kubeconfig", "--history", "other", data=tmp_path,
        REDRA_DATABASE_URL="postgresql://127.0.0.1:1/nowhere",
    )  # fmt: skip
    assert (code, "current-context: other" in out) == (0, True), error
    assert error.startswith("these histories could not be checked: other: ")


def test_bad_setting_names_its_variable() -> None:
    code, _, error = redra("histories", REDRA_POLL_SECONDS="soon")
    assert code == 2
    assert "REDRA_POLL_SECONDS" in error


def test_audit_log_without_bodies_imports_nothing_useful_and_says_so(tmp_path: Path) -> None:
    event = {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": "Metadata",
        "auditID": "1",
        "stage": "ResponseComplete",
        "requestURI": "/api/v1/namespaces/a/pods/p",
        "verb": "update",
        "user": {"username": "u"},
        "objectRef": {"resource": "pods", "namespace": "a", "name": "p", "apiVersion": "v1"},
        "responseStatus": {"code": 200},
        "stageTimestamp": "2026-01-01T00:00:00.000000Z",
    }
    file = tmp_path / "audit.log"
    file.write_text(json.dumps(event) + "\n")
    code, out, _ = redra("replay", file, "-o", "json")
    assert code in (0, 2)
    if code == 0:
        assert json.loads(out)["objects"] == {}


def test_damaged_recording_is_refused_and_leaves_no_history(tmp_path: Path) -> None:
    file = tmp_path / "audit.log.gz"
    file.write_bytes(gzip.compress(b'{"kind":"Event"}\n' * 100)[:-12])
    data = tmp_path / "data"
    prepare(data)
    code, _, error = redra("import", file, "--history", "broken", data=data)
    assert code == 2
    assert "audit.log.gz" in error
    code, out, _ = redra("histories", "-o", "json", data=data)
    assert code == 0
    assert json.loads(out) == []


@draws.in_turn("ways")
def test_manifests_become_a_history_that_can_be_asked(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with database_running(data):
        _ask_a_history_of_manifests(data)


def _ask_a_history_of_manifests(data: Path) -> None:
    code, out, error = redra("import", EXAMPLES, "--history", "manifests", data=data)
    assert code == 0, error
    assert "resourceslices.resource.k8s.io" in out
    code, out, _ = redra("replay", "manifests", "-o", "json", data=data)
    assert code == 0
    found = json.loads(out)
    assert (found["history"], found["devices"]) == ("manifests", 127)
    code, out, _ = redra("rebuild", "manifests", "-o", "json", data=data)
    assert code == 0
    assert all(row["same"] for row in json.loads(out))
    question = "SELECT count(*) AS devices FROM view_devices"
    code, out, error = redra("sql", question, "-o", "json", data=data)
    assert (code, json.loads(out)) == (0, [{"devices": 127}])
    # There is no pod and no claim among the manifests, and none may have been left out.
    assert error.startswith("note: the recording manifests is incomplete")
    assert len(error.splitlines()) == 1
    for statement in ("COPY (SELECT 1) TO PROGRAM 'id'", "SELECT pg_read_file('/etc/passwd')"):
        code, out, error = redra("sql", statement, data=data)
        assert (code, out) == (2, ""), error
    code, out, error = redra("sql", "SELECT 1 AS a, 2 AS a", "-o", "json", data=data)
    assert (code, out) == (2, "")
    assert "two columns are named 'a', and an object has each name once" in error
    code, _, error = redra("fleet", "--profile", "nic", "--history", "manifests", data=data)
    assert code == 2
    assert "the history 'manifests' is a recording and cannot be changed" in error
    code, _, error = redra("import", EXAMPLES, "--history", "manifests", data=data)
    assert code == 2
    assert "already exists" in error
    code, _, error = redra("log", "nothing", data=data)
    assert code == 2
    assert "there is no history 'nothing'" in error


def test_sources_of_a_replay_are_files_or_one_history() -> None:
    code, _, error = redra("replay", EXAMPLES, "missing.log")
    assert (code, error) == (2, "redra: missing.log: there is no such file\n")
    code, _, error = redra("replay", "one", "two")
    assert code == 2
    assert error.startswith("redra: one, two: only one history can be read at a time")
    for command in ("verify", "minimise --keep evicted -o x", "export --as pytest -o x"):
        code, _, error = redra(*command.split(), "./missing")
        assert (code, error) == (2, "redra: ./missing: there is no such file\n")
        code, _, error = redra(*command.split(), "missing.zip")
        text = "redra: missing.zip: there is no file and no history of this name\n"
        assert (code, error) == (2, text)


@draws.in_turn("ways")
def test_folder_with_the_name_of_a_history_is_told_apart(tmp_path: Path) -> None:
    shutil.copytree(EXAMPLES, tmp_path / "examples" / "cluster")
    here = partial(redra, folder=tmp_path)
    code, _, error = here("replay", "examples", data=tmp_path)
    assert code == 0
    note = "examples is read as the folder ./examples, because there is no such history\n"
    assert note in error
    data = tmp_path / "data"
    with database_running(data):
        assert note in here("replay", "examples", data=data)[2]
        assert here("histories", "create", "examples", data=data)[0] == 0
        preferred = "examples is read as the history; the folder of that name is ./examples\n"
        out = tmp_path / "out"
        for words in (
            ("replay", "examples"),
            ("verify", "examples"),
            ("minimise", "examples", "--keep", "unschedulable", "-o", out),
            ("export", "examples", "--as", "pytest", "-o", out),
        ):
            code, said, error = here(*words, data=data)
            assert error.startswith(preferred), words
            if words[0] in ("replay", "verify"):
                assert said.startswith("history examples")
        for path in ("./examples", "examples/cluster"):
            code, said, error = here("replay", path, data=data)
            assert code == 0, error
            assert said.startswith("history replayed ")
            assert preferred not in error


@draws.in_turn("ways")
def test_server_stops_cleanly_and_goes_on_where_it_was(tmp_path: Path) -> None:
    data = tmp_path / "data"
    prepare(data)
    revisions: list[int] = []
    for _ in range(2):
        server = RedraProcess(["up", "--listen", "127.0.0.1:0", "--data", data])
        line = server.stdout.readline()
        assert "redra serves at http://127.0.0.1:" in line
        with httpx.Client(base_url=line.split()[-1], timeout=PATIENCE_SECONDS) as client:
            for namespace in client.get("/api/v1/namespaces").json()["items"]:
                wait_for_own_objects(client, namespace["metadata"]["name"])
        code, out, error = redra("histories", "-o", "json", data=data)
        assert code == 0, error
        revisions.append(json.loads(out)[0]["revision"])
        server.send_signal(signal.SIGTERM)
        server.communicate(timeout=30)
        assert server.returncode == 0
    assert (data / "kubeconfig").exists()
    assert revisions[0] == revisions[1]


def test_missing_recording_is_named_as_it_was_given(tmp_path: Path) -> None:
    missing = tmp_path / "folder" / "audit.log"
    code, _, error = redra("import", missing, "--history", "x", data=tmp_path / "data")
    assert code == 2
    assert f"{missing}: there is no such file" in error
    assert not (tmp_path / "data").exists(), "a mistyped path starts no database"


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("--kubeconfig", "missing"), "missing: there is no such kubeconfig; name one with"),
        (("--kubeconfig", EXAMPLES / "01-nodes.yaml"), "it is not YAML: line "),
        (
            ("--kubeconfig", os.devnull, "--history", "A b"),
            "'A b' is not a valid name of a history",
        ),
        (("--include", "podz"), "'podz'"),
    ],
)
def test_recording_that_cannot_begin_makes_no_data(
    words: tuple[object, ...], text: str, tmp_path: Path
) -> None:
    code, out, error = redra("record", "--history", "x", *words, data=tmp_path / "data")
    assert (code, out) == (2, "")
    assert text in error
    assert error.count("\n") == 1
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("up --listen 127.0.0.1:0 --profile 1.30", "there is no profile '1.30'"),
        ("up --listen 127.0.0.1:0 --quirk c99=on", "there is no quirk 'c99'"),
        ("up --listen 127.0.0.1:0 --gate Foo=true", "there is no feature gate 'Foo'"),
        ("up --listen 127.0.0.1:0 --without x", "there is no controller 'x'"),
        (f"import {EXAMPLES} --history A_b", "'A_b' is not a valid name"),
        (f"import {EXAMPLES} --history x --profile 1.30", "there is no profile '1.30'"),
        ("histories create A_b", "'A_b' is not a valid name"),
        ("histories create x --gate Foo=true", "there is no feature gate 'Foo'"),
        ("fleet --profile a100-mig --history A_b", "'A_b' is not a valid name"),
    ],
)
def test_unknown_name_or_setting_makes_no_data(words: str, text: str, tmp_path: Path) -> None:
    code, out, error = redra(*words.split(), data=tmp_path / "data")
    assert (code, out) == (2, "")
    assert text in error
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("get pods", "kubectl --kubeconfig .redra/kubeconfig get"),
        ("apply -f pods.yaml", "kubectl --kubeconfig .redra/kubeconfig apply"),
        ("describe pod web", "redra why KIND/NAME"),
        ("logs web", "redra timeline"),
        ("events", "redra timeline"),
        ("version", "redra --version"),
        ("help why", "redra COMMAND --help"),
        ("whi", "Did you mean 'why'?"),
        ("blast drain/worker-1", "'drain/worker-1' names no history; name what changes with"),
        ("blast node/worker-1 --history prod", "'node/worker-1' names no history"),
    ],
)
def test_words_of_kubectl_lead_to_those_of_redra(words: str, text: str) -> None:
    code, out, error = redra(*words.split())
    assert (code, out) == (2, "")
    assert text in " ".join(error.split())


@pytest.mark.parametrize("words", ["", "why", "histories create"])
def test_short_option_for_help_prints_what_the_long_one_prints(words: str) -> None:
    assert redra(*words.split(), "-h") == redra(*words.split(), "--help")


def test_reading_from_a_mistyped_folder_makes_no_database_there(tmp_path: Path) -> None:
    for command in (("histories",), ("log",), ("why", "pod/web"), ("replay", "prod")):
        code, out, error = redra(*command, data=tmp_path / "typo")
        assert (code, out) == (2, "")
        assert f"{tmp_path / 'typo'}: the folder has no data of redra" in error
    assert not (tmp_path / "typo").exists()


def test_missing_file_of_cases_is_not_taken_for_an_expression() -> None:
    code, _, error = redra("cel", "cases.jsonl")
    assert code == 2
    assert "cases.jsonl: there is no such file" in error


@pytest.mark.parametrize("option", ["--last", "--limit"])
def test_negative_counts_are_refused(option: str) -> None:
    code, _, error = redra("timeline" if option == "--last" else "log", option, "-3")
    assert code == 2
    assert f"'{option}'" in error


def test_moment_below_zero_is_refused() -> None:
    code, _, error = redra("log", "--after", "-3")
    assert (code, "'-3' is neither a revision nor an instant" in error) == (2, True)


def test_of_two_servers_that_start_at_one_address_the_second_is_refused() -> None:
    with listening.bind("127.0.0.1", 0) as first:
        port = first.getsockname()[1]
        with listening.bind("127.0.0.1", port) as second:
            listening.take_connections(first)
            with pytest.raises(InputError, match=f"127.0.0.1:{port} cannot be used as the address"):
                listening.take_connections(second)


@draws.in_turn("ways")
def test_second_server_on_the_same_data_has_a_kubeconfig_of_its_own(tmp_path: Path) -> None:
    data = tmp_path / "data"
    prepare(data)
    addresses: list[str] = []
    servers: list[RedraProcess] = []
    try:
        for _ in range(2):
            server = RedraProcess(["up", "--listen", "127.0.0.1:0", "--data", data])
            servers.append(server)
            addresses.append(server.stdout.readline().removeprefix("redra serves at ").strip())
        own = data / f"kubeconfig-{addresses[1].rpartition(':')[2]}"
        assert f"server: {addresses[0]}\n" in (data / "kubeconfig").read_text()
        assert f"server: {addresses[1]}\n" in own.read_text()
        said = []
        for server in reversed(servers):
            server.send_signal(signal.SIGTERM)
            said.append(server.communicate(timeout=30)[1])
            assert server.returncode == 0
        assert said[1] == ""
        assert f"kubeconfig still names {addresses[0]}, which serves the same data" in said[0]
        assert f"the file of this server is {own}\n" in said[0]
    finally:
        for server in servers:
            if server.poll() is None:
                server.kill()
                server.communicate()


@pytest.mark.parametrize("is_shared", [True, False])
def test_kubeconfig_and_notice_name_one_of_two_servers_that_start_at_once(
    tmp_path: Path, is_shared: bool
) -> None:
    said: list[str] = []

    def publish(url: str, place: notice.Place) -> None:
        path = kubeconfigs.publish(
            tmp_path,
            kubeconfigs.Access(url=url),
            is_shared=is_shared,
            is_taken=place.is_taken,
            note=said.append,
        )
        place.post(notice.Notice(url=url, kubeconfig=path), database="")

    with notice.claimed(tmp_path) as first, notice.claimed(tmp_path) as second:
        publish("http://127.0.0.1:9", second)
        assert notice.read(tmp_path, database="") is None
        publish("http://127.0.0.1:8", first)
        posted = notice.read(tmp_path, database="")
        assert posted is not None
        assert (posted.url, posted.kubeconfig.name) == ("http://127.0.0.1:8", "kubeconfig")
        assert "server: http://127.0.0.1:8\n" in posted.kubeconfig.read_text()
        assert "server: http://127.0.0.1:9\n" in (tmp_path / "kubeconfig-9").read_text()
    own = f"{tmp_path / 'kubeconfig-9'}"
    assert said == [
        f"{tmp_path / 'kubeconfig'} is that of another server on this folder; the file of this "
        f"server is {own}"
    ]


def test_command_that_reads_the_notice_is_not_taken_for_a_server(tmp_path: Path) -> None:
    def is_taken() -> bool:
        with notice.claimed(tmp_path) as place:
            return place.is_taken

    with (tmp_path / notice.FILE).open("w+b") as read, ThreadPoolExecutor(1) as thread:
        fcntl.flock(read, fcntl.LOCK_SH)
        claim = thread.submit(is_taken)
        wait([claim], timeout=0.1)  # a claim that does not wait has ended
        fcntl.flock(read, fcntl.LOCK_UN)
        assert not claim.result(timeout=PATIENCE_SECONDS)


@pytest.mark.parametrize("is_shared", [True, False])
def test_kubeconfig_of_a_server_of_other_data_is_taken_over(
    tmp_path: Path, is_shared: bool
) -> None:
    said: list[str] = []

    def publish(url: str) -> str:
        access = kubeconfigs.Access(url=url)
        return kubeconfigs.publish(
            tmp_path, access, is_shared=is_shared, is_taken=False, note=said.append
        ).name

    with socket.create_server(("127.0.0.1", 0)) as other:
        answers = f"http://127.0.0.1:{other.getsockname()[1]}"
        assert publish(answers) == "kubeconfig"
        assert publish("http://127.0.0.1:9") == ("kubeconfig-9" if is_shared else "kubeconfig")
        assert answers in said.pop()
    assert publish("http://127.0.0.1:8") == "kubeconfig"
    assert said == []
    with socket.create_server(("127.0.0.1", 0)) as own:
        port = own.getsockname()[1]
        assert publish(f"http://127.0.0.1:{port}") == "kubeconfig"
        assert publish(f"https://127.0.0.1:{port}") == "kubeconfig", "the same server, with TLS"
    assert said == []
