"""The demo says what it waited for in vain, and ends as a command that disagrees."""

import socket
from pathlib import Path

import pytest

from app.cli import demonstrating
from app.cli.exit_codes import ExitCode
from tests.command_line import redra


def test_server_that_does_not_answer_fails_the_demo(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        server = demonstrating.DemoServer(url=url, data=tmp_path, seconds=0.01)
        with pytest.raises(demonstrating.DemoFailed, match="GET /x was not answered: timed out"):
            server.request("GET", "/x")


def test_folder_without_the_manifests_is_refused_before_a_server_starts(tmp_path: Path) -> None:
    code, out, error = redra("demo", "--examples", tmp_path)
    assert (code, out) == (ExitCode.UNUSABLE, "")
    assert error.startswith(f"redra: {tmp_path}/01-nodes.yaml: the example manifests are missing")
