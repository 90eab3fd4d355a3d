"""Reasons of many nodes in few bytes: equal causes are counted, examples are cut first.

A summary says how many nodes were asked and, per claim, request and cause, how many nodes and
devices it concerns, with a few names. Counts stay exact when examples or rare causes are cut.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from app.domain.allocation import causes, explanation
from app.domain.allocation.allocator import Allocation, Answer, Failure, Refusal
from app.domain.allocation.causes import Cause, Kind
from app.domain.allocation.problem import Problem, Row
from app.domain.allocation.usage import Usage
from app.domain.values.json_tree import JsonObject

BYTES_MAX = 4_096
EXAMPLES_MAX = 3
EXAMPLE_TEXT_MAX = 400

_Key: TypeAlias = tuple[str, str, Kind | None, str]
"""Claim, request, kind of cause, and what the cause is about."""


@dataclass(slots=True, kw_only=True, eq=False)
class _Tally:
    """One cause over all nodes."""

    kind: Kind | None
    about: str
    claim: str
    request: str
    nodes: int = 0
    devices: int = 0
    examples: list[str] = field(default_factory=list)

    def tree(self, examples: int) -> JsonObject:
        """The tally as JSON."""
        found: JsonObject = {
            "claim": self.claim,
            "request": self.request,
            "cause": self.kind.value if self.kind else "suitable",
            "nodes": self.nodes,
            "devices": self.devices,
        }
        if self.about:
            found["about"] = self.about
        if self.kind is not None:
            found["helps"] = causes.suggestion(self.kind)
        if examples:
            found["examples"] = self.examples[:examples]
        return found


def summarise(answers: Sequence[Answer], *, bytes_max: int = BYTES_MAX) -> JsonObject:
    """What the nodes said, in at most `bytes_max` bytes of JSON.

    `causes` are ordered by the number of devices; `causesCut` counts those that did not fit.
    """
    summary: JsonObject = {
        "nodes": len(answers),
        "fits": sum(isinstance(answer, Allocation) for answer in answers),
        "event": event_text(answers),
    }
    errors = _counted(answer.text for answer in answers if isinstance(answer, Failure))
    if errors:
        summary["errors"] = [{"text": text, "nodes": count} for text, count in errors]
    pools = _counted(
        f"{pool.text} is {pool.state.value}: {pool.problem}"
        for answer in answers
        if answer.case is not None and not isinstance(answer, Allocation)
        for pool in answer.case.view.pools
        if not pool.usable
    )
    if pools:
        summary["pools"] = [{"text": text, "nodes": count} for text, count in pools]
    tallies, together = _tallies(answers)
    if together:
        example = explanation.explain(together[0]).text
        length = min(EXAMPLE_TEXT_MAX, bytes_max // 6)
        summary["notTogether"] = {"nodes": len(together), "example": example[:length]}
    return _fitted(summary, tallies, bytes_max)


def event_text(answers: Sequence[Answer]) -> str:
    """Upstream's text for nodes that were all refused for their devices.

    `0/N nodes are available: ` and each reason with its number of nodes, sorted by text.
    """
    reasons = _counted(
        reason for reason in (explanation.event_reason(answer) for answer in answers) if reason
    )
    shown = ", ".join(sorted(f"{count} {text}" for text, count in reasons))
    return f"0/{len(answers)} nodes are available: {shown}." if shown else ""


def _tallies(answers: Sequence[Answer]) -> tuple[list[_Tally], list[Answer]]:
    """Causes over all refused nodes, and the nodes where only the combination is at fault."""
    tallies: dict[_Key, _Tally] = {}
    together: list[Answer] = []
    for answer in answers:
        refused = isinstance(answer, Refusal) or (
            isinstance(answer, Failure) and answer.scope.value == "node"
        )
        if refused and answer.case is not None:
            problem = answer.case.problem
            if not _add_node(tallies, problem) and problem.view.devices:
                together.append(answer)
    ordered = sorted(
        tallies.values(),
        key=lambda found: (-found.devices, found.claim, found.request, found.about),
    )
    return ordered, together


def _add_node(tallies: dict[_Key, _Tally], problem: Problem) -> bool:
    """Count the node's causes; true when some request cannot be satisfied even alone."""
    usage = Usage(problem)
    seen: set[_Key] = set()
    short = False
    for plan, rows in zip(problem.plans, problem.rows, strict=True):
        for alternatives in rows:
            enough = False
            for row in alternatives:
                suitable = 0
                for index in range(len(problem.view.devices)):
                    cause = causes.of(problem, usage, row, index)
                    suitable += cause is None
                    key = _count(tallies, problem, (plan.key, row, index), cause)
                    if key not in seen:
                        seen.add(key)
                        tallies[key].nodes += 1
                enough = enough or suitable >= max(row.count, 1)
            short = short or not enough
    return short


def _count(
    tallies: dict[_Key, _Tally],
    problem: Problem,
    subject: tuple[str, Row, int],
    cause: Cause | None,
) -> _Key:
    """Count one device of one request; the key of its cause."""
    claim, row, index = subject
    kind = None if cause is None else cause.kind
    about = "" if cause is None else cause.about
    key = (claim, row.request.result_name, kind, about)
    tally = tallies.get(key)
    if tally is None:
        tally = _Tally(kind=kind, about=about, claim=claim, request=row.request.result_name)
        tallies[key] = tally
    tally.devices += 1
    if len(tally.examples) < EXAMPLES_MAX:
        device = problem.view.devices[index]
        text = device.text if cause is None else f"{device.text}: {cause.text}"
        tally.examples.append(f"{problem.view.node.name}: {text}"[:200])
    return key


def _fitted(summary: JsonObject, tallies: Sequence[_Tally], bytes_max: int) -> JsonObject:
    """The summary with as many examples, then as many causes, as the bound allows."""
    for examples in range(EXAMPLES_MAX, -1, -1):
        summary["causes"] = [tally.tree(examples) for tally in tallies]
        if _size(summary) <= bytes_max:
            return summary
    trees = summary["causes"]
    for field_name in ("causes", "pools", "errors"):
        listed = trees if field_name == "causes" else summary.get(field_name, [])
        kept = len(listed)
        while kept and _size(summary) > bytes_max:
            kept //= 2
            summary[field_name] = listed[:kept]
            summary[f"{field_name}Cut"] = len(listed) - kept
    if _size(summary) > bytes_max:
        summary["event"] = str(summary["event"])[: bytes_max // 6]
    if _size(summary) > bytes_max:
        summary.pop("notTogether", None)
    return summary


def _size(tree: JsonObject) -> int:
    return len(json.dumps(tree, ensure_ascii=False, separators=(",", ":")).encode())


def _counted(texts: Iterable[str]) -> list[tuple[str, int]]:
    """Each text with how often it occurs, the most frequent first."""
    counts: dict[str, int] = {}
    for text in texts:
        counts[text] = counts.get(text, 0) + 1
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))
