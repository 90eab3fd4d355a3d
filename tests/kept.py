"""What the tests of a module make once: imports, reports, forks. The next module does not hold it.

Histories and reports take hundreds of megabytes, and a process of the tests runs many modules.
"""

import gc
from typing import ClassVar, TypeVar

Key = TypeVar("Key")
Made = TypeVar("Made")


class Kept(dict[Key, Made]):
    """Values that are made once for the tests of one module."""

    _all: ClassVar[list["Kept"]] = []

    def __init__(self) -> None:
        super().__init__()
        self._all.append(self)

    @classmethod
    def forget(cls) -> None:
        """Empties all of them; what they held is freed at once, though it has circles."""
        full = [kept for kept in cls._all if kept]
        for kept in full:
            kept.clear()
        if full:
            gc.collect()
