"""The joining of objects from printed kubectl output with the other sources.

A table and a description may show the same object, and a dump may hold it completely. Printed
objects are therefore held back until all other sources are read. Those that no other source shows
become one record for each state, with the fields of all places that print it: two tables of one
text that contradict each other show two states (`printed_states`).

What is printed of an object that other sources show whole is left out, unless it shows that they
lack a write. Most of it has no version and no time, and may be older or newer than they are. But
some facts an object gets once: a pod its node and its end, a claim devices, both their deletion. If
no recorded state has such a fact, or if a description has a later version than all of them, nobody
knows what else happened: the object has a gap at the end. So it has where a log of the scheduler,
or an Event that kubectl printed or that stands in another source, says that a pod was bound.
Parity: history-formats.md 6.
"""

import hashlib
import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from app.adapters.history import kinds
from app.adapters.history.formats import component_logs, kubelet_lines
from app.adapters.history.formats.dumps import DERIVED_UIDS
from app.adapters.history.joining.spool import Row, Spool
from app.adapters.history.printouts import event_objects, printed_states
from app.adapters.history.reading import Notes
from app.domain.errors import Rejected
from app.domain.log import ObjectKey
from app.domain.log.records import (
    BoundEffect,
    Loss,
    Op,
    Quality,
    Record,
    comparable_version,
    join_losses,
)
from app.domain.objects import registry
from app.domain.objects.schema import conversion
from app.domain.values import api_groups, api_resources, json_tree, patches
from app.domain.values.fields import core, dra, entries, meta
from app.domain.values.json_tree import JsonObject, JsonView

_GROUPS_OF_EVENTS = ("", api_groups.EVENTS)
_COMPARED = (
    api_resources.PODS,
    api_resources.RESOURCE_CLAIMS,
    api_resources.RESOURCE_SLICES,
    api_resources.DEVICE_CLASSES,
    api_resources.DEVICE_TAINT_RULES,
)
"""The kinds whose printed states are compared with the recorded ones."""

_END = "SELECT max(own) FROM record WHERE epoch = 0"
_UNSEEN = "{who} {fact}, which no other source shows: what happened to the object is not known"
_NOTHING: JsonObject = {}
_DELETION = "its deletion"
_NODE = "the node {}"
_SAID = {
    "bound": re.compile(r"Successfully bound pod to node: node (?P<node>[a-z0-9.-]+)"),
    "Scheduled": re.compile(r"Successfully assigned \S+ to (?P<node>[a-z0-9.-]+)"),
}
"""The messages of an attempt and of an Event that name the node of a pod."""


class PrintedObjects:
    """The printed objects, by key. `spool` holds the records of all other sources.

    A table of one namespace does not name it. An object whose namespace no command above it tells
    either is the one of its kind and name that is shown in one other namespace, or that a log of a
    component is about; else it is taken to be in `default`, which `notes` count as a guess.
    """

    def __init__(self, spool: Spool, notes: Notes) -> None:
        self._spool = spool
        self._notes = notes
        self._records: dict[ObjectKey, list[Record]] = {}
        self._guessed: list[Record] = []
        self._whole_events: set[bytes] = set()
        self._bound: dict[ObjectKey, Record] = {}
        self._attempted: set[ObjectKey] = set()

    def held_back(self, records: Iterator[Record]) -> Iterator[Record]:
        """The records of other sources; records of printed objects are held back."""
        for record in records:
            if Loss.PRINTED not in record.losses:
                self._note_binding(record)
                yield record
                continue
            is_guess = bool(record.namespace) and not meta.namespace(record.object or {})
            if is_guess:
                self._guessed.append(record)
            else:
                _add(self._records, record)

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
        left: dict[ObjectKey, list[Record]] = {}
        for states in self._records.values():
            self._note_binding(states[-1])
        for key, states in self._records.items():
            if states[-1].resource == "events" and self._is_whole_elsewhere(states[-1]):
                left_out += 1
            elif key in shown:
                last, is_new = shown[key]
                if not (is_new and self._is_added(last, states[-1])):
                    left_out += 1
                    left[key] = states
            else:
                yield from _numbered(key, states, named.get(key, ""))
        left = {key: states for key, states in left.items() if key[:2] in _COMPARED}
        for key, state in self._unbound():
            left.setdefault(key, []).append(state)
        yield from _gaps(self._spool, left)
        if left_out:
            self._notes.count("printed objects that another source shows whole, left out", left_out)

    def _note_binding(self, record: Record) -> None:
        """Keep what an attempt or an Event says of the node of its pod, as a state of the pod."""
        if record.op is Op.CONTEXT:
            if record.actor in (component_logs.SCHEDULER, kubelet_lines.KUBELET):
                self._attempted.add(record.key)
            said, message, event = record.verb, record.message, _NOTHING
        elif record.resource == "events":
            event = record.object or _NOTHING
            said, message = str(event.get("reason")), str(event.get("message"))
        else:
            return
        match = _SAID[said].match(message) if said in _SAID else None
        if match is None:
            return
        involved = _involved(event)
        namespace = meta.namespace(event) or record.namespace
        key = ObjectKey(*api_resources.PODS, namespace, entries.name(involved) or record.name)
        uid = involved.get("uid") or ""
        self._bound[key] = msgspec.structs.replace(
            record,
            group=key.group,
            resource=key.resource,
            name=key.name,
            namespace=key.namespace,
            object={"metadata": {"uid": uid}, "spec": {"nodeName": match["node"]}},
        )

    def _unbound(self) -> Iterator[tuple[ObjectKey, Record]]:
        """The bound pods that no state of another source than the one that says so shows bound."""
        for key, (last, _) in self._spool.shown(self._bound).items():
            tree, bound = self._spool.tree(last) or {}, self._bound[key]
            is_other = meta.uid(bound.object or {}) not in ("", meta.uid(tree))
            if not core.node_name(tree) and not is_other:
                yield key, bound

    def _named_uids(self) -> dict[ObjectKey, str]:
        """The uids of printed pods by which claims name them; none where claims name several."""
        if not any(key[:2] == api_resources.PODS for key in self._records):
            return {}
        claims = (states for key, states in self._records.items() if _is_claim(key))
        printed = (state.object for states in claims for state in states)
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
        joined = _joined(*_alike(record, manifest))
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
        for key in (*self._records, *self._spool.keys(), *self._attempted):
            homes.setdefault((key.group, key.resource, key.name), set()).add(key)
        guesses: set[ObjectKey] = set()
        for record in self._guessed:
            home = homes.get(_subject(record), set())
            if len(home) != 1 and record.key not in guesses:
                guesses.add(record.key)
                self._notes.count("printed objects taken to be in the namespace default, a guess")
            namespace = next(iter(home)).namespace if len(home) == 1 else record.namespace
            tree = {**(record.object or {})}
            tree["metadata"] = {**meta.metadata(tree), "namespace": namespace}
            if "involvedObject" in tree:
                tree["involvedObject"] = {**tree["involvedObject"], "namespace": namespace}
            _add(self._records, msgspec.structs.replace(record, namespace=namespace, object=tree))


@dataclass(slots=True)
class _Recorded:
    """The facts and the last version of an object in the records of the other sources."""

    facts: set[str] = field(default_factory=set)
    newest: str = ""
    has_gap: bool = False
    sources: set[str] = field(default_factory=set)

    def add(self, row: Row) -> None:
        record = row.record
        if record.op is not Op.CONTEXT:
            self.sources.add(record.source)
        self.newest = max(self.newest, row.own)
        self.has_gap = self.has_gap or record.op is Op.GAP
        self.facts.update(_facts(record.key, row.tree() or {}))
        if isinstance(record.effect, BoundEffect):
            self.facts.add(_NODE.format(record.effect.node))
        elif record.effect is not None or record.op is Op.DELETED:
            self.facts.add(_DELETION)

    def lacks(self, printed: Record) -> list[str]:
        """The printed facts that are not known.

        Nothing of an object that has a gap already; what an attempt or an Event says counts only
        of a pod that another source shows, and that is not deleted.
        """
        is_said = Loss.PRINTED not in printed.losses
        if self.has_gap or (
            is_said and (printed.source in self.sources or _DELETION in self.facts)
        ):
            return []
        tree = printed.object or {}
        version = meta.resource_version(tree)
        facts = [fact for fact in _facts(printed.key, tree) if fact not in self.facts]
        is_later = self.newest and comparable_version(version) > self.newest
        return [*facts, *([f"version {version}"] if is_later else [])]


def _gaps(spool: Spool, printed: Mapping[ObjectKey, Sequence[Record]]) -> Iterator[Record]:
    """The gaps of the objects of which a printed state has what no record in the spool has."""
    known = {key: _Recorded() for key in printed}
    for row in spool.rows_of_keys(printed) if printed else ():
        known[row.record.key].add(row)
    (end,) = spool.database.execute(_END).fetchone()
    for key, states in printed.items():
        for state in states:
            if facts := known[key].lacks(state):
                yield _gap(state, facts, end or "")
                break


def _gap(state: Record, facts: Sequence[str], end: str) -> Record:
    who = "kubectl printed" if Loss.PRINTED in state.losses else "a log or an Event says"
    return Record(
        source=state.source,
        position=state.position,
        op=Op.GAP,
        group=state.group,
        resource=state.resource,
        namespace=state.namespace,
        name=state.name,
        object_quality=Quality.IDENTITY,
        order_key=(0, end, 4, *state.order_key[3:]),
        losses=(Loss.GAP, Loss.NO_DELETE_STATE) if _DELETION in facts else (Loss.GAP,),
        message=_UNSEEN.format(who=who, fact=facts[0]),
    )


def _facts(key: ObjectKey, tree: JsonView) -> Iterator[str]:
    """The facts of an object that it never loses once it has them."""
    if meta.is_deleting(tree):
        yield _DELETION
    if _is_claim(key) and dra.allocation(tree) is not None:
        yield "its allocation"
        yield from (f"the device {one.text}" for one in dra.results(tree))
    elif key[:2] == api_resources.PODS:
        if node := core.node_name(tree):
            yield _NODE.format(node)
        if core.is_finished(tree):
            yield f"the phase {meta.phase(tree)}"


def _is_claim(key: ObjectKey) -> bool:
    return key[:2] == api_resources.RESOURCE_CLAIMS


def _involved(event: JsonView) -> JsonView:
    return json_tree.mapping(event, "involvedObject")


def _subject(record: Record) -> tuple[str, str, str]:
    """Group, resource and name of the object of a record, or of the subject of an Event."""
    involved = _involved(record.object or {})
    if not involved:
        return record.group, record.resource, record.name
    group, _ = kinds.split_version(meta.api_version(involved))
    resource = kinds.resource_of(meta.kind(involved))
    return group, resource, entries.name(involved)


def _numbered(key: ObjectKey, states: Sequence[Record], named: str) -> Iterator[Record]:
    """The states of an object with its uid; one that was made anew has another uid.

    `named` is the uid that claims give, for the last object of the name.
    """
    last = max((at for at, each in enumerate(states) if each.op is Op.BASELINE), default=0)
    uid = ""
    for at, record in enumerate(states):
        # Fields that the last place shows as absent are taken away.
        tree = patches.apply_merge({}, record.object or {})
        if record.op is Op.BASELINE:
            parts = (*key, record.position) if at else key
            uid = meta.uid(tree) or (named if at == last else "")
            uid = uid or str(uuid.uuid5(DERIVED_UIDS, "\0".join(parts)))
        metadata = {**meta.metadata(tree), "uid": uid}
        yield msgspec.structs.replace(record, uid=uid, object={**tree, "metadata": metadata})


def _add(records: dict[ObjectKey, list[Record]], record: Record) -> None:
    states = records.setdefault(record.key, [])
    if not states:
        states.append(record)
        return
    known, record = _alike(states[-1], record)
    joined = _joined(known, record)
    before, after = known.object or {}, record.object or {}
    if record.resource == "events":
        tree = event_objects.with_span(joined.object or {}, before)
        states[-1] = msgspec.structs.replace(joined, object=tree)
    elif record.source == known.source and printed_states.is_another(before, after):
        states.append(record)
    elif record.source != known.source or not printed_states.contradict(before, after):
        # Nothing tells which of two files was written first.
        tree = printed_states.together(before, joined.object or {}, after)
        states[-1] = msgspec.structs.replace(joined, object=tree)
    else:
        losses = join_losses(joined.losses, (Loss.COLLAPSED,))
        tree = printed_states.next_state(joined.object or {}, after)
        states.append(msgspec.structs.replace(record, op=Op.MODIFIED, object=tree, losses=losses))


def _digest(name: str) -> bytes:
    return hashlib.blake2b(name.encode("utf-8", "replace"), digest_size=12).digest()


def _alike(known: Record, record: Record) -> tuple[Record, Record]:
    """The records, in the version of the log if theirs differ: only pages of kubectl show one."""
    versions = {meta.api_version(each.object or {}) for each in (known, record)}
    return (known, record) if len(versions) == 1 else (_stored(known), _stored(record))


def _stored(record: Record) -> Record:
    """The record in the version of the log; as it is where that one has no such object."""
    kind, tree = registry.find(record.group, record.resource), record.object or {}
    if kind is None:
        return record
    try:
        tree = conversion.convert(tree, kind, meta.api_version(tree), kind.storage_api_version)
    except Rejected:
        return record
    return msgspec.structs.replace(record, object=tree)


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
