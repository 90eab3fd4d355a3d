"""The numbers of the entries about each object, as sorted numbers in which an object is searched.

A dictionary of all objects that there ever were takes longer to read than to search.
"""

from array import array
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from hashlib import blake2b

import msgspec

from app.domain.log import ObjectKey

_PLACE_BYTES = 8
"""The bytes of a key's hash: two of a million keys have the same one in one of 10^7 histories."""


class KeptSubjects(msgspec.Struct, gc=False, array_like=True):
    """The numbers of entries by the hashes of their subjects, in order, as bytes of arrays.

    Example: entries 3 and 8 are about a, whose hash is 9, and 5 is about b, whose hash is 4: hashes
    4, 9; ends 1, 3; numbers 5, 3, 8.
    """

    hashes: bytes
    ends: bytes
    numbers: bytes


def indexed(by_subject: Mapping[ObjectKey, Sequence[int]]) -> KeptSubjects:
    """The index of the entries of a stretch of the log."""
    return sorted_places({place_of(key): numbers for key, numbers in by_subject.items()})


def sorted_places(by_place: Mapping[int, Sequence[int]]) -> KeptSubjects:
    """The index of numbers by the hashes of what they are about."""
    places = sorted(by_place.items())
    numbers, ends = array("I"), array("I")
    for _, each in places:
        numbers.extend(each)
        ends.append(len(numbers))
    return KeptSubjects(
        array("Q", [place for place, _ in places]).tobytes(), ends.tobytes(), numbers.tobytes()
    )


def place_of(key: ObjectKey) -> int:
    """The hash of a key."""
    return place_of_text("\0".join(key))


def place_of_text(text: str) -> int:
    """The hash of a text."""
    encoded = text.encode(errors="surrogatepass")
    return int.from_bytes(blake2b(encoded, digest_size=_PLACE_BYTES).digest())


class SubjectIndex:
    """An index that is searched."""

    def __init__(self, subjects: KeptSubjects) -> None:
        self._hashes, self._ends, self._numbers = array("Q"), array("I"), array("I")
        self._hashes.frombytes(subjects.hashes)
        self._ends.frombytes(subjects.ends)
        self._numbers.frombytes(subjects.numbers)

    def numbers(self, place: int) -> Sequence[int]:
        """The numbers of the entries about the object with a hash."""
        number = bisect_left(self._hashes, place)
        if number == len(self._hashes) or self._hashes[number] != place:
            return ()
        begin = self._ends[number - 1] if number else 0
        return self._numbers[begin : self._ends[number]]
