"""A plant, and the judge that compares the JSON of an answer with the plant."""

import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.cluster import Cluster

FIRST = 16
"""Reasons of an answer, in the order in which they are read, among which a cause must stand."""


@dataclass(frozen=True, kw_only=True)
class Cause:
    """Words that must occur in one branch, and the revision of the event that is the cause.

    Of words separated by a bar, one is enough.
    """

    words: tuple[str, ...]
    revision: int = 0


@dataclass(frozen=True, kw_only=True)
class Plant:
    """A world, a question, and the words that the answer must and must not contain."""

    cluster: Cluster
    kind: str
    name: str
    causes: tuple[Cause, ...]
    never: tuple[str, ...] = ()
    namespace: str = "default"
    ask: dict[str, Any] = field(default_factory=dict)


Sow = Callable[[random.Random], Plant]


@dataclass(frozen=True, kw_only=True)
class _Branch:
    text: str
    revisions: frozenset[int]


def problems(plant: Plant, answer: dict[str, Any]) -> list[str]:
    """The problems of an answer: missing words, and words that it must not contain."""
    branches = list(_branches(answer))
    lines = [branch.text for branch in branches]
    missing = [
        f"not said among the first {FIRST}: {cause}"
        for cause in plant.causes
        if not any(_says(branch, cause) for branch in branches[:FIRST])
    ]
    wrong = [
        f"said wrongly: {words!r} in {line!r}"
        for words in plant.never
        for line in lines
        if _has(line, words)
    ]
    return [*missing, *wrong, *(lines if missing or wrong else ())]


def _branches(answer: dict[str, Any]) -> Iterator[_Branch]:
    head = f"{answer['subject']} {answer['outcome']} {answer['text']}"
    root = _Branch(text=head, revisions=frozenset())
    yield root
    for child in answer["reasons"].get("children", ()):
        yield from _below(child, root)


def _below(reason: dict[str, Any], above: _Branch) -> Iterator[_Branch]:
    revision = reason.get("revision")
    here = _Branch(
        text=" / ".join((above.text, reason["text"], *reason.get("issues", ()))),
        revisions=above.revisions | ({revision} if revision else set()),
    )
    yield here
    for child in reason.get("children", ()):
        yield from _below(child, here)


def _says(branch: _Branch, cause: Cause) -> bool:
    if cause.revision and cause.revision not in branch.revisions:
        return False
    return all(any(_has(branch.text, each) for each in word.split("|")) for word in cause.words)


def _has(text: str, words: str) -> bool:
    """True when the text contains the words as whole words: `gpu-1` is not in `gpu-10`."""
    return re.search(rf"(?<![\w.-]){re.escape(words)}(?![\w-])", text) is not None
