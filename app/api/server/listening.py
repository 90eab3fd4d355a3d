"""The sockets of a server: bound, listening, and no more of them than the system allows."""

import resource
import socket

from app.domain.errors import InputError

_BACKLOG = 2048
"""Connections that may wait to be accepted; the same as uvicorn's default."""
_FILES_WANTED = 65_536


def raise_files_max() -> int:
    """Raise the limit of open files to what the system allows; returns the limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    unlimited = resource.RLIM_INFINITY
    wanted = _FILES_WANTED if hard == unlimited else min(hard, _FILES_WANTED)
    if soft != unlimited and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        return wanted
    return _FILES_WANTED if soft == unlimited else soft


def bind(host: str, port: int) -> socket.socket:
    """A socket bound to the address, not listening yet. Raises InputError when it is taken.

    If another process has bound the address without listening, only `take_connections` notices.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as problem:
        listener.close()
        raise _unusable_address(host, port, problem) from problem
    return listener


def take_connections(listener: socket.socket) -> None:
    """Listen. Raises InputError when another process began to listen after the bind.

    The event loop would not report it: it would continue with a socket without connections.
    """
    try:
        listener.listen(_BACKLOG)
    except OSError as problem:
        host, port = listener.getsockname()[:2]
        raise _unusable_address(host, port, problem) from problem


def _unusable_address(host: str, port: int, problem: OSError) -> InputError:
    return InputError(
        f"{host}:{port} cannot be used as the address: {problem.strerror}",
        place="--listen",
        cure="choose another port, or 0 for a free one",
    )
