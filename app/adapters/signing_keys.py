"""A secret key in a file of its own: made once, then the same for every process that opens it."""

import base64
import binascii
import os
import secrets
from contextlib import suppress
from pathlib import Path

from app.domain.errors import InputError

KEY_BYTES = 32
_FILE_BYTES_MAX = 4_096


def open_key(path: Path, *, loss: str = "old tokens end then") -> bytes:
    """The key in the file, made when there is none; of several makers the first one wins.

    `loss` says what is lost when it is made anew.
    Raises InputError when others than its owner may read it, or it is no key.
    """
    if not path.exists():
        _make(path)
    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            text = file.read(_FILE_BYTES_MAX)
        key = base64.b64decode(text.strip(), validate=True)
    except binascii.Error:
        key = b""
    except OSError as problem:
        raise InputError(
            f"the key cannot be read: {problem.strerror}", place=str(path)
        ) from problem
    if mode & 0o077:
        raise InputError(
            "others than its owner may read this key",
            place=str(path),
            cure=f"make it private (chmod 600), or remove it: {loss}",
        )
    if len(key) < KEY_BYTES:
        raise InputError(
            "this is no key", place=str(path), cure=f"remove it, another is made: {loss}"
        )
    return key


def _make(path: Path) -> None:
    """Write a fresh key, whole and private from its first byte, unless somebody was first."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    fresh.unlink(missing_ok=True)
    handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(base64.b64encode(secrets.token_bytes(KEY_BYTES)) + b"\n")
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileExistsError):
            os.link(fresh, path)
    finally:
        fresh.unlink(missing_ok=True)
