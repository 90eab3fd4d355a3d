"""A server process over the memory adapters: `python -m tests.acceptance.memory_server`.

Prints `PORT <number>` when it listens and ends when its standard input is closed.
"""

import asyncio
import socket
import sys

import anyio
import uvicorn

from tests.api.serving import running_app

TOKEN = "acceptance-token"


async def main():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(1024)
        async with running_app() as (app, _histories), anyio.create_task_group() as tasks:
            config = uvicorn.Config(app, log_level="warning", lifespan="off", access_log=False)
            server = uvicorn.Server(config)
            tasks.start_soon(server.serve, [listener])
            sys.stdout.write(f"PORT {listener.getsockname()[1]}\n")
            sys.stdout.flush()
            await anyio.to_thread.run_sync(sys.stdin.read, abandon_on_cancel=True)
            server.should_exit = True


if __name__ == "__main__":
    asyncio.run(main())
