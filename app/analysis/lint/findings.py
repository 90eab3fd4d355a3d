"""Lint rules and findings; a finding is a rule that is broken at a place."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from app.domain.values.json_tree import JsonObject


class LintSeverity(StrEnum):
    """The severity of a finding.

    `ERROR` does not work: a device or pool is never allocated, a pod never placed, or everything is
    evicted. `WARNING` works differently from what its author will expect. `NOTE` is worth knowing.
    """

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"

    @property
    def rank(self) -> int:
        """The rank of the severity; 0 is the gravest."""
        return tuple(LintSeverity).index(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingPlace:
    """The place where a rule is broken: an object, a field of it, and the source of the object.

    `field` is a path in the form of the storage version. `line` is 0 where the source has no lines,
    `revision` 0 outside of histories.
    """

    object: str
    field: str = ""
    source: str = ""
    line: int = 0
    revision: int = 0

    def __str__(self) -> str:
        where = f"{self.source}:{self.line}" if self.line else self.source
        if self.revision:
            where = f"{where}@{self.revision}" if where else f"revision {self.revision}"
        what = f"{self.object} {self.field}".strip()
        return f"{where}: {what}" if where else what

    def to_json(self) -> JsonObject:
        """The known parts as JSON."""
        parts = {
            "object": self.object,
            "field": self.field,
            "source": self.source,
            "line": self.line,
            "revision": self.revision,
        }
        return {name: part for name, part in parts.items() if part}


@dataclass(frozen=True, slots=True, kw_only=True)
class LintFinding:
    """A broken rule: the place, the reason, and the cure."""

    rule: "LintRule"
    place: FindingPlace
    message: str
    related: tuple[FindingPlace, ...] = ()

    @property
    def severity(self) -> LintSeverity:
        """The severity of its rule."""
        return self.rule.severity

    def to_json(self) -> JsonObject:
        """The finding as JSON for programs."""
        return {
            "rule": self.rule.id,
            "severity": self.severity.value,
            "place": self.place.to_json(),
            "message": self.message,
            "cure": self.rule.cure,
            "related": [place.to_json() for place in self.related],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class LintRule:
    """A requirement. `means` states the consequence of breaking it, `reference` its source.

    `reads` names the kinds that the rule reads.
    """

    id: str
    severity: LintSeverity
    reads: str
    means: str
    cure: str
    reference: str

    def at(
        self, place: FindingPlace, message: str, related: Iterable[FindingPlace] = ()
    ) -> LintFinding:
        """A finding that the rule is broken at a place."""
        return LintFinding(rule=self, place=place, message=message, related=tuple(related))


RELATED_MAX = 8
"""The number of further places that one finding names; the message has the total number."""
