"""The effect of a change on allocated claims: devices that are tainted, gone, or no longer match.

No pod is evicted because its device is gone or no longer matches. But the claim would not be
allocated like this again, which an operator needs to know before the change.
"""

from collections.abc import Iterator, Mapping

from app.analysis.blast import devices
from app.analysis.blast.devices import PoolSide
from app.analysis.blast.radius import ClaimFate, Trouble
from app.analysis.blast.world import Consequences, World
from app.domain.controllers.eviction.state import TrackedClaim
from app.domain.controllers.resources import claim_key
from app.domain.devices.model import Device
from app.domain.devices.patches import ClassFilter
from app.domain.values import json_tree, timestamps
from app.domain.values.fields import dra, entries
from app.domain.values.identifiers import DeviceId, NamespacedName, PoolId
from app.domain.values.json_tree import JsonObject, JsonView

PoolSides = Mapping[PoolId, tuple[PoolSide, PoolSide]]
_Known = dict[PoolId, tuple[PoolSide, PoolSide]]


def claim_fates(
    world: World, before: Consequences, after: Consequences, sides: PoolSides
) -> list[ClaimFate]:
    """The allocated claims for which the change causes trouble, by namespace and name."""
    fates = []
    known = dict(sides)
    for place in sorted(world.taints.claims):
        claim = world.taints.claims[place]
        troubles = list(_troubles(world, before, after, known, place, claim))
        if not troubles:
            continue
        eviction = after.claims.get(place)
        fates.append(
            ClaimFate(
                namespace=place[0],
                name=place[1],
                pods=tuple(name for name, _ in claim.reserved),
                troubles=tuple(dict.fromkeys(troubles)),
                due="" if eviction is None else timestamps.micro_text(eviction.time),
            )
        )
    return fates


def _troubles(
    world: World,
    before: Consequences,
    after: Consequences,
    sides: _Known,
    place: NamespacedName,
    claim: TrackedClaim,
) -> Iterator[Trouble]:
    for reason in after.taints.get(place, ()):
        if reason in before.taints.get(place, ()):
            continue
        text = (
            f"taint {reason.index} of the slice is NoExecute"
            if reason.is_slice
            else f"rule {reason.rule} is NoExecute"
        )
        for result in claim.results:
            device = result.id
            if not reason.is_slice or device == (reason.driver, reason.pool, reason.device):
                rule = world.taints.rules.get(reason.rule)
                if reason.is_slice or rule is None or rule.selects(*device):
                    yield Trouble(kind="tainted", device="/".join(device), text=text)
    is_touched = [result.id[:2] in sides for result in claim.results]
    if not any(is_touched) and not world.touched.classes:
        return
    tree = world.objects.get(claim_key(*place)) or json_tree.EMPTY
    for result, allocated in zip(claim.results, dra.results(tree), strict=True):
        ask = _request(tree, allocated.request)
        yield from _device_troubles(world, before, after, sides, result.id, ask)


def _device_troubles(
    world: World,
    before: Consequences,
    after: Consequences,
    sides: _Known,
    device: DeviceId,
    ask: JsonObject,
) -> Iterator[Trouble]:
    name = "/".join(device)
    class_name = dra.device_class_name(ask)
    pool = device[:2]
    if pool not in sides:
        if class_name not in world.touched.classes:
            return
        untouched = devices.pool_side(after.inventory, pool)
        sides[pool] = (untouched, untouched)
    old, new = sides[pool]
    if device in old.published and device not in new.published:
        yield Trouble(kind="gone", device=name, text="no slice of the pool has it any more")
        return
    if device in old.devices and device not in new.devices:
        yield Trouble(kind="pool", device=name, text=f"its pool is {new.state}: {new.problem}")
        return
    if device not in old.devices or device not in new.devices:
        return
    for kind, left, right in (
        ("class", before.classes.get(class_name), after.classes.get(class_name)),
        ("request", world.selectors_of(ask), world.selectors_of(ask)),
    ):
        text = _mismatch(old.devices[device], new.devices[device], left, right)
        if text:
            what = f"class {class_name}" if kind == "class" else "the request"
            yield Trouble(kind=kind, device=name, text=f"{what} {text}")


def _mismatch(
    old: Device, new: Device, before: ClassFilter | None, after: ClassFilter | None
) -> str:
    """The reason why a device that matched no longer matches; empty if it does, or never did."""
    if before is None or not devices.matches(before, old)[0]:
        return ""
    if after is None:
        return "is gone"
    fits, error = devices.matches(after, new)
    if fits:
        return ""
    return f"fails on it: {error}" if error else "does not match it any more"


def _request(claim: JsonView, name: str) -> JsonObject:
    """The request with the name of an allocation result: `request` or `request/option`."""
    first, _, second = name.partition("/")
    for request in dra.request_trees(claim):
        if entries.name(request) != first:
            continue
        for option in dra.alternatives(request):
            if entries.name(option) == second:
                return option
        exactly = request.get("exactly")
        if isinstance(exactly, dict):
            return exactly
    return {}
