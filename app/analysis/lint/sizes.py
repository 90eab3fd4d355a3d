"""Rules about sizes: near a limit of the API, or refused by older releases."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from app.analysis.lint.devices import published_attributes
from app.analysis.lint.findings import LintFinding, LintRule, LintSeverity
from app.analysis.lint.subjects import LintedObject, PublishedSlice, Subjects
from app.domain.devices.model import Device
from app.domain.objects.validation.devices import slices as limits
from app.domain.values.fields import meta

NEAR_COUNT = LintRule(
    id="count-near-limit",
    severity=LintSeverity.NOTE,
    reads="ResourceSlice, ResourceClaim, ResourceClaimTemplate",
    means="A list is within a tenth of the number of entries that the API accepts: a few more, and "
    "the object is refused.",
    cure="Split the object before it grows, such as devices over several slices of the pool.",
    reference="docs/parity/objects.md 10",
)
NEAR_TEXT = LintRule(
    id="text-near-limit",
    severity=LintSeverity.NOTE,
    reads="ResourceSlice",
    means="A name or value is within a tenth of the length that the API accepts: where it is made "
    "of names of nodes or models, a longer one is refused.",
    cure="Shorten it, or make it of parts whose length is bounded.",
    reference="docs/parity/objects.md 2.1, 7.3",
)
OLDER_RELEASE = LintRule(
    id="refused-by-older-release",
    severity=LintSeverity.NOTE,
    reads="ResourceSlice",
    means="The first releases with taints accept fewer of them on a device and refuse the slice.",
    cure="Publish less where clusters of those releases must take it.",
    reference="docs/parity/objects.md 7.2",
)
RULES = (NEAR_COUNT, NEAR_TEXT, OLDER_RELEASE)

NEAR = 9, 10
"""A size is near its limit when it is at least this fraction of it."""

SMALL_LIMIT = 8
"""Lists with a limit up to this number are often full and never count as near."""

STRING_MAX = 64
IDENTIFIER_MAX = 32
LABEL_MAX = 63
POOL_NAME_MAX = 253
OLD_TAINTS_MAX = 4
"""The number of taints per device that the first releases with taints accept."""

REQUESTS_MAX = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class _Size:
    path: str
    size: int
    limit: int
    what: str


def check(subjects: Subjects) -> Iterator[LintFinding]:
    """All rules on all slices and claims."""
    for pool in subjects.pools:
        for published in pool.slices:
            yield from _near(published.subject, NEAR_COUNT, _counts(published))
            yield from _near(published.subject, NEAR_TEXT, _texts(published))
            yield from _older(published)
    for claim in subjects.claims:
        sizes = [
            _Size(path=f"{claim.path}.{part}", size=len(items), limit=REQUESTS_MAX, what=part)
            for part, items in (
                ("requests", claim.form.requests),
                ("constraints", claim.form.constraints),
            )
        ]
        yield from _near(claim.subject, NEAR_COUNT, iter(sizes))


def _near(subject: LintedObject, rule: LintRule, sizes: Iterator[_Size]) -> Iterator[LintFinding]:
    part, whole = NEAR
    reported: set[str] = set()
    for each in sizes:
        is_near = each.size * whole >= each.limit * part and each.size <= each.limit
        if not is_near or each.limit <= SMALL_LIMIT or each.what in reported:
            continue
        reported.add(each.what)  # one finding for all devices of a slice
        message = f"{each.what}: {each.size} of at most {each.limit}"
        yield rule.at(subject.at(each.path), message)


def _counts(published: PublishedSlice) -> Iterator[_Size]:
    traits, devices = published.slice.traits, published.slice.devices
    featured = traits.taints or traits.consuming
    yield _Size(
        path="spec.devices",
        size=len(devices),
        limit=limits.LIMITS.devices_with_features if featured else limits.DEVICES_MAX,
        what="devices with taints or counters" if featured else "devices",
    )
    for index, (_, counters) in enumerate(published.slice.counter_sets):
        path = f"spec.sharedCounters[{index}].counters"
        yield _Size(
            path=path, size=len(counters), limit=limits.LIMITS.counters, what="counters of a set"
        )
    for device, path in published.devices():
        yield _Size(
            path=path,
            size=len(published_attributes(device)) + len(device.capacity),
            limit=limits.TOGETHER_MAX,
            what="attributes and capacities of a device",
        )
        own = [taint for taint in device.taints if not taint.rule]
        taints = f"{path}.taints"
        yield _Size(
            path=taints, size=len(own), limit=limits.LIMITS.taints, what="taints of a device"
        )


def _texts(published: PublishedSlice) -> Iterator[_Size]:
    driver, pool = published.slice.pool
    yield _size("spec.driver", driver, LABEL_MAX, "driver name")
    yield _size("spec.pool.name", pool, POOL_NAME_MAX, "pool name")
    yield _size("metadata.name", meta.name(published.subject.tree), POOL_NAME_MAX, "slice name")
    for index, (name, _) in enumerate(published.slice.counter_sets):
        yield _size(f"spec.sharedCounters[{index}].name", name, LABEL_MAX, "name of a counter set")
    for device, path in published.devices():
        yield _size(f"{path}.name", device.id[2], LABEL_MAX, "device name")
        yield from _values(device, path)


def _values(device: Device, path: str) -> Iterator[_Size]:
    attributes = published_attributes(device)
    names: Mapping[str, object]
    for part, names in (("attributes", attributes), ("capacity", device.capacity)):
        for name in names:
            place = f"{path}.{part}[{name}]"
            domain, _, identifier = name.rpartition("/")
            yield _size(place, identifier, IDENTIFIER_MAX, "name of an attribute or capacity")
            yield _size(place, domain, LABEL_MAX, "domain of an attribute or capacity")
    for name, value in attributes.items():
        for kind in ("string", "version"):
            text = value.get(kind) if isinstance(value, dict) else None
            if isinstance(text, str):
                yield _size(
                    f"{path}.attributes[{name}].{kind}", text, STRING_MAX, "value of an attribute"
                )


def _size(path: str, text: str, limit: int, what: str) -> _Size:
    return _Size(path=path, size=len(text.encode()), limit=limit, what=what)


def _older(published: PublishedSlice) -> Iterator[LintFinding]:
    for device, path in published.devices():
        own = sum(1 for taint in device.taints if not taint.rule)
        if own > OLD_TAINTS_MAX:
            yield OLDER_RELEASE.at(
                published.subject.at(f"{path}.taints"),
                f"{device.id[2]} has {own} taints; older releases accept {OLD_TAINTS_MAX}",
            )
            return
