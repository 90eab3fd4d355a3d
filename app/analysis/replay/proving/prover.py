"""The prover of differences: a hypothesis changes one thing, and a run with it must agree.

The prover keeps one variant that grows. A hypothesis joins it when the run with it has the recorded
outcome for its object and differs nowhere where the previous run agreed. So the proof is one
consistent run: with these changes, and nothing else, the controllers here do what the recorded ones
did. Hypotheses about different objects share a run; those about one object take turns.

Placements are tried first, in the order of time: differences that exist because other devices are
free vanish with their cause. A difference for which no hypothesis holds is unexplained. Its writes
are then taken as recorded, and the differences that vanish in the run with them follow from it.
"""

from collections.abc import Callable, Collection, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import replace

from app.analysis.replay import classes
from app.analysis.replay.authors import CLAIMS, COLLECTOR, EVICTION, NODES, SCHEDULER
from app.analysis.replay.classes import DifferenceClass, End, Judgement, Sought
from app.analysis.replay.differences import PLACEMENTS, Aspect, Compared, DifferenceKey, Sides
from app.analysis.replay.hypotheses import proposals
from app.analysis.replay.hypotheses.shown_races import GIVEN_UP, given_up, shown_race
from app.analysis.replay.proving import switches, together
from app.analysis.replay.proving.budget import Budget, Exhausted
from app.analysis.replay.proving.earlier_states import EARLIER_STATE, LookBack, subject_of
from app.analysis.replay.proving.evidence import Evidence, Switched
from app.analysis.replay.proving.runs import IsOver, RunVariant
from app.analysis.replay.proving.switches import Open, SwitchSearch
from app.analysis.replay.proving.together import Chosen, Untried
from app.analysis.replay.races import Races
from app.analysis.replay.steering import NEVER
from app.analysis.replay.traces import Trace
from app.analysis.replay.unsure.judging import Doubting
from app.analysis.replay.variants import Variant
from app.domain.values.timestamps import Instant

_UNPROVED = "no hypothesis gives the recorded outcome"


class _SearchDecided(Exception):
    """The difference that was sought is proved, or cannot be."""


class Prover:
    """Judges the differences of one replay; see the module's docstring."""

    def __init__(
        self,
        *,
        recorded: Trace,
        end: End,
        evidence: Evidence,
        races: Races,
        run: RunVariant,
        compare: Callable[[Trace, Trace], Compared],
        variant: Variant,
        budget: Budget,
    ) -> None:
        self._recorded, self._end = recorded, end
        self._evidence, self._races = evidence, races
        self._run = run
        self._compare = compare
        self._variant = variant
        self.budget = budget
        self._sought: Sought | None = None
        by_time, processes = evidence.paired_by_time, (evidence.scheduler, evidence.manager)
        self._proposals = proposals.Proposals(recorded, by_time, evidence.waits, *processes)
        self._earlier = LookBack(recorded, evidence.waits, budget, evidence.make_again)
        self._doubting = Doubting.of(
            recorded=recorded,
            end=end.at,
            lacks=evidence.lacks,
            impossible=evidence.impossible,
            races=races,
        )
        self._again = Trace()
        self._open: Open = {}
        self._settled: set[DifferenceKey] = set()
        self.judgements: dict[DifferenceKey, Judgement] = {}
        self._search = SwitchSearch(
            evidence.groups(),
            left_by=self._left_by,
            contradicts=lambda again: classes.contradicts(
                recorded, again, end, self._open.keys() | self._settled
            ),
            # Only half of the budget is for switches, most of which explain nothing.
            may_go_on=lambda: not budget.is_half_spent,
        )

    async def judge(
        self, base: Trace, different: Mapping[DifferenceKey, Sides], sought: Sought | None = None
    ) -> None:
        """Fills `judgements`; with `sought`, until a match is proved. Empty without a match."""
        self._sought, self._again = sought, base
        with suppress(_SearchDecided):
            if sought is None or any(sought.fits(key) for key in different):
                await self._judge_all(base, different)
        if sought is not None and not sought.is_proved(self.judgements, self._open):
            self.judgements.clear()

    async def _judge_all(self, base: Trace, different: Mapping[DifferenceKey, Sides]) -> None:
        for key, sides in different.items():
            judgement = classes.seen_in_traces(sides, self._recorded, base, self._end)
            if judgement is None:
                self._open[key] = sides
            else:
                self._settle(key, judgement)
        self._end_in_vain(is_turned=False)
        self._pass_over_lacking()
        try:
            for step in (
                self._explain_nodes,
                self._keep_pace,
                self._turn_chosen_back,
                self._turn_rules,
                self._place,
                self._pass_over_gaps,
                self._try_local,
                self._look_back_at_attempts,
                self._try_switches,
            ):
                if step == self._place:
                    self._end_in_vain(is_turned=True)
                if self._open:
                    await step()
        except Exhausted:
            detail, ends = self.budget.words(), set()
        else:
            detail = self._unproved()
            ends = set(given_up(self._open, self.judgements, self._recorded))
        for key, sides in list(self._open.items()):
            self._settle(key, GIVEN_UP if key in ends else self._undecided(sides, detail))

    def _unproved(self) -> str:
        """The reason why a difference is unexplained: no hypothesis held, or some are untried."""
        return _UNPROVED if self._search.is_complete else self.budget.words()

    def _end_in_vain(self, *, is_turned: bool) -> None:
        """Ends a search that cannot succeed: placements differ that must not (`Sought.placed`).

        With `is_turned`, for a class that only switches turned first can prove: a match is due.
        """
        sought = self._sought
        if sought is None or is_turned is not (sought.reason in self._evidence.turned):
            return
        misplaced = [sides for sides in self._open.values() if sides.aspect in PLACEMENTS]
        may_be = all(sought.may_differ((each.uid, self._group(each))) for each in misplaced)
        if not may_be or (is_turned and not sought.is_in(self.judgements)):
            raise _SearchDecided

    @property
    def variant(self) -> Variant:
        """The run with every change that has been proved so far."""
        return self._variant

    async def _differences(
        self, variant: Variant, until: Instant | None = None, is_over: IsOver | None = None
    ) -> tuple[Trace, Open]:
        """The differences left by a variant, without those that the traces alone explain."""
        if self._sought is not None and self._sought.is_decided(self.judgements, self._open):
            raise _SearchDecided
        if self.budget.is_spent:
            raise Exhausted
        made = await self._run(variant, until, is_over)
        self.budget.note(made.events, is_whole=not made.is_cut_short)
        again = made.trace
        if made.is_cut_short:
            return again, {}
        left: Open = {
            key: sides
            for key, sides in self._compare(self._recorded, again).different.items()
            if key not in self._settled
            and classes.seen_in_traces(sides, self._recorded, again, self._end) is None
        }
        return again, left

    def _settle(self, key: DifferenceKey, judgement: Judgement) -> None:
        self.judgements.setdefault(key, judgement)
        self._open.pop(key, None)

    def _settle_for_good(self, key: DifferenceKey, judgement: Judgement) -> None:
        """Settles a difference that later runs may have or not."""
        self._settle(key, judgement)
        self._settled.add(key)

    def _accept(
        self, variant: Variant, again: Trace, left: Open, reasons: Mapping[DifferenceKey, Judgement]
    ) -> None:
        """Continues from a variant: differences that vanished get their judgement, or follow."""
        detail = "gone when an earlier difference is as recorded"
        follows = Judgement(reason=DifferenceClass.FOLLOWS, detail=detail)
        for key in [key for key in self._open if key not in left]:
            self._settle(key, reasons.get(key, follows))
        self._variant, self._again = variant, again
        self._open = {key: left.get(key, sides) for key, sides in self._open.items()}

    def _group(self, sides: Sides) -> str:
        return self._proposals.group_of(sides, self._again)

    def _undecided(self, sides: Sides, detail: str) -> Judgement:
        """The judgement of a difference that no hypothesis explains."""
        unsure = self._doubting.reason(sides, self._again)
        reason = DifferenceClass.NOT_COMPARABLE if unsure else DifferenceClass.UNEXPLAINED
        text = unsure or self._doubting.impossibility(sides, self._again) or detail
        shown = shown_race(sides, self._recorded) if self.budget.runs else None
        return shown or Judgement(reason=reason, detail=text)

    def _pass_over_lacking(self) -> None:
        """Settles all differences if kinds that every decision needs are missing."""
        if not self._evidence.lacks.kinds:
            return
        for key, sides in list(self._open.items()):
            overuse = self._overuse(self._group(sides))
            if overuse is None:
                self._settle(key, self._undecided(sides, self._unproved()))
            else:
                self._settle(key, Judgement(reason=DifferenceClass.UNEXPLAINED, detail=overuse))

    # steps

    async def _explain_nodes(self) -> None:
        """Settles the differences of nodes in their status alone, which comes from Leases.

        A node with other differences is unexplained, and taken as recorded with what follows.
        """
        nodes = {uid for _, uid, _ in self._open if self._is(uid, "nodes")}
        while nodes:
            variant = replace(self._variant, unheard=self._variant.unheard | nodes)
            again, left = await self._differences(variant)
            wrong = {uid for _, uid, _ in left if uid in nodes}
            if wrong:
                nodes -= wrong
                continue
            if not left.keys() - self._open.keys():
                judgement = Judgement(
                    reason=DifferenceClass.NOT_EMULATED,
                    detail="its status as the node controller wrote it, which no Lease here tells",
                )
                reasons = {key: judgement for key in self._open if key[1] in nodes}
                self._accept(variant, again, left, reasons)
            break
        await self._give_up_nodes()

    async def _give_up_nodes(self) -> None:
        left = [sides for sides in self._open.values() if self._is(sides.uid, "nodes")]
        for sides in left:
            self._settle_for_good(sides.key, self._undecided(sides, self._unproved()))
        await self._impose({(NODES, sides.uid) for sides in left})

    async def _impose(self, writes: Set[tuple[str, str]]) -> None:
        """Takes writes as recorded: the differences that vanish follow from the one about them.

        If more others appear, the recording does not rest on these writes, one of which may be
        lost: the next runs go on without them.
        """
        if not (writes and self._open):
            return  # nothing can follow
        variant = replace(self._variant, imposed=self._variant.imposed | writes)
        again, left = await self._differences(variant)
        new, gone = left.keys() - self._open.keys(), self._open.keys() - left.keys()
        if len(new) > len(gone):
            variant, again = self._variant, self._again
            left = {key: self._open[key] for key in self._open.keys() - gone}
            new = gone
        self._settled |= new
        self._accept(variant, again, left, {})

    def _is(self, uid: str, resource: str) -> bool:
        key = self._recorded.keys.get(uid) or self._again.keys.get(uid)
        return key is not None and key.resource == resource

    async def _keep_pace(self) -> None:
        """For a replay without a pace: runs it again at the recorded pace."""
        if self._variant.is_paced:
            return
        variant = replace(self._variant, is_paced=True)
        again, left = await self._differences(variant)
        reasons = {
            key: self._races.judgement(sides, self._again) for key, sides in self._open.items()
        }
        # Differences that the pace alone causes are judged with the rest.
        new = {key: sides for key, sides in left.items() if key not in self._open}
        self._accept(variant, again, left, reasons)
        self._open |= new

    async def _turn_chosen_back(self) -> None:
        """Differences that vanish without a switch set for this replay are the switch's effect."""
        for switched in self._evidence.chosen:
            if not self._open:
                return
            _, left = await self._differences(switches.with_switches(self._variant, [switched]))
            for key in [key for key in self._open if key not in left]:
                detail = "without the switch the outcome is as recorded"
                self._settle_for_good(key, Judgement(reason=switched.reason, detail=detail))

    async def _turn_rules(self) -> None:
        """C24: turned on if a placement breaks an existing rule, off if that explains one."""
        if (turned := switches.rules_to_turn(self._evidence, self._open)) is None:
            return
        variant = switches.with_switches(self._variant, [turned])
        again, left = await self._differences(variant)
        if left.keys() - self._open.keys() or left.keys() == self._open.keys():
            return
        evidence, races = self._evidence, self._races
        reasons = switches.reasons_of_rules(turned, evidence, races, self._open, self._again)
        self._accept(variant, again, left, reasons)

    async def _place(self) -> None:
        """Tries placements and evictions, the earliest first."""
        while (root := self._races.earliest(self._open.values(), self._again)) is not None:
            group = self._group(root)
            overuse = self._overuse(group)
            lack = "" if overuse is not None else self._doubting.lack(root, self._again)
            if lack and await self._judge_own(root, group):
                continue
            if overuse is None and not lack:
                if await self._explain_placement(root, group) or await self._look_back(root):
                    continue
                if not self._has_unexplained():
                    await self._try_switches_for(root)
                if root.key not in self._open:
                    continue
            await self._give_up(root, group, overuse, lack)

    async def _explain_placement(self, root: Sides, group: str) -> bool:
        for hypothesis in (
            *self._races.holds(root, group, self._again),
            *self._proposals.of_placement(root, self._again, self._open.values()),
        ):
            variant = hypothesis.on(self._variant)
            if variant == self._variant:
                continue
            _, left = await self._differences(variant, self._races.settled_by(root, self._again))
            if root.key in left:
                continue
            again, left = await self._differences(variant)
            if root.key in left or left.keys() - self._open.keys():
                continue
            judgement = Judgement(reason=hypothesis.reason, detail=hypothesis.detail)
            reasons = {
                key: judgement for key, sides in self._open.items() if self._group(sides) == group
            }
            self._accept(variant, again, left, reasons)
            return True
        return False

    async def _look_back_at_attempts(self) -> None:
        """Looks at earlier states for each pod with differences."""
        for sides in list(self._open.values()):
            if sides.key in self._open:
                await self._look_back(sides)

    async def _look_back(self, root: Sides) -> bool:
        """Settles attempts that earlier states explain; their writes are taken as recorded."""
        pod = subject_of(root, self._recorded, self._again)
        explained = await self._earlier.explained(pod, self._open.values(), self._again)
        for sides in explained:
            self._settle_for_good(sides.key, EARLIER_STATE)
        await self._impose({(SCHEDULER, uid) for each in explained for uid in (pod, each.uid)})
        return root.key not in self._open

    async def _judge_own(self, root: Sides, group: str) -> bool:
        """Judges writes that rest on nothing unrecorded; True if `root` vanishes with one."""
        own = [
            key
            for key, sides in self._open.items()
            if self._group(sides) == group and self._doubting.is_of_own(sides, self._again, root)
        ]
        await self._try_local(own)
        for key in own:
            if key in self._open and not self._has_unexplained():
                await self._try_switches_for(self._open[key])
            if key in self._open:
                self._settle_for_good(key, self._undecided(self._open[key], self._unproved()))
        return root.key not in self._open

    async def _give_up(self, root: Sides, group: str, overuse: str | None, lack: str) -> None:
        """Leaves a placement unexplained and takes its writes as recorded, to find what follows."""
        for key, sides in list(self._open.items()):
            if key == root.key or self._group(sides) == group:
                judgement = self._undecided(sides, self._unproved())
                if overuse is not None:
                    judgement = Judgement(reason=DifferenceClass.UNEXPLAINED, detail=overuse)
                elif lack:
                    judgement = Judgement(reason=DifferenceClass.NOT_COMPARABLE, detail=lack)
                self._settle_for_good(key, judgement)
        author = EVICTION if root.aspect is Aspect.EVICTIONS else SCHEDULER
        await self._impose({(author, subject) for subject in (group, root.uid)})

    async def _pass_over_gaps(self) -> None:
        """Settles differences about claims that were not fully recorded; a run finds what follows.

        The ends of these claims are taken as recorded, and what was done for their pods. A pod of
        which a write is recorded that no missing record explains is left to the run.
        """
        doubting = self._doubting
        gaps = {
            key: gap
            for key, sides in self._open.items()
            if (gap := doubting.gap(sides, self._again))
        }
        related = {uid for _, each, _ in gaps for uid in self._races.related(each, self._again)}
        claims = {uid for uid in related if self._is(uid, "resourceclaims")}
        users = {uid for uid in related if self._is(uid, "pods")} if claims else set()
        users -= {
            sides.uid
            for key, sides in self._open.items()
            if sides.uid in users and key not in gaps and doubting.is_of_own(sides, self._again)
        }
        for key, gap in gaps.items():
            self._settle_for_good(key, Judgement(reason=DifferenceClass.NOT_COMPARABLE, detail=gap))
        writes = {(each, uid) for each in (CLAIMS, COLLECTOR, SCHEDULER) for uid in claims}
        await self._impose(writes | {(SCHEDULER, uid) for uid in users})

    async def _try_local(self, keys: Collection[DifferenceKey] | None = None) -> None:
        """Tries orders, attempts and repetitions about single objects, many objects in one run."""
        untried = Untried(self._proposals)
        while chosen := untried.next(
            {key: each for key, each in self._open.items() if keys is None or key in keys},
            self._again,
        ):
            untried.drop(await self._try_together(chosen))

    async def _try_together(self, chosen: Chosen) -> Collection[DifferenceKey]:
        """Keeps these hypotheses if they change nothing else; returns those that failed.

        Hypotheses that do not hold are left out of the next run, which tries the others again.
        """
        variant = self._variant
        for hypothesis in chosen.values():
            variant = hypothesis.on(variant)
        again, left = await self._differences(variant)
        new = left.keys() - self._open.keys()
        failed = {key for key in chosen if key in left}
        groups = {key: self._group(self._open[key]) for key in chosen}
        spoilers = together.spoilers(groups, {key[1] for key in new}, self._races, again)
        if new and not spoilers:
            is_one = len({each.change for each in chosen.values()}) == 1
            return chosen.keys() if is_one else await self._try_halves(chosen)
        failed |= spoilers
        holding = {each.change for key, each in chosen.items() if key not in failed}
        if not new and all(each.change in holding for each in chosen.values()):
            reasons = together.reasons(chosen, self._open, self._races, again)
            self._accept(variant, again, left, reasons)
        return failed

    async def _try_halves(self, chosen: Chosen) -> Collection[DifferenceKey]:
        """Tries hypotheses in two parts if it is unknown which of them cause new differences.

        Those that change more than their object are one part: they are the likeliest causes. Equal
        changes stay together, because one run tries them all.
        """
        failed = set[DifferenceKey]()
        for half in together.parts(chosen):
            if part := {key: each for key, each in half.items() if key in self._open}:
                failed |= set(await self._try_together(part))
        return failed

    async def _try_switches(self) -> None:
        """Tries other control planes for the difference that is settled first in time."""
        settled_by = self._races.settled_by
        root = min(self._open.values(), key=lambda each: settled_by(each, self._again) or NEVER)
        if not self._has_unexplained():
            await self._try_switches_for(root)

    async def _try_switches_for(self, root: Sides) -> None:
        """Tries other switches, with a whole run for each that may explain the difference."""
        if self._sought is not None and not self._sought.may_try(self._evidence.switched):
            raise _SearchDecided
        if not self._evidence.others:
            return
        until = self._races.settled_by(root, self._again) or None  # no instant: the whole run
        _, before = await self._differences(self._variant, until)
        without = before[root.key].again if root.key in before else None
        async for switched in self._search.promising(root.key, without, until):
            variant = switches.with_switches(self._variant, [switched])
            again, left = await self._differences(variant)
            if root.key in left or left.keys() - self._open.keys():
                continue
            judgement = Judgement(
                reason=switched.reason, detail="with it the outcome is as recorded"
            )
            self._accept(variant, again, left, dict.fromkeys(self._open, judgement))
            return

    async def _left_by(
        self, group: Sequence[Switched], until: Instant | None, is_over: IsOver
    ) -> Open:
        """The differences of a run with these switches."""
        return (
            await self._differences(switches.with_switches(self._variant, group), until, is_over)
        )[1]

    def _overuse(self, group: str) -> str | None:
        overused = self._evidence.overused.items()
        own = (text for one, text in overused if group in self._races.concerned(one, self._again))
        return next((f"violation: {text}" for text in own), None)

    def _has_unexplained(self) -> bool:
        return any(each.reason == DifferenceClass.UNEXPLAINED for each in self.judgements.values())
