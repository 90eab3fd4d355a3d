"""The status of a definition: its accepted names, its conditions and its stored versions.

The real server sets the status by controllers, within a second. Here the write itself sets it, so
the kind is served as soon as the writer has its response. A definition whose names are in use gets
them when the other definition is deleted (`definitions` controller). Parity: objects.md 15.5;
NamesAccepted and Established of apiextensions.k8s.io/v1.
"""

from collections.abc import Iterator, Mapping

from app.domain.objects.custom.definitions import RESOURCE
from app.domain.objects.reader import ObjectsReader
from app.domain.values import api_groups, condition_types, json_tree, timestamps
from app.domain.values.fields import entries, meta
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.timestamps import Instant

CLEANUP = "customresourcecleanup.apiextensions.k8s.io"
"""The finalizer that keeps a definition until its objects are deleted."""

_TAKEN_REASONS = {
    "plural": "PluralConflict",
    "singular": "SingularConflict",
    "shortNames": "ShortNamesConflict",
    "kind": "KindConflict",
    "listKind": "ListKindConflict",
}


def status(reader: ObjectsReader, tree: JsonView, now: Instant) -> JsonObject:
    """The new status of a definition that is being written; `tree` still has the old status."""
    spec = meta.spec(tree)
    before = meta.status(tree)
    owners = _owners(reader, json_tree.text(spec, "group"), meta.name(tree))
    accepted, problem = _accept(spec, json_tree.mapping(before, "acceptedNames"), owners)
    held = {
        json_tree.text(condition, "type"): condition for condition in meta.conditions_of(before)
    }
    conditions = dict(held)
    if problem is None:
        row = ("True", "NoConflicts", "no conflicts found")
    else:
        row = ("False", *problem)
    _put(conditions, condition_types.NAMES_ACCEPTED, row, now)
    established = held.get(condition_types.ESTABLISHED, {})
    if established.get("status") != "True":
        row = ("True", "InitialNamesAccepted", "the initial names have been accepted")
        if problem is not None:
            row = ("False", "NotAccepted", "not all names are accepted")
        _put(conditions, condition_types.ESTABLISHED, row, now)
    status: JsonObject = {
        "acceptedNames": accepted,
        "conditions": list(conditions.values()),
        "storedVersions": _stored_versions(spec, before),
    }
    return status


def terminating(tree: JsonView, reason: str, message: str, now: Instant) -> JsonObject:
    """The status of a definition with the condition Terminating set."""
    before = meta.status(tree)
    conditions = {
        json_tree.text(condition, "type"): condition for condition in meta.conditions_of(before)
    }
    state = "False" if reason == "InstanceDeletionCompleted" else "True"
    _put(conditions, "Terminating", (state, reason, message), now)
    return {**before, "conditions": list(conditions.values())}


def warnings(tree: JsonView) -> tuple[str, ...]:
    """The warnings for the writer of a definition."""
    if json_tree.text(tree, "spec", "conversion", "strategy") == "Webhook":
        return ("conversion webhooks are not called: versions differ in apiVersion alone",)
    return ()


def _owners(reader: ObjectsReader, group: str, name: str) -> Mapping[str, set[str]]:
    """The accepted names of resources and of kinds of the other definitions in the group."""
    resources: set[str] = set()
    kinds: set[str] = set()
    for key in reader.keys(api_groups.API_EXTENSIONS, RESOURCE):
        if key.name == name or not key.name.endswith(f".{group}"):
            continue
        other = reader.get(key)
        if other is None or json_tree.text(other, "spec", "group") != group:
            continue
        names = json_tree.mapping(other, "status", "acceptedNames")
        resources |= set(filter(None, _resource_names(names)))
        kinds |= set(filter(None, (str(names.get(part, "")) for part in ("kind", "listKind"))))
    return {"resources": resources, "kinds": kinds}


def _resource_names(names: JsonView) -> Iterator[str]:
    yield json_tree.text(names, "plural")
    yield json_tree.text(names, "singular")
    yield from json_tree.texts(names, "shortNames")


def _accept(
    spec: JsonView, before: JsonView, owners: Mapping[str, set[str]]
) -> tuple[JsonObject, tuple[str, str] | None]:
    """The accepted names of a definition, and the reason and message of the last name refused."""
    wanted = json_tree.mapping(spec, "names")
    accepted: JsonObject = dict(before) or {"kind": "", "plural": ""}
    problem: tuple[str, str] | None = None
    for part in ("plural", "singular", "shortNames", "kind", "listKind"):
        pool = owners["kinds" if part in ("kind", "listKind") else "resources"]
        value = wanted.get(part)
        texts = value if isinstance(value, list) else [value]
        bad = [text for text in texts if text in pool]
        if bad:
            listed = ", ".join(f'"{text}" is already in use' for text in bad)
            problem = (_TAKEN_REASONS[part], listed)
        elif value:
            accepted[part] = value
        else:
            accepted.pop(part, None)
    if wanted.get("categories"):
        accepted["categories"] = wanted["categories"]
    else:
        accepted.pop("categories", None)
    return accepted, problem


def _stored_versions(spec: JsonView, before: JsonView) -> list[str]:
    stored = json_tree.texts(before, "storedVersions")
    for version in json_tree.objects(spec, "versions"):
        name = entries.name(version)
        if version.get("storage") is True and name not in stored:
            stored = [*stored, name]
    return stored


def _put(
    conditions: dict[str, JsonObject], kind: str, row: tuple[str, str, str], now: Instant
) -> None:
    """Sets a condition; `lastTransitionTime` changes only if the status changes."""
    state, reason, message = row
    old = conditions.get(kind, {})
    since = old.get("lastTransitionTime") if old.get("status") == state else None
    conditions[kind] = {
        "lastTransitionTime": since or timestamps.seconds_text(now),
        "message": message,
        "reason": reason,
        "status": state,
        "type": kind,
    }
