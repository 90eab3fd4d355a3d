"""A program `redra` for shells: each run is a fork of a process that has loaded redra.

Shells need a program to start. The installed one loads Python and redra, half a second of work for
each command of a page. This program is a client of a few lines (`tests/forking_client.py`), whose
runs are forks of a process of the tests. A fork belongs to another session, so keys of a terminal
do not reach it.

`tests/acceptance/test_command_processes.py` and `test_redra_program.py` compare with the installed
program.
"""

import atexit
import gc
import importlib
import multiprocessing
import os
import socket
from functools import cache
from pathlib import Path

from tests import forking_client
from tests.redra_process import forks, run_command
from tests.run_folder import run_folder


@cache
def shared_program() -> Path:
    """The program of this process."""
    return write_program(run_folder() / f"redra-{os.getpid()}")


def write_program(path: Path) -> Path:
    """Writes the program, which works while this process runs; returns its path."""
    return forking_client.write_program(path, _address())


@cache
def _address() -> str:
    """The address of a process of this process that serves the program."""
    address = str(run_folder() / f"program-{os.getpid()}")
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(address)
    listening.listen()
    process = forks().Process(target=_serve, args=(listening,))
    process.start()
    listening.close()
    atexit.register(process.kill)
    return address


def _serve(listening: socket.socket) -> None:
    """Forks for each client: a process that waits for the command, so that this one does not.

    Loads first what a job loads only when it has its order.
    """
    importlib.import_module("app.bootstrap.jobs.works")
    gc.freeze()
    while True:
        client, _ = listening.accept()
        if os.fork() == 0:
            if os.fork() == 0:
                listening.close()
                code = 1
                try:
                    _run_for(client)
                    code = 0
                finally:
                    os._exit(code)
            os._exit(0)
        client.close()
        os.wait()


def _run_for(client: socket.socket) -> None:
    order = forking_client.receive(client)
    process = multiprocessing.get_context("fork").Process(
        target=_run, args=(order, client.fileno())
    )
    process.start()
    for stream in order.streams:
        os.close(stream)
    client.sendall(f"{process.pid}\n".encode())
    process.join()
    client.sendall(f"{process.exitcode}\n".encode())


def _run(order: forking_client.Order, client: int) -> None:
    os.close(client)
    order.take_streams()
    run_command(order.words, order.environment, order.folder)
