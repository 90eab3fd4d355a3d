"""The differences that a recording leaves undecided: because of missing records or wrong times."""

from collections import Counter
from collections.abc import Mapping, Set
from dataclasses import dataclass

from app.analysis.replay.authors import NAMESPACES, SCHEDULER
from app.analysis.replay.classes import facts_of
from app.analysis.replay.differences import Aspect, Sides
from app.analysis.replay.facts import Created, is_failed_attempt, is_placement
from app.analysis.replay.races import Races
from app.analysis.replay.traces import Step, Trace
from app.analysis.replay.unsure import dependence
from app.analysis.replay.unsure.aftermath import Aftermath
from app.analysis.replay.unsure.lacks import Lacks
from app.analysis.replay.unsure.lost_reports import lost_report
from app.analysis.replay.unsure.single_lines import is_apart, is_overwritten, missing_of
from app.analysis.replay.unsure.times import Clocks
from app.analysis.replay.writers import short_name
from app.analysis.verify.invariants.violations import IN_FLIGHT
from app.domain.log import ObjectKey, doubts
from app.domain.log.records import Loss
from app.domain.values import api_resources
from app.domain.values.timestamps import Instant

_NAMESPACES, _SCHEDULER = short_name(NAMESPACES), short_name(SCHEDULER)
LOST_LAST = "the line of the last write about an object may be lost: a version has no line"
LOST_LINE = "the line of a write may be lost that the next one overwrites: a version has no line"
_PLACED = frozenset(("pods", "resourceclaims"))
_OF_WRITES = frozenset((Aspect.CONDITIONS, Aspect.SAID, Aspect.WRITES, Aspect.ORDER))
_FOREVER = Instant(2**62)


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubting:
    """Gives the reasons why differences between recording and run cannot be judged, or empty texts.

    `impossible` maps pods and claims to recorded facts that no missing record and no wrong clock
    can explain: differences about these are never undecided. The recording ends at `end`.
    """

    recorded: Trace
    end: Instant
    lacks: Lacks
    impossible: Mapping[ObjectKey, str]
    races: Races
    aftermath: Aftermath

    @classmethod
    def of(
        cls,
        *,
        recorded: Trace,
        end: Instant,
        lacks: Lacks,
        impossible: Mapping[ObjectKey, str],
        races: Races,
    ) -> "Doubting":
        """The doubts about a recorded trace."""
        aftermath = Aftermath(recorded=recorded, lacks=lacks, races=races)
        doubting = cls(
            recorded=recorded,
            end=end,
            lacks=lacks,
            impossible=impossible,
            races=races,
            aftermath=aftermath,
        )
        uids = {key: uid for uid, key in recorded.keys.items()}
        for unseen in lacks.unseen_claims():
            uid = unseen.uid or uids.get(unseen.key, "")
            pods = dependence.beside(uid, recorded) - {uid} if uid else ()
            begun = (doubting._first_write(pod, unseen.since) for pod in pods)
            unseen.since = min(begun, default=unseen.since)
        return doubting

    def reason(self, sides: Sides, again: Trace) -> str:
        """The missing record, or the wrong times, because of which it cannot be judged."""
        return (
            self.lack(sides, again)
            or self.times(sides, again)
            or lost_report(sides, self.recorded, again)
        )

    def lack(self, sides: Sides, again: Trace, by: Instant = _FOREVER) -> str:
        """The missing record, by an instant, on which it depends: no run can decide it."""
        if self.impossibility(sides, again):
            return ""
        related = self.races.related(sides.uid, again)
        keys = self._keys(related, again)
        first, last = self.races.since(sides, again), self.races.settled_by(sides, again)
        if dependence.is_of_counts(sides):
            first = Instant(0)
        read = dependence.of_difference(sides, self.recorded, again, related)
        done = min(last, self._decided_by(sides, again), by)
        begun, never = min(first, done), self._never_made(sides, again)
        unlike = self.aftermath.of(again)
        return (
            self.lacks.about(related, keys, begun, done, read, unlike, own=min(done, never))
            or self._unseen_allocation(sides, again)
            or self._lack_at_end(sides, related, keys, first)
            or self._lack_within(sides, again)
            or self._lack_after(sides, again, first)
            or self.lacks.in_ending(self._namespace(sides, again), first)
            or self._lack_of_writer(sides, again)
            or self._lack_of_owner(sides, related)
            or self._omission(sides, again, done)
        )

    def _decided_by(self, sides: Sides, again: Trace) -> Instant:
        """The instant by which everything was recorded that a recorded act depends on.

        That is the placement, if the run does not do the same, or the creation of an object that
        the run never makes. What a run does later instead depends on more, but it has to do the
        recorded thing first.
        """
        there, here = self.recorded, again
        if sides.aspect is Aspect.DEVICES:
            made = here.allocations.get(sides.uid, ())
            for number, step in enumerate(there.allocations.get(sides.uid, ())):
                if number >= len(made) or made[number].allocation != step.allocation:
                    return self._begun(step.pod, step.time)
        if sides.aspect is Aspect.NODES and sides.uid in there.node_of:
            return self._begun(sides.uid, there.node_of[sides.uid].time)
        if sides.aspect is Aspect.WRITES and sides.uid not in here.keys and sides.only_recorded:
            first = sides.only_recorded[0]
            if any(isinstance(fact, Created) for fact in first.facts):
                return self._known(first)
        return _FOREVER

    def is_of_own(self, sides: Sides, again: Trace, placement: Sides | None = None) -> bool:
        """Whether a recorded content, which the run never gives, rests on nothing unrecorded.

        Nor does the `placement` of its pod, as far as the content may come from that: by then.
        """
        never = self._never_made(sides, again)
        if never == _FOREVER or self.lack(sides, again):
            return False
        if placement is None:
            return True
        # A placement begins with its nomination, before the binding that differs.
        begun = min(self.races.since(placement, again), self._decided_by(placement, again))
        if never < begun:
            return True  # what is placed or evicted later is not where it comes from
        return not self.lack(placement, again, never)

    def _never_made(self, sides: Sides, again: Trace) -> Instant:
        """The instant of the first recorded write or report whose content the run never gives.

        A line about the same object that was lost later did not cause it, such as one that undid
        it. Lines about others may be lost that the scheduler had sent before.
        """
        if sides.aspect not in _OF_WRITES:
            return _FOREVER
        made = set(facts_of(again, sides))
        never = (
            self._known(step)
            for step in sides.only_recorded
            if not made.issuperset(step.facts) or self._is_by_another(step, sides, again)
        )
        return min(never, default=_FOREVER)

    @staticmethod
    def _is_by_another(step: Step, sides: Sides, again: Trace) -> bool:
        """Whether a controller wrote about a pod what only others write in the run, and later.

        What the others do later instead did not cause it. Claims are left out: the collector and
        the claim controller end them in any order.
        """
        if not step.writer or step.key[:2] != api_resources.PODS:
            return False
        same = (each for each in again.writes.get(step.uid, ()) if each.writer == step.writer)
        made = {fact for each in same for fact in each.facts}
        is_first = all(step.time < each.time for each in sides.only_again)
        return is_first and not made.issuperset(step.facts)

    def _known(self, step: Step) -> Instant:
        """The instant at which others could see a step, on the clock by which lost lines are dated.

        The recording may give one time to several lines, of which some were lost before the step
        and some after it.
        """
        return self.lacks.omissions.known_since(step.revision, step.time)

    def _begun(self, pod: str, done: Instant) -> Instant:
        """The instant of the first write of a placement: it was decided before.

        Where the write of another placement may be lost, that one may have been decided even
        earlier, and only what is written by then counts.
        """
        return done if self._may_lack_placements() else self._first_write(pod, done)

    def _first_write(self, pod: str, done: Instant) -> Instant:
        """The instant of the first of the scheduler's writes for a placement by an instant."""
        begun = done
        for step in reversed(self.recorded.of_pod.get(pod, ())):
            if step.writer != _SCHEDULER or step.time > done:
                continue
            is_of_it = any(is_placement(fact) for fact in step.facts)
            if not is_of_it or any(is_failed_attempt(fact) for fact in step.facts):
                break
            begun = min(begun, step.time)
        return begun

    def _may_lack_placements(self) -> bool:
        """Whether a lost line may be of a placement: about a claim, or a pod without a node."""
        if self.lacks.omissions.lost.has_lost_of("resourceclaims"):
            return True
        bound = {self.recorded.keys[uid]: step.time for uid, step in self.recorded.node_of.items()}
        return any(
            key.resource == "resourceclaims"
            or (key.resource == "pods" and not bound.get(key, _FOREVER) <= since)
            for key, since, _ in self.lacks.lines()
        )

    def _lack_of_writer(self, sides: Sides, again: Trace) -> str:
        """The controllers that made the additional steps here, if no recorded line is by them."""
        if sides.only_recorded and sides.aspect is not Aspect.FINAL:
            return ""
        writers = {each.writer for each in self._steps(sides, again)}
        if not writers or not writers <= self.lacks.omissions.controllers:
            return ""
        return f"no line is by {', '.join(sorted(writers))}: it is left out, or did not run"

    def _omission(self, sides: Sides, again: Trace, last: Instant) -> str:
        """The omission of the recording that may have caused the difference by `last`."""
        clocks = Clocks(recorded=self.recorded, again=again, end=self.end)
        until = self.end if sides.aspect is Aspect.FINAL else last
        omissions = self.lacks.omissions
        is_of_content = clocks.is_of_content(sides) or dependence.is_of_told_node(
            sides, self.recorded, again
        )
        if why := omissions.before(until, is_of_content=is_of_content):
            return why
        if not self._lacks_one_write(sides, again):
            return ""
        return omissions.of_one_line() or self._lost_line(sides, again)

    def _lost_line(self, sides: Sides, again: Trace) -> str:
        """The write of an object that only the run has, if its line may be lost.

        A write that others follow shows in their lines, that of a deletion included, unless the
        next one overwrites it. It left a version of the store without a line.
        """
        missing = [
            (step, after)
            for uid in {sides.uid, *(step.uid for step in sides.only_again)}
            for step, after in missing_of(
                self.recorded.writes.get(uid, ()), again.writes.get(uid, ())
            )
        ]
        if len(missing) != 1:
            return ""
        ((step, after),) = missing
        if after is not None and is_overwritten(step, after):
            before = max(
                (each.time for each in self.recorded.writes[step.uid] if each.time < after.time),
                default=Instant(0),
            )
            return LOST_LINE if self._is_left(before, after.time) else ""
        last = self.lacks.last_written(step.key)
        soon = Instant(max(again.due_at(step), last) + IN_FLIGHT)
        if self.lacks.last_lines.has_ended(step.uid) or not (
            after is None or is_apart(step, after)
        ):
            return ""
        return LOST_LAST if self._is_left(last, soon) else ""

    def _is_left(self, first: Instant, last: Instant) -> bool:
        """Whether a version between two instants has no line, beside those of other lost lines."""
        return self.lacks.versions.may_hide(first, last, self.lacks.last_lines.lost)

    def _lacks_one_write(self, sides: Sides, again: Trace) -> bool:
        """Whether the recording has all writes of the run about an object except one.

        A later recorded write may contain the changes of the missing one.
        """
        if sides.aspect is Aspect.FINAL:
            there, here = (trace.writes.get(sides.uid, ()) for trace in (self.recorded, again))
            more = [step.facts for step in here]
            for step in there:
                if step.facts not in more:
                    return False
                more.remove(step.facts)
            return len(more) == 1
        if len(sides.only_again) != len(sides.only_recorded) + 1:
            return False
        is_joined = Counter(sides.facts("recorded")) == Counter(sides.facts("again"))
        return not sides.only_recorded or (len(sides.only_recorded) == 1 and is_joined)

    def _lack_of_owner(self, sides: Sides, uids: Set[str]) -> str:
        """The missing record of a pod's owner, which influences placements.

        The scheduler spreads the pods that one owner selects. Parity: controllers.md 4.5.
        """
        is_place = sides.aspect in (Aspect.NODES, Aspect.DEVICES)
        if not is_place or self.lacks.omissions.ownerless.isdisjoint(uids):
            return ""
        return "no line shows the owner of a pod with its uid, and pods are spread by it"

    def _unseen_allocation(self, sides: Sides, again: Trace) -> str:
        """The missing record of the write in which a claim got devices that only the run shows.

        It comes after the attempt: the scheduler sends it later than the run may give the devices.
        """
        made = again.allocations.get(sides.uid, ())
        if sides.aspect is not Aspect.DEVICES or sides.recorded or len(made) != 1:
            return ""
        (step,) = made
        return self.lacks.of((step.uid,), (step.key,), step.time, Instant(step.time + IN_FLIGHT))

    def _lack_at_end(
        self, sides: Sides, uids: Set[str], keys: Set[ObjectKey], first: Instant
    ) -> str:
        """The missing record of an object that differs at the end.

        If only one side has the object, a write that is missing at any time may be the cause.
        """
        if sides.aspect is not Aspect.FINAL:
            return ""
        if self.lacks.ends_with_looks:
            return doubts.text_of(Loss.COLLAPSED)
        if sides.recorded and sides.again:
            if any(self.lacks.was_unseen(key, self.end) for key in keys):
                return "it may have been written later, unseen"
            is_lost = any(key in keys for key, _, _ in self.lacks.lines())
            return "of it or of what it is about: a line is lost" if is_lost else ""
        return self.lacks.of(uids, keys, first, self.end)

    def _lack_after(self, sides: Sides, again: Trace, first: Instant) -> str:
        """The later unrecorded stretch in which the recorded controllers may have done the same.

        A run does acts without a recorded counterpart soon. Pods and claims are left out: for
        their placements and evictions, only whether they happened counts, not when.
        """
        key = self.recorded.keys.get(sides.uid) or again.keys.get(sides.uid)
        if key is None or sides.only_recorded or not sides.only_again or key.resource in _PLACED:
            return ""
        return self.lacks.after(key, first)

    def _lack_within(self, sides: Sides, again: Trace) -> str:
        """The missing record of an object in a namespace, on which its end depends.

        The namespace controller ends a namespace after all objects in it have ended.
        """
        key = self.recorded.keys.get(sides.uid) or again.keys.get(sides.uid)
        if key is None:
            return ""
        if key[:2] == api_resources.NAMESPACES:
            return self.lacks.within(key.name, self.end)
        steps = self._steps(sides, again)
        is_by_it = bool(steps) and all(each.writer == _NAMESPACES for each in steps)
        return self.lacks.within(key.namespace, self.end) if is_by_it else ""

    def _steps(self, sides: Sides, again: Trace) -> list[Step]:
        """The steps in which both sides differ.

        For an object that only one side has at the end: the last step about it, of the run if it
        has any.
        """
        if sides.aspect is not Aspect.FINAL or (sides.recorded and sides.again):
            return [*sides.only_recorded, *sides.only_again]
        traces = (self.recorded, again)
        return [each for trace in traces for each in trace.writes.get(sides.uid, ())][-1:]

    def _namespace(self, sides: Sides, again: Trace) -> str:
        key = self.recorded.keys.get(sides.uid) or again.keys.get(sides.uid)
        return "" if key is None else key.namespace

    def gap(self, sides: Sides, again: Trace) -> str:
        """The missing record about the subject itself, its pods and their claims."""
        if self.impossibility(sides, again):
            return ""
        related = self.races.related(sides.uid, again)
        first, last = self.races.since(sides, again), self.races.settled_by(sides, again)
        read = dependence.of_difference(sides, self.recorded, again, related)
        is_of_fixed = read is not None and not read.has_states
        never = self._never_made(sides, again)
        keys, last = self._keys(related, again), min(last, never, self._decided_by(sides, again))
        return self.lacks.of(related, keys, min(first, last), last, is_of_fixed=is_of_fixed)

    def times(self, sides: Sides, again: Trace) -> str:
        """The wrong times that may have caused the difference; proofs by runs still hold."""
        if not self.lacks.times or self.impossibility(sides, again):
            return ""
        clocks = Clocks(recorded=self.recorded, again=again, end=self.end)
        if not (clocks.may_have_caused(sides) and self._may_rest_on_odd_times(sides, again)):
            return ""
        return f"{self.lacks.times}: when it was done is not known"

    def _may_rest_on_odd_times(self, sides: Sides, again: Trace) -> bool:
        """Whether the difference depends on a record whose times contradict others.

        What comes later than the first differing act did not cause it.
        """
        related = self.races.related(sides.uid, again)
        began = self.races.since(sides, again)
        read = dependence.of_difference(sides, self.recorded, again, related)
        if sides.aspect is Aspect.FINAL:
            read = dependence.NOTHING
        return self.lacks.odd_times.concern(related, self._keys(related, again), began, read)

    def impossibility(self, sides: Sides, again: Trace) -> str:
        """The impossible fact that was recorded about the pods and claims of a difference."""
        if not self.impossible:
            return ""
        keys = self._keys(self.races.related(sides.uid, again), again)
        return next((self.impossible[key] for key in sorted(keys & self.impossible.keys())), "")

    def _keys(self, uids: Set[str], again: Trace) -> set[ObjectKey]:
        traces = (self.recorded, again)
        return {trace.keys[uid] for trace in traces for uid in uids & trace.keys.keys()}
