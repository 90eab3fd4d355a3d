"""The only source of fresh uids: random ones, and ones derived from a seed."""

import hashlib
import os
import uuid

from app.domain.values.identifiers import Uid

_FIXED = 0xF000 << 64 | 0xC000 << 48
_VERSION_4 = 0x4000 << 64 | 0x8000 << 48
"""The bits of a uid that are not random: they state that the uid is of version 4."""

_DRAWN_AT_ONCE = 16 * 64
"""Bytes that are read from the system at once, a multiple of the 16 of a uid."""


class RandomUids:
    """Random uids, as a real API server creates them."""

    def __init__(self) -> None:
        self._drawn = b""
        self._used = 0

    def uid(self) -> Uid:
        """A random (version 4) uid."""
        # Equals uuid4, but makes no UUID object and does not call the system each time.
        first = self._used
        if first >= len(self._drawn):
            self._drawn, first = os.urandom(_DRAWN_AT_ONCE), 0
        self._used = first + 16
        number = int.from_bytes(self._drawn[first : first + 16], "big") & ~_FIXED | _VERSION_4
        text = f"{number:032x}"
        return Uid(f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}")


class DerivedUids:
    """Uids that depend only on (seed, counter): the same replay gives the same uids.

    Example: `DerivedUids(7)` and another `DerivedUids(7)` give equal sequences; `DerivedUids(7,
    counter=2)` continues where the first is after two calls.
    """

    def __init__(self, seed: int, *, counter: int = 0) -> None:
        self.seed = seed
        self.counter = counter

    def uid(self) -> Uid:
        """The next uid, in the format of version 4."""
        text = f"redra uid {self.seed} {self.counter}".encode()
        self.counter += 1
        return Uid(str(uuid.UUID(bytes=hashlib.sha256(text).digest()[:16], version=4)))
