"""The program of a job's process: does the work of one order, and reports its progress.

It makes a folder and writes the folder's name to standard output. The server fills the folder, then
sends the order as the first line of standard input. The end of standard input means that the server
has ended: the process then removes the folder and ends at once.
"""

import gc
import os
import resource
import shutil
import sys
import threading
from pathlib import Path
from typing import NoReturn

import msgspec

from app.adapters.private_folders import PrivateFolder
from app.bootstrap.jobs.file_names import ANSWER, FOLDER
from app.domain.errors import InputError, RedraError
from app.domain.values.json_tree import JsonObject

NICENESS = 10
"""The niceness of the process. Requests come first."""


def main() -> None:
    """Do the work of the order on standard input, in a new folder whose name is written first."""
    # The lock lasts as long as the process; the server holds the folder, too.
    made = PrivateFolder()
    folder = made.path
    os.chdir(folder)
    _write_message({FOLDER: str(folder)})
    line = sys.stdin.buffer.readline()
    if not line.endswith(b"\n"):
        _end(folder)
    order: JsonObject = msgspec.json.decode(line)
    threading.Thread(target=_end_with_server, args=(folder,), daemon=True).start()
    os.nice(NICENESS)
    resource.setrlimit(resource.RLIMIT_DATA, (order["bytes_max"], order["bytes_max"]))
    answer = _answer(order, folder)
    (folder / ANSWER).write_bytes(msgspec.json.encode(answer))
    # An ordinary exit could be held up by the other thread, which still reads standard input.
    sys.stdout.flush()
    os._exit(0)


def _answer(order: JsonObject, folder: Path) -> JsonObject:
    # Imported only now: it takes a second, and the end of the server must be noticed meanwhile.
    # Looking for garbage among what is loaded would take a seventh of that time, and find none.
    gc.disable()
    from app.bootstrap.jobs import works

    gc.freeze()
    gc.enable()

    try:
        done = works.DONE_BY[order["kind"]](
            folder, order["parameters"], order["names"], _write_message
        )
    except InputError as problem:
        return _problem(problem.problem, problem.place, problem.cure)
    except RedraError as problem:
        return _problem(str(problem))
    except MemoryError:
        text = f"it needs more than {order['bytes_max']} bytes of memory"
        return _problem(text, cure="ask for less, or raise REDRA_JOB_BYTES_MAX")
    files = {name: str(path.relative_to(folder)) for name, path in done.files.items()}
    return {"result": done.result, "files": files}


def _problem(message: str, place: str = "", cure: str = "") -> JsonObject:
    return {"problem": {"message": message, "place": place, "cure": cure}}


def _write_message(progress: JsonObject) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(progress) + b"\n")
    sys.stdout.buffer.flush()


def _end_with_server(folder: Path) -> None:
    while sys.stdin.buffer.read(1):
        pass
    _end(folder)


def _end(folder: Path) -> NoReturn:
    shutil.rmtree(folder, ignore_errors=True)
    os._exit(1)


if __name__ == "__main__":
    main()
