"""Child processes of redra: how they are started and ended."""

import sys

import anyio
from anyio.abc import Process

END_SECONDS = 5.0
"""The longest time for a process to end before it is killed."""


def command(*arguments: str) -> list[str]:
    """The command line of `redra` with these arguments, in this installation."""
    return program("app.cli", *arguments)


def program(module: str, *arguments: str) -> list[str]:
    """The command line of a module of redra with these arguments, in this installation.

    The working folder is kept off the import path (`-P`): its files, even a folder `app`, belong to
    a user and must not be run.
    """
    return [sys.executable, "-P", "-m", module, *arguments]


async def end(process: Process) -> None:
    """Close the input of a process and wait for its end; kill it when that takes long."""
    if process.stdin is not None:
        await process.stdin.aclose()
    with anyio.move_on_after(END_SECONDS):
        await process.wait()
    if process.returncode is None:
        process.kill()
        await process.wait()
    if process.stdout is not None:
        await process.stdout.aclose()
