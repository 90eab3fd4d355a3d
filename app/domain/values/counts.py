"""Counts with their nouns in the singular or plural: `1 finding`, `2 findings`."""

_IRREGULAR = {
    "history": "histories",
    "class": "classes",
    "entry": "entries",
    "is": "are",
    "has": "have",
    "was": "were",
    "contradicts": "contradict",
    "refuses": "refuse",
}
"""Plurals that are not formed by adding an s."""


def of(count: int, noun: str) -> str:
    """The number and its noun. `noun` is singular; its last word is put in the plural if needed."""
    return f"{count} {plural(count, noun)}"


def plural(count: int, noun: str) -> str:
    """The form of the noun after the number: singular for 1, otherwise plural."""
    if count == 1:
        return noun
    front, blank, last = noun.rpartition(" ")
    return f"{front}{blank}{_IRREGULAR.get(last, f'{last}s')}"
