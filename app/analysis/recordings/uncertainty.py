"""The doubts that follow from a fidelity report, and their text."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from app.analysis.recordings.fidelity import NEEDED, is_judged
from app.domain.log.doubts import (
    ENDS,
    MEANINGS,
    NEVER_SEEN,
    PARTIAL,
    PARTIAL_TEXT,
    REFUSED,
    TIMES,
    UNEXPLAINED,
    UNFINISHED,
    Affects,
    Doubt,
)
from app.domain.log.records import CHANGES, Loss
from app.domain.objects import registry
from app.domain.values import api_groups, identifiers, json_tree
from app.domain.values.json_tree import JsonObject, JsonView

IMPORT_UNFINISHED = Doubt(
    code=UNFINISHED,
    affects=Affects.CONTENT,
    kind="",
    count=1,
    text="the import did not finish",
)

NO_CAUSE = Doubt(
    code=UNEXPLAINED,
    affects=Affects.CONTENT,
    kind="",
    count=0,
    text="the recorded objects do not show why this happened",
)
NO_RULE = msgspec.structs.replace(
    NO_CAUSE,
    kind=f"devicetaintrules.{api_groups.RESOURCE}",
    text="none was recorded, and the recorded objects do not show why this happened",
)
NO_ALLOCATION = msgspec.structs.replace(
    NO_CAUSE,
    kind=f"resourceclaims.{api_groups.RESOURCE}",
    text="a pod was bound, but the allocation of its claim was not recorded",
)
"""The doubts about an effect without a cause; a rule that nobody recorded may be the cause."""

UNFITTING = msgspec.structs.replace(NO_CAUSE, text="recorded objects do not fit each other")
"""The doubt about a recording in which a rule is broken, unless objects or changes are missing."""

_UNSURE_ORDER = {
    Affects.ORDER: "order: the recording does not show the order of all changes",
    Affects.TIME: "times: the recording does not show the times of all changes",
}

_LEAVES_OUT = frozenset(
    (
        NEVER_SEEN,
        REFUSED,
        UNFINISHED,
        *(
            loss.value
            for loss in (
                Loss.NO_BASELINE,
                Loss.SYNTHETIC_CREATE,
                Loss.UNDECODABLE,
                Loss.ENCRYPTED,
            )
        ),
    )
)
"""The codes of doubts which mean that whole objects may be missing, nobody knows when.

A gap has its place in the log, as has a request without its body, which is a gap of its object: who
follows the log knows since when it is there.
"""

_HIDES = frozenset((Loss.GAP, Loss.METADATA_ONLY, Loss.TRUNCATED_BODY))
"""The codes of doubts about objects that may have been made unseen, at a known place in the log."""

_CONTRADICTIONS = frozenset((Loss.CONTRADICTED, Loss.IMMUTABLE))
"""The losses of which a contradiction of the report gives an example."""

JUDGED = (*NEEDED, "devicetaintrules")
"""The resources that take part in the allocation of devices."""


def of_report(report: JsonView) -> tuple[Doubt, ...]:
    """The doubts that follow from a stored fidelity report."""
    kinds = _kinds(report)
    judged = [kind for kind in kinds if is_judged(_text(kind, "group"), _text(kind, "resource"))]
    # A gap without a kind is a gap of all kinds.
    doubted = [*judged, *(kind for kind in kinds if not _text(kind, "resource"))]
    contradictions = _contradictions(report)
    recorded = [doubt for kind in doubted for doubt in _of_kind(kind, contradictions)]
    recorded += _never_seen(judged, json_tree.texts(report, "listed"))
    if refused := json_tree.integer(report, "refused") or 0:
        recorded.append(
            Doubt(
                code=REFUSED,
                affects=Affects.CONTENT,
                kind="",
                count=refused,
                text="records could not be read and were left out",
            )
        )
    return tuple(sorted(recorded, key=lambda doubt: (doubt.kind, doubt.affects, doubt.code)))


def lacking(recorded: Iterable[Doubt]) -> frozenset[str]:
    """The resources of which whole objects may be missing in a recording.

    A doubt about all kinds counts for each kind that takes part in the allocation of devices.
    `TIMES` is included where times of several records contradict the order: no duration is known
    then. `ENDS` is included where all deletions are left out: each object may have ended since its
    last write.
    """
    recorded = tuple(recorded)
    odd = sum(doubt.count for doubt in recorded if doubt.code == Loss.TIMES_CONTRADICT)
    times = {TIMES} if odd > 1 else set()
    ends = {ENDS for doubt in recorded if doubt.code == Loss.NO_DELETES and not doubt.kind}
    kinds = {doubt.kind.partition(".")[0] or "" for doubt in recorded if doubt.code in _LEAVES_OUT}
    return frozenset(times.union(ends, JUDGED if "" in kinds else kinds))


def unseen(recorded: Iterable[Doubt]) -> frozenset[str]:
    """The resources of which an object may be there that no record shows.

    Beside those of `lacking`, these are resources with gaps, or with changes without a body.
    """
    recorded = tuple(recorded)
    gaps = {doubt.kind.partition(".")[0] for doubt in recorded if doubt.code in _HIDES}
    return lacking(recorded) | (frozenset(JUDGED) if "" in gaps else frozenset(gaps))


def with_unfitting(recorded: tuple[Doubt, ...], messages: Sequence[str]) -> tuple[Doubt, ...]:
    """The doubts of a recording, and one about objects that do not fit, as the messages say."""
    if not messages:
        return recorded
    text = f"{UNFITTING.text}: {messages[0]}"
    return (msgspec.structs.replace(UNFITTING, count=len(messages), text=text), *recorded)


def lines(recorded: Sequence[Doubt]) -> list[str]:
    """A heading and one line for each kind whose content is in doubt; empty when there is none."""
    kinds = _by_kind(doubt for doubt in recorded if doubt.affects is Affects.CONTENT)
    if not kinds:
        return []
    return ["unsure: the recording is incomplete, so the answer may be another one", *kinds]


def order_lines(recorded: Sequence[Doubt]) -> list[str]:
    """The same for the order and the times of changes, which do not affect the content."""
    lines = []
    for affects, heading in _UNSURE_ORDER.items():
        kinds = _by_kind(doubt for doubt in recorded if doubt.affects is affects)
        lines += [heading, *kinds] if kinds else []
    return lines


def _by_kind(recorded: Iterable[Doubt]) -> list[str]:
    texts: dict[str, list[str]] = {}
    for doubt in recorded:
        count = f" ({doubt.count})" if doubt.count else ""
        texts.setdefault(doubt.kind, []).append(f"{doubt.text}{count}")
    return [
        f"  {registry.titled(kind).removesuffix('.resource.k8s.io') or 'all kinds'}: "
        f"{'; '.join(parts)}"
        for kind, parts in texts.items()
    ]


def kinds_of(report: JsonView) -> list[tuple[str, str]]:
    """Group and resource of each kind of which a stored fidelity report counts records."""
    return [(_text(kind, "group"), _text(kind, "resource")) for kind in _kinds(report)]


def _kinds(report: JsonView) -> list[JsonObject]:
    return json_tree.objects(report, "kinds")


def _contradictions(report: JsonView) -> dict[str, str]:
    """The first contradiction between sources for each kind."""
    first: dict[str, str] = {}
    for each in json_tree.objects(report, "contradictions"):
        name = identifiers.qualified_resource(_text(each, "group"), _text(each, "resource"))
        first.setdefault(name, _text(each, "text"))
    return first


def _of_kind(kind: JsonObject, contradictions: Mapping[str, str]) -> Iterator[Doubt]:
    name = identifiers.qualified_resource(_text(kind, "group"), _text(kind, "resource"))
    losses = json_tree.mapping(kind, "losses")
    for loss, (affects, text) in MEANINGS.items():
        if count := json_tree.integer(losses, loss.value) or 0:
            if loss in _CONTRADICTIONS and name in contradictions:
                text = f"{text}: {contradictions[name]}"
            elif loss is Loss.TIMES_CONTRADICT and (first := _text(kind, "oddTime")):
                text = f"{text}, first {first}"
            yield Doubt(code=loss.value, affects=affects, kind=name, count=count, text=text)
    if count := json_tree.integer(kind, "incomplete") or 0:
        yield Doubt(
            code=PARTIAL,
            affects=Affects.CONTENT,
            kind=name,
            count=count,
            text=PARTIAL_TEXT,
        )


def _never_seen(judged: list[JsonObject], listed: list[str]) -> Iterator[Doubt]:
    seen = {name.partition(".")[0] for name in listed} | {
        _text(kind, "resource")
        for kind in judged
        if any(json_tree.integer(kind, "ops", op.value) for op in CHANGES)
    }
    for resource in NEEDED:
        if resource not in seen:
            group = "" if resource in ("pods", "nodes") else api_groups.RESOURCE
            yield Doubt(
                code=NEVER_SEEN,
                affects=Affects.CONTENT,
                kind=identifiers.qualified_resource(group, resource),
                count=0,
                text="none was recorded, so there were none or they were left out",
            )


def _text(kind: JsonObject, field: str) -> str:
    return json_tree.text(kind, field)
