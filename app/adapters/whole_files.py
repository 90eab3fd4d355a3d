"""Files and folders that are there as a whole or not at all."""

import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A file beside `path` to write, which takes its place at the end of the block.

    Raises OSError; what was there stays then. Several may write it at the same time: the last one
    counts. What is no file, such as a pipe, is given as it is.
    """
    if path.exists() and not path.is_file():
        yield path
        return
    path = path.resolve()
    partial = path.with_name(f".{secrets.token_hex(8)}.partial")
    try:
        yield partial
        if path.exists():
            partial.chmod(path.stat().st_mode)
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


@contextmanager
def making(path: Path) -> Iterator[Path]:
    """A folder to fill, which has the name `path` at the end of the block, or is gone.

    Raises OSError, also where something is in the way.
    """
    path = path.resolve()
    partial = path.with_name(f".{secrets.token_hex(8)}.partial")
    try:
        partial.mkdir()
        yield partial
        partial.rename(path)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise


def write(path: Path, content: bytes) -> None:
    """Write a file, in the place of what is there. Raises OSError; what was there stays then."""
    with replacing(path) as partial:
        partial.write_bytes(content)
