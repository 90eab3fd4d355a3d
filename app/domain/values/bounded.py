"""A dictionary that never grows beyond a size, for answers that can be found again."""

from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Bounded(dict[K, V]):
    """At most `size_max` entries; a new one beyond that drops the one that was written first.

    With `recent` instead of `get` an entry that is read counts as written: then the one that was
    used least recently is dropped. Reading is as fast as with any dictionary.
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
        """The value of a key, which becomes the newest; None when there is none."""
        if key not in self:
            return None
        value = self.pop(key)
        super().__setitem__(key, value)
        return value

    def copy(self) -> "Bounded[K, V]":
        """The same entries within the same bound."""
        made: Bounded[K, V] = Bounded(self._size_max)
        made.update(self)
        return made
