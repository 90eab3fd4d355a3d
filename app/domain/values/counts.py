"""Counts with their nouns, `1 finding` and `2 findings`, and places in an order, `2nd`."""

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


def ordinal(number: int) -> str:
    """The place in an order, from 1 on: `1st`, `2nd`, `3rd`, `4th`, `11th`."""
    teens = range(11, 14)
    ending = "th" if number % 100 in teens else _ENDINGS.get(number % 10, "th")
    return f"{number}{ending}"


_ENDINGS = {1: "st", 2: "nd", 3: "rd"}
