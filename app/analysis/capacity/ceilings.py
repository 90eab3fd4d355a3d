"""An upper bound for the copies of a pod that any choice of devices could serve.

It ignores where devices are and which belong together. The part beyond the scheduler's number is
lost to places, constraints, other resources, or earlier choices.
"""

from collections.abc import Iterable, Iterator

from app.analysis.blast import devices, reach
from app.analysis.blast.world import World
from app.domain.allocation import AllocatedState
from app.domain.devices import taints
from app.domain.devices.inventory import Inventory
from app.domain.devices.model import Device
from app.domain.devices.pools import OldPool
from app.domain.log import ObjectKey
from app.domain.values import api_resources
from app.domain.values.fields import core, dra, meta
from app.domain.values.fields.dra import DeviceRequest
from app.domain.values.json_tree import JsonObject, JsonView

EXACT = "ExactCount"


def of(world: World, pod: JsonView) -> int | None:
    """The number of copies that matching free devices would serve, each request considered alone.

    None where no number of devices is a bound: shared devices, alternatives, admin access, mode
    All, claims that copies share, or no claim at all.
    """
    entries = core.resource_claims(pod)
    least: int | None = None
    olds = world.old_pools()
    free = tuple(claimable(world.inventory, world.allocated, olds))
    for entry in entries:
        name = str(entry.get("resourceClaimTemplateName", ""))
        key = ObjectKey(*api_resources.RESOURCE_CLAIM_TEMPLATES, meta.namespace(pod), name)
        template = world.objects.get(key) if name else None
        claim = {} if template is None else meta.spec(template)
        for request, tree in zip(dra.requests(claim), dra.request_trees(claim), strict=True):
            most = _of_request(world, free, request, tree)
            if most is not None:
                least = most if least is None else min(least, most)
    return least


def claimable(
    inventory: Inventory, allocated: AllocatedState, olds: Iterable[OldPool] = ()
) -> Iterator[Device]:
    """Devices of usable pools that no claim holds, or that are shared, and whose counters suffice
    for each alone.
    """
    short = reach.short_of_counters(inventory, allocated)
    for device in devices.usable(inventory, olds):
        is_open = device.allow_multiple or not allocated.is_allocated(device.id)
        if is_open and device.id not in short:
            yield device


def _of_request(
    world: World, free: tuple[Device, ...], request: DeviceRequest, tree: JsonObject
) -> int | None:
    ask = request.exactly
    if ask is None or ask.admin_access or ask.allocation_mode not in ("", EXACT):
        return None
    of_class = world.class_filter(ask.device_class_name)
    if of_class is None:
        return 0
    own = world.selectors_of(tree["exactly"])
    accepted = tuple(map(taints.toleration_of, ask.tolerations))
    count = 0
    for device in free:
        if taints.untolerated(device.taints, accepted) is not None:
            continue
        if devices.matches(of_class, device)[0] and devices.matches(own, device)[0]:
            if device.allow_multiple:
                return None
            count += 1
    return count // max(1, ask.count or 1)
