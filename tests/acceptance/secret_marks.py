"""Random values that are put into Secrets, and the search for them in whatever is given.

The search knows nothing of how values are protected: it looks for each value as text, as base64
(also within a longer text, at every alignment) and as hexadecimal digits of those.
"""

import base64
import io
import random
import zipfile

import zstandard

_ZSTANDARD = b"\x28\xb5\x2f\xfd"
"""The first bytes of a compressed frame."""


class Marks:
    """Makes values that occur nowhere by chance, and finds them again."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._forms: dict[bytes, str] = {}
        self.made: dict[str, str] = {}

    def new(self, where: str) -> str:
        """A value that has not been given out; `where` says what it was given out for."""
        mark = f"mark{self._random.getrandbits(128):032x}end"
        self.made[where] = mark
        for form in _forms(mark.encode()):
            for written in (form, form.hex().encode(), form.hex().upper().encode()):
                self._forms[written] = where
        return mark

    def coded(self, where: str) -> str:
        """The base64 of a new value."""
        return base64.b64encode(self.new(where).encode()).decode()

    def within(self, content: bytes) -> set[str]:
        """What the values in the content were given out for."""
        return {where for form, where in self._forms.items() if form in content}


def _forms(plain: bytes) -> list[bytes]:
    """The value, and what of its base64 does not depend on what stands before and after it."""
    forms = [plain]
    for before in range(3):
        coded = base64.b64encode(b"\0" * before + plain)
        begin = 0 if before == 0 else 4
        forms.append(coded[begin : len(coded) // 4 * 4 - 4])
    # Encoded twice: base64 of an object that holds base64.
    once = base64.b64encode(plain).rstrip(b"=")
    for before in range(3):
        coded = base64.b64encode(b"\0" * before + once)
        forms.append(coded[4:-4])
    return forms


def unpacked(content: bytes) -> list[bytes]:
    """A file, or those in it when it is an archive, without compression."""
    if content.startswith(_ZSTANDARD):
        return [zstandard.ZstdDecompressor().decompressobj().decompress(content)]
    if not zipfile.is_zipfile(io.BytesIO(content)):
        return [content]
    archive = zipfile.ZipFile(io.BytesIO(content))
    return [part for name in archive.namelist() for part in unpacked(archive.read(name))]
