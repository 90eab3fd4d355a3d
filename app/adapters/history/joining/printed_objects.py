"""The joining of objects from printed kubectl output with the other sources.

A table and a description may show the same object, and a dump may hold it completely. Printed
objects are therefore held back until all other sources are read. Those that no other source shows
become one record each, with the fields of all places that print them.
"""

import hashlib
import uuid
from collections.abc import Iterator

import msgspec

from app.adapters.history import kinds
from app.adapters.history.formats.dumps import DERIVED_UIDS
from app.adapters.history.joining.spool import Spool
from app.adapters.history.printouts import event_objects
from app.adapters.history.reading import Notes
from app.domain.log import ObjectKey
from app.domain.log.records import Loss, Record, join_losses
from app.domain.values import api_groups, api_resources, json_tree, patches
from app.domain.values.fields import dra, meta

_GROUPS_OF_EVENTS = ("", api_groups.EVENTS)


class PrintedObjects:
    """The printed objects, by key. `spool` holds the records of all other sources.

    A table of one namespace does not name it. An object whose namespace no command above it tells
    either is the one of its kind and name that is shown in one other namespace; else it is taken to
    be in `default`, which `notes` count as a guess.
    """

    def __init__(self, spool: Spool, notes: Notes) -> None:
        self._spool = spool
        self._notes = notes
        self._records: dict[ObjectKey, Record] = {}
        self._guessed: dict[ObjectKey, Record] = {}
        self._whole_events: set[bytes] = set()

    def held_back(self, records: Iterator[Record]) -> Iterator[Record]:
        """The records of other sources; records of printed objects are held back."""
        for record in records:
            if Loss.PRINTED not in record.losses:
                yield record
                continue
            is_guess = bool(record.namespace) and not meta.namespace(record.object or {})
            known = self._guessed if is_guess else self._records
            _add(known, record)

    def alone(self) -> Iterator[Record]:
        """The records of printed objects that no other source shows.

        What is printed of a manifest is added to it. Call this after `held_back` is exhausted.
        """
        self._place()
        if any(key.resource == "events" for key in self._records):
            self._whole_events = {
                _digest(event_objects.content_key(tree))
                for group in _GROUPS_OF_EVENTS
                for tree in self._spool.trees(group, "events")
            }
        shown = self._spool.shown(self._records)
        named = self._named_uids()
        left_out = 0
        for key, record in self._records.items():
            if record.resource == "events" and self._is_whole_elsewhere(record):
                left_out += 1
                continue
            if key in shown:
                last, is_new = shown[key]
                left_out += not (is_new and self._is_added(last, record))
                continue
            # Fields that the last place shows as absent are taken away.
            tree = patches.apply_merge({}, record.object or {})
            uid = meta.uid(tree) or named.get(key)
            uid = uid or str(uuid.uuid5(DERIVED_UIDS, "\0".join(key)))
            metadata = {**meta.metadata(tree), "uid": uid}
            yield msgspec.structs.replace(record, uid=uid, object={**tree, "metadata": metadata})
        if left_out:
            self._notes.count("printed objects that another source shows whole, left out", left_out)

    def _named_uids(self) -> dict[ObjectKey, str]:
        """The uids of printed pods by which claims name them; none where claims name several."""
        if not any(key[:2] == api_resources.PODS for key in self._records):
            return {}
        printed = (record.object for key, record in self._records.items() if _is_claim(key))
        named: dict[ObjectKey, set[str]] = {}
        for tree in (*self._spool.trees(*api_resources.RESOURCE_CLAIMS), *printed):
            pods = [(each.name, each.uid) for each in dra.consumers(tree or {})]
            pods += [(owner.name, owner.uid) for owner in meta.owners(tree or {})]
            for name, uid in pods:
                key = ObjectKey(*api_resources.PODS, meta.namespace(tree or {}), name)
                if uid:
                    named.setdefault(key, set()).add(uid)
        return {key: next(iter(uids)) for key, uids in named.items() if len(uids) == 1}

    def _is_whole_elsewhere(self, record: Record) -> bool:
        """True for an Event with a derived name whose content another source shows as a whole."""
        tree = record.object or {}
        guessed = {**tree, "metadata": {**meta.metadata(tree), "namespace": ""}}
        name = event_objects.content_key(tree)
        is_derived = record.name in (name, event_objects.content_key(guessed))
        return is_derived and _digest(name) in self._whole_events

    def _is_added(self, row: int, record: Record) -> bool:
        """Add what is printed to the last manifest of an object; False when it is shown whole.

        What the manifest itself says takes precedence.
        """
        last = self._spool.row(row)
        if Loss.NO_UID not in last.record.losses:
            return False
        manifest = msgspec.structs.replace(last.record, object=last.tree())
        joined = _joined(record, manifest)
        losses = join_losses(joined.losses, (Loss.NO_UID,))
        whole = msgspec.structs.replace(
            last.record, object=patches.apply_merge({}, joined.object or {}), losses=losses
        )
        self._spool.replace(last, whole)
        return True

    def _place(self) -> None:
        """Give the objects without a namespace one."""
        if not self._guessed:
            return
        homes: dict[tuple[str, str, str], set[ObjectKey]] = {}
        for key in (*self._records, *self._spool.keys()):
            homes.setdefault((key.group, key.resource, key.name), set()).add(key)
        for record in self._guessed.values():
            home = homes.get(_subject(record), set())
            if len(home) != 1:
                self._notes.count("printed objects taken to be in the namespace default, a guess")
            namespace = next(iter(home)).namespace if len(home) == 1 else record.namespace
            tree = {**(record.object or {})}
            tree["metadata"] = {**meta.metadata(tree), "namespace": namespace}
            if "involvedObject" in tree:
                tree["involvedObject"] = {**tree["involvedObject"], "namespace": namespace}
            _add(self._records, msgspec.structs.replace(record, namespace=namespace, object=tree))


def _is_claim(key: ObjectKey) -> bool:
    return key[:2] == api_resources.RESOURCE_CLAIMS


def _subject(record: Record) -> tuple[str, str, str]:
    """Group, resource and name of the object of a record, or of the subject of an Event."""
    involved = json_tree.mapping(record.object or {}, "involvedObject")
    if not involved:
        return record.group, record.resource, record.name
    group, _ = kinds.split_version(json_tree.text(involved, "apiVersion"))
    resource = kinds.resource_of(json_tree.text(involved, "kind"))
    return group, resource, json_tree.text(involved, "name")


def _add(records: dict[ObjectKey, Record], record: Record) -> None:
    known = records.get(record.key)
    if known is not None:
        last = _joined(known, record)
        if record.resource == "events":
            tree = event_objects.with_span(last.object or {}, known.object or {})
            last = msgspec.structs.replace(last, object=tree)
        record = last
    records[record.key] = record


def _digest(name: str) -> bytes:
    return hashlib.blake2b(name.encode("utf-8", "replace"), digest_size=12).digest()


def _joined(known: Record, record: Record) -> Record:
    """One record with the fields of both places; the later place takes precedence."""
    tree = patches.apply_merge(known.object, record.object)
    missing = set(join_losses(known.losses, record.losses))
    if meta.uid(tree):
        missing.discard(Loss.NO_UID)
    if tree.get("status"):
        missing.discard(Loss.NO_STATUS)
    return msgspec.structs.replace(
        known, uid=meta.uid(tree), object=tree, losses=tuple(sorted(missing))
    )
