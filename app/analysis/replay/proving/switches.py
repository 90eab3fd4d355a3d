"""The search for a switch of the control plane that explains a difference.

There are dozens of switches, and a run with one takes as long as the recording. So the switches of
a group are turned together first. If that does not change the difference, the group is done. If it
does, the change is mostly due to switches that contradict the recording early, and such a switch
explains nothing. Runs that end at the first contradiction find these switches; the others are tried
without them, by halves. Only the first run of a group continues after a contradiction.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from app.analysis.replay.classes import DifferenceClass, Judgement
from app.analysis.replay.differences import PLACEMENTS, DifferenceKey, Sides
from app.analysis.replay.proving.evidence import Evidence, Switched
from app.analysis.replay.proving.runs import IsOver
from app.analysis.replay.races import Races
from app.analysis.replay.traces import Trace
from app.analysis.replay.variants import Variant
from app.domain.values.timestamps import Instant

Open: TypeAlias = dict[DifferenceKey, Sides]
"""Differences by key."""
LeftBy: TypeAlias = Callable[[Sequence[Switched], Instant | None, IsOver], Awaitable[Open]]
"""The differences of a run with switches, up to an instant if one is given; none if it is over."""


class SwitchSearch:
    """Finds switches that are worth a whole run; see the module's docstring.

    `groups` are the switches that are turned together. `contradicts` says whether an unfinished run
    has a new difference that stays. `may_go_on` says whether runs are left for the search; if they
    run out before its end, `is_complete` is False.
    """

    def __init__(
        self,
        groups: Sequence[Sequence[Switched]],
        *,
        left_by: LeftBy,
        contradicts: Callable[[Trace], bool],
        may_go_on: Callable[[], bool],
    ) -> None:
        self._groups = groups
        self._left_by = left_by
        self._contradicts = contradicts
        self._may_go_on = may_go_on
        self.is_complete = True

    async def promising(
        self, key: DifferenceKey, without: Sequence[object] | None, until: Instant | None
    ) -> AsyncIterator[Switched]:
        """The switches with which a difference does not exist by an instant, one after the other.

        `without` is the outcome here by then without any of them, None if there is no difference.
        Switches that cancel each other may be missed.
        """
        groups = list(self._groups)
        untried = len(groups)
        while groups:
            if not self._may_go_on():
                self.is_complete = False
                return
            is_first = len(groups) == untried
            untried -= is_first
            group = groups.pop(0)
            is_alone = len(group) == 1
            since, left = await self._contradiction(group, until, ends=is_alone or not is_first)
            sides = left.get(key)
            if is_alone:
                if since is None and sides is None:
                    yield group[0]
                continue
            if sides is not None and sides.again == without:
                continue
            wrong = [] if since is None else await self._wrong_among(group, since)
            rest = [each for each in group if each not in wrong]
            groups[:0] = [each for each in ([rest] if wrong else _halves(group)) if each]

    async def _contradiction(
        self, group: Sequence[Switched], until: Instant | None, *, ends: bool
    ) -> tuple[Instant | None, Open]:
        """The first contradiction of a run with these switches, and the differences of the run.

        With `ends`, the run ends at the contradiction and returns no differences.
        """
        since: list[Instant] = []

        def is_over(again: Trace, now: Instant) -> bool:
            if not since and self._contradicts(again):
                since.append(now)
            return ends and bool(since)

        left = await self._left_by(group, until, is_over)
        return (since[0] if since else None), left

    async def _wrong_among(self, group: Sequence[Switched], since: Instant) -> list[Switched]:
        """The switches of a group that contradict the recording by that instant, each alone."""
        if len(group) == 1:
            return list(group)
        wrong: list[Switched] = []
        for half in _halves(group):
            if await self._is_wrong_by(since, half):
                wrong += await self._wrong_among(half, since)
        return wrong

    async def _is_wrong_by(self, instant: Instant, group: Sequence[Switched]) -> bool:
        """Whether a run with these switches contradicts the recording by an instant."""
        is_wrong = False

        def is_over(again: Trace, now: Instant) -> bool:
            nonlocal is_wrong
            is_wrong = is_wrong or self._contradicts(again)
            return is_wrong or now >= instant

        await self._left_by(group, instant, is_over)
        return is_wrong


def _halves(group: Sequence[Switched]) -> list[Sequence[Switched]]:
    """Both halves of a group of two or more."""
    middle = len(group) // 2
    return [group[:middle], group[middle:]]


def with_switches(variant: Variant, group: Sequence[Switched]) -> Variant:
    """The variant with these switches as well."""
    switches = variant.switches
    for switched in group:
        switches |= switched.switches
    return replace(variant, switches=switches)


def rules_to_turn(evidence: Evidence, open_ones: Open) -> Switched | None:
    """The switch of C24, if it may explain a difference.

    Turned on, it explains a placement that breaks an existing rule; turned off, any placement.
    """
    turned = evidence.rules_seen
    if turned is None:
        return None
    if turned.switches.quirks["c24"]:
        return turned if evidence.by_rules else None
    return turned if any(key[0] in PLACEMENTS for key in open_ones) else None


def reasons_of_rules(
    turned: Switched, evidence: Evidence, races: Races, open_ones: Open, again: Trace
) -> Mapping[DifferenceKey, Judgement]:
    """The judgements of the differences that C24 explains, of those that vanish with the switch."""
    if not turned.switches.quirks["c24"]:
        detail = "the recorded scheduler saw rules; with c24 off the outcome is as recorded"
        return dict.fromkeys(open_ones, Judgement(reason=turned.reason, detail=detail))
    concerned = {each for claim in evidence.by_rules for each in races.concerned(claim, again)}
    judgement = Judgement(
        reason=DifferenceClass.IGNORED_RULES,
        detail="a rule forbids the recorded device; with c24 on the outcome is as recorded",
    )
    return {key: judgement for key in open_ones if key[1] in concerned}
