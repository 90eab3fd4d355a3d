"""The guardian of a PostgreSQL server, at the moments in which a signal reaches it."""

import ctypes
import json
import os
import signal
from collections.abc import Iterator

import pytest

from app.adapters.postgres import guardian

SLEEP: dict[str, object] = {
    "command": ["/bin/sleep", "20"], "folder": "/", "identity": "same", "uid": 0, "gid": 0,
    "guard": True, "pause_first_seconds": 1, "pause_max_seconds": 1, "grace_seconds": 1, "owner": 0,
}  # fmt: skip


@pytest.fixture
def handled() -> Iterator[None]:
    """SIGINT is handled as the guardian handles it: noted, and nothing else."""
    before = signal.signal(signal.SIGINT, lambda number, frame: None)
    yield
    signal.signal(signal.SIGINT, before)


def test_signal_between_fork_and_start_ends_the_server(
    handled: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, set_wakeup_fd = os.getpid(), signal.set_wakeup_fd

    def signalled(descriptor: int) -> int:
        # The first thing that the child does.
        if os.getpid() != own:
            os.kill(os.getpid(), signal.SIGINT)
        return set_wakeup_fd(descriptor)

    monkeypatch.setattr(guardian.signal, "set_wakeup_fd", signalled)
    child = guardian.spawn(guardian.GuardianOptions(json.dumps(SLEEP)), ctypes.CDLL(None))
    assert guardian.wait_for(child) == 128 + signal.SIGINT
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())
