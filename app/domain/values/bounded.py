"""A dictionary with a maximum size, for cached answers that can be computed again."""

from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Bounded(dict[K, V]):
    """A dictionary of at most `size_max` entries; a new key beyond that drops the oldest entry.

    Reading an entry with `recent` instead of `get` makes it the newest, so that the least recently
    used entry is dropped. Reading with `get` is as fast as with any dictionary.
    """

    __slots__ = ("_size_max",)

    def __init__(self, size_max: int) -> None:
        super().__init__()
        self._size_max = size_max

    def __setitem__(self, key: K, value: V) -> None:
        if len(self) >= self._size_max and key not in self:
            if not self._size_max:
                return
            del self[next(iter(self))]
        super().__setitem__(key, value)

    def recent(self, key: K) -> V | None:
        """The value of a key, which becomes the newest entry; None when the key is absent."""
        if key not in self:
            return None
        value = self.pop(key)
        super().__setitem__(key, value)
        return value

    def resize(self, size_max: int) -> None:
        """Change the bound; entries beyond it are dropped, the oldest first."""
        self._size_max = size_max
        while len(self) > size_max:
            del self[next(iter(self))]

    def copy(self) -> "Bounded[K, V]":
        """A copy with the same entries and the same bound."""
        made: Bounded[K, V] = Bounded(self._size_max)
        made.update(self)
        return made
