"""What a shell completes, asked of a real bash; long answers and their pager, on a terminal."""

import json
import os
import pty
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests import draws
from tests.acceptance.server_process import ServerProcess
from tests.command_line import ROOT, redra
from tests.prepared_data import prepare
from tests.redra_program import write_program

BASH = shutil.which("bash")
DRIVER = """
complete -p redra > /dev/null
COMP_WORDS=("$@"); COMP_CWORD=$(( $# - 1 )); COMPREPLY=()
_redra_completion redra
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder in which somebody works: a program `redra`, and data whose database does not run.

    The program is a fork of a process that has loaded redra; with more draws it is started anew.
    """
    folder = tmp_path_factory.mktemp("shell")
    prepare(folder / ".redra", recorded=True)
    program = folder / "bin" / "redra"
    if draws.WHOLE:
        program.parent.mkdir()
        program.write_text(f'#!/bin/sh\nexec {sys.executable} -m app.cli "$@"\n')
        program.chmod(0o755)
    else:
        write_program(program)
    return folder


def environment(folder: Path) -> dict[str, str]:
    return {
        **os.environ,
        "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "REDRA_DATA": str(folder / ".redra"),
    }


def completed(folder: Path, *words: str) -> list[str]:
    """What bash offers for the last of the words."""
    assert BASH is not None, "these tests need bash"
    script = redra("completion", "bash")[1] + DRIVER
    done = subprocess.run(
        [BASH, "--norc", "-c", script, "bash", *words],
        env=environment(folder), cwd=folder, capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert done.stderr == ""
    return done.stdout.split()


LINES = [
    (("redra", "wh"), {"why"}, {"up"}),
    (("redra", "why", "--his"), {"--history"}, {"--help"}),
    (("redra", "findings", ""), {"prod"}, set()),
    (("redra", "findings", "--history", "p"), {"prod"}, set()),
    (("redra", "fork", "p"), {"prod"}, set()),
    (("redra", "histories", "delete", ""), {"prod"}, set()),
    (("redra", "why", "po"), {"pod/"}, {"node/"}),
    (("redra", "why", "--history", "prod", "pod/taints/n"), {"pod/taints/n-3"}, {"pod/taints/r-1"}),
    (("redra", "why", "--history", "prod", "-n", "taints", "pod/n"), {"pod/n-3"}, set()),
    (("redra", "timeline", "prod", "node/w"), {"node/worker-1", "node/worker-2"}, set()),
    (("redra", "blast", "--history", "prod", "--drain", ""), {"worker-1"}, set()),
    (("redra", "blast", "--history", "prod", "--delete", "rule/"), {"rule/evict-worker-2"}, set()),
    (("redra", "import", "--profile", "1.3"), {"1.36", "1.37"}, set()),
    (("redra", "incidents", "show", "tol"), {"toleration-without-effect"}, set()),
    (("redra", "findings", "-o", ""), {"json", "yaml"}, set()),
    (("redra", "completion", ""), {"bash", "zsh", "fish"}, set()),
]


@pytest.mark.database
@pytest.mark.parametrize(
    ("words", "offered", "absent"), LINES, ids=[" ".join(line[0]) for line in LINES]
)
def test_words_are_completed_without_a_server(
    folder: Path, words: tuple[str, ...], offered: set[str], absent: set[str]
) -> None:
    answer = set(completed(folder, *words))
    assert offered <= answer
    assert not absent & answer
    assert all(word.startswith(words[-1]) for word in answer)
    # No database was started for it.
    assert not (folder / ".redra" / "postgres" / "postmaster.pid").exists()


@draws.in_turn("ways")
@pytest.mark.database
def test_server_is_asked_for_what_has_come_since(tmp_path: Path, folder: Path) -> None:
    server = ServerProcess(tmp_path)
    server.start()
    try:
        (server.data / "names.json").unlink(missing_ok=True)
        program = tmp_path / "bin"
        program.mkdir()
        shutil.copy(folder / "bin" / "redra", program)
        (tmp_path / ".redra").symlink_to(server.data)
        assert completed(tmp_path, "redra", "findings", "") == ["default"]
        with server.client() as client:
            body = {"metadata": {"name": "gpu"}, "spec": {}}
            path = "/apis/resource.k8s.io/v1/deviceclasses"
            assert client.post(path, json=body).status_code == 201
        assert "class/gpu" in completed(tmp_path, "redra", "why", "class/g")
    finally:
        server.end()


ODD = ["x\\`touch made`", "$(touch made)", "a;touch made", "a b", "a'b", "a\nb", "-o", "a&b", "a)"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_names_that_mean_something_to_a_shell_are_not_offered(shell: str, tmp_path: Path) -> None:
    """Scripts of shells evaluate what they are offered, and a recording names objects at will."""
    known = {"prod": {"pods": [f"default/{name}" for name in (*ODD, "web-1")]}, "a`b`": {}}
    (tmp_path / "names.json").write_text(json.dumps(known))
    words = "redra why --history prod pod/"
    line = {"bash": {"COMP_WORDS": words, "COMP_CWORD": "4"}}.get(
        shell, {"_TYPER_COMPLETE_ARGS": words, "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    )
    done = subprocess.run(
        [sys.executable, "-m", "app.cli"],
        env={
            **os.environ, **line, "REDRA_DATA": str(tmp_path), "PYTHONPATH": str(ROOT),
            "_REDRA_COMPLETE": f"complete_{shell}",
        },
        cwd=tmp_path, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert "web-1" in done.stdout
    for sign in ("`", "$", ";", "made", "&", " b", "a)"):
        assert sign not in done.stdout.replace("web-1", "")


def test_what_goes_wrong_completes_nothing(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "bin").symlink_to(folder / "bin")
    (tmp_path / ".redra").mkdir()
    for text in ("{", "[" * 200_000, "[]", '{"prod": 3}', '{"prod": {"pods": "x"}}'):
        (tmp_path / ".redra" / "names.json").write_text(text)
        assert set(completed(tmp_path, "redra", "why", "--history", "prod", "pod/")) <= {"pod/"}


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_script_of_each_shell_asks_redra(shell: str) -> None:
    code, out, error = redra("completion", shell)
    assert (code, error) == (0, "")
    assert "_REDRA_COMPLETE" in out
    assert redra("completion", "tcsh")[0] == 2


def on_terminal(folder: Path, *words: str, **more: str) -> str:
    """What a command shows on a terminal."""
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [str(folder / "bin" / "redra"), *words],
        env=environment(folder) | more, cwd=folder,
        stdin=subprocess.DEVNULL, stdout=slave, stderr=slave,
    )  # fmt: skip
    os.close(slave)
    shown = b""
    while True:
        try:
            part = os.read(master, 65_536)
        except OSError:
            break
        if not part:
            break
        shown += part
    os.close(master)
    assert process.wait(timeout=60) == 0
    return shown.decode()


@draws.in_turn("ways")
def test_pager_is_used_on_a_terminal_alone(folder: Path) -> None:
    words = ("incidents", "list")
    mark = "sed s/^/|/"
    plain = redra(*words)[1]
    assert "|" not in plain
    paged = on_terminal(folder, *words, PAGER=mark, NO_COLOR="1").splitlines()
    assert len(paged) > 20
    assert all(line.startswith("|") for line in paged)
    own = on_terminal(folder, *words, PAGER="false", REDRA_PAGER=mark)
    assert own.startswith("|")
    for off, more in (
        (("--no-pager",), {"PAGER": mark}),
        ((), {"PAGER": "cat"}),
        ((), {"PAGER": mark, "REDRA_PAGER": ""}),
        ((), {"PAGER": "/no/such/program"}),
        ((), {"PAGER": "less '"}),
    ):
        shown = on_terminal(folder, *off, *words, **more)
        assert shown.replace("\r\n", "\n") == plain
    # Whoever has seen enough ends the command without a complaint.
    first = on_terminal(folder, *words, PAGER="head -n 1")
    assert len(first.splitlines()) == 1
    done = subprocess.run(
        [str(folder / "bin" / "redra"), *words],
        env=environment(folder) | {"PAGER": mark}, cwd=folder,
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    assert done.stdout == plain
