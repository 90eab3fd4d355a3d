"""Counts with their nouns and verbs, `1 pod waits` and `2 pods wait`, and places in an order."""

_IRREGULAR_VERBS = {"is": "are", "has": "have", "was": "were", "does": "do", "goes": "go"}
"""Plurals of verbs that are not formed by removing an s."""

_HISSING = ("s", "x", "ch", "sh")
"""The ends of nouns and verbs to which `es` is added, and not an s."""


def of(count: int, noun: str) -> str:
    """The number and its noun. `noun` is singular; its last word is put in the plural if needed."""
    return f"{count} {plural(count, noun)}"


def plural(count: int, noun: str) -> str:
    """The form of the noun after the number: singular for 1, otherwise plural."""
    if count == 1:
        return noun
    if noun.endswith("y") and noun[-2:-1] not in "aeiou":
        return f"{noun[:-1]}ies"
    return f"{noun}es" if noun.endswith(_HISSING) else f"{noun}s"


def verb(count: int, singular: str) -> str:
    """The form of a verb after a number of subjects: `1 pod waits`, `2 pods wait`."""
    if count == 1:
        return singular
    if singular in _IRREGULAR_VERBS:
        return _IRREGULAR_VERBS[singular]
    if singular.endswith("ies"):
        return f"{singular[:-3]}y"
    stem = singular.removesuffix("es")
    return stem if stem.endswith(("ss", *_HISSING[1:])) else singular.removesuffix("s")


def ordinal(number: int) -> str:
    """The place in an order, from 1 on: `1st`, `2nd`, `3rd`, `4th`, `11th`."""
    teens = range(11, 14)
    ending = "th" if number % 100 in teens else _ENDINGS.get(number % 10, "th")
    return f"{number}{ending}"


_ENDINGS = {1: "st", 2: "nd", 3: "rd"}
