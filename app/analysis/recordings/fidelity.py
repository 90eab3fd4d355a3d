"""The fidelity report: what an import kept, and what it could not know.

It has, per kind, the counts of operations and losses, and the first and last time and version; the
gaps; and three verdicts, each with the reasons for a no. Parity: history-formats.md 3.6. Nothing is
invented silently: every value that was filled in is counted here.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from app.domain.log import doubts
from app.domain.log.records import CHANGES, Contradiction, Loss, Op, Quality, Record, TimeQuality
from app.domain.values import api_groups, counts, identifiers, json_tree, timestamps
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.timestamps import Instant

GAPS_LISTED_MAX = 100
"""The number of gaps listed one by one; all are counted."""

NEEDED = ("resourceslices", "resourceclaims", "deviceclasses", "pods", "nodes")
"""Kinds without which a decision about devices cannot be made again."""

INCOMPLETE = (Quality.PARTIAL, Quality.IDENTITY)
"""The qualities of records that contain only a part of their object."""

_REBUILD = {
    loss: doubts.MEANINGS[loss][1]
    for loss in (
        Loss.NO_BASELINE,
        Loss.SYNTHETIC_CREATE,
        Loss.SYNTHETIC_DELETE,
        Loss.COLLAPSED,
        Loss.GAP,
        Loss.NO_DELETES,
        Loss.METADATA_ONLY,
        Loss.TRUNCATED_BODY,
        Loss.UNKNOWN_PATCH,
        Loss.NO_STATUS,
        Loss.SPEC_ONLY,
        Loss.PRINTED,
        Loss.UNDECODABLE,
        Loss.ENCRYPTED,
        Loss.VERSION_GUESS,
        Loss.CONTRADICTED,
        Loss.IMMUTABLE,
    )
}
_DECIDE = {
    Loss.NO_STATUS: "allocations and conditions are missing",
    Loss.SPEC_ONLY: doubts.MEANINGS[Loss.SPEC_ONLY][1],
    Loss.PRINTED: "objects show a few of their fields",
    Loss.GAP: "a decision in a gap had other inputs than are known",
    Loss.NO_RV: "the order of some changes against other objects is a guess",
    Loss.LATE: doubts.MEANINGS[Loss.LATE][1],
    Loss.METADATA_ONLY: "inputs were recorded without their body",
    Loss.TRUNCATED_BODY: "inputs were cut",
    Loss.VERSION_GUESS: "selectors of old versions cannot be evaluated",
    Loss.CONTRADICTED: doubts.MEANINGS[Loss.CONTRADICTED][1],
    Loss.IMMUTABLE: doubts.MEANINGS[Loss.IMMUTABLE][1],
}


@dataclass(frozen=True, slots=True, kw_only=True)
class KindReport:
    """One kind: the number of records per operation, of losses, and the range of times.

    `incomplete` counts the records of existing objects that contain a part of the object, or only
    its identity. `odd_time` is the first one whose times contradict the order: its place and
    object.
    """

    group: str
    resource: str
    ops: dict[str, int]
    losses: dict[str, int]
    first_time: Instant | None
    last_time: Instant | None
    first_version: str
    last_version: str
    incomplete: int = 0
    odd_time: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgeability:
    """The answer to one question; `reasons` explain a no, or limit a yes.

    `is_partial` says of a no that it concerns a part of the changes only.
    """

    question: str
    answer: bool
    reasons: tuple[str, ...]
    is_partial: bool = False

    @property
    def word(self) -> str:
        """The answer as a word for people."""
        return "yes" if self.answer else "in part" if self.is_partial else "no"


@dataclass(frozen=True, slots=True, kw_only=True)
class FidelityReport:
    """The complete report. Equal imports give equal reports."""

    records: int
    kinds: tuple[KindReport, ...]
    times: dict[str, int]
    gaps: tuple[str, ...]
    gap_count: int
    verdicts: tuple[Judgeability, ...]
    notes: tuple[str, ...] = ()
    refused: int = 0
    refusals: tuple[tuple[str, str], ...] = ()
    contradictions: tuple[Contradiction, ...] = ()
    listed: tuple[str, ...] = ()
    """Kinds of which all objects were listed."""
    left_out: tuple[tuple[str, str], ...] = ()
    """Sources without objects, as place and reason: the recording is complete without them."""

    def to_json(self) -> JsonObject:
        """The report for the log and for `-o json`; instants as text."""
        return {
            "records": self.records,
            "kinds": [_kind_json(kind) for kind in self.kinds],
            "times": self.times,
            "gaps": list(self.gaps),
            "gapCount": self.gap_count,
            "verdicts": [
                {
                    "question": verdict.question,
                    "answer": verdict.answer,
                    **({"inPart": True} if verdict.is_partial else {}),
                    "reasons": list(verdict.reasons),
                }
                for verdict in self.verdicts
            ],
            "notes": list(self.notes),
            "refused": self.refused,
            "refusals": [{"place": place, "problem": problem} for place, problem in self.refusals],
            "leftOut": [{"place": place, "reason": reason} for place, reason in self.left_out],
            "contradictions": [
                {
                    "group": each.key.group,
                    "resource": each.key.resource,
                    "text": str(each),
                }
                for each in self.contradictions
            ],
            "listed": list(self.listed),
        }

    def _rows(self) -> list[tuple[str, ...]]:
        """One row per kind for a table: KIND, then a count per operation, TIMES and LOSSES."""
        table: list[tuple[str, ...]] = []
        for kind in self.kinds:
            name = identifiers.qualified_resource(kind.group, kind.resource)
            counts = tuple(str(kind.ops.get(op.value, 0)) for op in Op)
            losses = ", ".join(f"{loss} {count}" for loss, count in kind.losses.items())
            table.append((name, *counts, _span(kind), losses))
        return table

    def table(self) -> list[tuple[str, ...]]:
        """Titles for people and the rows, without columns in which nothing is counted."""
        titles = ("KIND", *_OP_TITLES.values(), "TIMES", "LOSSES")
        table = self._rows()
        columns = [
            place
            for place, _ in enumerate(titles)
            if any(row[place] not in ("", "0") for row in table)
        ]
        return [tuple(row[place] for place in columns) for row in (titles, *table)]

    @property
    def times_known(self) -> tuple[Instant, Instant] | None:
        """The first and the last known time; None where there is none."""
        first = [kind.first_time for kind in self.kinds if kind.first_time is not None]
        last = [kind.last_time for kind in self.kinds if kind.last_time is not None]
        return (min(first), max(last)) if first and last else None


_OP_TITLES = {
    Op.BASELINE: "AT FIRST",
    Op.ADDED: "CREATED",
    Op.MODIFIED: "CHANGED",
    Op.DELETED: "DELETED",
    Op.GAP: "GAPS",
    Op.CONTEXT: "NO EFFECT",
}
"""The titles of operations for people; `NO EFFECT` are requests that changed nothing."""


@dataclass(slots=True)
class _KindCounts:
    ops: Counter[str] = field(default_factory=Counter)
    losses: Counter[str] = field(default_factory=Counter)
    times: Counter[str] = field(default_factory=Counter)
    qualities: Counter[str] = field(default_factory=Counter)
    first_time: Instant | None = None
    last_time: Instant | None = None
    first_version: str = ""
    last_version: str = ""
    odd_time: str = ""
    incomplete: int = 0
    undated: int = 0
    """Requests without an effect, and reports of a component, that have no time."""


_COUNTERS = ("ops", "losses", "times", "qualities")
_PLAIN = (
    "first_time",
    "last_time",
    "first_version",
    "last_version",
    "odd_time",
    "incomplete",
    "undated",
)


class FidelityCollector:
    """Counts records in order, then creates the report."""

    def __init__(self) -> None:
        self._kinds: dict[tuple[str, str], _KindCounts] = {}
        self._gaps: list[str] = []
        self._gap_count = 0
        self._records = 0
        self._listed: set[tuple[str, str]] = set()

    def note_listed(self, group: str, resource: str) -> None:
        """Notes that all objects of a kind were listed: if none was seen, none existed."""
        self._listed.add((group, resource))

    def is_listed(self, group: str, resource: str) -> bool:
        """Whether all objects of a kind were listed."""
        return (group, resource) in self._listed

    def counted(self) -> JsonObject:
        """The counts so far, from which `counting_on` continues."""
        return {
            "records": self._records,
            "gaps": list(self._gaps),
            "gapCount": self._gap_count,
            "listed": sorted(identifiers.qualified_resource(*place) for place in self._listed),
            "kinds": [
                {
                    "group": group,
                    "resource": resource,
                    **{name: _counts(getattr(kind, name)) for name in _COUNTERS},
                    **{name: getattr(kind, name) for name in _PLAIN},
                }
                for (group, resource), kind in sorted(self._kinds.items())
            ],
        }

    @staticmethod
    def counting_on(counted: JsonView) -> "FidelityCollector":
        """A collector that continues from the counts in `counted`."""
        collector = FidelityCollector()
        collector._records = json_tree.integer(counted, "records") or 0
        collector._gaps = json_tree.texts(counted, "gaps")
        collector._gap_count = json_tree.integer(counted, "gapCount") or 0
        for name in json_tree.texts(counted, "listed"):
            resource, _, group = name.partition(".")
            collector.note_listed(group, resource)
        for each in json_tree.objects(counted, "kinds"):
            kind = _KindCounts()
            for name in _COUNTERS:
                setattr(kind, name, Counter(each[name]))
            for name in _PLAIN:
                # Counts of older versions lack those that came later.
                setattr(kind, name, each.get(name, getattr(kind, name)))
            collector._kinds[each["group"], each["resource"]] = kind
        return collector

    def add(self, record: Record) -> None:
        """Count one record."""
        self._records += 1
        place = (record.group, record.resource)
        kind = self._kinds.get(place)
        if kind is None:
            kind = self._kinds[place] = _KindCounts()
        op = record.op
        kind.ops[op] += 1
        for loss in record.losses:
            kind.losses[loss] += 1
        if not kind.odd_time and Loss.TIMES_CONTRADICT in record.losses:
            kind.odd_time = f"{record.place}: {record.key}"
        time = record.observed_at
        if time is not None:
            if kind.first_time is None or time < kind.first_time:
                kind.first_time = time
            if kind.last_time is None or time > kind.last_time:
                kind.last_time = time
        if record.resource_version:
            kind.first_version = kind.first_version or record.resource_version
            kind.last_version = record.resource_version
        if op is Op.GAP:
            self._gap_count += 1
            if len(self._gaps) < GAPS_LISTED_MAX:
                subject = str(record.key) if record.resource else "everything"
                self._gaps.append(f"{record.place}: {subject}: {record.message}")
        elif op is Op.CONTEXT:
            kind.undated += record.time_quality is TimeQuality.NONE
        else:
            kind.times[record.time_quality] += 1
            kind.qualities[record.object_quality] += 1
            if op is not Op.DELETED and record.object_quality in INCOMPLETE:
                kind.incomplete += 1

    def report(
        self,
        *,
        notes: Iterable[str] = (),
        refused: int = 0,
        refusals: Iterable[tuple[str, str]] = (),
        contradictions: Iterable[Contradiction] = (),
        left_out: Iterable[tuple[str, str]] = (),
    ) -> FidelityReport:
        """The report of the records that were added."""
        judged = self._judged()
        return FidelityReport(
            records=self._records,
            kinds=tuple(
                KindReport(
                    group=group,
                    resource=resource,
                    ops=_counts(kind.ops),
                    losses=_counts(kind.losses),
                    first_time=kind.first_time,
                    last_time=kind.last_time,
                    first_version=kind.first_version,
                    last_version=kind.last_version,
                    incomplete=kind.incomplete,
                    odd_time=kind.odd_time,
                )
                for (group, resource), kind in sorted(self._kinds.items())
            ),
            times=_counts(judged.times),
            gaps=tuple(self._gaps),
            gap_count=self._gap_count,
            verdicts=(_can_rebuild(judged, refused), self._can_decide(judged), _can_time(judged)),
            notes=tuple(notes),
            refused=refused,
            refusals=tuple(refusals),
            contradictions=tuple(contradictions),
            left_out=tuple(left_out),
            listed=tuple(sorted(identifiers.qualified_resource(*place) for place in self._listed)),
        )

    def _judged(self) -> _KindCounts:
        """The kinds that the verdicts use: those that take part in allocation, else all.

        A Secret that was left out, or an undecodable kind of another group, does not affect a
        history of devices.
        """
        chosen = [kind for place, kind in self._kinds.items() if is_judged(*place)]
        together = _KindCounts()
        for kind in chosen or self._kinds.values():
            together.ops += kind.ops
            together.losses += kind.losses
            together.times += kind.times
            together.qualities += kind.qualities
            together.undated += kind.undated
        return together

    def _can_decide(self, judged: _KindCounts) -> Judgeability:
        seen = {
            resource
            for (_, resource), kind in self._kinds.items()
            if any(kind.ops[op] for op in CHANGES)
        } | {resource for _, resource in self._listed}
        reasons = []
        if not {"resourceslices", "resourceclaims"} & seen:
            reasons.append("no slice and no claim was recorded")
        else:
            missing = [name for name in NEEDED if name not in seen]
            if missing:
                reasons.append(f"never seen: {', '.join(missing)}")
        is_seen = not reasons
        reasons += _reasons(judged, _DECIDE)
        return Judgeability(
            question="can decisions be re-checked?",
            answer=not reasons,
            reasons=tuple(reasons),
            is_partial=bool(reasons) and is_seen and _spares_some(judged, _DECIDE),
        )


def is_judged(group: str, resource: str) -> bool:
    """True for the kinds that take part in the allocation of devices."""
    return group == api_groups.RESOURCE or (group == "" and resource in NEEDED)


def _can_rebuild(judged: _KindCounts, refused: int) -> Judgeability:
    reasons = _reasons(judged, _REBUILD)
    partial = judged.qualities[Quality.PARTIAL] + judged.qualities[Quality.IDENTITY]
    if partial:
        reasons.append(f"{counts.of(partial, 'object')} {counts.verb(partial, 'is')} not complete")
    if refused:
        reasons.append(f"{counts.of(refused, 'record')} refused")
    is_course = bool(judged.ops[Op.DELETED] or judged.ops[Op.MODIFIED])
    if not is_course:
        reasons.append("the sources show one moment, not a course of events")
    return Judgeability(
        question="can the state be rebuilt at every point?",
        answer=not reasons,
        reasons=tuple(reasons),
        is_partial=bool(reasons)
        and is_course
        and partial < judged.times.total()
        and _spares_some(judged, _REBUILD),
    )


def _can_time(judged: _KindCounts) -> Judgeability:
    reasons = []
    derived = judged.times[TimeQuality.DERIVED]
    none = judged.times[TimeQuality.NONE]
    if derived:
        times = f"{counts.of(derived, 'time')} {counts.verb(derived, 'is')}"
        reasons.append(f"{times} derived from the objects, to the second at best")
    if none:
        reasons.append(
            f"{counts.of(none, 'change')} {counts.verb(none, 'has')} no time, only an order"
        )
    if judged.undated:
        verb = counts.verb(judged.undated, "has")
        requests = counts.of(judged.undated, "observed request")
        reasons.append(f"{requests} {verb} no time, only an order")
    if judged.losses[Loss.COARSE_TIME]:
        reasons.append("times are whole seconds")
    if contradicting := judged.losses[Loss.TIMES_CONTRADICT]:
        verb = counts.verb(contradicting, "contradicts")
        reasons.append(f"{counts.of(contradicting, 'time')} {verb} the order of changes")
    losses = (judged.losses[loss] for loss in (Loss.COARSE_TIME, Loss.TIMES_CONTRADICT))
    return Judgeability(
        question="can timing be trusted?",
        answer=not reasons,
        reasons=tuple(reasons),
        is_partial=bool(reasons) and derived + none + sum(losses) < judged.times.total(),
    )


def _spares_some(judged: _KindCounts, texts: dict[Loss, str]) -> bool:
    """Whether each of the losses leaves some change out."""
    return all(judged.losses[loss] < judged.times.total() for loss in texts)


def _reasons(judged: _KindCounts, texts: dict[Loss, str]) -> list[str]:
    return [
        f"{text} ({judged.losses[loss]})" for loss, text in texts.items() if judged.losses[loss]
    ]


def _counts(counter: Counter[str]) -> dict[str, int]:
    """Names as plain text, sorted; enumerations by their values."""
    return {str(name): count for name, count in sorted(counter.items())}


def _kind_json(kind: KindReport) -> JsonObject:
    return {
        "group": kind.group,
        "resource": kind.resource,
        "ops": kind.ops,
        "losses": kind.losses,
        "firstTime": _time_text(kind.first_time),
        "lastTime": _time_text(kind.last_time),
        "firstVersion": kind.first_version,
        "lastVersion": kind.last_version,
        "incomplete": kind.incomplete,
        **({"oddTime": kind.odd_time} if kind.odd_time else {}),
    }


def _time_text(time: Instant | None) -> str:
    return "" if time is None else timestamps.micro_text(time)


def _span(kind: KindReport) -> str:
    if kind.first_time is None or kind.last_time is None:
        return ""
    first, last = (timestamps.seconds_text(time) for time in (kind.first_time, kind.last_time))
    return f"{first} – {last}"
