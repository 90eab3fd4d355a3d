"""Object dumps, support directories and plain manifests. Parity: history-formats.md 6, 7, 10.2, 15.

An object with a uid or a resource version was captured and becomes baseline. An object with neither
is a manifest: it is added, with a uid derived from its position.
"""

import dataclasses
import uuid
from collections.abc import Iterator
from typing import Any

import msgspec

from app.adapters.history import documents, kinds, path_kinds
from app.adapters.history.formats import keyed, list_pages
from app.adapters.history.printouts import answered_tables, foreign
from app.adapters.history.reading import (
    DumpedPage,
    Notes,
    ReadOptions,
    object_record,
)
from app.adapters.history.unpacking import ByteSource
from app.domain.errors import InputError
from app.domain.log import ObjectKey
from app.domain.log.records import (
    Loss,
    Op,
    Quality,
    Record,
    TimeQuality,
    comparable_version,
    join_losses,
)
from app.domain.values import json_tree
from app.domain.values.fields import meta
from app.domain.values.identifiers import Uid
from app.domain.values.json_tree import JsonObject

DERIVED_UIDS = uuid.UUID("6f1bd7a5-4c0a-5d0e-9a3f-5d1c6b1f6a10")
"""UUID namespace of the derived uids of manifests."""

FLAT = "an object whose lines lost their indentation, so nothing tells what belongs to what"

NAME_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
"""Letters of generated name suffixes, as the API server chooses them."""


def read(
    source: ByteSource,
    number: int,
    options: ReadOptions,
    notes: Notes,
    *,
    losses: tuple[Loss, ...] = (),
) -> Iterator[Record]:
    """The records of the objects of one file. Raises InputError naming an object that is refused.

    Documents that are not objects are left out and noted. `losses` apply to every object of the
    file.
    """
    versions: dict[ObjectKey, str] = {}
    index = 0
    for position, list_version, tree, is_typed in _objects(source, notes):
        index += 1
        reason = _no_object(tree, source.name)
        if reason and (unread := _unread(tree)):
            notes.lose(InputError(unread, place=f"{source.name}:{position}"))
            continue
        if reason:
            notes.pass_over(source.name, reason)
            continue
        try:
            if Loss.PRINTED in losses:
                yield _printed(source.name, position, (number, index), tree, options, losses)
                continue
            if tree.get("kind") == "Table":
                if answered_tables.is_empty(tree):
                    notes.pass_over(source.name, "a table without rows")
                    continue
                for row, shown in enumerate(_rows(source.name, position, tree), start=1):
                    place = f"{position}/row/{row}"
                    order = (number, index + row)
                    yield _printed(source.name, place, order, shown, options, (Loss.PRINTED,))
                index += row
                continue
            record = _record(
                source.name, position, (number, index), tree, list_version, options, versions
            )
            if is_typed:
                record = msgspec.structs.replace(record, is_typed=True)
            if losses:
                record = msgspec.structs.replace(
                    record,
                    object_quality=Quality.PARTIAL,
                    losses=join_losses(record.losses, losses),
                )
        except InputError as problem:
            notes.refuse(problem)
            continue
        if record.op is Op.ADDED and (reason := _not_applied(record)):
            notes.pass_over(source.name, reason)
            continue
        if record.op is Op.ADDED and record.namespace and not meta.namespace(tree):
            notes.unplaced.add((source.name, position))
        yield record


def _unread(tree: JsonObject) -> str:
    """The loss that a document is which is an object, and shows too little; empty for others."""
    if not meta.kind(tree) and kinds.is_stored(meta.metadata(tree)):
        return kinds.KINDLESS
    is_flat = "metadata" in tree and tree["metadata"] is None and isinstance(tree.get("name"), str)
    return FLAT if is_flat and meta.api_version(tree) else ""


def _no_object(tree: JsonObject, path: str) -> str:
    """The reason why a document is not an object; empty for an object or a part of one."""
    kind = tree.get("kind")
    if kinds.is_answer(tree) and kind != "Table":
        return f"answers of kind {kind}, which are not objects"
    if not isinstance(tree.get("metadata"), dict):
        named = f"of kind {kind} " if isinstance(kind, str) and kind else ""
        return f"documents {named}without metadata, which are not objects"
    if not kind and foreign.is_of_runtime(str(tree.get("state"))):
        return foreign.RUNTIME_JSON
    if not kind and not path_kinds.completed(tree, path).get("kind"):
        return "documents without a kind, in the document or in the name of the file"
    return ""


_STATIC_PODS = ("etc/kubernetes/manifests/", "agent/pod-manifests/")
"""Folders from which the kubelets of kubeadm, and of k3s and RKE2, start pods."""

_HOOK = "helm.sh/hook"


def _not_applied(manifest: Record) -> str:
    """The reason why a manifest alone is no object of the API; empty for others."""
    if manifest.kind == "Pod" and any(part in f"/{manifest.source}" for part in _STATIC_PODS):
        return "static pods of a kubelet, which the API shows under other names"
    if _HOOK in (meta.metadata(manifest.object or {}).get("annotations") or ()):
        return "hooks of helm, which need not be there"
    return ""


def _record(
    source: str,
    position: str,
    order: tuple[int, int],
    tree: JsonObject,
    list_version: str,
    options: ReadOptions,
    versions: dict[ObjectKey, str],
) -> Record:
    losses: list[Loss] = []
    tree = path_kinds.completed(tree, source)
    metadata = meta.metadata(tree)
    if "managedFields" in metadata and not options.keep_managed_fields:
        kept = {name: part for name, part in metadata.items() if name != "managedFields"}
        tree = {**tree, "metadata": kept}
    if not options.keep_managed_fields:
        losses.append(Loss.NO_MANAGED_FIELDS)
    tree = _named(tree, source, position)
    is_manifest = not metadata.get("uid") and not metadata.get("resourceVersion")
    record = object_record(
        tree,
        Op.ADDED if is_manifest else Op.BASELINE,
        source=source,
        position=position,
        order=order,
        observed_at=options.at,
        losses=tuple(losses),
        quality=Quality.PARTIAL if is_manifest else Quality.FULL,
    )
    if is_manifest:
        return _manifest(record)
    if not record.resource_version and comparable_version(list_version):
        record = msgspec.structs.replace(
            record, order_key=(0, comparable_version(list_version), 1, *order)
        )
    known = versions.get(record.key)
    if known is not None and known != record.resource_version:
        # A repeated object: the file is a watch without event types.
        record = msgspec.structs.replace(
            record, op=Op.MODIFIED, losses=tuple(sorted({*record.losses, Loss.NO_DELETES}))
        )
    versions[record.key] = record.resource_version
    return record


def _rows(source: str, position: str, table: JsonObject) -> list[JsonObject]:
    """The parts of objects that a table shows. Raises InputError for one of an unknown kind."""
    shown = answered_tables.objects(table)
    if not shown:
        raise InputError(
            "it is a table, not objects",
            place=f"{source}:{position}",
            cure="record with -o yaml or -o json, or ask for it with includeObject=Object",
        )
    return shown


def _printed(
    source: str,
    position: str,
    order: tuple[int, int],
    tree: JsonObject,
    options: ReadOptions,
    losses: tuple[Loss, ...],
) -> Record:
    """The record of an object with a few printed fields, which existed and is not a manifest."""
    missing = (*losses, Loss.NO_MANAGED_FIELDS)
    if kinds.lacks_status(tree):
        missing = (*missing, Loss.NO_STATUS)
    return object_record(
        tree,
        Op.BASELINE,
        source=source,
        position=position,
        order=order,
        observed_at=options.at,
        losses=missing,
        quality=Quality.PARTIAL,
    )


def _named(tree: JsonObject, source: str, position: str) -> JsonObject:
    """The manifest with a name.

    A generateName gets a suffix like a server's, but the same in each import.
    """
    metadata = meta.metadata(tree)
    prefix = json_tree.text(metadata, "generateName")
    if not prefix or metadata.get("name"):
        return tree
    digits = uuid.uuid5(DERIVED_UIDS, f"{source}\0{position}\0{prefix}").int
    suffix = "".join(NAME_LETTERS[digits // 27**place % 27] for place in range(5))
    return {**tree, "metadata": {**metadata, "name": prefix + suffix}}


def derived_uid(record: Record) -> Uid:
    """The uid of a manifest, from its place and key."""
    name = f"{record.source}\0{record.position}\0{record.key}"
    return Uid(str(uuid.uuid5(DERIVED_UIDS, name)))


def _manifest(record: Record) -> Record:
    """The record of a manifest with its derived uid. Fields that a server would add are missing."""
    uid = derived_uid(record)
    tree = record.object or {}
    losses = {*record.losses}
    if kinds.lacks_status(tree):
        losses.add(Loss.NO_STATUS)
    metadata = {**meta.metadata(tree), "uid": uid}
    if record.namespace:
        metadata["namespace"] = record.namespace
    return msgspec.structs.replace(
        record,
        uid=uid,
        object={**tree, "metadata": metadata},
        losses=tuple(sorted(losses)),
        time_quality=record.time_quality if record.observed_at else TimeQuality.NONE,
    )


def _objects(source: ByteSource, notes: Notes) -> Iterator[tuple[str, str, JsonObject, bool]]:
    """The position, list version and tree of each object and each item of a list or array.

    The last one is true for an item without a kind, as clients with types print it.
    """
    repeated = Notes(keep_going=True)
    unfinished: dict[tuple[str, str], DumpedPage] = {}
    for position, value in documents.read_documents(source, repeated):
        if not _is_of_a_log(value):
            notes.lose_all_of(repeated)
        repeated.forget_losses()
        if isinstance(value, dict) and (kinds.is_list(value) or value.get("kind") == "Table"):
            page = _page(source.name, position, value)
            before = unfinished.pop((page.group, page.resource), None)
            if before is not None:
                is_next = before.version == page.version
                notes.pages.append(dataclasses.replace(before, is_followed=is_next))
            if page.more == 0:
                notes.pages.append(page)
            else:
                unfinished[page.group, page.resource] = page
        yield from _open(position, "", value, source.name)
    notes.pages += unfinished.values()


def _page(source: str, position: str, value: JsonObject) -> DumpedPage:
    """The page that a list is."""
    metadata = meta.metadata(value)
    group, _ = kinds.split_version(meta.api_version(value))
    items = value.get("items") or value.get("rows") or []
    first = items[0] if items and isinstance(items[0], dict) else {}
    count = metadata.get("remainingItemCount")
    kind = meta.kind(value).removesuffix("List")
    more = count if isinstance(count, int) and count > 0 else None
    return DumpedPage(
        source=source,
        position=position,
        group=group,
        resource=kinds.resource_of(kind) if kind else "",  # a List may hold several
        version=meta.resource_version(value),
        items=len(items),
        more=more if metadata.get("continue") else 0,
        first=list_pages.order_key(meta.namespace(first), meta.name(first)),
    )


def _is_of_a_log(value: Any) -> bool:
    """True for a line of a log between objects. Such lines repeat keys, and are left out."""
    if not isinstance(value, dict) or keyed.is_keyed(value):
        return False
    return not value.keys() & {"kind", "metadata", "items"}


def _open(
    position: str, list_version: str, value: Any, source: str, *, is_typed: bool = False
) -> Iterator[tuple[str, str, JsonObject, bool]]:
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _open(f"{position}[{index}]", list_version, item, source)
        return
    if not isinstance(value, dict):
        if value is not None:
            raise InputError("it is not an object of the API", place=f"{source}:{position}")
        return
    items = kinds.list_items(value)
    if items is None:
        items = kinds.table_items(value)
    if items is None:
        if keyed.is_keyed(value):
            for place, tree in keyed.items(value):
                yield place if position == "1" else f"{position}/{place}", list_version, tree, False
        else:
            yield position, list_version, value, is_typed
        return
    list_version = meta.resource_version(value)
    is_typed = kinds.has_typed_items(value)
    for index, item in enumerate(items):
        place = f"{position}[{index}]"
        yield from _open(place, list_version, item, source, is_typed=is_typed)
