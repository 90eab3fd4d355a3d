"""Sums over the fates of pods, claims and devices."""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence

from app.analysis.blast.claims import PoolSides
from app.analysis.blast.radius import (
    LOST,
    ClaimFate,
    DeviceFate,
    Fate,
    NamespaceFate,
    OwnerFate,
    PodFate,
)
from app.domain.values import identifiers
from app.domain.values.identifiers import DeviceId


def totals(
    pods: Sequence[PodFate],
    devices: Sequence[DeviceFate],
    sides: PoolSides,
    reach: Collection[DeviceId] | None,
) -> dict[str, int]:
    """Counts of pods by fate and of devices by change.

    `reach` are the devices that new pods can reach afterwards; None when nodes are not known.
    """
    fates = Counter(pod.fate for pod in pods)
    changes = Counter(device.change for device in devices)
    return {
        **{f"pods_{fate.value}": fates[fate] for fate in Fate},
        "pods_evicted": sum(fates[fate] for fate in LOST),
        "devices_tainted": changes["tainted"],
        "devices_untainted": changes["untainted"],
        "devices_gone": changes["gone"],
        "devices_new": changes["new"],
        "devices_changed": changes["changed"],
        "devices_unallocatable": sum(
            device.allocatable_before and not device.allocatable_after for device in devices
        ),
        "devices_allocatable": sum(
            device.allocatable_after
            and not device.allocatable_before
            and (reach is None or identifiers.parse_device(device.device) in reach)
            for device in devices
        ),
        "pools_broken": sum(
            old.state == "usable" and new.state in ("incomplete", "invalid")
            for old, new in sides.values()
        ),
    }


def namespaces(lost: Iterable[PodFate], claims: Iterable[ClaimFate]) -> list[NamespaceFate]:
    """The numbers of pods and claims concerned in each namespace."""
    pods = Counter(pod.namespace for pod in lost)
    concerned = Counter(claim.namespace for claim in claims)
    return [
        NamespaceFate(namespace=name, pods=pods[name], claims=concerned[name])
        for name in sorted(pods.keys() | concerned.keys())
    ]


def owners(lost: Iterable[PodFate]) -> list[OwnerFate]:
    """The number of pods that each owner loses."""
    pods = Counter((pod.namespace, pod.owner) for pod in lost if pod.owner)
    return [
        OwnerFate(namespace=namespace, owner=owner, pods=count)
        for (namespace, owner), count in sorted(pods.items())
    ]
