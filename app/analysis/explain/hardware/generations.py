"""The course of a pool: which slices of which generation were there after each write."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from app.analysis.explain import sources
from app.analysis.explain.reasons import Reason, listed
from app.domain.devices.pools import newest
from app.domain.log import Event, EventType
from app.domain.values import counts
from app.domain.values.fields import dra
from app.domain.values.identifiers import PoolId
from app.domain.values.json_tree import JsonView


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolMoment:
    """A pool after an event: its newest generation, the slices of it, and how many it announces.

    `older` has the slices of earlier generations. A pool without slices has no `names`.
    """

    event: Event
    generation: int = 0
    names: tuple[str, ...] = ()
    older: Mapping[str, int] = field(default_factory=dict)
    announced: int = 0

    @property
    def is_complete(self) -> bool:
        """Whether all slices are there that the newest generation announces."""
        return bool(self.names) and len(self.names) == self.announced


def course(place: PoolId, histories: Iterable[Sequence[Event]]) -> list[PoolMoment]:
    """The moments of a pool, oldest first, from the events of its slices, each newest first.

    Moments before the first known event of a slice whose creation is not known are left out.
    """
    since = 0
    events: list[Event] = []
    for known in histories:
        events += known
        if known and known[-1].type is not EventType.OBJECT_CREATED:
            since = max(since, known[-1].revision)
    slices: dict[str, JsonView] = {}
    moments: list[PoolMoment] = []
    for event in sorted(events, key=lambda each: each.revision):
        was_there = slices.pop(event.key.name, None) is not None
        is_of_pool = (dra.driver(event.object), dra.pool_name(event.object)) == place
        if is_of_pool and event.type is not EventType.OBJECT_DELETED:
            slices[event.key.name] = event.object
        elif not was_there:
            continue
        if event.revision >= since:
            moments.append(_after(event, slices))
    return moments


def _after(event: Event, slices: Mapping[str, JsonView]) -> PoolMoment:
    pools = {name: dra.pool(tree) for name, tree in sorted(slices.items())}
    current = newest(pools.values())
    if not current:
        return PoolMoment(event=event)
    generation = current[0].generation
    return PoolMoment(
        event=event,
        generation=generation,
        names=tuple(name for name, pool in pools.items() if pool.generation == generation),
        older={
            name: pool.generation for name, pool in pools.items() if pool.generation < generation
        },
        announced=current[0].resource_slice_count,
    )


def unfinished(place: PoolId, moments: Sequence[PoolMoment]) -> Reason | None:
    """The time since which a pool is incomplete, what it lacks, and its state before.

    None for a pool that is complete, of which no slice is there, or whose number of slices was not
    recorded.
    """
    if not moments or moments[-1].is_complete or not moments[-1].announced:
        return None
    now = moments[-1]
    earlier = [number for number, one in enumerate(moments) if one.is_complete or not one.names]
    number = earlier[-1] + 1 if earlier else 0
    begun, before = moments[number], moments[number - 1] if number else None
    lacking = now.announced - len(now.names)
    text = f"pool {'/'.join(place)} is incomplete since {_beginning_text(begun, before)}"
    text += f": {len(now.names)} of {counts.of(now.announced, 'slice')} "
    text += f"{counts.verb(len(now.names), 'is')} there ({listed(now.names, len(now.names))})"
    if lacking > 0:
        text += f", {lacking} {counts.verb(lacking, 'is')} missing"
    return Reason(
        text=text,
        revision=begun.event.revision,
        about=begun.event.key,
        children=(*_former(moments, before), *_behind(moments, now, before)),
        is_kept=True,
    )


def _beginning_text(begun: PoolMoment, before: PoolMoment | None) -> str:
    """The event since which a pool is incomplete, as text."""
    event = begun.event
    name = f"slice {event.key.name}"
    if event.type is EventType.OBJECT_DELETED:
        generation = begun.generation if before is None else before.generation
        text = f"{name} of generation {generation} was deleted"
    elif before is None or begun.generation != before.generation:
        text = f"{name} was published with generation {begun.generation}"
    else:
        text = f"{name} was written and announces {counts.of(begun.announced, 'slice')}"
    return f"{text}, {sources.by(event)}"


def _former(moments: Sequence[PoolMoment], before: PoolMoment | None) -> Iterator[Reason]:
    """The state of the pool before it became incomplete, as far as it is known."""
    if before is None and moments[0].event.type is EventType.OBJECT_CREATED:
        yield Reason(text="before, nothing of it was published", is_kept=True)
    elif before is not None and not before.names:
        yield Reason(text="before, no slice of it was there", is_kept=True)
    elif before is not None:
        text = f"before, generation {before.generation} was complete with "
        text += f"{counts.of(len(before.names), 'slice')} {listed(before.names, len(before.names))}"
        yield Reason(text=text, revision=before.event.revision, is_kept=True)


def _behind(
    moments: Sequence[PoolMoment], now: PoolMoment, before: PoolMoment | None
) -> Iterator[Reason]:
    """The slices of the complete pool that are not in its newest generation."""
    lost = [name for name in (before.names if before else ()) if name not in now.names]
    old = [name for name in lost if name in now.older]
    if old:
        of = sorted({now.older[name] for name in old})
        text = f"{counts.plural(len(old), 'slice')} {listed(old, len(old))} "
        text += f"{counts.verb(len(old), 'is')} still of generation {of[0]}"
        yield Reason(text=text, count=len(old), is_kept=True)
    for name in lost:
        last = next((one.event for one in reversed(moments) if one.event.key.name == name), None)
        if name in old or last is None or last.type is not EventType.OBJECT_DELETED:
            continue
        yield sources.made(last, f"slice {name} was deleted")
