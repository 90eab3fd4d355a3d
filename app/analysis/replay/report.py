"""The report of a decide replay: counts by aspect and class, and differences with both sides."""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import msgspec

from app.analysis.replay import races
from app.analysis.replay.classes import UNPROVED, DifferenceClass, Judgement
from app.analysis.replay.differences import Aspect, Compared, DifferenceKey, Sides
from app.analysis.replay.traces import Trace
from app.domain.log import Revision, doubts
from app.domain.log.doubts import Doubt
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant

LISTED_MAX = 1_000
"""The number of differences that a report lists; all are counted."""


USERS_MAX = 8
"""The number of users that a difference names."""


class Agreement(StrEnum):
    """The outcomes of a decide replay."""

    AGREES = "agrees"
    """Nothing differs."""
    PROVED = "agrees apart from proved classes"
    """Each difference has a class, and a run proves the class for it."""
    PARTLY = "agrees in part"
    """All that was compared agrees, apart from proved classes, but something was not compared."""
    UNEXPLAINED = "unexplained differences"
    """A difference for which no hypothesis holds."""
    IMPOSSIBLE = "impossible states or times"
    """No such difference, but a recorded state is impossible, or an act came too early or too late.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class DecideDifference:
    """One difference: its subject, its class, and both sides.

    `users` wrote to the object in the recording, and their names are not those of controllers.
    `uid` is that of the subject, `owner` that of the pod that it belongs to, or the same. From
    `since` on the two runs differ; None where that is not known.
    """

    aspect: Aspect
    subject: str
    uid: str
    owner: str
    since: Instant | None
    revision: int
    users: tuple[str, ...]
    reason: str
    detail: str
    recorded: Any
    again: Any

    def to_json(self) -> JsonObject:
        """The difference as JSON for reports."""
        return {
            "aspect": self.aspect.value,
            "subject": self.subject,
            "revision": self.revision,
            "users": list(self.users),
            "class": str(self.reason),
            "detail": self.detail,
            "recorded": self.recorded,
            "again": self.again,
        }


@dataclass(slots=True)
class AspectCounts:
    """Counts of one aspect: equal subjects, and different ones by class."""

    same: int = 0
    different: Counter[str] = field(default_factory=Counter)

    def to_json(self) -> JsonObject:
        """The counts as JSON for reports."""
        known = [why for why in DifferenceClass if self.different[why]]
        switches = sorted(why for why in self.different if why not in set(DifferenceClass))
        return {
            "same": self.same,
            "different": sum(self.different.values()),
            "classes": {str(why): self.different[why] for why in (*known, *switches)},
        }


REFUSED_PLAN = "a plan of ours that was refused"
"""The name under which plans that the API refused are counted, such as a claim beyond a quota."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DecideReport:
    """The results of a decide replay.

    `inputs` counts recorded writes by how they were used. `not_comparable` counts, by reason, what
    could not be compared, and `not_done` writes that could not be done here. `ties` counts pods for
    which the recorded one of equally good nodes was chosen. `violations` maps claims to recorded
    allocations that no order allows. `written_by` has the users whose writes were attributed to a
    controller of another name, with counts. `runs` counts the runs that were made to prove classes.
    `doubts` are what the recording lacks.
    """

    history: str
    revision: Revision
    inputs: Mapping[str, int]
    aspects: Mapping[Aspect, AspectCounts]
    differences: tuple[DecideDifference, ...]
    not_comparable: Mapping[str, int]
    not_done: Mapping[str, int] = field(default_factory=dict)
    violations: Mapping[str, str] = field(default_factory=dict)
    written_by: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    ties: int = 0
    runs: int = 0
    doubts: tuple[Doubt, ...] = ()

    @property
    def agreement(self) -> Agreement:
        """The outcome of the replay."""
        classes = {why for counts in self.aspects.values() for why in counts.different}
        if DifferenceClass.UNEXPLAINED in classes:
            return Agreement.UNEXPLAINED
        if self.violations:
            return Agreement.IMPOSSIBLE
        is_whole = not self.not_comparable and DifferenceClass.NOT_COMPARABLE not in classes
        # If there are differences, writes that could not be done here follow from them. A plan that
        # is refused here writes nothing: if the recording has its writes, that is a difference.
        is_whole &= bool(classes) or not self.not_done.keys() - {REFUSED_PLAN}
        if not is_whole or not self.is_sure:
            return Agreement.PARTLY
        return Agreement.PROVED if classes else Agreement.AGREES

    @property
    def is_sure(self) -> bool:
        """Whether no doubt concerns the state on which decisions were based.

        If times contradict the order, the state that a controller saw is unknown, and equal results
        may be chance.
        """
        return doubts.is_settled(self.doubts)

    @property
    def explained(self) -> bool:
        """True if all differences that can be judged have a proved class, and all is possible."""
        return self.agreement not in (Agreement.UNEXPLAINED, Agreement.IMPOSSIBLE)

    def to_json(self) -> JsonObject:
        """The report as JSON for the command line and the API."""
        return {
            "history": self.history,
            "revision": self.revision,
            "outcome": self.agreement.value,
            "explained": self.explained,
            "inputs": dict(sorted(self.inputs.items())),
            "aspects": {aspect.value: counts.to_json() for aspect, counts in self.aspects.items()},
            "tiesTakenFromTheRecording": self.ties,
            "runsToProveClasses": self.runs,
            "violations": dict(sorted(self.violations.items())),
            "writtenBy": {
                controller: dict(sorted(users.items()))
                for controller, users in sorted(self.written_by.items())
            },
            "differences": [difference.to_json() for difference in self.differences],
            "certainty": "sure" if self.is_sure else "unsure",
            "doubts": msgspec.to_builtins(self.doubts),
            "notComparable": dict(sorted(self.not_comparable.items())),
            "notDone": dict(sorted(self.not_done.items())),
        }


def aspect_counts(
    compared: Compared, judgements: Mapping[DifferenceKey, Judgement]
) -> dict[Aspect, AspectCounts]:
    """The counts of every aspect."""
    counts = {aspect: AspectCounts(same=compared.same[aspect]) for aspect in Aspect}
    for key in compared.different:
        counts[key[0]].different[judgements[key].reason] += 1
    return counts


def listed(
    different: Mapping[DifferenceKey, Sides],
    judgements: Mapping[DifferenceKey, Judgement],
    recorded: Trace,
    again: Trace,
    users: Mapping[str, Collection[str]],
) -> tuple[DecideDifference, ...]:
    """The differences as reports list them, at most `LISTED_MAX`, always including the gravest.

    Aspects keep their order; unexplained differences have precedence over those with a class.
    """
    order = list(Aspect)
    chosen = sorted(
        different, key=lambda key: judgements[key].reason != DifferenceClass.UNEXPLAINED
    )
    keys = sorted(chosen[:LISTED_MAX], key=lambda key: order.index(key[0]))
    return tuple(
        _difference(
            different[key], judgements[key], recorded, again, users.get(different[key].uid, ())
        )
        for key in keys
    )


def _difference(
    sides: Sides,
    judgement: Judgement,
    recorded: Trace,
    again: Trace,
    users: Collection[str],
) -> DecideDifference:
    steps = recorded.writes.get(sides.uid) or again.writes.get(sides.uid)
    key = recorded.keys.get(sides.uid) or again.keys.get(sides.uid)
    return DecideDifference(
        aspect=sides.aspect,
        subject=str(key) if key is not None else sides.uid,
        uid=sides.uid,
        owner=recorded.owner_of.get(sides.uid) or again.owner_of.get(sides.uid, sides.uid),
        since=min(races.instants(sides, recorded, again), default=None),
        revision=steps[0].revision if steps else 0,
        users=tuple(sorted(users)[:USERS_MAX]),
        reason=judgement.reason,
        detail=judgement.detail,
        recorded=sides.recorded,
        again=sides.again,
    )


_FATES = (Aspect.NODES, Aspect.DEVICES, Aspect.EVICTIONS)
_ABOUT_PODS = (*_FATES, Aspect.CONDITIONS, Aspect.SAID)
"""The aspects about pods, the most important first: outcomes before messages."""


def judgements_of_pods(
    judgements: Mapping[DifferenceKey, Judgement], recorded: Trace, again: Trace
) -> dict[str, Judgement]:
    """The judgement about each pod by its uid: that of its placement, or else of its messages.

    The judgement of a claim applies to its owner and to the pods that use it. If any outcome of a
    pod is unproved, so is the pod: the proof of one difference does not cover the others.
    """
    judged: dict[str, Judgement] = {}
    ordered = sorted(
        (key for key in judgements if key[0] in _ABOUT_PODS),
        key=lambda key: (
            key[0] not in _FATES,
            key[0] in _FATES and judgements[key].reason not in UNPROVED,
            _ABOUT_PODS.index(key[0]),
        ),
    )
    for key in ordered:
        for uid in _pods_of(key[1], recorded, again):
            judged.setdefault(uid, judgements[key])
    return judged


def _pods_of(uid: str, *traces: Trace) -> set[str]:
    """The pod itself, or the owner and the users of a claim."""
    pods = {uid}
    for trace in traces:
        pods |= trace.users.get(uid, set())
        owner = trace.owner_of.get(uid)
        if owner is not None:
            pods.add(owner)
    return pods
