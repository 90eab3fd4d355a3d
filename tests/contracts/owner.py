"""Owns an embedded server as a process of its own, so that the owner can be killed.

`python -m tests.contracts.owner FOLDER` says `ready GUARDIAN` or the refusal, then waits.
"""

import signal
import sys
from pathlib import Path

from app.adapters.postgres.server import EmbeddedServer
from app.domain.errors import RedraError


def main() -> None:
    """Start and wait for a signal."""
    try:
        with EmbeddedServer(Path(sys.argv[1])) as server:
            print("ready", server.guardian_pid, flush=True)
            signal.pause()
    except RedraError as problem:
        print("refused", problem, flush=True)


if __name__ == "__main__":
    main()
