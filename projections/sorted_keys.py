"""Keys of objects in order, sorted when somebody asks for them.

Not a view itself. Whoever folds a whole log asks seldom or never; an API that lists after every
write pays for each key what keeping the order costs.
"""

from bisect import bisect_left, insort
from collections.abc import Sequence

from app.domain.log import ObjectKey

_SORT_FROM = 16
"""New keys from which on sorting all costs less than putting each in its place."""


class SortedKeys:
    """A set of keys."""

    def __init__(self) -> None:
        self._keys: list[ObjectKey] = []
        self._new: set[ObjectKey] = set()

    def __len__(self) -> int:
        return len(self._keys) + len(self._new)

    def add(self, key: ObjectKey) -> None:
        """Add a key that is not there."""
        self._new.add(key)

    def remove(self, key: ObjectKey) -> None:
        """Remove a key that is there."""
        if key in self._new:
            self._new.remove(key)
        else:
            del self._keys[bisect_left(self._keys, key)]

    def all(self) -> Sequence[ObjectKey]:
        """All keys, sorted; never change them, and keep them no longer than nothing is added."""
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
        """The keys from the first one on that come before the end, sorted."""
        keys = self.all()
        return list(keys[bisect_left(keys, first) : bisect_left(keys, end)])
