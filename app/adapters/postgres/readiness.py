"""The wait for a database server that is still starting when redra starts.

A server that starts, recovers or stops accepts connections and refuses each with the state 57P03.
It will be ready soon, so a process that starts beside it waits. Other errors (no server listens,
a wrong password) are raised at once, because waiting does not fix them.
"""

from collections.abc import Callable
from dataclasses import dataclass

import anyio
import asyncpg

from app.adapters.postgres.names import APPLICATION_NAME
from app.adapters.postgres.problems import check_address, translated

_CLOSE_SECONDS = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadyBounds:
    """The time to wait for the server in all, and the pauses between attempts."""

    seconds: float = 10.0
    pause_first_seconds: float = 0.1
    pause_max_seconds: float = 1.0


async def wait_until_ready(
    url: str, bounds: ReadyBounds = ReadyBounds(), *, note: Callable[[str], None]
) -> None:
    """Return when the server takes sessions; calls `note` once, before the first wait.

    Raises LogUnavailable when the time is over. Other errors are raised at once.
    """
    check_address(url)
    ends = anyio.current_time() + bounds.seconds
    pause = bounds.pause_first_seconds
    is_noted = False
    with translated():
        while True:
            try:
                connection = await asyncpg.connect(
                    url,
                    timeout=bounds.seconds,
                    server_settings={"application_name": APPLICATION_NAME},
                )
            except asyncpg.CannotConnectNowError as problem:
                left = ends - anyio.current_time()
                if left <= 0:
                    raise
                if not is_noted:
                    is_noted = True
                    note(f"waiting up to {bounds.seconds:g} s for the database: {problem}")
                await anyio.sleep(min(pause, left))
                pause = min(pause * 2, bounds.pause_max_seconds)
            else:
                await connection.close(timeout=_CLOSE_SECONDS)
                return
