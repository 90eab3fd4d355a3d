"""Slices and pools: the current generation, missing slices, who published them, free devices."""

from collections.abc import Iterable, Iterator, Sequence

from app.analysis.explain import lives, sources
from app.analysis.explain.reasons import Reason, listed
from app.analysis.explain.tallies import devices_text
from app.analysis.views import LiveViews
from app.domain.allocation.quirks import Quirks
from app.domain.devices import pools
from app.domain.devices.model import Device, Slice
from app.domain.devices.pools import OldPool, PoolState
from app.domain.log import Event, ObjectKey
from app.domain.values import api_resources, counts
from app.domain.values.fields import dra, meta
from app.domain.values.identifiers import DeviceId, PoolId
from app.domain.values.json_tree import JsonView

SLICES_MAX = 8
"""The number of slices of a pool shown one by one."""


def state_of(views: LiveViews, place: PoolId) -> tuple[str, str]:
    """The state of a pool as seen by the whole cluster, and a sentence about it."""
    pool = views.inventory.pool(place)
    if pool is None:
        return "Gone", "no slice of it is published"
    name = "/".join(place)
    text = f"pool {name} of generation {pool.generation}"
    if pool.state is PoolState.USABLE:
        return "Usable", f"{text} is complete and usable"
    return pool.state.value.capitalize(), f"{text} is {pool.state.value}: {pool.problem}"


def not_noticed(old: OldPool, uses: Iterable[Reason] = ()) -> Reason:
    """The reason that nodes still get devices of an older generation, with their use below it."""
    names = sorted(old.slices)
    text = (
        f"on {listed(old.nodes, len(old.nodes))} the scheduler does not notice generation "
        f"{old.newest}: it takes slice {listed(names, len(names))} of generation "
        f"{old.pool.generation} for the whole pool, so its devices are still allocated there"
    )
    return Reason(text=text, children=tuple(uses), issues=("Q12",), is_kept=True)


def of_pool(views: LiveViews, place: PoolId, quirks: Quirks) -> Iterator[Reason]:
    """Reasons about a pool: its state, its devices, and its slices by generation."""
    everywhere = views.inventory.slices_of(place)
    newest = pools.newest(everywhere)
    _, text = state_of(views, place)
    yield Reason(text=text, is_kept=True)
    yield from doubled(views, place)
    yield from used(views, newest)
    for old in views.old_pools(place, quirks):
        yield not_noticed(old, used(views, old.pool.slices))
    for resource_slice in everywhere[:SLICES_MAX]:
        yield _slice_line(views, resource_slice, is_newest=resource_slice in newest)
    if (rest := len(everywhere) - SLICES_MAX) > 0:
        yield Reason(text=counts.of(rest, "more slice"), count=rest)


def of_slice(
    views: LiveViews, events: Sequence[Event], tree: JsonView, quirks: Quirks
) -> Iterator[Reason]:
    """Reasons about a slice: its role in its pool, who published it, and what it contains."""
    place = dra.pool_id(tree)
    generation = dra.pool(tree).generation
    everywhere = views.inventory.slices_of(place)
    newest = pools.newest(everywhere)
    if newest and newest[0].generation > generation:
        names = [resource_slice.name for resource_slice in newest]
        key = ObjectKey(*api_resources.RESOURCE_SLICES, "", names[0])
        older = [one for one in views.old_pools(place, quirks) if meta.name(tree) in one.slices]
        end = "" if older else "; its devices are not allocated any more"
        yield Reason(
            text=f"obsolete: it is of generation {generation} of pool {'/'.join(place)}, and "
            f"generation {newest[0].generation} is there (slice {listed(names, len(names))}){end}",
            children=tuple(map(not_noticed, older)),
            revision=sources.revision_of(views.objects, key),
            is_kept=True,
        )
    else:
        _, text = state_of(views, place)
        yield Reason(text=text, is_kept=True)
        yield from doubled(views, place)
        obsolete = [one for one in everywhere if one not in newest]
        for resource_slice in obsolete[:SLICES_MAX]:
            yield _slice_line(views, resource_slice, is_newest=False)
        if (rest := len(obsolete) - SLICES_MAX) > 0:
            yield Reason(text=counts.of(rest, "more obsolete slice"), count=rest)
    created = sources.creation(events)
    if created is not None:
        yield sources.made(created, "published")
    if events and events[0] is not created:
        yield sources.made(events[0], "last changed")
    yield from lives.ending(events, tree)
    own = [
        resource_slice
        for resource_slice in everywhere
        if resource_slice.name == (events[0].key.name if events else "")
    ]
    yield from used(views, own)
    for problem in (problem for resource_slice in own for problem in resource_slice.patch_problems):
        text = f"patch {problem.patch} was passed over for {problem.device[2]}: {problem.problem}"
        yield Reason(text=text)


def used(views: LiveViews, slices: Sequence[Slice]) -> Iterator[Reason]:
    """The numbers of devices of these slices that are allocated, tainted and patched."""
    named: dict[DeviceId, Device] = {}
    for device in (each for resource_slice in slices for each in resource_slice.devices):
        named.setdefault(device.id, device)
    devices = list(named.values())
    if not devices:
        sets = sum(len(dra.shared_counters(one.tree)) for one in slices)
        only = f", only {counts.of(sets, 'counter set')}" if sets else ""
        yield Reason(text=f"no device is published here{only}", count=0)
        return
    held = [device for device in devices if views.allocated.is_allocated(device.id)]
    are = counts.verb(len(held), "is")
    text = f"{len(held)} of {devices_text(len(devices))} {are} allocated"
    if len(devices) == 1:
        text = f"its only device is {'allocated' if held else 'free'}"
    holders = list(dict.fromkeys(h for device in held for h in views.allocated.holders(device.id)))
    text += f", to {listed(holders, len(holders))}" if holders else ""
    yield Reason(text=text, count=len(devices))
    tainted = sum(bool(device.taints) for device in devices)
    patched = sum(bool(device.patches) for device in devices)
    for count, what in ((tainted, "tainted"), (patched, "changed by patches")):
        if count:
            verb = counts.verb(count, "is")
            yield Reason(text=f"{devices_text(count)} {verb} {what}", count=count)


def doubled(views: LiveViews, place: PoolId) -> Iterator[Reason]:
    """The slices that make a pool invalid, because several have one device or counter set."""
    pool = views.inventory.pool(place)
    if pool is None or pool.state is not PoolState.INVALID:
        return
    having: dict[tuple[str, str], dict[str, None]] = {}
    for one in pools.newest(views.inventory.slices_of(place)):
        for device in one.devices:
            having.setdefault(("device", device.id[2]), {})[one.key] = None
        for name, _ in one.counter_sets:
            having.setdefault(("counter set", name), {})[one.key] = None
    alike: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for (noun, name), slices in having.items():
        if len(slices) > 1:
            alike.setdefault((noun, tuple(slices)), []).append(name)
    for (noun, shared), names in list(alike.items())[:SLICES_MAX]:
        keys = [ObjectKey(*api_resources.RESOURCE_SLICES, "", key) for key in shared]
        written = [event for key in keys if (event := views.objects.event(key)) is not None]
        last = max(written, key=lambda event: event.revision, default=None)
        texts = [f"{event.key.name} (written {sources.by(event)})" for event in written]
        text = f"{counts.plural(len(names), noun)} {listed(names, len(names))} of pool "
        text += f"{'/'.join(place)} {counts.verb(len(names), 'is')} in {len(shared)} slices: "
        yield Reason(
            text=text + listed(texts, len(shared)),
            revision=0 if last is None else last.revision,
            about=None if last is None else last.key,
            is_kept=True,
        )


def _slice_line(views: LiveViews, resource_slice: Slice, *, is_newest: bool) -> Reason:
    key = ObjectKey(*api_resources.RESOURCE_SLICES, "", resource_slice.key)
    event = views.objects.event(key)
    what = "" if is_newest else ", obsolete"
    text = f"slice {resource_slice.name} of generation {resource_slice.generation}{what}: "
    text += devices_text(len(resource_slice.devices))
    if event is not None:
        text += f", last written {sources.by(event)}"
    return Reason(text=text, revision=0 if event is None else event.revision, about=key)
