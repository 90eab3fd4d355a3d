"""The objects that rules read: each with its place, slices as pools, requests with their path."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import msgspec

from app.analysis.lint.findings import FindingPlace
from app.domain.devices import nodes
from app.domain.devices.cel_selectors import CelCompiler
from app.domain.devices.inventory import Inventory
from app.domain.devices.model import Device, Slice
from app.domain.devices.nodes import Node
from app.domain.errors import InputError
from app.domain.values.fields import dra, meta, paths, records
from app.domain.values.fields.records import FieldRecord
from app.domain.values.identifiers import PoolId
from app.domain.values.json_tree import JsonObject

TOLD = frozenset(
    {
        "DeviceClass",
        "DeviceTaintRule",
        "Node",
        "ResourceClaim",
        "ResourceClaimTemplate",
        "ResourceSlice",
        "ResourceSlicePatch",
    }
)
"""The kinds that rules read; others are ignored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LintedObject:
    """An object in its storage version, and its source.

    `source` is a file or the name of a history; `line` and `revision` are 0 where there are none.
    """

    kind: str
    tree: JsonObject
    source: str = ""
    line: int = 0
    revision: int = 0

    @property
    def text(self) -> str:
        """`Kind/name`, with the namespace if there is one."""
        return f"{self.kind}/{'/'.join(filter(None, meta.place(self.tree)))}"

    def at(self, path: str = "") -> FindingPlace:
        """The place of a field of the object."""
        return FindingPlace(
            object=self.text,
            field=path,
            source=self.source,
            line=self.line,
            revision=self.revision,
        )


_generation = paths.get("spec", "pool", "generation")
"""The generation of a slice's pool as written."""


class Cel(FieldRecord, frozen=True):
    """The `cel` of a selector."""

    expression: str = ""


class SelectorForm(FieldRecord, frozen=True):
    """A device selector as written."""

    cel: Cel = Cel()


class CapacityForm(FieldRecord, frozen=True):
    """The `capacity` of a request."""

    requests: dict[str, Any] = msgspec.field(default_factory=dict)


class AskForm(FieldRecord, frozen=True):
    """The contents of a request, or of one of its alternatives."""

    name: str = ""
    device_class_name: str = ""
    allocation_mode: str = ""
    count: int | None = None
    admin_access: bool = False
    selectors: tuple[SelectorForm, ...] = ()
    tolerations: tuple[JsonObject, ...] = ()
    capacity: CapacityForm = CapacityForm()


class RequestForm(FieldRecord, frozen=True):
    """A request of a claim."""

    name: str = ""
    exactly: AskForm | None = None
    first_available: tuple[AskForm, ...] = ()


class ConstraintForm(FieldRecord, frozen=True):
    """A constraint of a claim."""

    requests: tuple[str, ...] = ()
    match_attribute: str = ""
    distinct_attribute: str = ""


class Opaque(FieldRecord, frozen=True):
    """The `opaque` of a configuration."""

    driver: str = ""


class ConfigForm(FieldRecord, frozen=True):
    """A configuration of a class or a claim."""

    opaque: Opaque = Opaque()


class DevicesForm(FieldRecord, frozen=True):
    """The `spec.devices` of a claim."""

    requests: tuple[RequestForm, ...] = ()
    constraints: tuple[ConstraintForm, ...] = ()
    config: tuple[ConfigForm, ...] = ()


_devices_of_claim = records.of_value(DevicesForm, paths.get("spec", "devices"))
_devices_of_template = records.of_value(DevicesForm, paths.get("spec", "spec", "devices"))
configs_of_class = records.of_list(ConfigForm, paths.get("spec", "config"))
_selectors_of_class = records.of_list(SelectorForm, paths.get("spec", "selectors"))


class LintedRequest(NamedTuple):
    """One exact request or one alternative: its owner, path and names."""

    owner: LintedObject
    path: str
    main: str
    name: str
    form: AskForm

    @property
    def is_alternative(self) -> bool:
        """Whether it is one of several alternatives."""
        return self.name != self.main

    @property
    def wants_all(self) -> bool:
        """Whether all matching devices are requested."""
        return self.form.allocation_mode == "All"

    @property
    def wanted(self) -> int:
        """The number of requested devices; 0 for all."""
        return 0 if self.wants_all else (1 if self.form.count is None else self.form.count)


@dataclass(frozen=True, slots=True, kw_only=True)
class LintedClaim:
    """A claim or a claim template."""

    subject: LintedObject
    path: str
    form: DevicesForm

    def asks(self) -> Iterator[LintedRequest]:
        """Every request, and each alternative separately."""
        for index, request in enumerate(self.form.requests):
            path = f"{self.path}.requests[{index}]"
            if request.exactly is not None:
                yield LintedRequest(
                    self.subject, f"{path}.exactly", request.name, request.name, request.exactly
                )
            for number, form in enumerate(request.first_available):
                name = f"{request.name}/{form.name}"
                place = f"{path}.firstAvailable[{number}]"
                yield LintedRequest(self.subject, place, request.name, name, form)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PublishedSlice:
    """A slice: as an object, and as the allocator sees it with rules and patches merged in."""

    subject: LintedObject
    slice: Slice

    def devices(self) -> Iterator[tuple[Device, str]]:
        """Each device with its path."""
        for index, device in enumerate(self.slice.devices):
            yield device, f"spec.devices[{index}]"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PublishedPool:
    """The slices of a pool: those of its newest generation, and existing older ones."""

    id: PoolId
    slices: tuple[PublishedSlice, ...]
    older: tuple[PublishedSlice, ...]

    @property
    def text(self) -> str:
        """`driver/pool`."""
        return "/".join(self.id)

    @property
    def is_whole(self) -> bool:
        """Whether the number of slices equals the number that each of them announces."""
        return all(each.slice.slice_count == len(self.slices) for each in self.slices)

    def devices(self) -> Iterator[tuple[PublishedSlice, Device, str]]:
        """Each device of the newest generation with its slice and path."""
        for published in self.slices:
            for device, path in published.devices():
                yield published, device, path


@dataclass(frozen=True, kw_only=True, eq=False)
class Subjects:
    """All objects of the sources, in their order; of equal names the last one counts.

    Slices with an unreadable quantity, and those without a driver or pool, are left out:
    `object-invalid` names them. `refused_slices` are those that the API refuses.
    """

    objects: tuple[LintedObject, ...]
    refused_slices: tuple[LintedObject, ...] = ()
    _by_key: dict[tuple[str, str, str], LintedObject] = field(default_factory=dict)

    @classmethod
    def of(
        cls, objects: Iterable[LintedObject], refused_slices: Iterable[LintedObject] = ()
    ) -> "Subjects":
        """The subjects of these objects."""
        made = cls(objects=tuple(objects), refused_slices=tuple(refused_slices))
        for each in made.objects:
            made._by_key[(each.kind, *meta.place(each.tree))] = each
        return made

    def of_kind(self, kind: str) -> Sequence[LintedObject]:
        """The objects of a kind, the last one of each name."""
        return self._kinds.get(kind, ())

    @cached_property
    def _kinds(self) -> Mapping[str, list[LintedObject]]:
        kinds: dict[str, list[LintedObject]] = {}
        for each in self._by_key.values():
            kinds.setdefault(each.kind, []).append(each)
        return kinds

    @cached_property
    def compiler(self) -> CelCompiler:
        """Compiles selectors, and caches them and their verdicts."""
        return CelCompiler(detailed_errors=True)

    @cached_property
    def inventory(self) -> Inventory:
        """The devices with rules and patches merged in."""
        made = Inventory(compiler=self.compiler)
        for subject in self.of_kind("DeviceClass"):
            made.put_class(subject.tree)
        for subject in self.of_kind("ResourceSlicePatch"):
            _put(made.put_patch, subject)
        for subject in self.of_kind("DeviceTaintRule"):
            _put(made.put_rule, subject)
        for subject in self.of_kind("ResourceSlice"):
            if not lacks_pool(subject.tree):
                _put(made.put_slice, subject)
        return made

    @cached_property
    def slices(self) -> tuple[PublishedSlice, ...]:
        """All readable slices."""
        known = {each.name: each for each in self.inventory.slices()}
        return tuple(
            PublishedSlice(subject=subject, slice=known[name])
            for subject in self.of_kind("ResourceSlice")
            if (name := meta.name(subject.tree)) in known
        )

    @cached_property
    def pools(self) -> tuple[PublishedPool, ...]:
        """The pools in the order of their first slice."""
        grouped: dict[PoolId, list[PublishedSlice]] = {}
        for published in self.slices:
            grouped.setdefault(published.slice.pool, []).append(published)
        return tuple(_pool(pool, listed) for pool, listed in grouped.items())

    def refused_in(self, pool: PublishedPool) -> int:
        """The number of refused slices that the newest generation of a pool would have."""
        generation = pool.slices[0].slice.generation
        places = (
            (dra.driver(each.tree), dra.pool_name(each.tree), _generation(each.tree))
            for each in self.refused_slices
        )
        return sum(place == (*pool.id, generation) for place in places)

    @cached_property
    def devices(self) -> tuple[Device, ...]:
        """All devices of the newest generations."""
        return tuple(device for pool in self.pools for _, device, _ in pool.devices())

    @cached_property
    def claims(self) -> tuple[LintedClaim, ...]:
        """Claims and claim templates."""
        claims = [
            LintedClaim(subject=subject, path="spec.devices", form=_devices_of_claim(subject.tree))
            for subject in self.of_kind("ResourceClaim")
        ]
        templates = [
            LintedClaim(
                subject=subject, path="spec.spec.devices", form=_devices_of_template(subject.tree)
            )
            for subject in self.of_kind("ResourceClaimTemplate")
        ]
        return (*claims, *templates)

    @cached_property
    def asks(self) -> tuple[LintedRequest, ...]:
        """All requests of claims and templates."""
        return tuple(ask for claim in self.claims for ask in claim.asks())

    @cached_property
    def classes(self) -> Mapping[str, LintedObject]:
        """The device classes by name."""
        return {meta.name(each.tree): each for each in self.of_kind("DeviceClass")}

    @cached_property
    def nodes(self) -> tuple[Node, ...]:
        """The nodes; empty if the sources have no Node."""
        return tuple(nodes.node_of(each.tree) for each in self.of_kind("Node"))


def _put(put: Any, subject: LintedObject) -> None:
    try:
        put(subject.tree)
    except InputError:
        return  # `object-invalid` says why it cannot be read


def _pool(id: PoolId, listed: Sequence[PublishedSlice]) -> PublishedPool:
    generation = max(each.slice.generation for each in listed)
    return PublishedPool(
        id=id,
        slices=tuple(each for each in listed if each.slice.generation == generation),
        older=tuple(each for each in listed if each.slice.generation != generation),
    )


def lacks_pool(tree: JsonObject) -> list[str]:
    """The missing ones of the two fields that place a slice in a pool."""
    fields = {"spec.driver": dra.driver(tree), "spec.pool.name": dra.pool_name(tree)}
    return [field for field, value in fields.items() if not value]


def class_selectors(subject: LintedObject) -> tuple[str, ...]:
    """The expressions of a class."""
    return expressions(_selectors_of_class(subject.tree))


def expressions(forms: Iterable[SelectorForm]) -> tuple[str, ...]:
    """The expressions of selectors."""
    return tuple(form.cel.expression for form in forms)
