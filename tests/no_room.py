"""A full disk, as the processes of a test see it."""

import os
import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock


@contextmanager
def no_room(size: int) -> Iterator[None]:
    """Let no file of this process and of new ones grow beyond `size` bytes.

    Python keeps no compiled modules meanwhile: it would keep their first `size` bytes for the next
    process that imports them.
    """
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    with (
        mock.patch.object(sys, "dont_write_bytecode", True),
        mock.patch.dict(os.environ, {"PYTHONDONTWRITEBYTECODE": "1"}),
    ):
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
