"""The reason: one sentence, what is behind it, and how many things it stands for."""

from collections.abc import Sequence
from dataclasses import dataclass

from app.domain.values.json_tree import JsonObject

NAMES_MAX = 3
"""Names given as examples where many share a reason; counts stay exact."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """One reason and what is behind it; `count` is how many things it stands for."""

    text: str
    children: tuple["Reason", ...] = ()
    count: int = 1

    def to_json(self) -> JsonObject:
        """The branch as JSON."""
        found: JsonObject = {"text": self.text}
        if self.count != 1:
            found["count"] = self.count
        if self.children:
            found["children"] = [child.to_json() for child in self.children]
        return found

    def size(self) -> int:
        """How many reasons there are in the branch."""
        return 1 + sum(child.size() for child in self.children)


def listed(names: Sequence[str], count: int, noun: str = "") -> str:
    """The first names, and how many there are beyond them."""
    shown = ", ".join(names[:NAMES_MAX])
    more = count - min(len(names), NAMES_MAX)
    return f"{shown} and {more} more{f' {noun}' if noun else ''}" if more > 0 else shown
