"""Reasons for an answer: node → claim → request → device → first cause.

Reasons are computed after the plain search, when somebody asks, from the same problem and the same
functions. For a refusal each device of each request is asked for its first cause while nothing is
taken; where every request could be satisfied alone, the search is repeated for a bounded number of
steps to find how far it can get and what stops it there. For an allocation the takes are replayed,
and the devices before each chosen one say why they were passed over.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from app.domain.allocation import causes, search
from app.domain.allocation.allocator import Allocation, Allocator, Answer, Failure, Refusal
from app.domain.allocation.causes import Cause
from app.domain.allocation.problem import Problem, Row
from app.domain.allocation.quirks import MARKS, NUMBERS
from app.domain.allocation.requests import AttemptAborted
from app.domain.allocation.search import StepsExhausted
from app.domain.allocation.usage import Usage
from app.domain.values.json_tree import JsonObject

EFFORT_STEPS = 4_000
"""Steps that an explanation may search to find how far a refused pod gets."""

CANNOT_ALLOCATE = "cannot allocate all claims"
"""Upstream's reason for a node on which the claims do not fit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceReason:
    """One device for one request; `cause` is None when nothing is against it alone."""

    device: str
    cause: Cause | None
    chosen: bool = False
    note: str = ""

    def tree(self) -> JsonObject:
        """The reason as JSON."""
        found: JsonObject = {"device": self.device}
        if self.chosen:
            found["chosen"] = True
        if self.cause is not None:
            found.update(self.cause.tree())
        if self.note:
            found["text"] = self.note
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestReason:
    """One request or alternative: what it wants, and what each device says to that."""

    request: str
    wants: str
    needs: int
    suitable: int
    devices: tuple[DeviceReason, ...]
    text: str

    def tree(self) -> JsonObject:
        """The reasons as JSON."""
        return {
            "request": self.request,
            "wants": self.wants,
            "suitable": self.suitable,
            "text": self.text,
            "devices": [found.tree() for found in self.devices],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimReason:
    """One claim with its requests and alternatives."""

    claim: str
    requests: tuple[RequestReason, ...]

    def tree(self) -> JsonObject:
        """The reasons as JSON."""
        return {"claim": self.claim, "requests": [found.tree() for found in self.requests]}


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Why the answer is as it is, for one node.

    `pools` names pools that cannot be used, with the reason. `deepest` is how far the search got
    and what stopped it there, for refusals in which no request alone is at fault. `quirks` are
    defects of upstream whose repair would change the answer.
    """

    node: str
    outcome: str
    text: str
    pools: tuple[tuple[str, str], ...] = ()
    claims: tuple[ClaimReason, ...] = ()
    deepest: RequestReason | None = None
    taken: tuple[str, ...] = ()
    quirks: tuple[str, ...] = ()

    def tree(self) -> JsonObject:
        """The whole explanation as JSON."""
        found: JsonObject = {"node": self.node, "outcome": self.outcome, "text": self.text}
        if self.pools:
            found["pools"] = [{"pool": pool, "problem": problem} for pool, problem in self.pools]
        if self.claims:
            found["claims"] = [claim.tree() for claim in self.claims]
        if self.deepest is not None:
            found["deepest"] = {"taken": list(self.taken), **self.deepest.tree()}
        if self.quirks:
            found["quirks"] = list(self.quirks)
        return found


def explain(answer: Answer, *, effort_steps: int = EFFORT_STEPS) -> Explanation:
    """The reasons for an answer."""
    match answer:
        case Allocation():
            return _of_allocation(answer)
        case Refusal():
            return _of_refusal(answer, CANNOT_ALLOCATE, effort_steps)
        case Failure():
            return _of_failure(answer, effort_steps)


def quirks_in(
    allocator: Allocator, answer: Answer, *, marks: Sequence[str] = (*MARKS, *NUMBERS)
) -> tuple[str, ...]:
    """The defects of upstream of which repairing one alone would change the answer on this node.

    Each is found by really allocating again. Marks that stand for several switches come first; a
    switch that is part of a mark already named is left out.
    """
    if answer.case is None:
        return ()
    claims = [plan.tree for plan in answer.case.plans]
    found: list[str] = []
    covered: set[str] = set()
    for mark in marks:
        if mark in covered:
            continue
        other = allocator.repaired(mark).allocate(answer.node, claims)
        if not _same(answer, other):
            found.append(mark)
            covered.update(MARKS.get(mark, ()))
    return tuple(found)


def event_reason(answer: Answer) -> str:
    """Upstream's reason for one node in the event of an unschedulable pod; empty when it fits."""
    match answer:
        case Allocation():
            return ""
        case Refusal():
            return CANNOT_ALLOCATE
        case Failure():
            return answer.text


def _same(one: Answer, other: Answer) -> bool:
    if isinstance(one, Allocation) and isinstance(other, Allocation):
        return one.allocation_results(lambda: "") == other.allocation_results(lambda: "")
    if isinstance(one, Failure) and isinstance(other, Failure):
        return (one.scope, one.text) == (other.scope, other.text)
    return isinstance(one, Refusal) and isinstance(other, Refusal)


def _of_failure(answer: Failure, effort_steps: int) -> Explanation:
    text = answer.text
    if answer.scope.value == "node" and answer.case is not None:
        return _of_refusal(answer, text, effort_steps)
    pools: tuple[tuple[str, str], ...] = ()
    if answer.case is not None:
        pools = _unusable(answer)
    return Explanation(node=answer.node.name, outcome="error", text=text, pools=pools)


def _of_refusal(answer: Refusal | Failure, text: str, effort_steps: int) -> Explanation:
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
    deepest: RequestReason | None = None
    taken: tuple[str, ...] = ()
    if short:
        detail = short
    elif not problem.view.devices:
        detail = "the node has no usable device"
    else:
        deepest, taken = _deepest(problem, effort_steps)
        detail = "each request could be satisfied alone, but not all together"
        if deepest is not None:
            detail += f"; after {_devices(len(taken))}, {deepest.text}"
    return Explanation(
        node=answer.node.name,
        outcome="refused",
        text=f"{text}: {detail}",
        pools=_unusable(answer),
        claims=claims,
        deepest=deepest,
        taken=taken,
    )


def _of_allocation(answer: Allocation) -> Explanation:
    problem = answer.problem
    usage = Usage(problem)
    claims = []
    for plan, takes, rows in zip(problem.plans, answer.results, problem.rows, strict=True):
        requests: list[RequestReason] = []
        for alternatives in rows:
            chosen = [found for found in takes if found.row.request.main == _main(alternatives)]
            selected = chosen[0].row if chosen else alternatives[0]
            for row in alternatives[: alternatives.index(selected)]:
                requests.append(_request_reason(problem, usage, row))
            reasons: list[DeviceReason] = []
            start = 0
            for found in chosen:
                reasons += _passed_over(problem, usage, found.row, start, found.device)
                name = problem.view.devices[found.device].text
                reasons.append(DeviceReason(device=name, cause=None, chosen=True))
                start = found.device + 1
                if usage.take(found.row, found.device, must=False) is None:
                    break
            requests.append(
                RequestReason(
                    request=selected.request.result_name,
                    wants=_wants(selected),
                    needs=selected.count,
                    suitable=len(chosen),
                    devices=tuple(reasons),
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


def _passed_over(
    problem: Problem, usage: Usage, row: Row, start: int, chosen: int
) -> Iterator[DeviceReason]:
    """The devices between two choices, with what was against them at that moment."""
    for device in range(start, chosen):
        cause = causes.of(problem, usage, row, device)
        note = "" if cause else "fits here, but the rest of the pod did not fit with it"
        yield DeviceReason(device=problem.view.devices[device].text, cause=cause, note=note)


def _request_reason(problem: Problem, usage: Usage, row: Row) -> RequestReason:
    reasons = []
    suitable = 0
    for device, found in enumerate(problem.view.devices):
        cause = causes.of(problem, usage, row, device)
        suitable += cause is None
        reasons.append(DeviceReason(device=found.text, cause=cause))
    return RequestReason(
        request=row.request.result_name,
        wants=_wants(row),
        needs=row.count,
        suitable=suitable,
        devices=tuple(reasons),
        text=_request_text(row, suitable, reasons),
    )


def _request_text(row: Row, suitable: int, reasons: Sequence[DeviceReason]) -> str:
    counts: dict[str, int] = {}
    for reason in reasons:
        if reason.cause is not None:
            about = f" ({reason.cause.about})" if reason.cause.about else ""
            name = f"{reason.cause.kind.value}{about}"
            counts[name] = counts.get(name, 0) + 1
    text = f"request {row.request.result_name} wants {_wants(row)}, "
    text += f"{suitable} of {len(reasons)} can be taken"
    if counts:
        most = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        text += ": " + ", ".join(f"{count} {name}" for name, count in most[:4])
        if len(most) > 4:
            text += f" and {len(most) - 4} more causes"
    return text


def _short(problem: Problem, claims: Sequence[ClaimReason]) -> str:
    """The first request that cannot be satisfied even alone; empty when there is none."""
    for rows, claim in zip(problem.rows, claims, strict=True):
        reasons = iter(claim.requests)
        for request in rows:
            found = [(row, next(reasons)) for row in request]
            if all(_is_short(row, reason) for row, reason in found):
                return f"claim {claim.claim}: " + "; ".join(reason.text for _, reason in found)
    return ""


def _is_short(row: Row, reason: RequestReason) -> bool:
    if row.takes_all:
        return not row.listed or any(reason.devices[index].cause for index in row.listed)
    return reason.suitable < row.count


@dataclass(slots=True, kw_only=True, eq=False)
class _Deepest:
    """Remembers the state with the most devices taken in which the search had no choice left."""

    problem: Problem
    depth: int = -1
    reason: RequestReason | None = None
    taken: tuple[str, ...] = field(default=())

    def stuck(self, row: Row, number: int, usage: Usage) -> None:
        """Look at the state if it is deeper than any before."""
        depth = sum(len(claim) for claim in usage.results)
        if depth <= self.depth:
            return
        self.depth = depth
        self.reason = _request_reason(self.problem, usage, row)
        devices = self.problem.view.devices
        self.taken = tuple(
            f"{found.row.request.result_name} of claim "
            f"{self.problem.plans[found.row.claim].key}: {devices[found.device].text}"
            for claim in usage.results
            for found in claim
        )


def _deepest(problem: Problem, effort_steps: int) -> tuple[RequestReason | None, tuple[str, ...]]:
    """How far the search gets within the effort; nothing where asking again would leave traces."""
    grows = any(row.grows for claim in problem.rows for request in claim for row in request)
    if grows or not problem.plain_counters:
        return None, ()
    observer = _Deepest(problem=problem)
    with suppress(StepsExhausted, AttemptAborted):
        search.run(problem, prune=False, steps_max=effort_steps, observer=observer)
    return observer.reason, observer.taken


def _unusable(answer: Answer) -> tuple[tuple[str, str], ...]:
    assert answer.case is not None
    return tuple(
        (pool.text, f"{pool.state.value}: {pool.problem}")
        for pool in answer.case.view.pools
        if not pool.usable
    )


def _wants(row: Row) -> str:
    if row.takes_all:
        return f"all {row.count} matching devices"
    return _devices(row.count)


def _devices(count: int) -> str:
    return "1 device" if count == 1 else f"{count} devices"


def _main(alternatives: Sequence[Row]) -> str:
    return alternatives[0].request.main
