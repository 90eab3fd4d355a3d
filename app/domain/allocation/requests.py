"""Requests of claims, checked and compiled once. Parity: allocator.md 3.

The checks run in upstream's order. All checks depend only on the claim and its classes, except
those of mode All, whose devices depend on the node. A plan therefore holds the requests compiled
before the first error, and the error; it is raised when the problem of a node is built.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from app.domain.allocation.features import AllocatorVariant, Features
from app.domain.devices import compiling, taints
from app.domain.devices.model import Toleration
from app.domain.values import json_tree
from app.domain.values.fields import core, dra, entries, meta
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.quantity import Quantity

DEVICES_MAX = 32
"""The most device results per claim; an API limit."""

PLATFORM_INTEGER_MAX = 2**63 - 1


class AttemptAborted(Exception):
    """The attempt ends for the pod on all nodes; the message is upstream's text."""


class PoolUnusable(AttemptAborted):
    """Mode All met a pool that is incomplete or invalid; since 1.37 it rejects its node only."""


class Selectors(msgspec.Struct, frozen=True, kw_only=True):
    """The selectors of one request: those of its class, then its own."""

    class_name: str
    of_class: tuple[str, ...]
    own: tuple[str, ...]


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """A request, or one alternative of a prioritized list.

    `name` is the bare name, `main` the name of the request it belongs to, `result_name` the name in
    results (`main` or `main/name`). `count` is 0 in mode All. `alternative` is its number in the
    list, or None for an exact request. `capacity` has the requested amounts by name.
    """

    name: str
    main: str
    result_name: str
    class_name: str
    class_tree: JsonView
    selectors: Selectors
    takes_all: bool
    count: int
    admin: bool
    alternative: int | None
    tolerations: tuple[Toleration, ...]
    capacity: Mapping[str, Quantity]
    tree: JsonView


@dataclass(frozen=True, slots=True, kw_only=True)
class Constraint:
    """A constraint of a claim; `matching` is true for matchAttribute, false for distinctAttribute.

    An empty `requests` means all requests of the claim.
    """

    index: int
    matching: bool
    domain: str
    identifier: str
    requests: frozenset[str]

    @property
    def attribute(self) -> str:
        """The fully qualified name."""
        return f"{self.domain}/{self.identifier}" if self.domain else self.identifier

    def concerns(self, request: Request) -> bool:
        """Whether the devices of the request must satisfy the constraint."""
        return (
            not self.requests
            or request.main in self.requests
            or (request.alternative is not None and request.result_name in self.requests)
        )


class ClaimPlan(msgspec.Struct, frozen=True, kw_only=True):
    """A claim ready for allocation.

    `requests[r]` are the alternatives of request r (one for an exact request). `request_error` is
    raised after the compiled requests, `constraint_error` after the limit of devices.
    """

    key: str
    name: str
    requests: tuple[tuple[Request, ...], ...]
    constraints: tuple[Constraint, ...]
    request_error: str
    constraint_error: str
    tree: JsonView


def plan_of(
    claim: JsonView, classes: Mapping[str, JsonView], features: Features, variant: AllocatorVariant
) -> ClaimPlan:
    """The compiled claim. Raises InputError for an unreadable quantity."""
    namespace = meta.namespace(claim)
    name = meta.name(claim)
    key = f"{namespace}/{name}" if namespace else name
    requests: list[tuple[Request, ...]] = []
    error = ""
    for tree in dra.request_trees(claim):
        compiler = _RequestCompiler(key=key, classes=classes, features=features, tree=tree)
        alternatives, error = compiler.compile()
        if alternatives:
            requests.append(alternatives)
        if error:
            break
    constraints, constraint_error = _constraints(claim, key, variant)
    return ClaimPlan(
        key=key,
        name=name,
        requests=tuple(requests),
        constraints=constraints,
        request_error=error,
        constraint_error=constraint_error,
        tree=claim,
    )


def limit_error(plan: ClaimPlan, devices: int) -> str:
    """The error text for a claim whose requests need at least `devices` devices."""
    return (
        f"claim {plan.key}: number of requested devices {devices} "
        f"exceeds the claim limit of {DEVICES_MAX}"
    )


class _RequestCompiler(msgspec.Struct, frozen=True, kw_only=True):
    """Compiles and checks one request of a claim."""

    key: str
    classes: Mapping[str, JsonView]
    features: Features
    tree: JsonObject

    def compile(self) -> tuple[tuple[Request, ...], str]:
        """The alternatives compiled before the first error, and that error's text."""
        name = entries.name(self.tree)
        place = f"claim {self.key}, request {name}"
        subrequests = dra.alternatives(self.tree)
        if subrequests and not self.features.prioritized_list:
            return (), f"{place}: has subrequests, but the DRAPrioritizedList feature is disabled"
        if not self.features.consumable_capacity:
            asks = "has capacity requests, but the DRAConsumableCapacity feature is disabled"
            if json_tree.get(self.tree, "exactly", "capacity") is not None:
                return (), f"{place}: {asks}"
            for subrequest in subrequests:
                if subrequest.get("capacity") is not None:
                    inner = entries.name(subrequest)
                    return (), f"claim {self.key}, subrequest {inner}: {asks}"
        if not subrequests:
            exactly = json_tree.get(self.tree, "exactly")
            if not isinstance(exactly, dict):
                return (), f"{place}: unknown request type"
            request, error = self._one(exactly, name, None)
            return ((request,) if request else ()), error
        compiled: list[Request] = []
        for index, subrequest in enumerate(subrequests):
            request, error = self._one(subrequest, entries.name(subrequest), index)
            if request is None:
                return tuple(compiled), error
            compiled.append(request)
        return tuple(compiled), ""

    def _one(
        self, content: JsonView, name: str, alternative: int | None
    ) -> tuple[Request | None, str]:
        """Checks 4a to 4g for the request or subrequest `content`."""
        place = f"claim {self.key}, request {name}"
        expressions, error = _expressions(content, place)
        if error:
            return None, error
        if (
            alternative is None
            and not self.features.admin_access
            and content.get("adminAccess") is not None
        ):
            return None, f"{place}: admin access is requested, but the feature is disabled"
        class_name = dra.device_class_name(content)
        if not class_name:
            return None, f"{place}: missing device class name (unsupported request type?)"
        class_tree = self.classes.get(class_name)
        if class_tree is None:
            return None, (
                f"{place}: could not retrieve device class {class_name}: "
                f'deviceclass.resource.k8s.io "{class_name}" not found'
            )
        mode = json_tree.text(content, "allocationMode")
        count = json_tree.integer(content, "count") or 0
        if mode not in ("ExactCount", "All"):
            return None, f"{place}: unsupported count mode {mode}"
        if mode == "ExactCount" and count > PLATFORM_INTEGER_MAX:
            return None, f"{place}: exact count {count} is too large"
        main = entries.name(self.tree)
        request = Request(
            name=name,
            main=main,
            result_name=main if alternative is None else f"{main}/{name}",
            class_name=class_name,
            class_tree=class_tree,
            selectors=Selectors(
                class_name=class_name, of_class=_class_expressions(class_tree), own=expressions
            ),
            takes_all=mode == "All",
            count=0 if mode == "All" else count,
            admin=alternative is None and json_tree.flag(content, "adminAccess"),
            alternative=alternative,
            tolerations=tuple(
                taints.toleration_of(toleration) for toleration in core.tolerations_of(content)
            ),
            capacity={
                name: compiling.read_quantity(value, f"{place}: capacity[{name}]")
                for name, value in json_tree.mapping(content, "capacity", "requests").items()
            },
            tree=content,
        )
        return request, ""


def _expressions(request: JsonView, place: str) -> tuple[tuple[str, ...], str]:
    expressions = []
    for index, selector in enumerate(json_tree.objects(request, "selectors")):
        if not isinstance(selector.get("cel"), Mapping):
            return (
                (),
                f"{place}, selector #{index}: CEL expression empty (unsupported selector type?)",
            )
        expressions.append(dra.selector_expression(selector))
    return tuple(expressions), ""


def _class_expressions(tree: JsonView) -> tuple[str, ...]:
    return tuple(dra.selector_expression(selector) for selector in dra.class_selectors(tree))


def _constraints(
    claim: JsonView, key: str, variant: AllocatorVariant
) -> tuple[tuple[Constraint, ...], str]:
    """The constraints before the first empty one, and the error text for that one."""
    constraints: list[Constraint] = []
    trees: Sequence[JsonObject] = json_tree.objects(claim, "spec", "devices", "constraints")
    for index, tree in enumerate(trees):
        matching = json_tree.get(tree, "matchAttribute")
        distinct = json_tree.get(tree, "distinctAttribute")
        if variant is AllocatorVariant.STABLE:
            distinct = None
        name = matching if isinstance(matching, str) else distinct
        if not isinstance(name, str):
            problem = "empty constraint (unsupported constraint type?)"
            return tuple(constraints), f"claim {key}, constraint #{index}: {problem}"
        domain, slash, identifier = name.partition("/")
        constraints.append(
            Constraint(
                index=index,
                matching=isinstance(matching, str),
                domain=domain if slash else "",
                identifier=identifier if slash else name,
                requests=frozenset(json_tree.texts(tree, "requests")),
            )
        )
    return tuple(constraints), ""
