"""A map from keys to several values, of which nearly all keys have one.

A device has one holder and a claim one user, rarely more. A set for each of them takes 216 bytes;
here a single value takes nothing beyond its entry.
"""

from collections.abc import Collection, Hashable, Iterator
from typing import Any, Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V", bound=Hashable)


class Multimap(Generic[K, V]):
    """The values of each key, without order; a value is neither None nor a set.

    Example: after `add("d", "a")` and `add("d", "b")`, `of("d")` has `a` and `b`; after
    `discard("d", "a")` it has `b` alone, and after `discard("d", "b")` the key is gone.
    """

    __slots__ = ("_held",)

    def __init__(self) -> None:
        self._held: dict[K, Any] = {}

    def add(self, key: K, value: V) -> None:
        """Adds a value to a key; a value that the key has changes nothing."""
        held = self._held.setdefault(key, value)
        if held is value:
            return
        if held.__class__ is set:
            held.add(value)
        elif held != value:
            self._held[key] = {held, value}

    def discard(self, key: K, value: V) -> None:
        """Removes a value from a key, which is gone without values; does nothing without it."""
        held = self._held.get(key)
        if held.__class__ is set:
            held.discard(value)
            if len(held) == 1:
                self._held[key] = held.pop()
        elif held == value:
            del self._held[key]

    def of(self, key: K) -> Collection[V]:
        """The values of a key, valid until it changes; empty for a key without values."""
        held = self._held.get(key)
        if held is None:
            return ()
        values: Collection[V] = held if held.__class__ is set else (held,)
        return values

    def __iter__(self) -> Iterator[K]:
        return iter(self._held)

    def __len__(self) -> int:
        """The number of keys."""
        return len(self._held)
