"""What the process of forks does once, so that no fork of it does it again.

`tests/redra_process.py` has that process import this module. A server imports some of these modules
only when it starts, and compiles the templates of its pages beside its first requests.
"""

import gc
import os

import anyio._backends._asyncio  # noqa: F401
import uvicorn.lifespan.off  # noqa: F401
import uvloop  # noqa: F401

import app.adapters.postgres.server
import app.bootstrap.process_settings
import app.bootstrap.serving  # noqa: F401
from app.bootstrap import child_processes
from app.cli.application import program
from app.web.frame import compile_templates
from tests.redra_process import PROGRAM

program()
for _ in compile_templates():
    pass


def _program(module: str, *arguments: str) -> list[str]:
    """The command line of a module; a fork of `tests/redra_program.py`, if that is named."""
    if forked := os.environ.get(PROGRAM):
        return [forked, "-m", module, *arguments]
    return _started(module, *arguments)


_started = child_processes.program
child_processes.program = _program
# A look for garbage in a fork would write to the pages that forks share.
gc.freeze()
