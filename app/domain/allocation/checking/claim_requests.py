"""The requests, alternatives and constraints of a claim, read from its API object."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.domain.values import json_tree
from app.domain.values.json_tree import JsonView

SCALARS = ("string", "int", "bool", "version")
LISTS = {"ints": "int", "bools": "bool", "strings": "string", "versions": "version"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """A request or one of its alternatives. `name` is the name in results: `main` or `main/sub`."""

    main: str
    name: str
    tree: JsonView
    device_class: JsonView

    @property
    def expressions(self) -> list[str]:
        """The selectors of the class, then those of the request."""
        return [
            json_tree.text(selector, "cel", "expression")
            for holder in (json_tree.mapping(self.device_class, "spec"), self.tree)
            for selector in json_tree.objects(holder, "selectors")
        ]

    @property
    def takes_all(self) -> bool:
        """Whether it requests every matching device."""
        return self.tree.get("allocationMode") == "All"

    @property
    def is_admin(self) -> bool:
        """Whether it requests admin access."""
        return self.tree.get("adminAccess") is True

    @property
    def capacity(self) -> JsonView:
        """The requested amounts by name."""
        return json_tree.mapping(self.tree, "capacity", "requests")


def asks_of(claim: JsonView, classes: Mapping[str, JsonView]) -> list[list[Ask]]:
    """The alternatives of each request, in order; an exact request is its only alternative."""
    asks = []
    for request in json_tree.objects(claim, "spec", "devices", "requests"):
        main = json_tree.text(request, "name")
        exact = request.get("exactly")
        trees = (
            [(main, exact)]
            if isinstance(exact, Mapping)
            else [
                (f"{main}/{json_tree.text(sub, 'name')}", sub)
                for sub in json_tree.objects(request, "firstAvailable")
            ]
        )
        asks.append(
            [
                Ask(
                    main=main,
                    name=name,
                    tree=tree,
                    device_class=classes.get(json_tree.text(tree, "deviceClassName"), {}),
                )
                for name, tree in trees
            ]
        )
    return asks


def names_it(names: Sequence[str], ask: Ask) -> bool:
    """Whether a list of requests, in a constraint or config, includes this one."""
    return ask.main in names or ask.name in names


def attribute(device: JsonView, driver: str, name: str) -> JsonView | None:
    """The attribute with the qualified name, or the short name in the driver's own domain."""
    attributes = json_tree.mapping(device, "attributes")
    domain, _, identifier = name.partition("/")
    attribute_tree = attributes.get(name)
    if attribute_tree is None and domain == driver:
        attribute_tree = attributes.get(identifier)
    return attribute_tree if isinstance(attribute_tree, Mapping) else None


def have_common_value(values: Sequence[JsonView], *, lists: bool) -> bool:
    """Whether matchAttribute holds for these values. Parity: allocator.md 6.1."""
    if not lists:
        first, *rest = values
        return all(_scalar(value) is not None and _agrees(value, first) for value in rest)
    sets = [_as_set(value) for value in values]
    known = [shared for shared in sets if shared is not None]
    if len(known) != len(sets) or len({kind for kind, _ in known}) != 1:
        return False
    return bool(frozenset.intersection(*(shared for _, shared in known)))


def two_agree(values: Sequence[JsonView], *, lists: bool) -> bool:
    """Whether two of the values violate distinctAttribute. Parity: allocator.md 6.2."""
    for place, one in enumerate(values):
        for other in values[place + 1 :]:
            if not lists:
                if _agrees(other, one):
                    return True
                continue
            mine, its = _as_set(one), _as_set(other)
            if mine and its and mine[0] == its[0] and mine[1] & its[1]:
                return True
    return False


def _scalar(value: JsonView) -> str | None:
    return next((kind for kind in SCALARS if value.get(kind) is not None), None)


def _agrees(value: JsonView, other: JsonView) -> bool:
    kind = _scalar(value)
    return kind is not None and other.get(kind) is not None and value[kind] == other[kind]


def _as_set(value: JsonView) -> tuple[str, frozenset[object]] | None:
    for name, kind in LISTS.items():
        if value.get(name):
            return kind, frozenset(value[name])
    for kind in ("int", "bool", "string", "version"):
        if value.get(kind) is not None:
            return kind, frozenset((value[kind],))
    return None
