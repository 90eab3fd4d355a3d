"""How a process of ours starts another one of ours, and ends it."""

import sys

import anyio
from anyio.abc import Process

END_SECONDS = 5.0
"""How long a process may take to end before it is killed."""


def command(*arguments: str) -> list[str]:
    """The command line of `redra` with these arguments, in this very installation."""
    return program("app.cli", *arguments)


def program(module: str, *arguments: str) -> list[str]:
    """How a module of ours is run with these arguments, in this very installation.

    The working folder is kept off the import path (`-P`): whatever lies there, a folder `app` too,
    is a user's and not ours to run.
    """
    return [sys.executable, "-P", "-m", module, *arguments]


async def end(process: Process) -> None:
    """Wait for the end of a process that ends with its input; kill it when that takes long."""
    if process.stdin is not None:
        await process.stdin.aclose()
    with anyio.move_on_after(END_SECONDS):
        await process.wait()
    if process.returncode is None:
        process.kill()
        await process.wait()
    if process.stdout is not None:
        await process.stdout.aclose()
