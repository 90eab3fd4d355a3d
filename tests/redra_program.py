"""A program `redra` for shells: each run is a fork of a process that has loaded redra.

Shells need a program to start. The installed one loads Python and redra, half a second of work for
each command of a page. This program is a client of a few lines: it hands its words, environment,
folder and standard streams to a process of the tests, which forks, and it ends as the fork ends.
Signals go on to the fork. It belongs to another session, so keys of a terminal do not reach it.

`tests/acceptance/test_command_processes.py` and `test_redra_program.py` compare with the installed
program.
"""

import array
import atexit
import gc
import importlib
import marshal
import multiprocessing
import os
import socket
import sys
from functools import cache
from pathlib import Path

from tests.redra_process import forks, run_command
from tests.run_folder import run_folder

_CLIENT = """\
#!{python} -IS
import array, marshal, os, signal, socket, sys

fork, early = 0, []

def hand_on(number, frame):
    os.kill(fork, number) if fork else early.append(number)

for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
    signal.signal(number, hand_on)
server = socket.socket(socket.AF_UNIX)
server.connect({address!r})
message = marshal.dumps((sys.argv[1:], dict(os.environ), os.getcwd()))
streams = array.array("i", (0, 1, 2))
server.sendmsg([len(message).to_bytes(8, "big")], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, streams)])
server.sendall(message)
answers = server.makefile("r")
fork = int(answers.readline())
for number in early:
    os.kill(fork, number)
code = int(answers.readline())
if code < 0:
    signal.signal(-code, signal.SIG_DFL) if -code != signal.SIGKILL else None
    os.kill(os.getpid(), -code)
os._exit(code)
"""
_LENGTH_BYTES = 8
_STREAMS = 3


@cache
def shared_program() -> Path:
    """The program of this process."""
    return write_program(run_folder() / f"redra-{os.getpid()}")


def write_program(path: Path) -> Path:
    """Writes the program, which works while this process runs; returns its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(_CLIENT.format(python=sys.executable, address=_address()))
    path.chmod(0o755)
    return path


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
    rights = socket.CMSG_SPACE(_STREAMS * array.array("i").itemsize)
    length, ancillary, *_ = client.recvmsg(_LENGTH_BYTES, rights)
    streams = array.array("i", ancillary[0][2])
    with client.makefile("rb") as file:
        words, environment, folder = marshal.loads(file.read(int.from_bytes(length, "big")))
    process = multiprocessing.get_context("fork").Process(
        target=_run, args=(words, environment, folder, [*streams], client.fileno())
    )
    process.start()
    for stream in streams:
        os.close(stream)
    client.sendall(f"{process.pid}\n".encode())
    process.join()
    client.sendall(f"{process.exitcode}\n".encode())


def _run(
    words: list[str], environment: dict[str, str], folder: str, streams: list[int], client: int
) -> None:
    os.close(client)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    run_command(words, environment, folder)
