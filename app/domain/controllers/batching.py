"""Several independent plans in one append, so that a commit is paid once for all of them.

Plans of one batch touch different objects, or were made knowing how those before them leave what
they share; one that touches an object of an earlier one otherwise waits for the next step. When a
batch is refused, its plans are made again one by one, so that the one to blame is found and costs
the others nothing but time.
"""

from collections.abc import Callable, Collection, Iterable

from app.domain.controllers.plan import Plan
from app.domain.log import ObjectKey
from app.domain.objects.write.commands import RecordDecision, RecordFact

BATCH_MAX = 48
"""How many plans one append holds. An append takes as long as the disk does, whatever it holds:
with 16 the scheduler fell seconds behind clients that it keeps up with since."""

COMMANDS_MAX = 400
"""With so many commands an append takes no further plan: others wait while it is decided."""

QUIET_MAX = 64
"""How many keys without work one step looks at."""


class Batcher:
    """Collects plans; remembers to be careful after a refusal."""

    def __init__(self, size: int = BATCH_MAX) -> None:
        self._size = size
        self._single = 0

    def collect(
        self,
        make: Callable[[], Plan | None],
        put_back: Callable[[Plan], None],
        *,
        foreseen: Collection[ObjectKey] = (),
    ) -> Plan | None:
        """Plans of `make` until it has no more, the batch is full or two would touch one object.

        An empty plan counts as a look. `put_back` is told of a plan that has to wait. Objects in
        `foreseen`, which `make` may add to, can be touched again: it knows how the plans before
        leave them.
        """
        size = 1 if self._single else self._size
        parts: list[Plan] = []
        touched: set[ObjectKey] = set()
        last: Plan | None = None
        commands = 0
        for _ in range(QUIET_MAX + size):
            try:
                plan = make()
            except Exception:
                # What is wrong with one key is no reason to lose those collected before it.
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
        """A collected plan and what is recorded beside it.

        After a refusal the plan goes alone: it may be refused again, and the record with it, for
        ever. The record is made again when the plans to blame are through.
        """
        if plan.is_empty:
            return record
        if self._single:
            put_back(record)
            return plan
        return together([*(plan.parts or (plan,)), record])

    def passed(self) -> None:
        """The last plan was carried out."""
        self._single = max(0, self._single - 1)

    def refused(self, plan: Plan) -> None:
        """The last plan was refused: as many steps as it had parts are made one by one."""
        if plan.parts:
            self._single = len(plan.parts)


def together(parts: list[Plan]) -> Plan:
    """One plan of several; a single one stays what it is."""
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
    """The objects that a plan writes; those without a name yet are left out."""
    return set(_keys(plan))


def _keys(plan: Plan) -> Iterable[ObjectKey]:
    for command in plan.commands:
        if not isinstance(command, RecordDecision | RecordFact) and command.key.name:
            yield command.key
