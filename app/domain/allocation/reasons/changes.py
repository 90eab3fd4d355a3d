"""Changes of the inputs of an allocation: each creates a new world and keeps the old one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from app.domain.allocation import capacity
from app.domain.allocation.state import AllocatedState
from app.domain.devices.inventory import Inventory
from app.domain.values import json_tree, quantity
from app.domain.values.fields import core
from app.domain.values.identifiers import PoolId
from app.domain.values.json_tree import JsonObject, JsonView


class MadeClaim(Protocol):
    """The claim that the scheduler makes for the extended resources of a pod on one node.

    Nobody writes it, so it changes with what the pod's containers request.
    Parity: controllers.md 3.10.
    """

    @property
    def tree(self) -> JsonView:
        """The claim."""
        ...

    @property
    def amounts(self) -> Sequence[tuple[str, str, int]]:
        """Container, resource and amount of each request for what devices serve on the node."""
        ...

    @property
    def classes(self) -> Mapping[str, str]:
        """The class of each resource."""
        ...

    def with_amount(self, container: str, resource: str, amount: int) -> "MadeClaim":
        """The claim if the container requested that amount of the resource."""
        ...

    def with_class(self, resource: str, name: str) -> "MadeClaim":
        """The claim if that class served the resource."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class AllocationWorld:
    """The inputs of an attempt. A change creates a new world.

    `own` are the allocated claims of the pod by name, as they are to be allocated when they are
    released. Those that cannot be used on the node are `elsewhere`: without their release the pod
    does not fit. `made` is the claim for the pod's extended resources, one of `claims`.
    """

    claims: tuple[JsonView, ...]
    classes: Mapping[str, JsonView]
    state: AllocatedState
    inventory: Inventory
    own: Mapping[str, JsonView] = field(default_factory=dict)
    elsewhere: frozenset[str] = frozenset()
    made: MadeClaim | None = None

    def is_made(self, number: int) -> bool:
        """Whether the claim with this number is the one that nobody writes."""
        return self.made is not None and self.claims[number] is self.made.tree

    def with_made(self, made: MadeClaim) -> "AllocationWorld":
        """The world in which the scheduler makes another claim."""
        claims = tuple(
            made.tree if self.is_made(number) else claim for number, claim in enumerate(self.claims)
        )
        return replace(self, claims=claims, made=made)


class Change(Protocol):
    """One change of the world."""

    @property
    def text(self) -> str:
        """The change in the imperative."""
        ...

    def apply(self, world: AllocationWorld) -> AllocationWorld:
        """The changed world; the given one is not changed."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseClaim:
    """Release a claim that holds devices."""

    claim: str

    @property
    def text(self) -> str:
        """The change in the imperative."""
        return f"release claim {self.claim}"

    def apply(self, world: AllocationWorld) -> AllocationWorld:
        """The world without the devices that the claim holds; the pod's own is allocated anew."""
        state = world.state.copy()
        state.release(self.claim)
        own = world.own.get(self.claim)
        return replace(
            world,
            state=state,
            claims=world.claims if own is None else (*world.claims, own),
            own={name: tree for name, tree in world.own.items() if name != self.claim},
            elsewhere=world.elsewhere - {self.claim},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveRule:
    """Remove a DeviceTaintRule."""

    rule: str

    @property
    def text(self) -> str:
        """The change in the imperative."""
        return f"remove DeviceTaintRule {self.rule}"

    def apply(self, world: AllocationWorld) -> AllocationWorld:
        """The world without the rule's taints."""
        inventory = world.inventory.copy()
        inventory.remove_rule(self.rule)
        return replace(world, inventory=inventory)


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenClosedNode:
    """Open a node that is closed to the pod; `text` describes how. The devices do not change."""

    text: str

    def apply(self, world: AllocationWorld) -> AllocationWorld:
        """The same world; the caller proves the change by allocating on the open node."""
        return world


@dataclass(frozen=True, slots=True, kw_only=True)
class EditRequest:
    """Change one field of a request or alternative; `number` is that of the claim."""

    number: int
    claim: str
    result_name: str
    what: str
    field: str
    value: object

    @property
    def text(self) -> str:
        """The change in the imperative."""
        return f"{self.what} in request {self.result_name} of claim {self.claim}"

    def apply(self, world: AllocationWorld) -> AllocationWorld:
        """The world in which the claim's request has the new value."""

        def edit(claim: JsonObject) -> None:
            wish = _wish_of(claim, self.result_name)
            if self.field == "tolerations":
                wish["tolerations"] = [*core.tolerations_of(wish), self.value]
            elif self.field == "selectors":
                kept = json_tree.objects(wish, "selectors")
                wish["selectors"] = [one for one in kept if one != self.value]
            elif self.field == "capacity":
                assert isinstance(self.value, tuple)
                name, amount = self.value
                if amount is None:
                    del wish["capacity"]["requests"][name]
                else:
                    wish["capacity"]["requests"][name] = amount
            else:
                wish[self.field] = self.value

        return _with_claim(world, self.number, edit)


@dataclass(frozen=True, slots=True, kw_only=True)
class LowerAmount:
    """Have a container of the pod request less of an extended resource that devices serve."""

    container: str
    resource: str
    before: int
    amount: int

    @property
    def text(self) -> str:
        """The change in the imperative."""
        return (
            f"request {self.amount} instead of {self.before} {self.resource} "
            f"in container {self.container}"
        )

    def apply(self, world: AllocationWorld) -> AllocationWorld:
        """The world with the claim that the scheduler makes then; the same without such a claim."""
        if world.made is None:
            return world
        made = world.made.with_amount(self.container, self.resource, self.amount)
        return world.with_made(made)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeByClass:
    """Have an older class serve an extended resource, whose name the newest class has, too."""

    resource: str
    newest: str
    older: str

    @property
    def text(self) -> str:
        """The change in the imperative."""
        text = f"take extendedResourceName {self.resource} from DeviceClass {self.newest}"
        return f"{text}, so that DeviceClass {self.older} serves it"

    def apply(self, world: AllocationWorld) -> AllocationWorld:
        """The world with the claim that the scheduler makes then; the same without such a claim."""
        if world.made is None:
            return world
        return world.with_made(world.made.with_class(self.resource, self.older))


@dataclass(frozen=True, slots=True, kw_only=True)
class DropConstraint:
    """Drop a constraint of a claim."""

    number: int
    claim: str
    index: int
    attribute: str

    @property
    def text(self) -> str:
        """The change in the imperative."""
        return f"drop constraint #{self.index} ({self.attribute}) of claim {self.claim}"

    def apply(self, world: AllocationWorld) -> AllocationWorld:
        """The world in which the claim has no such constraint."""

        def edit(claim: JsonObject) -> None:
            # The entry is replaced by a constraint that applies to no request, so that the numbers
            # of later constraints stay valid. An empty list of requests would mean all requests.
            listed = claim["spec"]["devices"]["constraints"]
            listed[self.index] = {**listed[self.index], "requests": [""]}

        return _with_claim(world, self.number, edit)


@dataclass(frozen=True, slots=True, kw_only=True)
class PreferAlternative:
    """Move an alternative of a prioritized list to the front."""

    number: int
    claim: str
    main: str
    name: str

    @property
    def text(self) -> str:
        """The change in the imperative."""
        return f"put alternative {self.main}/{self.name} of claim {self.claim} first"

    def apply(self, world: AllocationWorld) -> AllocationWorld:
        """The world in which the alternative is tried first."""

        def edit(claim: JsonObject) -> None:
            for request in claim["spec"]["devices"]["requests"]:
                if request["name"] == self.main:
                    request["firstAvailable"].sort(key=lambda one: one["name"] != self.name)

        return _with_claim(world, self.number, edit)


@dataclass(frozen=True, slots=True, kw_only=True)
class EnlargeCounter:
    """Add to a shared counter of a pool; `by` is in nanos."""

    pool: PoolId
    counter_set: str
    counter: str
    by: int

    @property
    def text(self) -> str:
        """The change in the imperative."""
        return (
            f"add {capacity.shown(self.by)} to counter {self.counter} of set {self.counter_set} "
            f"in pool {'/'.join(self.pool)}"
        )

    def apply(self, world: AllocationWorld) -> AllocationWorld:
        """The world in which the pool has more of the counter."""
        inventory = world.inventory.copy()
        for resource_slice in world.inventory.slices_of(self.pool):
            if any(name == self.counter_set for name, _ in resource_slice.counter_sets):
                tree = json_tree.copy(resource_slice.tree)
                for listed in tree["spec"]["sharedCounters"]:
                    counters = listed.get("counters", {})
                    if listed.get("name") == self.counter_set and self.counter in counters:
                        old = quantity.from_json(counters[self.counter].get("value"))
                        more = quantity.from_nanos(old.nanos + self.by, old.format)
                        counters[self.counter]["value"] = str(more)
                inventory.put_slice(tree, key=resource_slice.key)
        return replace(world, inventory=inventory)


class FrozenObject(dict[str, object]):
    """An API object as the value of a change: compared and hashed by content, never changed."""

    @classmethod
    def of(cls, tree: JsonObject) -> "FrozenObject":
        """The frozen form of an object."""
        return cls(tree)

    def __hash__(self) -> int:  # type: ignore[override]  # dict is unhashable; this one is constant
        return hash(repr(sorted(self.items())))


def _wish_of(claim: JsonObject, result_name: str) -> JsonObject:
    """The exact request or the alternative that has the name `result_name` in results."""
    for request in claim["spec"]["devices"]["requests"]:
        if request["name"] == result_name:
            exactly: JsonObject = request["exactly"]
            return exactly
        for alternative in request.get("firstAvailable") or ():
            if f"{request['name']}/{alternative['name']}" == result_name:
                inner: JsonObject = alternative
                return inner
    raise AssertionError(f"no request is called {result_name}")


def _with_claim(world: AllocationWorld, number: int, edit: "Edit") -> AllocationWorld:
    claim = json_tree.copy(world.claims[number])
    edit(claim)
    claims = (*world.claims[:number], claim, *world.claims[number + 1 :])
    return replace(world, claims=claims)


class Edit(Protocol):
    """Changes a claim in place."""

    def __call__(self, claim: JsonObject) -> None: ...
