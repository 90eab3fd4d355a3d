"""Secret keys in files: created once, then the same for every process that opens them."""

import base64
import binascii
import os
import secrets
from contextlib import suppress
from pathlib import Path

from app.domain.errors import InputError

KEY_BYTES = 32
_FILE_BYTES_MAX = 1024 * 1024


def open_key(path: Path, *, loss: str = "old tokens end then") -> bytes:
    """The key in the file; created when the file is missing. Of several creators the first wins.

    `loss` says what is lost when the key is created again. Raises InputError when other users can
    read the file, or when it holds no key.
    """
    if not path.exists():
        make(path)
    try:
        key = base64.b64decode(read_private(path, loss=loss).strip(), validate=True)
    except binascii.Error:
        key = b""
    if len(key) < KEY_BYTES:
        raise InputError(
            "this is no key", place=str(path), cure=f"remove it, another is made: {loss}"
        )
    return key


def read_private(path: Path, *, loss: str) -> bytes:
    """The content of a file that only its owner can read. Raises InputError.

    `loss` names the loss when the file is removed, for messages.
    """
    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            text = file.read(_FILE_BYTES_MAX)
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
    return text


def make(path: Path) -> None:
    """Write a new key, complete and private from its first byte, unless the file exists."""
    content = base64.b64encode(secrets.token_bytes(KEY_BYTES)) + b"\n"
    fresh = _write_beside(path, content)
    try:
        with suppress(FileExistsError):
            os.link(fresh, path)
    finally:
        fresh.unlink(missing_ok=True)


def write_private(path: Path, content: bytes) -> None:
    """Write a file that only its owner can read, replacing an old one. Raises OSError."""
    _write_beside(path, content).replace(path)


def _write_beside(path: Path, content: bytes) -> Path:
    """Write a private file with the content in the same folder; returns its path.

    Raises OSError, which names `path`; no file is left then.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    fresh.unlink(missing_ok=True)
    try:
        handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except OSError as problem:
        fresh.unlink(missing_ok=True)
        problem.filename = str(path)
        raise
    return fresh
