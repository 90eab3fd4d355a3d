"""The API behind a real port of loopback, over the memory adapters."""

import socket
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass

import anyio
import uvicorn

from app.api.server.connections import ConnectionBounds, connection_class
from app.service.histories import Histories
from tests.api.serving import running_app
from tests.patience import PATIENCE_SECONDS

PATIENT = ConnectionBounds()


@dataclass(frozen=True)
class Listening:
    """A running server: its port, its set of connections, what it serves."""

    port: int
    connections: set
    histories: Histories


@asynccontextmanager
async def running(bounds=PATIENT, limits=None):
    """A real server on a port of its own."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        async with (
            running_app(limits=limits) as (app, histories),
            anyio.create_task_group() as tasks,
        ):
            config = uvicorn.Config(
                app,
                http=connection_class(bounds),
                lifespan="off",
                log_config=None,
                log_level="critical",
                timeout_graceful_shutdown=1,
            )
            server = uvicorn.Server(config)
            server.capture_signals = nullcontext
            tasks.start_soon(server.serve, [listener])
            with anyio.fail_after(PATIENCE_SECONDS):
                while not server.started:
                    await anyio.lowlevel.checkpoint()
            yield Listening(listener.getsockname()[1], server.server_state.connections, histories)
            server.should_exit = True
