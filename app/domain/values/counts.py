"""Numbers of things in words: `1 finding`, `2 findings`."""

_IRREGULAR = {
    "history": "histories",
    "class": "classes",
    "entry": "entries",
    "is": "are",
    "has": "have",
    "contradicts": "contradict",
}
"""Plurals that are more than an s."""


def of(count: int, noun: str) -> str:
    """A number with its noun, which is given in the singular: its last word gets the plural."""
    return f"{count} {plural(count, noun)}"


def plural(count: int, noun: str) -> str:
    """The noun as it stands behind a number."""
    if count == 1:
        return noun
    front, blank, last = noun.rpartition(" ")
    return f"{front}{blank}{_IRREGULAR.get(last, f'{last}s')}"
