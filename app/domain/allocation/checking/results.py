"""The fields of an AllocationResult that follow from the taken devices. Parity: allocator.md 10."""

from collections.abc import Iterator, Mapping, Sequence

from app.domain.allocation.checking.claim_requests import Ask, names_it
from app.domain.allocation.checking.stock import Piece
from app.domain.values import json_tree
from app.domain.values.json_tree import JsonObject, JsonView

ALLOCATION_FIELDS = frozenset(("devices", "nodeSelector"))
DEVICES_FIELDS = frozenset(("results", "config"))


def configs(claim: JsonView, chosen: Sequence[Ask], *, are_cleaned: bool) -> list[JsonObject]:
    """The expected `devices.config`: entries of the classes, then of the claim."""
    entries: list[JsonObject] = []
    classes = dict.fromkeys(json_tree.text(ask.tree, "deviceClassName") for ask in chosen)
    for name in classes:
        mine = [ask for ask in chosen if json_tree.text(ask.tree, "deviceClassName") == name]
        for config in json_tree.objects(mine[0].device_class, "spec", "config"):
            users = [ask.name for ask in mine]
            entries.append({**config, "source": "FromClass", "requests": users})
    for config in json_tree.objects(claim, "spec", "devices", "config"):
        names = json_tree.texts(config, "requests")
        if not names or any(names_it(names, ask) for ask in chosen):
            entries.append({**config, "source": "FromClaim", "requests": names})
    return [_shown(entry, chosen, is_cleaned=are_cleaned) for entry in entries]


def node_selector(node: JsonView, pieces: Sequence[Piece], *, is_stable: bool) -> JsonObject | None:
    """The expected `nodeSelector`; None when all nodes can access the devices."""
    merged: dict[str, list[JsonView]] = {"matchExpressions": [], "matchFields": []}
    for piece in pieces:
        binds = piece.tree.get("bindsToNode") is True and not is_stable
        if piece.place.get("nodeName") or binds:
            name = piece.place["nodeName"] if is_stable else node["metadata"]["name"]
            only = {"key": "metadata.name", "operator": "In", "values": [name]}
            return {"nodeSelectorTerms": [{"matchFields": [only]}]}
        for term in json_tree.objects(piece.place, "nodeSelector", "nodeSelectorTerms"):
            for part, known in merged.items():
                for requirement in json_tree.objects(term, part):
                    if all(_meaning(requirement) != _meaning(other) for other in known):
                        known.append(requirement)
    term = {part: known for part, known in merged.items() if known}
    return {"nodeSelectorTerms": [term]} if term else None


def copies(ask: Ask, piece: Piece, *, has_conditions: bool) -> Iterator[tuple[str, object]]:
    """The copied fields of one device result, with None for absent fields."""
    yield "adminAccess", True if ask.is_admin else None
    yield "tolerations", json_tree.objects(ask.tree, "tolerations") or None
    for name in ("bindingConditions", "bindingFailureConditions"):
        yield name, (piece.tree.get(name) or None) if has_conditions else None


def unknown_fields(allocation: JsonView) -> Iterator[str]:
    """The fields that no allocator writes."""
    yield from allocation.keys() - ALLOCATION_FIELDS
    devices = json_tree.mapping(allocation, "devices")
    yield from (f"devices.{name}" for name in devices.keys() - DEVICES_FIELDS)


def _shown(entry: JsonObject, chosen: Sequence[Ask], *, is_cleaned: bool) -> JsonObject:
    names = entry["requests"]
    if names and not (is_cleaned and all(names_it(names, ask) for ask in chosen)):
        return entry
    return {field: value for field, value in entry.items() if field != "requests"}


def _meaning(requirement: JsonView) -> tuple[object, object, frozenset[str]]:
    values = frozenset(json_tree.texts(requirement, "values"))
    return requirement.get("key"), requirement.get("operator"), values


def is_same(actual: object, expected: object) -> bool:
    """Whether two JSON values are equal; unlike in Python, true does not equal 1."""
    if isinstance(actual, Mapping) and isinstance(expected, Mapping):
        return actual.keys() == expected.keys() and all(
            is_same(actual[key], expected[key]) for key in actual
        )
    if isinstance(actual, list) and isinstance(expected, list):
        return len(actual) == len(expected) and all(map(is_same, actual, expected))
    return type(actual) is type(expected) and actual == expected
