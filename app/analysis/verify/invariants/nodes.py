"""Node selectors: whether an allocation may be used on a node.

Parity: objects.md 14, core v1 NodeSelector.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from msgspec import Raw

from app.analysis.verify.invariants import reading

_SELECTORS_MAX = 4_096
"""The number of cached selectors: allocations on the same node have equal selectors."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selector:
    """A parsed node selector. Without `reads_labels`, its answer for a node never changes.

    `takes` is the name of the node if the selector selects exactly one node by name.
    """

    tree: Any
    takes: str | None
    reads_labels: bool


def selector(part: Raw) -> Selector:
    """The node selector of an allocation."""
    return _selector(bytes(part))


@lru_cache(maxsize=_SELECTORS_MAX)
def _selector(part: bytes) -> Selector:
    tree = reading.value(part)
    return Selector(tree=tree, takes=_single(tree), reads_labels=reads_labels(tree))


def _single(tree: Any) -> str | None:
    terms = reading.objects(reading.get(tree, "nodeSelectorTerms"))
    if len(terms) != 1 or reading.objects(terms[0].get("matchExpressions")):
        return None
    names = reading.objects(terms[0].get("matchFields"))
    if len(names) != 1 or names[0].get("key") != "metadata.name":
        return None
    values = reading.texts(names[0].get("values"))
    return values[0] if names[0].get("operator") == "In" and len(values) == 1 else None


def selects(selector: Any, node: str, labels: Mapping[str, Any] | None) -> bool | None:
    """Whether the selector selects the node; None when that depends on unknown labels.

    An absent selector selects every node; a selector without terms selects none.
    """
    if not isinstance(selector, dict):
        return True
    answers = [
        _term(term, node, labels) for term in reading.objects(selector.get("nodeSelectorTerms"))
    ]
    if any(answers):
        return True
    return None if None in answers else False


def reads_labels(selector: Any) -> bool:
    """Whether the selector uses labels."""
    return isinstance(selector, dict) and any(
        reading.objects(term.get("matchExpressions"))
        for term in reading.objects(selector.get("nodeSelectorTerms"))
    )


def _term(term: Mapping[str, Any], node: str, labels: Mapping[str, Any] | None) -> bool | None:
    expressions, names = (
        reading.objects(term.get("matchExpressions")),
        reading.objects(term.get("matchFields")),
    )
    if not expressions and not names:
        return False
    for each in names:
        if each.get("key") != "metadata.name" or not _holds(each, {"metadata.name": node}):
            return False
    if not expressions:
        return True
    return None if labels is None else all(_holds(each, labels) for each in expressions)


def _holds(requirement: Mapping[str, Any], labels: Mapping[str, Any]) -> bool:
    key = requirement.get("key")
    values = reading.texts(requirement.get("values"))
    value = labels.get(key) if isinstance(key, str) else None
    match requirement.get("operator"):
        case "In":
            return value is not None and value in values
        case "NotIn":
            return value is None or value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt":
            return _compared(value, values) > 0
        case "Lt":
            return _compared(value, values) < 0
    return False


def _compared(value: Any, values: list[str]) -> int:
    """1 for greater, -1 for less, 0 for equal or for a value that is not a number."""
    try:
        mine, limit = int(value), int(values[0])
    except (TypeError, ValueError, IndexError):
        return 0
    return (mine > limit) - (mine < limit)
