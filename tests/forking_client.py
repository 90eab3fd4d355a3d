"""A program of a few lines whose runs are forks of a process that has loaded what they need.

It hands its words, environment, folder and standard streams to that process, which forks, and ends
as the fork ends. Signals go on to the fork.
"""

import array
import marshal
import os
import socket
import sys
from pathlib import Path
from typing import NamedTuple

_PROGRAM = """\
#!{python} -IS
import array, marshal, os, signal, socket, sys

fork, early = 0, []

def hand_on(number, frame):
    os.kill(fork, number) if fork else early.append(number)

for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
    signal.signal(number, hand_on)
try:
    server = socket.socket(socket.AF_UNIX)
    server.connect({address!r})
    message = marshal.dumps((sys.argv[1:], dict(os.environ), os.getcwd()))
    streams = array.array("i", (0, 1, 2))
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, streams)]
    server.sendmsg([len(message).to_bytes(8, "big")], rights)
    server.sendall(message)
    answers = server.makefile("r")
    fork = int(answers.readline())
except (OSError, ValueError):
    {otherwise}
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


def write_program(path: Path, address: str, *, otherwise: str = "raise") -> Path:
    """Writes a program that has the process at an address fork; returns its path.

    `otherwise` is a line that it runs where there is no such process.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(_PROGRAM.format(python=sys.executable, address=address, otherwise=otherwise))
    path.chmod(0o755)
    return path


class Order(NamedTuple):
    """What a fork gets: words, environment, folder, and its three standard streams."""

    words: list[str]
    environment: dict[str, str]
    folder: str
    streams: list[int]

    def take_streams(self) -> None:
        """Makes the streams those of this process."""
        for number, stream in enumerate(self.streams):
            os.dup2(stream, number)
            os.close(stream)


def receive(client: socket.socket) -> Order:
    """What a program that has connected asks for. It waits for a number of a process, and for its
    exit status, each on a line."""
    rights = socket.CMSG_SPACE(_STREAMS * array.array("i").itemsize)
    length, ancillary, *_ = client.recvmsg(_LENGTH_BYTES, rights)
    streams = array.array("i", ancillary[0][2])
    with client.makefile("rb") as file:
        words, environment, folder = marshal.loads(file.read(int.from_bytes(length, "big")))
    return Order(words, environment, folder, [*streams])
