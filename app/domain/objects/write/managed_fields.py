"""The owners of fields: `metadata.managedFields`, which every write updates.

Fields are compared in the storage version; an entry names the version its writer used. Parity:
api.md 9. An object without entries (from an import, or cleared by a client) gets none from
updates, only from the first apply.
"""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import TypeAlias

import msgspec
from msgspec.structs import replace

from app.domain.log import Stamp
from app.domain.log.chain import canonical_json
from app.domain.objects.schema.conversion import EVENT_NAMES
from app.domain.objects.schema.structural import SchemaNode
from app.domain.objects.write import field_sets
from app.domain.objects.write.commands import WriteOptions
from app.domain.objects.write.field_sets import FieldSet
from app.domain.values import api_groups, timestamps
from app.domain.values.json_tree import JsonObject, JsonView

SCALE = "scale"
"""The subresource whose writes get entries without a time. Parity: api.md 9; recorded, 1.36."""

UPDATE = "Update"
APPLY = "Apply"
UPDATE_ENTRIES_MAX = 10
ANCIENT = "ancient-changes"
BEFORE_FIRST_APPLY = "before-first-apply"
NAME_MAX = 128

KNOWN_MAX = 2_048
"""The largest number of cached sets of fields: most objects have one of a few sets."""

KNOWN_BYTES_MAX = 4_096
"""The largest size of a cached `fieldsV1` in bytes. A longer one is decoded each time: sets of long
lists rarely repeat, and each of their versions would take memory."""

_Length: TypeAlias = tuple[int, str]

LONG_MAX = 64
"""The largest number of long sets that are kept, beside those of KNOWN_MAX."""

LONG_ITEMS = 32
"""The number of items in the lists of a long set: a shorter one is found by its text as fast."""

_UNTRACKED = ("apiVersion", "kind")
_UNTRACKED_METADATA = (
    "creationTimestamp",
    "generation",
    "managedFields",
    "name",
    "namespace",
    "resourceVersion",
    "selfLink",
    "uid",
)


class Manager(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """One entry: manager, operation, version, subresource, time and fields.

    `written` is a set with its `fieldsV1`, which is reused while `fields` is that same set. Both
    are shared: never change them.
    """

    name: str
    operation: str
    api_version: str
    subresource: str = ""
    time: str = ""
    fields: FieldSet
    written: tuple[FieldSet, JsonObject] | None = None

    def is_same_writer(self, other: "Manager") -> bool:
        """Whether a write of the other manager updates this entry."""
        same = (self.name, self.operation, self.subresource) == (
            other.name, other.operation, other.subresource,
        )  # fmt: skip
        return same and (self.operation == APPLY or self.api_version == other.api_version)


def default_name(agent: str) -> str:
    """The manager name of a client that sends none: its user agent up to the first slash."""
    name = "".join(char for char in agent.partition("/")[0] if char.isprintable())
    return name[:NAME_MAX] or "unknown"


def updater(options: WriteOptions, stamp: Stamp, api_version: str, subresource: str) -> Manager:
    """The entry of a write that is not an apply, without fields."""
    return Manager(
        name=options.field_manager or default_name(stamp.actor.agent),
        operation=UPDATE,
        api_version=api_version,
        subresource=subresource,
        time="" if subresource == SCALE else timestamps.seconds_text(stamp.time),
        fields={},
    )


def are_readable(entries: object) -> bool:
    """Whether a client sent at least one entry, and all entries are valid."""
    if not isinstance(entries, list) or not entries:
        return False
    return all(
        isinstance(entry, dict)
        and entry.get("operation") in (APPLY, UPDATE)
        and entry.get("fieldsType") == "FieldsV1"
        and bool(entry.get("apiVersion"))
        and field_sets.is_written(entry.get("fieldsV1", {}))
        for entry in entries
    )


def load(metadata: JsonView) -> list[Manager]:
    """The entries of an object, without empty ones."""
    return [
        _loaded(entry)
        for entry in metadata.get("managedFields") or ()
        if isinstance(entry, dict) and entry
    ]


def _loaded(entry: JsonObject) -> Manager:
    written = entry.get("fieldsV1")
    written = written if isinstance(written, dict) else {}
    known = _LONG.find(written)
    if known is None:
        text = canonical_json(written)
        known = _known_fields(text) if len(text) <= KNOWN_BYTES_MAX else _read_fields(text)
    return Manager(
        name=entry.get("manager", ""),
        operation=entry.get("operation", UPDATE),
        api_version=entry.get("apiVersion", ""),
        subresource=entry.get("subresource", ""),
        time=entry.get("time", ""),
        fields=_spelt(entry, known[0], _FROM_ALIAS),
        written=known,
    )


def _read_fields(text: bytes) -> tuple[FieldSet, JsonObject]:
    """The set of a `fieldsV1`, and the `fieldsV1` of that set."""
    fields = field_sets.load(msgspec.json.decode(text))
    return fields, field_sets.dump(fields)


_known_fields = lru_cache(maxsize=KNOWN_MAX)(_read_fields)


class _LongSets:
    """The sets of the newest long `fieldsV1` that were written, for the very `fieldsV1`.

    A list that is changed again and again, such as the consumers of a shared claim, has a long set
    that differs in one item each time, so a set is not read again from what was made of it.
    """

    def __init__(self) -> None:
        self._known: dict[_Length, tuple[FieldSet, JsonObject]] = {}

    def find(self, written: JsonObject) -> tuple[FieldSet, JsonObject] | None:
        """The set and its `fieldsV1`, which is `written` itself."""
        length = _length(written)
        known = None if length is None else self._known.get(length)
        return known if known is not None and known[1] is written else None

    def keep(self, fields: FieldSet, written: JsonObject) -> None:
        """Keeps a set if it is long, in place of the one that was kept first."""
        length = _length(written)
        if length is None:
            return
        self._known.pop(length, None)
        self._known[length] = (fields, written)
        for oldest in list(self._known)[:-LONG_MAX]:
            # Replays write in threads; another one may have removed it.
            self._known.pop(oldest, None)


def _length(written: JsonObject) -> _Length | None:
    """The number of items and the last item of a long list; None if no list is long."""
    for below in written.values():
        if below and below.__class__ is dict:
            for part in below.values():
                if part and part.__class__ is dict and len(part) >= LONG_ITEMS:
                    return len(part), next(reversed(part))
    return None


_LONG = _LongSets()


def _kept(written: JsonObject) -> JsonObject:
    """The cached copy of a `fieldsV1`, which similar objects share: never change it."""
    text = canonical_json(written)
    return _known_fields(text)[1] if len(text) <= KNOWN_BYTES_MAX else written


def dump(managers: Iterable[Manager]) -> list[JsonObject]:
    """The entries as JSON: appliers first, then by time, name, version and subresource."""
    rows = sorted(
        (manager for manager in managers if manager.fields),
        key=lambda row: (
            row.operation != APPLY, row.time, row.name, row.api_version, row.subresource,
        ),
    )  # fmt: skip
    return [_entry(row) for row in _bounded(rows)]


def track(
    metadata: JsonObject,
    tree: JsonView,
    old: JsonView | None,
    node: SchemaNode,
    writer: Manager,
    *,
    has_status: bool,
) -> None:
    """Records an update in the metadata of the new tree, in place.

    Changed fields move to the writer's entry, removed fields leave all entries. `old` is None for
    a new object. `writer` has no fields; its time is used if its entry changes.
    """
    managers = load(metadata)
    if old is not None and not managers:
        metadata.pop("managedFields", None)
        return
    before = old if old is not None else field_sets.zero(node)
    changed, removed = field_sets.changes(before, tree, node)
    changed = tracked(changed, writer.subresource, has_status=has_status)
    if not managers:
        put(metadata, [replace(writer, fields=changed)])
        return
    removed = tracked(removed, writer.subresource, has_status=has_status)
    if not changed and not removed:
        return
    tracked_managers = []
    own = writer
    for manager in managers:
        if manager.is_same_writer(writer):
            own = manager
        else:
            rest = field_sets.difference(manager.fields, changed)
            rest = field_sets.difference(rest, removed)
            same = rest == manager.fields
            tracked_managers.append(manager if same else replace(manager, fields=rest))
    fields = field_sets.union(field_sets.difference(own.fields, removed), changed)
    if fields != own.fields:
        own = replace(own, fields=fields, time=writer.time)
    put(metadata, [*tracked_managers, own])


def owned(tree: JsonView, node: SchemaNode, *, has_status: bool) -> JsonObject:
    """The `fieldsV1` of the fields that the creator of an object owns, without metadata."""
    zero = field_sets.zero(node)
    fields: JsonObject = {}
    for key, value in tree.items():
        if key in _UNTRACKED or key == "metadata" or (has_status and key == "status"):
            continue
        below = _owned_at(key, value, zero, node)
        if below is not None:
            fields[f"f:{key}"] = below
    return fields


def begin(metadata: JsonObject, fields: JsonObject, node: SchemaNode, writer: Manager) -> None:
    """Records the write that creates an object, in place: `track` for a new object without entries.

    `fields` are the owned fields other than metadata. There is no other owner yet, so the entry is
    written without making sets of fields.
    """
    zero = field_sets.zero(node)
    named = {key: metadata[key] for key in metadata if key not in _UNTRACKED_METADATA}
    below = _owned_at("metadata", named, zero, node) if named else None
    if below:
        below.pop(field_sets.MEMBER, None)
        fields = {**fields, "f:metadata": below}
    if not fields:
        metadata.pop("managedFields", None)
        return
    put_first(metadata, writer, _kept(_spelt(_headed(writer), fields, _TO_ALIAS)))


def put_first(metadata: JsonObject, writer: Manager, written: JsonObject) -> None:
    """Writes the only entry of a new object in place; `written` is its `fieldsV1`, shared."""
    entry = _headed(writer)
    entry["fieldsV1"] = written
    metadata["managedFields"] = [entry]


def _owned_at(key: str, value: object, zero: JsonView, node: SchemaNode) -> JsonObject | None:
    """The `fieldsV1` of the owned part of a new object's field; None if it is empty."""
    child = node.fields.get(key)
    if key in zero:
        return field_sets.written_beyond(zero[key], value, child)
    return field_sets.written_whole(value, child)


def put(metadata: JsonObject, managers: Iterable[Manager]) -> None:
    """Writes the entries to metadata in place; without entries the field is removed."""
    entries = dump(managers)
    if entries:
        metadata["managedFields"] = entries
    else:
        metadata.pop("managedFields", None)


def tracked(fields: FieldSet, subresource: str, *, has_status: bool) -> FieldSet:
    """The fields that a write of `subresource` can own."""
    if subresource == "status":
        kept = {name: below for name, below in fields.items() if name == "f:status"}
    else:
        kept = {
            element: below
            for element, below in fields.items()
            if element[2:] not in _UNTRACKED
            and element not in (field_sets.MEMBER, "f:metadata")
            and not (has_status and element == "f:status")
        }
    metadata = {
        element: below
        for element, below in fields.get("f:metadata", {}).items()
        if element != field_sets.MEMBER and element[2:] not in _UNTRACKED_METADATA
    }
    if metadata:
        kept["f:metadata"] = metadata
    return kept


def _headed(manager: Manager) -> JsonObject:
    """An entry without its fields."""
    entry: JsonObject = {"manager": manager.name, "operation": manager.operation}
    if manager.api_version:
        entry["apiVersion"] = manager.api_version
    if manager.time:
        entry["time"] = manager.time
    entry["fieldsType"] = "FieldsV1"
    return entry


def _entry(manager: Manager) -> JsonObject:
    entry = _headed(manager)
    known = manager.written
    if known is not None and known[0] is manager.fields:
        entry["fieldsV1"] = known[1]
    else:
        fields = _spelt(entry, manager.fields, _TO_ALIAS)
        entry["fieldsV1"] = written = field_sets.dump(fields, *known or ())
        _LONG.keep(fields, written)
    if manager.subresource:
        entry["subresource"] = manager.subresource
    return entry


_TO_ALIAS = {f"f:{ours}": f"f:{theirs}" for ours, theirs in EVENT_NAMES.items()}
_FROM_ALIAS = {theirs: ours for ours, theirs in _TO_ALIAS.items()}


def _spelt(entry: JsonView, fields: FieldSet, names: Mapping[str, str]) -> FieldSet:
    """The fields with names replaced by `names` in entries of events.k8s.io, else unchanged."""
    if entry.get("apiVersion") != f"{api_groups.EVENTS}/v1":
        return fields
    return {names.get(element, element): below for element, below in fields.items()}


def _bounded(rows: list[Manager]) -> list[Manager]:
    """The rows, with the oldest updates above UPDATE_ENTRIES_MAX merged into one."""
    updates = [row for row in rows if row.operation != APPLY]
    if len(updates) <= UPDATE_ENTRIES_MAX:
        return rows
    appliers = [row for row in rows if row.operation == APPLY]
    surplus = len(updates) - UPDATE_ENTRIES_MAX + 1
    ancient = replace(updates[0], name=ANCIENT)
    for row in updates[1:surplus]:
        ancient = replace(row, name=ANCIENT, fields=field_sets.union(ancient.fields, row.fields))
    return [*appliers, ancient, *updates[surplus:]]
