"""Why a decide replay differs from what was recorded: the classes, and how one is found.

A difference is taken apart into pieces: what only the recording has and what only the replay has.
Each piece needs a reason; the difference gets the gravest of them. A piece without a reason makes
it unexplained.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeAlias

from app.domain.values.timestamps import SECOND, Instant
from app.service.deciding.traces import Allocated, Trace


class Reason(StrEnum):
    """The classes of differences, gravest first."""

    UNEXPLAINED = "unexplained"
    """No known reason: a defect here, or one not yet known there."""
    IGNORED_RULES = "released bug C24"
    """The recorded scheduler did not see a DeviceTaintRule."""
    FINISHED_POD = "quirk C8 or C22"
    """A finished pod is reserved again, or gets a second claim, until its controller catches up."""
    NOT_EMULATED = "not emulated"
    """What a controller or plug-in did that is not imitated here."""
    REPLICAS = "replica controller"
    """What replica controllers wrote is kept as recorded, also where it no longer fits."""
    QUEUE_ORDER = "race: order of waiting pods"
    """Several pods wait for one device; which is tried first depends on milliseconds."""
    FOLLOWS = "follows from another difference"
    """Other devices are free than in the recording, because an earlier choice differs."""
    IN_FLIGHT = "in flight"
    """An attempt met a claim that was being allocated, on one side only."""
    RACE = "race"
    """Two writers, or two writes of one, came in another order."""
    TIMING = "timing"
    """An attempt or a status update took place at another instant, or another number of times."""
    AFTER_END = "after the end"
    """It was done here after the moment up to which is compared, or is recorded after it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """One difference before it is judged: the two lists of one aspect of one object."""

    aspect: str
    uid: str
    recorded: list[Any]
    again: list[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """The last instant that is compared, and what is recorded after it."""

    at: Instant
    later: Trace


Judgement: TypeAlias = tuple[Reason, str]

_IN_FLIGHT = "is in the process of being allocated"
_ATTEMPTS = ("Unschedulable: ", "FailedScheduling: ", "SchedulerError: ")
_PLACES = ("allocated ", "nominated ", "bound to ", "Scheduled: Successfully assigned")
_ENDINGS = ("removed", "deletion asked for", "no finalizer", "released", "no longer reserved")
_NOT_EMULATED = ("RegisteredNode", "RemovingNode", "beta.kubernetes.io/")
_SAME_TIME = 15 * SECOND
"""How far apart two claims may get the same device and still have competed for it."""


class Classes:
    """Finds the class of a difference from both traces.

    `violations` are uids of claims whose recorded allocation a taint forbade, with whether it was a
    device taint rule that had been there when the attempt was made.
    """

    def __init__(
        self, recorded: Trace, again: Trace, *, violations: Mapping[str, bool], end: End
    ) -> None:
        self._recorded = recorded
        self._again = again
        self._violations = violations
        self._end = end
        self._moved: dict[str, Judgement] = {}
        self._concerned: dict[str, Judgement] = {}
        for uid in violations:
            # What was placed against a rule there waits here, also for the same device.
            for concerned in (uid, self._pod_of(uid), *self._users(uid)):
                self._concerned[concerned] = self._of_violation(uid)
        self._sharing = {
            uid
            for claim, users in recorded.users.items()
            if len(users) > 1
            for uid in (claim, *users)
        }
        self._first = Instant(0)
        self._judge_allocations()

    def of(self, found: Found) -> Judgement:
        """The class and what is behind it."""
        if self._is_after_end(found):
            return Reason.AFTER_END, "it lies after the end"
        match found.aspect:
            case "devices":
                return self._moved.get(found.uid) or (Reason.UNEXPLAINED, "the result differs")
            case "nodes":
                return self._of_node(found.uid)
            case "evictions":
                return self._moved_or(found.uid, Reason.UNEXPLAINED)
            case "final objects":
                return self._of_state(found)
            case _:
                return self._of_pieces(found)

    def _is_after_end(self, found: Found) -> bool:
        """Whether all that only the replay has was done after the end, or is recorded there."""
        texts = self._texts_after(found.uid)
        if found.aspect in ("devices", "final objects"):
            # They are compared as wholes: the writes that made them tell.
            return bool(texts) and not list(self._missing(found.uid))
        pieces = list(_pieces(found))
        return bool(pieces) and all(
            side == "again" and any(piece.endswith(text) for text in texts)
            for piece, side in pieces
        )

    def _texts_after(self, uid: str) -> set[str]:
        later, again, end = self._end.later, self._again, self._end.at
        found: set[str] = set()
        for mine in (later.writes, later.of_pod, later.said):
            found |= {step.text for step in mine.get(uid, ())}
        for mine in (again.writes, again.of_pod, again.said):
            found |= {step.text for step in mine.get(uid, ()) if step.time > end}
        # A write of several facts is compared fact by fact where conditions and nodes are.
        return found | {
            fact.removeprefix("bound to ") for text in found for fact in text.split("; ")
        }

    def _missing(self, uid: str) -> Iterator[str]:
        """What is recorded of an object and was not done here."""
        left = Counter(step.text for step in self._recorded.writes.get(uid, ()))
        yield from left - Counter(step.text for step in self._again.writes.get(uid, ()))

    def _judge_allocations(self) -> None:
        """Find out which allocations differ, which of them first, and why."""
        left, right = self._recorded.allocations, self._again.allocations
        differing = [
            uid
            for uid in {**left, **right}
            if _places(left.get(uid, ())) != _places(right.get(uid, ()))
        ]
        differing.sort(key=lambda uid: (self._since(uid), uid))
        if differing:
            self._first = self._since(differing[0])
        takers = self._takers(differing)
        for uid in differing:
            found = self._of_allocation(uid, takers, is_first=uid == differing[0])
            self._moved[uid] = found
            for concerned in (uid, self._pod_of(uid), *self._users(uid)):
                self._concerned.setdefault(concerned, found)

    def _since(self, uid: str) -> Instant:
        found = [*self._recorded.allocations.get(uid, ()), *self._again.allocations.get(uid, ())]
        return min((each.time for each in found), default=Instant(0))

    def _takers(self, differing: list[str]) -> Mapping[str, list[tuple[str, Instant]]]:
        """Who got each device in either run, among the allocations that differ."""
        takers: dict[str, list[tuple[str, Instant]]] = {}
        for uid in differing:
            for trace in (self._recorded, self._again):
                for each in trace.allocations.get(uid, ()):
                    for device in each.devices:
                        name = device.partition(": ")[2]
                        takers.setdefault(name, []).append((uid, each.time))
        return takers

    def _of_allocation(
        self, uid: str, takers: Mapping[str, list[tuple[str, Instant]]], *, is_first: bool
    ) -> Judgement:
        if uid in self._violations:
            return self._of_violation(uid)
        pod = self._pod_of(uid)
        if pod in self._recorded.replicas and is_first:
            return Reason.NOT_EMULATED, "replicas are spread over nodes by PodTopologySpread"
        mine = [*self._recorded.allocations.get(uid, ()), *self._again.allocations.get(uid, ())]
        for each in mine:
            for device in each.devices:
                for other, when in takers.get(device.partition(": ")[2], ()):
                    if other != uid and abs(when - each.time) <= _SAME_TIME:
                        name = self._name(other)
                        return Reason.QUEUE_ORDER, f"{name} wanted the same device"
        if not is_first:
            return Reason.FOLLOWS, "devices are held by others than in the recording"
        return Reason.UNEXPLAINED, "the first allocation that differs"

    def _of_violation(self, uid: str) -> Judgement:
        if self._violations[uid]:
            return Reason.IGNORED_RULES, "a rule forbids the recorded device"
        return Reason.RACE, "the taint of the recorded device came while it was being allocated"

    def _pod_of(self, uid: str) -> str:
        for trace in (self._recorded, self._again):
            for each in trace.allocations.get(uid, ()):
                return each.pod
        return self._recorded.owner_of.get(uid, "")

    def _name(self, uid: str) -> str:
        key = self._recorded.keys.get(uid) or self._again.keys.get(uid)
        return str(key) if key is not None else uid

    def _of_node(self, uid: str) -> Judgement:
        return self._moved_or(uid, Reason.UNEXPLAINED)

    def _moved_or(self, uid: str, otherwise: Reason) -> Judgement:
        """The reason for which a pod or claim got other devices, if it did."""
        found = self._concerned.get(uid)
        if found is not None:
            return found
        if self._first and otherwise is Reason.UNEXPLAINED and self._was_pending(uid):
            return Reason.FOLLOWS, "other devices are free than in the recording"
        return otherwise, ""

    def _users(self, claim: str) -> set[str]:
        """The pods that used a claim in either run."""
        found: set[str] = set()
        for trace in (self._recorded, self._again):
            found |= trace.users.get(claim, set())
        return found

    def _was_pending(self, uid: str) -> bool:
        """Whether the pod came after the first difference, so that it met another state."""
        steps = [*self._recorded.of_pod.get(uid, ()), *self._again.of_pod.get(uid, ())]
        return any(step.time >= self._first for step in steps)

    def _of_state(self, found: Found) -> Judgement:
        uid = found.uid
        both = (self._recorded.keys.get(uid), self._again.keys.get(uid))
        key = both[0] or both[1]
        if key is not None and key.resource == "nodes":
            return Reason.NOT_EMULATED, "labels that the node controller copies"
        if uid in self._recorded.other_writers and uid not in self._recorded.writes:
            return Reason.REPLICAS, ""
        moved, detail = self._moved_or(uid, Reason.UNEXPLAINED)
        if moved is not Reason.UNEXPLAINED:
            return moved, detail
        recorded = [step.text for step in self._recorded.writes.get(uid, ())]
        again = [step.text for step in self._again.writes.get(uid, ())]
        if recorded != again:
            pieces = Found(aspect="", uid=uid, recorded=recorded, again=again)
            return self._of_pieces(pieces)
        return Reason.UNEXPLAINED, "the same writes left another state"

    def _of_pieces(self, found: Found) -> Judgement:
        """The gravest reason of all pieces."""
        judgements = [self._of_piece(found, piece, side) for piece, side in _pieces(found)]
        if not judgements:
            return Reason.RACE, "the same in another order"
        order = list(Reason)
        return min(judgements, key=lambda judgement: order.index(judgement[0]))

    def _of_piece(self, found: Found, piece: str, side: str) -> Judgement:
        """Why one text is on one side only."""
        uid = found.uid
        text = _without_writer(piece)
        if side == "again" and any(piece.endswith(late) for late in self._texts_after(uid)):
            return Reason.AFTER_END, "it lies after the end"
        if _IN_FLIGHT in text:
            return Reason.IN_FLIGHT, "an attempt while the claim was being allocated"
        key = self._recorded.keys.get(uid)
        is_node = key is not None and key.resource == "nodes"
        if is_node or any(word in text for word in _NOT_EMULATED):
            return Reason.NOT_EMULATED, "what the node controller says, copies and taints"
        is_answer = text.startswith(("nominated ", "claims "))
        if side == "again" and is_answer and uid in self._recorded.removed:
            return Reason.RACE, "answered when the pod was gone: the recording has the request only"
        others = found.again if side == "recorded" else found.recorded
        if any(_without_writer(str(other)) == text for other in others):
            return Reason.RACE, "another writer, or another number of times"
        if self._is_of_finished_pod(uid, text, side):
            return Reason.FINISHED_POD, text
        if side == "again" and self._is_for_pod_that_went(uid, text):
            return Reason.RACE, "there the pod was gone before the claim controller looked"
        moved, detail = self._moved_or(uid, Reason.TIMING)
        if moved is not Reason.TIMING:
            return moved, detail
        if any(word in text for word in _ATTEMPTS):
            return Reason.TIMING, "an attempt at another instant"
        if any(word in text for word in _PLACES) and self._was_pending(uid) and self._first:
            return Reason.FOLLOWS, "other devices are free than in the recording"
        if any(text.startswith(word) or word in text for word in _ENDINGS):
            if key is not None and key.resource in ("pods", "resourceclaims"):
                return Reason.RACE, "collector, claim controller and kubelet end a claim together"
            return Reason.RACE, "two controllers end an object together"
        if "PodsPendingEviction" in text or "Completed" in text or "NoEffect" in text:
            return Reason.TIMING, "the numbers of a status at another instant"
        if "reserved for" in text and uid in self._sharing:
            return Reason.RACE, "consumers of a shared claim in another order"
        return Reason.UNEXPLAINED, piece

    def _is_of_finished_pod(self, uid: str, text: str, side: str) -> bool:
        """A write that upstream repeats for finished pods, now and then (C8, C22)."""
        trace = self._recorded if side == "recorded" else self._again
        owner = trace.owner_of.get(uid, uid)
        done = trace.finished.get(owner)
        if done is None:
            return False
        words = ("created", "claims ", "reserved for", "no longer reserved", "removed")
        return text.startswith(words) and any(
            step.text == text and step.time >= done
            for step in (*trace.writes.get(uid, ()), *trace.of_pod.get(uid, ()))
        )

    def _is_for_pod_that_went(self, uid: str, text: str) -> bool:
        """Whether a claim was made here for a pod that there was gone before anybody looked."""
        pod = self._again.owner_of.get(uid, uid)
        there = self._recorded.of_pod.get(pod, ())
        return (
            text in ("created", "removed")
            and pod in self._recorded.removed
            and not any(step.text == "created" for step in there)
        )


def _places(allocations: Collection[Allocated]) -> list[tuple[str, ...]]:
    return [each.devices for each in allocations]


def _pieces(found: Found) -> Iterator[tuple[str, str]]:
    """Texts that only one side has, with the side's name."""
    left = Counter(str(text) for text in found.recorded)
    right = Counter(str(text) for text in found.again)
    for text in left - right:
        yield text, "recorded"
    for text in right - left:
        yield text, "again"


def _without_writer(text: str) -> str:
    writer, colon, rest = text.partition(": ")
    return rest if colon and " " not in writer else text
