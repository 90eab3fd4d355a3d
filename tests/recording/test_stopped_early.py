"""A recorder that is stopped before it has begun says so, and leaves nothing."""

import signal
import socket
from pathlib import Path

import pytest
import yaml

from tests import draws
from tests.command_line import database_running, redra
from tests.patience import PATIENCE_SECONDS
from tests.redra_process import RedraProcess

pytestmark = pytest.mark.database


@draws.in_turn("ends")
@pytest.mark.parametrize(
    ("how", "once"), [(signal.SIGTERM, ()), (signal.SIGINT, ("--once",))], ids=["follows", "once"]
)
def test_recorder_that_is_stopped_while_the_cluster_is_silent_says_that_nothing_is_recorded(
    how: signal.Signals, once: tuple[str, ...], tmp_path: Path
) -> None:
    with database_running(tmp_path / "data"), socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(PATIENCE_SECONDS)
        kubeconfig = tmp_path / "kubeconfig"
        kubeconfig.write_text(yaml.safe_dump(_cluster_at(silent.getsockname()[1])))
        options = ("--history", "prod", "--kubeconfig", kubeconfig, "--data", tmp_path / "data")
        recorder = RedraProcess(["record", *options, *once])
        connection, _ = silent.accept()
        with connection:
            recorder.send_signal(how)
            out, error = recorder.communicate(timeout=PATIENCE_SECONDS)
        assert (recorder.returncode, out) == (130, "")
        assert error == (
            f"connecting to the cluster ({kubeconfig})\n"
            "stopped before it began: nothing was recorded\n"
        )
        assert "prod" not in redra("histories", data=tmp_path / "data")[1]


def _cluster_at(port: int) -> dict[str, object]:
    """A kubeconfig for a server on this machine."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
        "users": [{"name": "c", "user": {}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
    }
