"""The process whose forks run the tests: it has imported all test modules.

Each process of a distributed run imports the same five thousand modules, six CPU seconds of work.
`tests/forked_workers.py` starts this one instead, and xdist's processes are forks of it. A fork
reads what xdist sends, as a new interpreter does, and collects and runs tests like any other.
"""

import gc
import importlib
import os
import random
import select
import signal
import socket
import sys
import warnings
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import ModuleType

import pytest
from _pytest import config as pytest_config
from _pytest.assertion import rewrite
from hypothesis.errors import HypothesisSideeffectWarning
from hypothesis.internal.conjecture import providers

from tests import forking_client, redra_process

ROOT = Path(__file__).resolve().parent.parent


def load() -> None:
    """Imports all test modules, with the assertions that pytest rewrites.

    In a new checkout, where they must be compiled, a second process begins at the end of the list.
    """
    config = pytest_config._prepareconfig(["--capture=no"])
    files = sorted((ROOT / "tests").rglob("test_*.py"))
    is_new = not (rewrite.get_cache_dir(files[-1]) / (files[-1].stem + rewrite.PYC_TAIL)).exists()
    names = [".".join(file.relative_to(ROOT).with_suffix("").parts) for file in files]
    helper = os.fork() if is_new else None
    if helper == 0:
        import_all(names[: len(names) // 2 : -1])
        os._exit(0)
    import_all(names)
    if helper is not None:
        os.waitpid(helper, 0)
    # A fork takes the hooks of its own configuration.
    config._ensure_unconfigure()


def import_all(names: Sequence[str]) -> None:
    """Imports modules, and reads their constants, from which Hypothesis draws."""
    for name in names:
        # The collection imports such a module again and says what is wrong.
        with suppress(Exception, pytest.skip.Exception):
            importlib.import_module(name)
    with warnings.catch_warnings():
        # Hypothesis warns plug-ins, as this takes long where nothing is kept yet.
        warnings.simplefilter("ignore", HypothesisSideeffectWarning)
        providers._get_local_constants()


def serve(listening: socket.socket) -> None:
    """Forks for each client; returns in the forks alone.

    Ends the process when the one that started it has ended, and with it the other side of the
    standard input. The keys of a terminal are for the forks.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    waiting = select.poll()
    waiting.register(0)
    waiting.register(listening, select.POLLIN)
    clients: dict[int, tuple[int, socket.socket]] = {}
    while True:
        for number, _ in waiting.poll():
            if number == 0:
                os._exit(0)
            elif number != listening.fileno():
                waiting.unregister(number)
                process, client = clients.pop(number)
                os.close(number)
                _, status = os.waitpid(process, 0)
                # One who was killed waits no more.
                with suppress(OSError):
                    client.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())
                client.close()
            else:
                client, _ = listening.accept()
                order = forking_client.receive(client)
                process = os.fork()
                if process == 0:
                    for each in (listening, client, *(other for _, other in clients.values())):
                        each.close()
                    for each in clients:
                        os.close(each)
                    become(order)
                    return
                for stream in order.streams:
                    os.close(stream)
                with suppress(OSError):
                    client.sendall(f"{process}\n".encode())
                ended = os.pidfd_open(process)
                waiting.register(ended, select.POLLIN)
                clients[ended] = process, client


def become(order: forking_client.Order) -> None:
    """Makes this fork what a new interpreter with these words would be."""
    order.take_streams()
    sys.stdin, sys.stdout, sys.stderr = (
        open(number, mode, buffering=1, closefd=False)  # noqa: SIM115  # for the whole process
        for number, mode in ((0, "r"), (1, "w"), (2, "w"))
    )
    os.environ.clear()
    os.environ.update(order.environment)
    os.chdir(order.folder)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    random.seed()
    redra_process.share_forks()
    sys.argv = ["-c"]
    main = sys.modules["__main__"] = ModuleType("__main__")
    exec(order.words[order.words.index("-c") + 1], vars(main))


def main(listening: socket.socket) -> None:
    """Imports all tests, then forks."""
    # What is imported lives on; a fork looks for garbage once it has collected its tests.
    gc.disable()
    redra_process.begin_forks()
    load()
    # A later look at these objects would write to the pages that forks share.
    gc.collect()
    gc.freeze()
    serve(listening)


if __name__ == "__main__":
    main(socket.socket(fileno=int(sys.argv[1])))
