"""Every command ends as the table of exit codes says, and names the history alike."""

import ast
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from app.cli import console, exit_codes
from app.cli.exit_codes import ExitCode
from app.domain import errors
from tests import draws
from tests.acceptance.server_process import ServerProcess
from tests.acceptance.test_moments_of_commands import commands
from tests.command_line import ROOT, database_running, redra
from tests.no_room import no_room
from tests.redra_program import shared_program

RECORDING = ROOT / "examples" / "recordings" / "maintenance"
FOLDER = ROOT / "app" / "cli"

# {} is the history, {out} a file or folder that is not there.
OF_HISTORIES = {
    "blast": "blast --delete node/worker-1 --history {}",
    "capacity": "capacity {}",
    "cel": "cel true --history {}",
    "controllers": "controllers {}",
    "diff": "diff {} prod",
    "diff with": "diff prod {}",
    "diff again": "diff {} --again",
    "export": "export {} -o {out}",
    "export audit": "export {} --as audit -o {out}",
    "export pytest": "export {} --as pytest -o {out}",
    "find": "find x --history {}",
    "findings": "findings {}",
    "fit": "fit {}",
    "fork": "fork {} --history made",
    "head": "head {}",
    "histories copy": "histories copy {} made",
    "histories delete": "histories delete {} --yes",
    "histories rename": "histories rename {} made",
    "kubeconfig": "kubeconfig --history {} --server http://127.0.0.1:1",
    "lint": "lint --history {}",
    "log": "log {}",
    "map": "map --history {}",
    "minimise": "minimise {} --keep unschedulable -o {out}",
    "rebuild": "rebuild {}",
    "rehearse": "rehearse {} --to 1.37",
    "replay": "replay {}",
    "replay decide": "replay {} --mode decide",
    "report": "report {} -o {out}",
    "scan": "scan {}",
    "serve-replay": "serve-replay {} --listen 127.0.0.1:0",
    "sql": "sql --history {} SELECT(1)",
    "timeline": "timeline {}",
    "verify": "verify {}",
    "verify live": "verify {} --live",
    "watch-over": "watch-over {} --until 1",
    "why": "why pod/x --history {}",
}  # fmt: skip

WITHOUT = {
    "allocate", "completion", "demo", "fleet", "histories", "histories create", "import",
    "incidents", "incidents list", "incidents run", "incidents show", "migrate", "profiles",
    "project", "record", "sweep", "up", "work",
}  # fmt: skip
"""Commands that name no history that is there already, but in files or by options of their own."""


def words(name: str, history: str, out: Path) -> list[str]:
    line = OF_HISTORIES[name].replace("{out}", str(out))
    return [word.replace("{}", history) for word in line.split()]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A data folder with a recording, whose database runs."""
    folder = tmp_path_factory.mktemp("codes") / "data"
    with database_running(folder, recorded=True):
        (folder / "kubeconfig").write_text(
            "clusters: [{name: redra, cluster: {server: 'http://127.0.0.1:1'}}]\n"
            "users: [{name: redra, user: {}}]\n"
        )
        yield folder


def test_every_command_is_tried() -> None:
    known = {" ".join(front) for front, _ in commands()}
    tried = {" ".join(words[: 2 if words[0] == "histories" else 1]) for words in _lines()}
    assert known == tried | WITHOUT
    assert not tried & WITHOUT


def _lines() -> list[list[str]]:
    return [line.split() for line in OF_HISTORIES.values()]


@pytest.mark.parametrize("name", OF_HISTORIES)
def test_empty_name_is_neither_the_default_history_nor_the_working_folder(
    tmp_path: Path, name: str
) -> None:
    """A variable of a shell that is not set gives one."""
    code, out, error = redra(*words(name, "", tmp_path / "out"), data=tmp_path)
    assert (code, out) == (ExitCode.UNUSABLE, "")
    assert "it is empty, as if a variable were not set" in error


@draws.BY_DAY
@pytest.mark.database
@pytest.mark.parametrize("name", OF_HISTORIES)
def test_history_that_is_not_there_is_unusable_input(data: Path, tmp_path: Path, name: str) -> None:
    code, out, error = redra(*words(name, "prud", tmp_path / "out"), data=data)
    assert (code, out) == (ExitCode.UNUSABLE, "")
    assert error.splitlines()[-1] == "redra: there is no history 'prud'; do you mean prod?"
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["findings", "map", "report", "scan", "why"])
def test_file_in_the_place_of_a_history_is_said_to_be_one(tmp_path: Path, name: str) -> None:
    file = tmp_path / "soak.zip"
    file.write_bytes(b"")
    code, out, error = redra(*words(name, str(file), tmp_path / "out"), data=tmp_path / "no-data")
    assert (code, out) == (ExitCode.UNUSABLE, "")
    assert error == (
        f"redra: {file}: this is a file, and a history is asked for; make one of it with "
        f"`redra import {file} --history NAME`\n"
    )
    code, out, error = redra(*words(name, f"{file}.gone", tmp_path / "out"), data=tmp_path / "none")
    assert (code, out) == (ExitCode.UNUSABLE, "")
    assert error.startswith(f"redra: {file}.gone: there is no such file, and no history")


@pytest.mark.database
@pytest.mark.parametrize("name", ["serve-replay", "fork", "histories copy", "watch-over"])
def test_refused_command_leaves_the_histories_as_they_were(
    data: Path, tmp_path: Path, name: str
) -> None:
    _, before, _ = redra("histories", data=data)
    assert redra(*words(name, "prud", tmp_path / "out"), data=data)[0] == ExitCode.UNUSABLE
    assert redra("histories", data=data)[1] == before


@draws.in_turn("refusals")
@pytest.mark.database
@pytest.mark.parametrize("name", ["findings", "diff", "diff with", "log", "timeline", "why"])
def test_server_and_data_folder_refuse_alike(
    server: ServerProcess, tmp_path: Path, name: str
) -> None:
    line = [word.replace("prod", "default") for word in words(name, "defalt", tmp_path / "out")]
    code, out, error = redra(*line, data=server.data)
    assert (code, out) == (ExitCode.UNUSABLE, "")
    assert error == "redra: there is no history 'defalt'; do you mean default?\n"
    line = [word.replace("defalt", "default@99999") for word in line]
    code, out, error = redra(*line, data=server.data)
    assert (code, out) == (ExitCode.UNUSABLE, ""), error
    assert "has no revision 99999" in error


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A server with its history `default`."""
    process = ServerProcess(tmp_path_factory.mktemp("server"))
    process.start()
    yield process
    process.end()


def test_codes_of_problems() -> None:
    assert exit_codes.of(errors.InputError("x")) == ExitCode.UNUSABLE
    assert exit_codes.of(errors.NotFound("x")) == ExitCode.UNUSABLE
    assert exit_codes.of(errors.AlreadyExists("x")) == ExitCode.UNUSABLE
    assert exit_codes.of(errors.RevisionTooLarge("x")) == ExitCode.UNUSABLE
    assert exit_codes.of(errors.Forbidden("x")) == ExitCode.NO_ANSWER
    assert exit_codes.of(errors.LogUnavailable("x")) == ExitCode.NO_ANSWER
    assert exit_codes.of(errors.ServerUnreachable("x")) == ExitCode.NO_ANSWER
    assert exit_codes.of(errors.Rejected("x")) == ExitCode.NO_ANSWER
    # No problem in words ends as if the question had been answered.
    kinds = [errors.RedraError]
    for kind in kinds:
        kinds += kind.__subclasses__()
    for kind in {*kinds}:
        problem = kind.__new__(kind)
        assert exit_codes.of(problem) in (ExitCode.UNUSABLE, ExitCode.NO_ANSWER), kind


def test_no_command_ends_by_itself() -> None:
    """`exit_codes.conclude` also handles readers that stop early."""
    found = []
    for path in sorted(FOLDER.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in ("typer.Exit", "sys.exit"):
                found.append(path.relative_to(FOLDER).as_posix())
    assert found == ["__init__.py"]


def test_commands_that_judge_are_those_of_the_table() -> None:
    judging = set()
    for path in sorted(FOLDER.rglob("*.py")):
        if "exit_codes.conclude(" in path.read_text():
            judging.add(path.stem)
    assert judging == {
        "allocating", "demonstrating", "diffing", "incidents", "linting", "migrating", "playing",
        "recording", "rehearsing", "replaying", "showing", "sweeping", "watching",
    }  # fmt: skip
    known = {" ".join(front) for front, _ in commands()}
    assert set(exit_codes.NEGATIVE) <= known


# The answer of each is no.
LONG = {
    "diff": "diff prod@100 prod --by objects -o json",
    "findings": "findings prod --at 369 -o json",
    "rehearse": "rehearse prod@40 --to 1.37 -o json",
}


@pytest.mark.database
@pytest.mark.parametrize(
    "name", ["findings", *(draws.repeated(name) for name in LONG if name != "findings")]
)
def test_reader_that_goes_early_learns_the_verdict(data: Path, name: str) -> None:
    line = [*LONG[name].split(), "--data", str(data)]
    # The verdict rests on the comparison; what proves its causes takes many runs.
    bounds = {"REDRA_REHEARSE_RUNS_MAX": "1"}
    whole = redra(*line, **bounds)
    assert whole[0] not in (0, 2)
    process = subprocess.Popen(
        [shared_program(), *line],
        cwd=ROOT, env=os.environ | bounds, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    process.stdout.close()
    process.stdout = None
    _, error = process.communicate(timeout=120)
    assert (process.returncode, "Traceback" in error) == (whole[0], False), error


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no full device")
@pytest.mark.parametrize("line", [["profiles"], ["incidents", "list", "-o", "json"]])
def test_answer_that_cannot_be_written_is_told(line: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [shared_program(), *line],
            cwd=ROOT, stdout=full, stderr=subprocess.PIPE, text=True, timeout=120,
        )  # fmt: skip
    assert done.returncode == ExitCode.NO_ANSWER
    assert done.stderr == "redra: the answer cannot be written: No space left on device\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no full device")
def test_message_that_cannot_be_written_changes_no_exit_code() -> None:
    """Standard error may be a file on a disk that is full."""
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [shared_program(), "lint", "no-such-file"],
            cwd=ROOT, stdout=subprocess.PIPE, stderr=full, text=True, timeout=120,
        )  # fmt: skip
    assert (done.returncode, done.stdout) == (ExitCode.UNUSABLE, "")


UNWRITTEN = {
    "bundle": "export prod -o {out}/made",
    "watch": "export prod --as watch -o {out}/made",
    "manifests": "export prod --as manifests -o {out}/made",
    "minimise": "minimise prod --keep evicted -o {out}/made",
    "sweep": "sweep {out}/plan.yaml -o {out}/made",
    "head": "head prod",
    "import": f"import {RECORDING} --history new",
}
GONE_ON_FROM = {"minimise": ["made.trials"]}
"""What the same command continues from. A line that was cut is not read."""


@draws.in_turn("refusals")
@pytest.mark.database
@pytest.mark.parametrize("name", UNWRITTEN)
def test_output_without_room_is_told_and_leaves_nothing(
    data: Path, tmp_path: Path, name: str
) -> None:
    (tmp_path / "plan.yaml").write_text("fleets: [{name: one, profile: a100-mig, nodes: 1}]\n")
    (data / "heads.key").unlink(missing_ok=True)
    files = {*data.iterdir()}
    with no_room(30):
        code, out, error = redra(
            *UNWRITTEN[name].replace("{out}", str(tmp_path)).split(), data=data
        )
    assert (code, out) == (ExitCode.NO_ANSWER, ""), error
    assert re.fullmatch(
        r"redra: .*cannot be written: .*(File too large|disk is full|disk I/O error).*",
        error.splitlines()[-1],
    )
    left = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")} - {"plan.yaml"}
    assert sorted(left) == GONE_ON_FROM.get(name, [])
    assert {*data.iterdir()} <= files


def test_database_without_room_is_told_in_the_words_of_postgresql(tmp_path: Path) -> None:
    with no_room(20_000):
        code, out, error = redra("import", RECORDING, "--history", "new", data=tmp_path / "data")
    assert (code, out) == (ExitCode.NO_ANSWER, "")
    assert re.fullmatch(r"redra: PostgreSQL cannot make .*File too large", error.splitlines()[-1])


INTERRUPTED = """
import os, signal, sys

# Programs that are started in the background may ignore Ctrl-C.
signal.signal(signal.SIGINT, signal.default_int_handler)

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == {loaded!r}:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupting())
from app.cli import main
main()
"""


@pytest.mark.parametrize(
    "loaded", ["typer", "app.cli.application", "app.bootstrap.gallery", "yaml"]
)
def test_interrupt_while_modules_load_leaves_no_traceback(tmp_path: Path, loaded: str) -> None:
    script = INTERRUPTED.format(loaded=loaded)
    done = subprocess.run(
        [sys.executable, "-c", script, "incidents", "run"],
        cwd=ROOT, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.stderr == ""
    assert done.returncode in (-signal.SIGINT, ExitCode.INTERRUPTED)


def test_mistake_of_the_program_is_no_answer(tmp_path: Path) -> None:
    script = (
        "import sys; import app.cli.application as application\n"
        "def fail(*_): raise RuntimeError('a mistake')\n"
        "application.application = fail\n"
        "from app.cli import main; main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == ExitCode.DEFECT
    assert "RuntimeError: a mistake" in done.stderr
    assert json.dumps(done.stdout) == '""'


READING = {
    "capacity": "capacity", "diff": "diff default default", "findings": "findings", "fit": "fit",
    "find": "find default",
    "head": "head", "histories": "histories", "log": "log --limit 1", "map": "map",
    "scan": "scan", "timeline": "timeline --last 1", "why": "why namespace/default",
    "blast": "blast -f examples/cluster/08-taint-rule.yaml", "lint": "lint --history default",
}  # fmt: skip

NAMED = {
    "incidents list": "incidents list", "incidents show": "incidents show rules-not-seen",
    "incidents run": "incidents run rules-not-seen", "sweep": "sweep {plan} -o {folder}",
    "histories delete": "histories delete unwanted --yes",
    "histories create": "histories create wanted",
    "fork": "fork default --history forked",
}  # fmt: skip
"""Commands that ask only a server that is named."""


@pytest.mark.database
@pytest.mark.parametrize("name", READING)
def test_mistake_in_showing_an_answer_is_not_blamed_on_the_server(
    server: ServerProcess, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    def fail(*_: object) -> None:
        raise KeyError("a mistake of ours")

    assert redra(*READING[name].split(), data=server.data)[0] in (0, 1)
    monkeypatch.setattr(console, "_put", fail)
    with pytest.raises(KeyError, match="a mistake of ours"):
        redra(*READING[name].split(), data=server.data)


@draws.in_turn("refusals")
@pytest.mark.database
@pytest.mark.parametrize("name", NAMED)
def test_mistake_in_showing_the_work_of_a_server_is_not_blamed_on_it(
    server: ServerProcess, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    def fail(*_: object) -> None:
        raise KeyError("a mistake of ours")

    plan = tmp_path / "plan.yaml"
    plan.write_text("histories: [default]")
    line = NAMED[name].format(plan=plan, folder=tmp_path / "out")
    if name == "histories delete":
        assert redra("histories", "create", "unwanted", data=server.data)[0] == 0
    monkeypatch.setattr(console, "_put", fail)
    with pytest.raises(KeyError, match="a mistake of ours"):
        redra(*line.split(), "--server", server.url)


def test_every_command_that_asks_servers_is_tried() -> None:
    asking = {
        " ".join(front)
        for front, command in commands()
        if any("--server" in each.opts and not each.expose_value for each in command.params)
    }
    # A report is bytes, which are written as they come; the others show a result like `sweep`.
    assert asking == {*READING, *NAMED, "report", "minimise", "export", "rehearse"}
