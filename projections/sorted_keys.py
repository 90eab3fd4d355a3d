"""A set of object keys that is sorted when it is read.

This module is not a view. A fold over a whole log reads the order seldom or never, so adding a
key must be cheap; an API that lists after every write pays for keeping each key in its place.
"""

from bisect import bisect_left, insort
from collections.abc import Sequence

from app.domain.log import ObjectKey

_SORT_FROM = 16
"""Known keys per new key, up to which sorting all keys costs less than inserting each new key."""


class SortedKeys:
    """A set of object keys that can be read in order."""

    def __init__(self) -> None:
        self._keys: list[ObjectKey] = []
        # In the order of their addition, which often is nearly sorted: then sorting is cheap.
        self._new: dict[ObjectKey, None] = {}

    def __len__(self) -> int:
        return len(self._keys) + len(self._new)

    def add(self, key: ObjectKey) -> None:
        """Add a key that is not in the set."""
        self._new[key] = None

    def remove(self, key: ObjectKey) -> None:
        """Remove a key that is in the set."""
        if key in self._new:
            del self._new[key]
        else:
            del self._keys[bisect_left(self._keys, key)]

    def all(self) -> Sequence[ObjectKey]:
        """All keys, sorted; never change the list, and do not keep it past the next addition."""
        keys, new = self._keys, self._new
        if new:
            if len(new) * _SORT_FROM < len(keys):
                for key in new:
                    insort(keys, key)
            else:
                keys += new
                keys.sort()
            new.clear()
        return keys

    def between(self, first: ObjectKey, end: ObjectKey) -> list[ObjectKey]:
        """The keys from `first` on that come before `end`, sorted."""
        keys = self.all()
        return list(keys[bisect_left(keys, first) : bisect_left(keys, end)])
