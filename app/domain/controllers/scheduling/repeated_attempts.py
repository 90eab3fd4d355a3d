"""Repeated attempts, which write nothing new and are recorded together.

A failed attempt writes nothing when the pod's condition and Event already state the reason. The
attempt is still recorded, because it determines when the pod is tried next. One decision per step
names all such pods, so that a restarted scheduler knows the attempts.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from app.domain.controllers.plan import Decision, Plan
from app.domain.controllers.scheduling.planning import NAME, Turn
from app.domain.controllers.scheduling.scheduling_cycle.attempt import Attempt
from app.domain.log import Revision
from app.domain.values import json_tree
from app.domain.values.identifiers import Uid
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.timestamps import Instant

OUTCOME = "Unchanged"
KEY = "quiet"


@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatedAttempt:
    """One attempt that wrote nothing. `assumed` pods of the same step were assumed as placed.

    `refused` is the reason why the write of a placement was refused before; then nothing was tried.
    """

    namespace: str
    name: str
    uid: Uid
    outcome: str
    plugins: tuple[str, ...]
    start: int
    assumed: int
    number: int
    refused: str = ""


def refusal_of(repeated: RepeatedAttempt) -> Attempt | None:
    """The result of an attempt whose write was refused before; None for an actual attempt."""
    if not repeated.refused:
        return None
    return Attempt(outcome="Error", message=repeated.refused, next_start=repeated.start)


def of_attempt(turn: Turn, result: Attempt) -> RepeatedAttempt:
    """The record of one attempt."""
    facts = turn.pod.facts
    return RepeatedAttempt(
        namespace=facts.namespace,
        name=facts.name,
        uid=facts.uid,
        outcome=result.outcome,
        plugins=tuple(sorted(result.plugins)),
        start=turn.start,
        assumed=turn.batch,
        number=turn.number,
        refused=result.message if result.outcome == "Error" and not result.looked_at else "",
    )


def plan_of(
    attempts: list[RepeatedAttempt], *, now: Instant, following: int, cause: int, observed: Revision
) -> Plan:
    """The plan that records attempts; `following` is the start position of the next attempt."""
    groups: dict[tuple[str, tuple[str, ...], str], list[list[object]]] = {}
    for attempt in attempts:
        row = [
            attempt.namespace,
            attempt.name,
            attempt.uid,
            attempt.start,
            attempt.assumed,
            attempt.number,
        ]
        groups.setdefault((attempt.outcome, attempt.plugins, attempt.refused), []).append(row)
    inputs: JsonObject = {
        "now": now,
        "next": following,
        "attempts": [
            {"outcome": outcome, "plugins": list(plugins), "pods": rows}
            | ({"refused": refused} if refused else {})
            for (outcome, plugins, refused), rows in groups.items()
        ],
    }
    return Plan(
        controller=NAME,
        key=KEY,
        decision=Decision(
            controller=NAME,
            resource="pods",
            namespace="",
            name="",
            outcome=OUTCOME,
            inputs=inputs,
            summary={"pods": len(attempts)},
        ),
        cause=cause,
        observed=observed,
    )


def read(inputs: JsonView) -> Iterator[RepeatedAttempt]:
    """The attempts of a recorded decision; an invalid row is skipped."""
    for group in json_tree.objects(inputs, "attempts"):
        rows = group.get("pods")
        for row in rows if isinstance(rows, list) else ():
            if not _is_attempt(row):
                continue
            namespace, name, uid, start, assumed, number = row
            yield RepeatedAttempt(
                namespace=namespace,
                name=name,
                uid=uid,
                outcome=json_tree.text(group, "outcome"),
                plugins=tuple(json_tree.texts(group, "plugins")),
                start=start,
                assumed=assumed,
                number=number,
                refused=json_tree.text(group, "refused"),
            )


_ATTEMPT = [str, str, str, int, int, int]


def _is_attempt(row: object) -> bool:
    return isinstance(row, list) and [type(part) for part in row] == _ATTEMPT


def places_of(plan: Plan) -> list[tuple[str, str]]:
    """The pods that a plan is about."""
    if plan.decision is None:
        return []
    if plan.key == KEY:
        return [(attempt.namespace, attempt.name) for attempt in read(plan.decision.inputs)]
    return [(plan.decision.namespace, plan.decision.name)]
