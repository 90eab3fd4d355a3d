"""Batches of independent plans in one append, so that they share the cost of a commit.

The plans of a batch touch different objects, or were made with knowledge of the changes of earlier
plans to shared objects; any other plan that touches an object of an earlier one waits for the next
step. When a batch is refused, its plans are made again in batches of half the size, so that the
failing plan is found and delays few others. Each batch that passes doubles the size again. Most
often nothing fails for long: another client wrote one of the objects in between.
"""

from collections.abc import Callable, Collection, Iterable

from app.domain.controllers.plan import Plan
from app.domain.log import ObjectKey
from app.domain.objects.write.commands import RecordDecision, RecordFact

BATCH_MAX = 48
"""The most plans in one append. The disk determines the time of an append, not its size: with a
limit of 16 the scheduler fell seconds behind clients that it keeps up with at this limit."""

COMMANDS_MAX = 400
"""The number of commands from which on a batch takes no further plan, so that others wait less."""

QUIET_MAX = 64
"""The most keys without work that one step looks at."""


class Batcher:
    """Collects plans into batches; after a refusal the next batches are smaller."""

    def __init__(self, size: int = BATCH_MAX) -> None:
        self._size = self._limit = size

    def collect(
        self,
        make: Callable[[], Plan | None],
        put_back: Callable[[Plan], None],
        *,
        foreseen: Collection[ObjectKey] = (),
    ) -> Plan | None:
        """Collects plans from `make` until it has none, the batch is full or two plans conflict.

        An empty plan counts as a look. `put_back` receives a plan that has to wait. Plans may touch
        the objects in `foreseen` again: `make`, which may add to it, takes into account how earlier
        plans change them.
        """
        size = self._limit
        parts: list[Plan] = []
        touched: set[ObjectKey] = set()
        last: Plan | None = None
        commands = 0
        for _ in range(QUIET_MAX + size):
            try:
                plan = make()
            except Exception:
                # An error with one key must not lose the plans that were collected before it.
                for part in parts:
                    put_back(part)
                raise
            if plan is None:
                break
            last = plan
            if plan.is_empty:
                continue
            keys = touched_by(plan)
            if parts and not (touched & keys).issubset(foreseen):
                put_back(plan)
                break
            parts.append(plan)
            touched |= keys
            commands += len(plan.commands)
            if len(parts) >= size or commands >= COMMANDS_MAX:
                break
        return together(parts) if parts else last

    def with_record(self, plan: Plan, record: Plan, put_back: Callable[[Plan], None]) -> Plan:
        """Joins a collected plan with a plan that only records.

        After a refusal the collected plan is returned alone, because it may be refused again, and
        the record with it, without end. The record is made again when batches have their full size.
        """
        if plan.is_empty:
            return record
        if self._limit < self._size:
            put_back(record)
            return plan
        return together([*(plan.parts or (plan,)), record])

    def settle(
        self, plan: Plan, problem: str | None, put_back: Callable[[Plan], None]
    ) -> tuple[Plan, ...]:
        """The single plans whose outcome is known: those of an appended plan, or a refused one.

        After a success the next batch may be twice as large. The plans of a refused batch are put
        back, and the next batch is at most half of it.
        """
        if problem is None:
            self._limit = min(self._size, 2 * self._limit)
        elif plan.parts:
            self._limit = max(1, len(plan.parts) // 2)
            for part in plan.parts:
                put_back(part)
            return ()
        return plan.parts or (plan,)


def together(parts: list[Plan]) -> Plan:
    """Combines several plans into one; a single plan is returned unchanged."""
    if len(parts) == 1:
        return parts[0]
    first = parts[0]
    return Plan(
        controller=first.controller,
        key=f"{first.key} and {len(parts) - 1} more",
        cause=first.cause,
        observed=first.observed,
        parts=tuple(parts),
    )


def touched_by(plan: Plan) -> set[ObjectKey]:
    """The objects that a plan writes; objects without a name yet are left out."""
    return set(_keys(plan))


def _keys(plan: Plan) -> Iterable[ObjectKey]:
    for command in plan.commands:
        if not isinstance(command, RecordDecision | RecordFact) and command.key.name:
            yield command.key
