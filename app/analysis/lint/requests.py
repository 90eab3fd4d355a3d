"""Rules about claims that the devices of the sources can never satisfy."""

from collections.abc import Iterator, Sequence

from app.analysis.lint.devices import qualified
from app.analysis.lint.findings import LintFinding, LintRule, LintSeverity
from app.analysis.lint.selectors import ALTERNATIVE, Choices, of_ask
from app.analysis.lint.subjects import LintedClaim, LintedRequest, Subjects, configs_of_class
from app.domain.allocation import capacity
from app.domain.allocation.requests import DEVICES_MAX
from app.domain.devices.model import Capacity, Device
from app.domain.values import counts, quantity
from app.domain.values.quantity import QuantityError
from app.domain.values.texts import notation

TOO_MANY = LintRule(
    id="claim-asks-for-too-many",
    severity=LintSeverity.ERROR,
    reads="ResourceClaim, ResourceClaimTemplate",
    means=f"The requests ask for more than {DEVICES_MAX} devices together: the API stores the "
    "claim, and every attempt to allocate it ends with an error.",
    cure="Ask for fewer devices, or spread them over several claims.",
    reference="docs/parity/allocator.md 3",
)
EXCEEDS = LintRule(
    id="request-exceeds-devices",
    severity=LintSeverity.WARNING,
    reads="ResourceClaim, ResourceClaimTemplate, ResourceSlice",
    means="A request asks for more devices than match its selectors in all pools.",
    cure="Ask for fewer devices, or publish more.",
    reference="docs/parity/allocator.md 4",
)
CAPACITY = LintRule(
    id="capacity-never-enough",
    severity=LintSeverity.WARNING,
    reads="ResourceClaim, ResourceClaimTemplate, ResourceSlice",
    means="A request asks for a capacity that no matching device has, for more of it than any has, "
    "or for an amount that no request policy allows: the claim is never allocated.",
    cure="Correct the name (with the domain that the slices publish) or the amount.",
    reference="docs/parity/allocator.md 8.2",
)
CONSTRAINT = LintRule(
    id="constraint-never-holds",
    severity=LintSeverity.WARNING,
    reads="ResourceClaim, ResourceClaimTemplate, ResourceSlice",
    means="No device that matches a request has the attribute of a constraint: a device without it "
    "never satisfies the constraint, so the claim is never allocated.",
    cure="Name an attribute that the slices of all drivers concerned publish, with its domain.",
    reference="docs/parity/allocator.md 6",
)
CONFIG = LintRule(
    id="config-for-no-driver",
    severity=LintSeverity.WARNING,
    reads="ResourceClaim, ResourceClaimTemplate, DeviceClass, ResourceSlice",
    means="A configuration is for a driver of which the sources have no slice: it is copied into "
    "allocations, and the driver of the devices does not read it.",
    cure="Write the driver as the slices name it.",
    reference="docs/parity/allocator.md 10.2",
)
RULES = (TOO_MANY, EXCEEDS, CAPACITY, CONSTRAINT, CONFIG)


def check(subjects: Subjects, choices: Choices) -> Iterator[LintFinding]:
    """All rules on all claims and templates."""
    for claim in subjects.claims:
        yield from _sum(claim)
        for ask in claim.asks():
            choice = choices.of_ask(ask)
            if choice is not None and choice.devices:
                yield from _count(ask, choice.devices)
                yield from _capacity(ask, choice.devices)
        yield from _constraints(claim, choices)
    yield from _configs(subjects)


def _configs(subjects: Subjects) -> Iterator[LintFinding]:
    drivers = {published.slice.pool[0] for published in subjects.slices}
    owners = [
        (claim.subject, f"{claim.path}.config", claim.form.config) for claim in subjects.claims
    ]
    owners += [
        (each, "spec.config", tuple(configs_of_class(each.tree)))
        for each in subjects.classes.values()
    ]
    for owner, path, configs in owners if drivers else ():
        for index, config in enumerate(configs):
            name = config.opaque.driver
            if name and name not in drivers:
                place = owner.at(f"{path}[{index}].opaque.driver")
                yield CONFIG.at(place, f"no slice is of driver {name}")


def _sum(claim: LintedClaim) -> Iterator[LintFinding]:
    smallest: dict[str, int] = {}
    for ask in claim.asks():
        if ask.is_alternative and ask.wanted > DEVICES_MAX:
            text = f"it asks for {ask.wanted} devices, a claim gets {DEVICES_MAX} at most"
            yield of_ask(ask, TOO_MANY).at(ask.owner.at(f"{ask.path}.count"), text)
        smallest[ask.main] = min(ask.wanted, smallest.get(ask.main, ask.wanted))
    total = sum(smallest.values())
    if total > DEVICES_MAX:
        place = claim.subject.at(f"{claim.path}.requests")
        yield TOO_MANY.at(place, f"the requests ask for {total} devices, {DEVICES_MAX} is the most")


def _count(ask: LintedRequest, devices: Sequence[Device]) -> Iterator[LintFinding]:
    # A device that several claims share is taken once by a request, too.
    if ask.wanted <= len(devices):
        return
    place = ask.owner.at(f"{ask.path}.count")
    wanted = counts.of(ask.wanted, "device")
    yield of_ask(ask, EXCEEDS).at(place, f"the request asks for {wanted}, and {len(devices)} match")


def _capacity(ask: LintedRequest, devices: Sequence[Device]) -> Iterator[LintFinding]:
    for name, value in ask.form.capacity.requests.items():
        try:
            wanted = quantity.from_json(value).nanos
        except QuantityError:
            continue  # `object-invalid` says so
        there = [device.capacity[name] for device in devices if name in device.capacity]
        place = ask.owner.at(f"{ask.path}.capacity.requests[{name}]")
        if not there:
            yield of_ask(ask, CAPACITY).at(
                place, f"none of the {len(devices)} matching devices has {name}"
            )
        elif all(own.value.nanos < wanted for own in there):
            most = max((own.value for own in there), key=lambda amount: amount.nanos)
            asks, largest = notation.alike((wanted, most.nanos), most.format)
            yield of_ask(ask, CAPACITY).at(
                place, f"the request asks for {asks} of {name}, {largest} is the most"
            )
        elif not any(_gives(value, own) for own in there):
            yield of_ask(ask, CAPACITY).at(
                place, f"no request policy allows {value} of {name}, or a larger amount that fits"
            )


def _gives(value: object, own: Capacity) -> bool:
    """Whether a device gives the amount, rounded up as its request policy says."""
    requested = capacity.Requested(amount=quantity.from_json(value))
    amount = capacity.amount_of(requested, own).value
    return amount.nanos <= own.value.nanos and not capacity.violates(amount, own.policy)


def _constraints(claim: LintedClaim, choices: Choices) -> Iterator[LintFinding]:
    for index, constraint in enumerate(claim.form.constraints):
        name = constraint.match_attribute or constraint.distinct_attribute
        if not name:
            continue
        field = "matchAttribute" if constraint.match_attribute else "distinctAttribute"
        lacking: dict[str, list[tuple[LintedRequest, str]]] = {}
        for ask in claim.asks():
            named = constraint.requests
            if not named or ask.main in named or ask.name in named:
                lacking.setdefault(ask.main, []).append((ask, _lack(ask, name, choices)))
        place = claim.subject.at(f"{claim.path}.constraints[{index}].{field}")
        ends = [texts for texts in lacking.values() if all(text for _, text in texts)]
        if ends:
            yield CONSTRAINT.at(place, ends[0][0][1])
        # An alternative that cannot satisfy the constraint leaves the others of its list.
        for texts in lacking.values():
            if texts not in ends:
                for ask, text in texts:
                    if text:
                        yield ALTERNATIVE.at(ask.owner.at(ask.path), text, [place])


def _lack(ask: LintedRequest, name: str, choices: Choices) -> str:
    """The sentence that no matching device has an attribute; empty if one has, or none matches."""
    choice = choices.of_ask(ask)
    if choice is None or not choice.devices or any(_has(each, name) for each in choice.devices):
        return ""
    return f"none of {counts.of(len(choice.devices), 'device')} for request {ask.name} has {name}"


def _has(device: Device, name: str) -> bool:
    return any(qualified(device.id[0], attribute) == name for attribute in device.attributes)
