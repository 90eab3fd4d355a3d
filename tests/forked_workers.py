"""Processes of a distributed run as forks of one that has imported all tests.

They share its memory, and imports are made once (`tests/loaded_tests.py`). Where that process
cannot be, each is a new interpreter, as xdist starts them.
"""

import os
import socket
import subprocess
import sys

import pytest
from execnet import XSpec

from tests.forking_client import write_program
from tests.run_folder import run_folder

NEW_INTERPRETER = f"os.execv({sys.executable!r}, [{sys.executable!r}, *sys.argv[1:]])"
"""What a process of the run does instead where the one with all tests has failed."""


class ForkedWorkers:
    """A pytest plug-in for the process that distributes the tests of a whole run."""

    def __init__(self) -> None:
        self._loading: subprocess.Popen[bytes] | None = None

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_setupnodes(self, config: pytest.Config, specs: list[XSpec]) -> None:
        """Has xdist start forks. They wait until the process with all tests has loaded them."""
        address = str(run_folder() / "tests")
        with socket.socket(socket.AF_UNIX) as listening:
            try:
                listening.bind(address)
            except OSError:
                # The path of a folder for temporary files may be too long for an address.
                return
            listening.listen()
            number = listening.fileno()
            self._loading = subprocess.Popen(
                [sys.executable, "-m", "tests.loaded_tests", str(number)],
                cwd=config.rootpath,
                stdin=subprocess.PIPE,
                pass_fds=[number],
            )
        program = write_program(run_folder() / "worker", address, otherwise=NEW_INTERPRETER)
        for spec in specs:
            spec.python = str(program)

    def pytest_unconfigure(self) -> None:
        """Ends the process with all tests."""
        if self._loading is not None:
            self._loading.kill()
            self._loading.communicate()


def can_be(config: pytest.Config) -> bool:
    """True for the distributing process of a whole run, on a system that can wait for forks."""
    whole = config.args == config.getini("testpaths")
    return whole and bool(config.getoption("tx", None)) and hasattr(os, "pidfd_open")
