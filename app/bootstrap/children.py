"""How a process of ours starts another one of ours."""

import sys


def command(*arguments: str) -> list[str]:
    """The command line of `redra` with these arguments, in this very installation.

    The working folder is kept off the import path (`-P`): whatever lies there, a folder `app` too,
    is a user's and not ours to run.
    """
    return [sys.executable, "-P", "-m", "app.cli", *arguments]
