"""Rules about devices: their attributes and capacities, and the identity of their hardware."""

from collections.abc import Iterator
from typing import NamedTuple

from app.analysis.lint.findings import FindingPlace, LintFinding, LintRule, LintSeverity
from app.analysis.lint.subjects import PublishedPool, PublishedSlice, Subjects
from app.domain.devices.model import Device
from app.domain.values.json_tree import JsonView

TYPE_DIFFERS = LintRule(
    id="attribute-type-differs",
    severity=LintSeverity.WARNING,
    reads="ResourceSlice",
    means="An attribute has different types in devices of one driver: a selector that fits one "
    "type fails on the others, which ends the attempt to place the pod, and values of different "
    "types never satisfy matchAttribute.",
    cure="Publish the attribute with one type; give another meaning another name.",
    reference="docs/parity/allocator.md 5.1, 6.1",
)
SHADOWED = LintRule(
    id="attribute-shadowed",
    severity=LintSeverity.WARNING,
    reads="ResourceSlice",
    means="A device has an attribute or capacity both by its bare name and with the driver as "
    "domain, which mean the same: constraints read one, selectors may read the other (Q19).",
    cure="Publish it by one of the two names.",
    reference="docs/parity/allocator.md 16 (Q19)",
)
STANDARD_NAME = LintRule(
    id="attribute-not-standard",
    severity=LintSeverity.NOTE,
    reads="ResourceSlice",
    means="The attribute has the meaning of a standard one and another name, so matchAttribute "
    "cannot align devices of this driver with those of others.",
    cure="Publish the attribute under the domain resource.kubernetes.io as well.",
    reference="KEP-4381, standard device attributes; KEP-6072",
)
ONE_TWICE = LintRule(
    id="device-published-twice",
    severity=LintSeverity.WARNING,
    reads="ResourceSlice",
    means="Two devices are the same hardware or part of it by their uuid, and share no counter "
    "set: both can be allocated at the same time.",
    cure="Let both consume the counters of the hardware, or correct the uuid.",
    reference="KEP-4815; docs/parity/allocator.md 7",
)
NEGATIVE = LintRule(
    id="capacity-negative",
    severity=LintSeverity.ERROR,
    reads="ResourceSlice",
    means="A capacity is negative: nothing can be consumed of it, and the API does not refuse it.",
    cure="Publish zero, or leave the capacity out.",
    reference="docs/parity/objects.md 7.4",
)
SHARED_COUNTERS = LintRule(
    id="shared-device-without-capacity",
    severity=LintSeverity.WARNING,
    reads="ResourceSlice",
    means="A device that allows multiple allocations consumes counters and has no capacity: each "
    "further share books the counters again and is refused when they run out (q17).",
    cure="Give the device a capacity that its shares consume.",
    reference="docs/parity/allocator.md 16 (Q17)",
)
RULES = (TYPE_DIFFERS, SHADOWED, STANDARD_NAME, ONE_TWICE, NEGATIVE, SHARED_COUNTERS)

STANDARD_DOMAIN = "resource.kubernetes.io"
STANDARD_NAMES = {
    "pcieroot": "pcieRoot",
    "pciroot": "pcieRoot",
    "pcibusid": "pciBusID",
    "pciaddress": "pciBusID",
    "numanode": "numaNode",
    "numa": "numaNode",
    "numanodeid": "numaNode",
}
"""Identifiers in lower case that mean a standard attribute, and its name."""

IDENTITY = "uuid"
PARENT = "parentuuid"


class _Attribute(NamedTuple):
    kind: str
    place: FindingPlace


def check(subjects: Subjects) -> Iterator[LintFinding]:
    """All rules on all devices of the newest generations."""
    types: dict[tuple[str, str], _Attribute] = {}
    reported: set[tuple[str, str]] = set()
    for pool in subjects.pools:
        for published, device, path in pool.devices():
            yield from _types(published, device, path, types, reported)
            yield from _names(published, device, path, reported)
            yield from _amounts(published, device, path)
        yield from _identities(pool)


def qualified(driver: str, name: str) -> str:
    """The name with its domain; a name without one belongs to the driver."""
    return name if "/" in name else f"{driver}/{name}"


def type_of(attribute: object) -> str:
    """The type of an attribute's value; empty when there is none."""
    return next(iter(attribute), "") if isinstance(attribute, dict) else ""


def published_attributes(device: Device) -> JsonView:
    """The attributes as published by the driver, without patches."""
    attributes = device.tree.get("attributes")
    return attributes if isinstance(attributes, dict) else {}


def _types(
    published: PublishedSlice,
    device: Device,
    path: str,
    types: dict[tuple[str, str], _Attribute],
    reported: set[tuple[str, str]],
) -> Iterator[LintFinding]:
    driver = device.id[0]
    for name, value in published_attributes(device).items():
        key = driver, qualified(driver, name)
        kind = type_of(value)
        first = types.get(key)
        if first is None:
            types[key] = _Attribute(kind, _attribute(published, path, name))
        elif first.kind != kind and key not in reported:
            reported.add(key)
            yield TYPE_DIFFERS.at(
                _attribute(published, path, name),
                f"{name} is of type {kind} here and of type {first.kind} elsewhere",
                [first.place],
            )


def _names(
    published: PublishedSlice, device: Device, path: str, reported: set[tuple[str, str]]
) -> Iterator[LintFinding]:
    driver, attributes = device.id[0], published_attributes(device)
    for part, names in (("attributes", attributes), ("capacity", device.capacity)):
        for name in names:
            if "/" not in name and f"{driver}/{name}" in names:
                place = published.subject.at(f"{path}.{part}[{name}]")
                yield SHADOWED.at(place, f"{name} and {driver}/{name} are one name")
    for name in attributes:
        domain, _, identifier = name.rpartition("/")
        standard = STANDARD_NAMES.get(identifier.lower())
        if standard is None or domain == STANDARD_DOMAIN:
            continue
        full = f"{STANDARD_DOMAIN}/{standard}"
        key = driver, f"standard {name}"
        if full not in attributes and key not in reported:
            reported.add(key)
            yield STANDARD_NAME.at(_attribute(published, path, name), f"{full} is missing")


def _amounts(published: PublishedSlice, device: Device, path: str) -> Iterator[LintFinding]:
    for name, capacity in device.capacity.items():
        if capacity.value.nanos < 0:
            place = published.subject.at(f"{path}.capacity[{name}].value")
            yield NEGATIVE.at(place, f"{name} of {device.id[2]} is {capacity.value}")
    if device.allow_multiple and device.consumes and not device.capacity:
        yield SHARED_COUNTERS.at(published.subject.at(path), f"{device.id[2]} has no capacity")


def _identities(pool: PublishedPool) -> Iterator[LintFinding]:
    owners: dict[str, list[tuple[Device, FindingPlace]]] = {}
    later: list[tuple[str, Device, FindingPlace, int | None]] = []
    for published, device, path in pool.devices():
        for name, value in published_attributes(device).items():
            identifier = name.rpartition("/")[2].lower()
            text = value.get("string") if isinstance(value, dict) else None
            if identifier not in (IDENTITY, PARENT) or not isinstance(text, str) or not text:
                continue
            place = _attribute(published, path, name)
            known = owners.setdefault(text, [])
            # A part may come before its whole; of devices of one uuid, the later one is named.
            later.append((text, device, place, len(known) if identifier == IDENTITY else None))
            if identifier == IDENTITY:
                known.append((device, place))
    for text, device, place, count in later:
        others = [
            (other, other_place)
            for other, other_place in owners[text][:count]
            if other is not device and not _share_counters(device, other)
        ]
        if others:
            other, other_place = others[0]
            message = f"{device.id[2]} is part of the same hardware as {other.id[2]}: {text}"
            yield ONE_TWICE.at(place, message, [other_place])


def _share_counters(first: Device, second: Device) -> bool:
    return bool({name for name, _ in first.consumes} & {name for name, _ in second.consumes})


def _attribute(published: PublishedSlice, path: str, name: str) -> FindingPlace:
    return published.subject.at(f"{path}.attributes[{name}]")
