"""Reasons for an answer: node → claim → request → device → first cause.

Reasons are computed on demand after the plain search, from the same problem with the same
functions. For a refusal, the first cause of each device for each request is computed while no
device is taken. If every request could be satisfied alone, the search is repeated for a bounded
number of steps to find how far it gets and what stops it. For an allocation the takes are replayed,
with the reason why each device before a chosen one was skipped.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import msgspec

from app.domain.allocation.allocator import (
    Allocation,
    Allocator,
    Answer,
    DoesNotFit,
    Failure,
    FailureScope,
)
from app.domain.allocation.case import Case
from app.domain.allocation.problem import Problem, RequestRow
from app.domain.allocation.quirks import MARKS, NUMBERS
from app.domain.allocation.reasons import causes, dead_ends
from app.domain.allocation.reasons.causes import Cause, CauseKind
from app.domain.allocation.reasons.dead_ends import DeadEnd, DeadEnds, Takes
from app.domain.allocation.requests import PoolUnusable
from app.domain.allocation.usage import Usage
from app.domain.values import counts
from app.domain.values.json_tree import JsonObject

EFFORT_STEPS = 4_000
"""The most search steps of an explanation to find how far a refused pod gets."""

CANNOT_ALLOCATE = "cannot allocate all claims"
"""Upstream's reason for a node on which the claims do not fit."""


NOT_REACHED = "not reached: "


class DeviceReason(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The reason for one device and one request; `cause` is None when the device alone fits."""

    device: str
    cause: Cause | None
    chosen: bool = False
    note: str = ""

    def tree(self) -> JsonObject:
        """The reason as JSON."""
        tree: JsonObject = {"device": self.device}
        if self.chosen:
            tree["chosen"] = True
        if self.cause is not None:
            tree.update(self.cause.tree())
        if self.note:
            tree["text"] = self.note
        return tree


@dataclass(frozen=True, slots=True, kw_only=True)
class Alike:
    """Devices of one request that share a reason, with their names."""

    reason: DeviceReason
    devices: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestReason:
    """The reasons for one request or alternative: what it requests, and a reason per device."""

    request: str
    wants: str
    needs: int
    suitable: int
    devices: tuple[DeviceReason, ...]
    text: str
    groups: list[Alike] = field(default_factory=list, repr=False, compare=False)
    """What `alike` returns; empty until it is asked for, unless it was known before."""

    @property
    def alike(self) -> Sequence[Alike]:
        """The devices in groups with the same cause, in the order in which the causes occur."""
        if not self.groups:
            groups: dict[tuple[int, bool, str], Alike] = {}
            for device in self.devices:
                key = (id(device.cause), device.chosen, device.note)
                group = groups.get(key)
                if group is None:
                    groups[key] = Alike(reason=device, devices=[device.device])
                else:
                    group.devices.append(device.device)
            self.groups.extend(groups.values())
        return self.groups

    def tree(self) -> JsonObject:
        """The reasons as JSON."""
        return {
            "request": self.request,
            "wants": self.wants,
            "suitable": self.suitable,
            "text": self.text,
            "devices": [reason.tree() for reason in self.devices],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimReason:
    """The reasons for one claim: those of its requests and alternatives."""

    claim: str
    requests: tuple[RequestReason, ...]

    def tree(self) -> JsonObject:
        """The reasons as JSON."""
        return {"claim": self.claim, "requests": [reason.tree() for reason in self.requests]}


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedPicks:
    """The devices that the search took in vain, and the request without a device then."""

    picks: tuple[str, ...]
    reason: RequestReason

    def tree(self) -> JsonObject:
        """The same as JSON."""
        return {"taken": list(self.picks), "text": self.reason.text}


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """The explanation of the answer for one node.

    `pools` are the unusable pools, each with the reason. `deepest` is how far the search got and
    what stopped it, for refusals in which no request alone is at fault; `tried` are the first of
    `given_up` dead ends (within the effort). `failing` are the requests, as (claim, request), on
    whose devices a selector failed with the error that ended the attempt. `quirks` are defects of
    upstream whose repair would change the answer.
    """

    node: str
    outcome: str
    text: str
    pools: tuple[tuple[str, str], ...] = ()
    claims: tuple[ClaimReason, ...] = ()
    deepest: RequestReason | None = None
    picks: tuple[str, ...] = ()
    tried: tuple[FailedPicks, ...] = ()
    given_up: int = 0
    failing: tuple[tuple[str, str], ...] = ()
    quirks: tuple[str, ...] = ()

    def tree(self) -> JsonObject:
        """The whole explanation as JSON."""
        tree: JsonObject = {"node": self.node, "outcome": self.outcome, "text": self.text}
        if self.pools:
            tree["pools"] = [{"pool": pool, "problem": problem} for pool, problem in self.pools]
        if self.claims:
            tree["claims"] = [claim.tree() for claim in self.claims]
        if self.deepest is not None:
            tree["deepest"] = {"taken": list(self.picks), **self.deepest.tree()}
        if self.tried:
            tree["tried"] = [one.tree() for one in self.tried]
            tree["givenUp"] = self.given_up
        if self.quirks:
            tree["quirks"] = list(self.quirks)
        return tree


def explain(answer: Answer, *, effort_steps: int = EFFORT_STEPS) -> Explanation:
    """The reasons for an answer."""
    match answer:
        case Allocation():
            return _of_allocation(answer, effort_steps)
        case DoesNotFit():
            return _of_refusal(answer, CANNOT_ALLOCATE, effort_steps)
        case Failure():
            return _of_failure(answer, effort_steps)


def quirks_in(allocator: Allocator, answer: Answer) -> tuple[str, ...]:
    """The defects of upstream whose repair, each alone, would change the answer on this node.

    Each is proven by allocating again. Marks for several switches come first; a switch that is
    part of a mark already named is left out.
    """
    if answer.case is None:
        return ()
    claims = [plan.tree for plan in answer.case.plans]
    involved: list[str] = []
    covered: set[str] = set()
    for mark in (*MARKS, *NUMBERS):
        if mark in covered:
            continue
        other = allocator.repaired(mark).allocate(answer.node, claims)
        if not _same(answer, other):
            involved.append(mark)
            covered.update(MARKS.get(mark, ()))
    return tuple(involved)


def disappeared(allocator: Allocator, answer: Answer) -> tuple[tuple[str, str], ...]:
    """The pools hidden from a node because a newer generation exists elsewhere, with the reason.

    Parity: allocator.md 2.4 and Q13. No other part of the answer names such a pool.
    """
    if answer.case is None or not allocator.reading.obsolete_disappear:
        return ()
    seen = {pool.id for pool in answer.case.view.pools}
    reading = msgspec.structs.replace(allocator.reading, obsolete_disappear=False)
    return tuple(
        (pool.text, f"{pool.problem}, so it disappears from here (known issue Q13)")
        for pool in allocator.inventory.node_view(answer.node, reading).pools
        if pool.id not in seen
    )


def event_reason(answer: Answer) -> str:
    """Upstream's reason for one node in the event of an unschedulable pod; empty when it fits."""
    match answer:
        case Allocation():
            return ""
        case DoesNotFit():
            return CANNOT_ALLOCATE
        case Failure():
            return answer.text


def _same(one: Answer, other: Answer) -> bool:
    if isinstance(one, Allocation) and isinstance(other, Allocation):
        return one.allocation_results(lambda: "") == other.allocation_results(lambda: "")
    if isinstance(one, Failure) and isinstance(other, Failure):
        return (one.scope, one.text) == (other.scope, other.text)
    return isinstance(one, DoesNotFit) and isinstance(other, DoesNotFit)


def _of_failure(answer: Failure, effort_steps: int) -> Explanation:
    text = answer.text
    pools: tuple[tuple[str, str], ...] = ()
    is_node_scoped = answer.scope is FailureScope.NODE
    if answer.case is not None:
        pools = _unusable(answer)
        if is_node_scoped and _has_problem(answer.case):
            return _of_refusal(answer, text, effort_steps)
    return Explanation(
        node=answer.node.name,
        outcome="refused" if is_node_scoped else "error",
        text=text,
        pools=pools,
        failing=() if answer.case is None else causes.failing(answer.case, text),
    )


def _has_problem(case: Case) -> bool:
    """Whether the problem can be built; false when mode All meets an unusable pool."""
    try:
        return bool(case.problem)
    except PoolUnusable:
        return False


def _of_refusal(answer: DoesNotFit | Failure, text: str, effort_steps: int) -> Explanation:
    assert answer.case is not None
    problem = answer.case.problem
    usage = Usage(problem)
    claims = tuple(
        ClaimReason(
            claim=plan.key,
            requests=tuple(
                _request_reason(problem, usage, row) for request in rows for row in request
            ),
        )
        for plan, rows in zip(problem.plans, problem.rows, strict=True)
    )
    short = _short(problem, claims)
    tried: tuple[FailedPicks, ...] = ()
    deepest: FailedPicks | None = None
    given_up = 0
    if short:
        detail = short
    elif not problem.view.devices:
        detail = "the node has no usable device"
    else:
        dead_ends_found = dead_ends.find(problem, effort_steps)
        given_up = dead_ends_found.count
        tried = tuple(_tried(problem, one) for one in dead_ends_found.first)
        detail = "each request could be satisfied alone, but not all together"
        if dead_ends_found.deepest is not None:
            deepest = _tried(problem, dead_ends_found.deepest)
            detail += f"; after {_devices(len(deepest.picks))}, {deepest.reason.text}"
    return Explanation(
        node=answer.node.name,
        outcome="refused",
        text=f"{text}: {detail}",
        pools=_unusable(answer),
        claims=claims,
        deepest=None if deepest is None else deepest.reason,
        picks=() if deepest is None else deepest.picks,
        tried=tried,
        given_up=given_up,
    )


def _of_allocation(answer: Allocation, effort_steps: int) -> Explanation:
    problem = answer.problem
    replay = _Replay(problem=problem, usage=Usage(problem), effort_steps=effort_steps)
    claims = []
    for plan, takes, rows in zip(problem.plans, answer.results, problem.rows, strict=True):
        requests: list[RequestReason] = []
        for alternatives in rows:
            chosen = [mine for mine in takes if mine.row.request.main == _main(alternatives)]
            selected = chosen[0].row if chosen else alternatives[0]
            for row in alternatives[: alternatives.index(selected)]:
                requests.append(_request_reason(problem, replay.usage, row))
            requests.append(
                RequestReason(
                    request=selected.request.result_name,
                    wants=_wants(selected),
                    needs=selected.count,
                    suitable=len(chosen),
                    devices=tuple(replay.choices(selected, [take.device for take in chosen])),
                    text=f"request {selected.request.result_name} got {_devices(len(chosen))}",
                )
            )
        claims.append(ClaimReason(claim=plan.key, requests=tuple(requests)))
    count = sum(len(takes) for takes in answer.results)
    return Explanation(
        node=answer.node.name,
        outcome="allocated",
        text=f"{_devices(count)} allocated in {answer.steps} steps",
        pools=_unusable(answer),
        claims=tuple(claims),
    )


@dataclass(slots=True, kw_only=True, eq=False)
class _Replay:
    """The replay of an allocation's takes, which finds why other devices were skipped."""

    problem: Problem
    usage: Usage
    effort_steps: int
    takes: list[tuple[int, int]] = field(default_factory=list)
    _found: DeadEnds | None = None

    def choices(self, row: RequestRow, chosen: Sequence[int]) -> Iterator[DeviceReason]:
        """The chosen devices for one request, and why the devices before each were not taken.

        In mode All the order does not matter: every matching device is taken.
        """
        devices = self.problem.view.devices
        start = 0
        for device in chosen:
            if row.takes_all or device < start:
                start = device
            for other in range(start, device):
                yield self._passed_over(row, other)
            yield DeviceReason(device=devices[device].text, cause=None, chosen=True)
            start = device + 1
            self.takes.append((row.index, device))
            if self.usage.take(row, device, must=row.takes_all) is None:
                break
        last = f"{NOT_REACHED}{devices[chosen[-1]].id[2]} was the first fit" if chosen else ""
        for other in range(start, len(devices)) if last and not row.takes_all else ():
            if other not in chosen:
                yield DeviceReason(device=devices[other].text, cause=None, note=last)

    def _passed_over(self, row: RequestRow, device: int) -> DeviceReason:
        cause = causes.of(self.problem, self.usage, row, device)
        note = "" if cause else self._in_vain(row, device)
        return DeviceReason(device=self.problem.view.devices[device].text, cause=cause, note=note)

    def _in_vain(self, row: RequestRow, device: int) -> str:
        """The note for a device that could be taken but was not chosen."""
        note = "fits here, but the rest of the pod did not fit with it"
        if self._found is None:
            self._found = dead_ends.find(self.problem, self.effort_steps)
        stuck = self._found.behind((*self.takes, (row.index, device)))
        if stuck is None:
            return note
        return f"{note}: {_tried(self.problem, stuck).reason.text}"


def _request_reason(problem: Problem, usage: Usage, row: RequestRow) -> RequestReason:
    ask = causes.asking(problem, usage, row)
    names = ["/".join(device.id) for device in problem.view.devices]
    against = [ask(device) for device in range(len(names))]
    equal: dict[tuple[CauseKind, str, str], Alike] = {}
    groups: dict[int, Alike] = {}
    alike: list[Alike] = []
    for name, cause in zip(names, against, strict=True):
        group = groups.get(id(cause))
        if group is None:
            # One for all equal causes: devices are told together by it.
            group = Alike(reason=DeviceReason(device=name, cause=cause), devices=[])
            if cause is not None:
                group = equal.setdefault((cause.kind, cause.about, cause.text), group)
            groups[id(cause)] = group
            if not group.devices:
                alike.append(group)
        group.devices.append(name)
    suitable = groups.get(id(None))
    takeable = 0 if suitable is None else len(suitable.devices)
    merged = [groups[id(cause)].reason.cause for cause in against]
    pairs = zip(names, merged, strict=True)
    return RequestReason(
        request=row.request.result_name,
        wants=_wants(row),
        needs=max(row.count, 1),
        suitable=takeable,
        devices=tuple([DeviceReason(device=name, cause=cause) for name, cause in pairs]),
        text=_request_text(row, takeable, len(names), alike),
        groups=alike,
    )


def _request_text(row: RequestRow, suitable: int, devices: int, alike: Sequence[Alike]) -> str:
    totals: dict[str, int] = {}
    for group in alike:
        if (cause := group.reason.cause) is not None:
            name = causes.text_of(cause.kind, cause.about)
            totals[name] = totals.get(name, 0) + len(group.devices)
    text = f"request {row.request.result_name} wants {_wants(row)}, "
    text += f"{suitable} of {devices} can be taken"
    if totals:
        most = sorted(totals.items(), key=lambda item: (-item[1], item[0]))
        text += ": " + ", ".join(f"{count} {name}" for name, count in most[:4])
        if len(most) > 4:
            text += f" and {counts.of(len(most) - 4, 'more cause')}"
    return text


def _short(problem: Problem, claims: Sequence[ClaimReason]) -> str:
    """The text for the first request that cannot be satisfied even alone; empty when none."""
    for rows, claim in zip(problem.rows, claims, strict=True):
        reasons = iter(claim.requests)
        for request in rows:
            short = [(row, next(reasons)) for row in request]
            if all(_is_short(row, reason) for row, reason in short):
                return f"claim {claim.claim}: " + "; ".join(reason.text for _, reason in short)
    return ""


def _is_short(row: RequestRow, reason: RequestReason) -> bool:
    if row.takes_all:
        return not row.listed or any(reason.devices[index].cause for index in row.listed)
    return reason.suitable < row.count


def _tried(problem: Problem, dead_end: DeadEnd) -> FailedPicks:
    usage = dead_ends.usage_after(problem, dead_end.takes)
    return FailedPicks(
        picks=_takes_listed(problem, dead_end.takes),
        reason=_request_reason(problem, usage, dead_end.row),
    )


def _takes_listed(problem: Problem, takes: Takes) -> tuple[str, ...]:
    """The text `device for request` per take; it names the claim when there are several."""
    rows = {row.index: row for claim in problem.rows for request in claim for row in request}
    names = []
    for number, device in takes:
        row = rows[number]
        claim = f" of claim {problem.plans[row.claim].key}" if len(problem.plans) > 1 else ""
        names.append(
            f"{problem.view.devices[device].text} for request {row.request.result_name}{claim}"
        )
    return tuple(names)


def _unusable(answer: Answer) -> tuple[tuple[str, str], ...]:
    assert answer.case is not None
    return tuple(
        (pool.text, f"{pool.state.value}: {pool.problem}")
        for pool in answer.case.view.pools
        if not pool.usable
    )


def _wants(row: RequestRow) -> str:
    if row.takes_all:
        if row.count == 1:
            return "all matching devices (1)"
        return f"all {row.count} matching devices" if row.count else "all matching devices"
    return _devices(row.count)


def _devices(count: int) -> str:
    return counts.of(count, "device")


def _main(alternatives: Sequence[RequestRow]) -> str:
    return alternatives[0].request.main
