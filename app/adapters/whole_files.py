"""Files and folders that appear complete or not at all."""

import errno
import fcntl
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_PARTIAL = ".partial"


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary file to write, which replaces `path` at the end of the block.

    Raises OSError, which names `path`; the old file then stays. Several writers may write at the
    same time: the last one wins. What a path gets that exists and is not a file, such as a pipe, is
    copied at the end: writers may go back in what they write.
    """
    if path.exists() and not path.is_file():
        with tempfile.TemporaryDirectory(prefix="redra-") as folder:
            whole = Path(folder) / "whole"
            yield whole
            with whole.open("rb") as source, path.open("wb") as target:
                shutil.copyfileobj(source, target)
        return
    path = real(path)
    partial = path.with_name(f".{secrets.token_hex(8)}{_PARTIAL}")
    try:
        with _locked(partial, os.O_CREAT):
            yield partial
            if path.exists():
                partial.chmod(path.stat().st_mode)
            partial.replace(path)
    except BaseException as problem:
        partial.unlink(missing_ok=True)
        if isinstance(problem, OSError) and problem.filename in (None, str(partial)):
            problem.filename = str(path)
        raise


def remove_leftovers(folder: Path) -> None:
    """Remove the temporary files of writers that were killed; those that write now keep theirs."""
    for partial in folder.glob(f".*{_PARTIAL}"):
        with suppress(OSError), _locked(partial):
            partial.unlink()


@contextmanager
def _locked(path: Path, flags: int = 0) -> Iterator[None]:
    """Hold the lock of a temporary file, which shows that its writer lives. Raises OSError."""
    file = os.open(path, os.O_RDONLY | flags, 0o666)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(file)


@contextmanager
def making(path: Path) -> Iterator[Path]:
    """Yield a temporary folder to fill, which is renamed to `path` at the end of the block.

    After an error the folder is removed. Raises OSError, also when `path` cannot be replaced.
    """
    path = real(path)
    partial = path.with_name(f".{secrets.token_hex(8)}{_PARTIAL}")
    try:
        partial.mkdir()
        yield partial
        partial.rename(path)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise


def real(path: Path) -> Path:
    """The path without links. Raises OSError for links that lead in a circle."""
    try:
        return path.resolve()
    except RuntimeError as problem:
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path)) from problem


def write(path: Path, content: bytes) -> None:
    """Write a file and replace an old one. Raises OSError; the old file then stays."""
    with replacing(path) as partial:
        partial.write_bytes(content)
