"""The names and uids that objects of redra's controllers get from recorded counterparts.

The suffix of a generated name, a uid and the id of a share are random. An object that a controller
makes here gets the name and the uid of its recorded counterpart: the first recorded object with the
same owners and the same generateName that was not made yet, and whose name a server generated.
Inputs from outside that name the object then need no translation, and comparisons are literal. An
allocation gets the share ids of the recorded one of the same claim and devices, because a driver
names shares in the status that it writes.

Mutating webhooks label and annotate what controllers make, and a recording need not show them. So a
recorded label or annotation that is not of a domain of Kubernetes and that redra's controller does
not write, is an input: the object gets it here, too. Controllers that decide again write no others.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

from msgspec.structs import replace

from app.domain.log import Event, EventType, ObjectKey
from app.domain.objects.write.commands import Command, CreateObject, PatchObject, UpdateObject
from app.domain.values.fields import dra, meta
from app.domain.values.identifiers import NO_UID, DeviceName, DriverName, PoolName, Uid
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.names import GENERATED_BASE_MAX
from app.ports import UidSource

_Place: TypeAlias = tuple[str, str, str, str, tuple[str, ...]]

_OF_KUBERNETES = ("kubernetes.io", "k8s.io")
"""The domains of the keys that Kubernetes itself writes, and those below them."""

_Share: TypeAlias = tuple[str, DriverName, PoolName, DeviceName, str]
"""Request, driver, pool, device, id; the id is empty for a whole device."""


class _Counterpart(NamedTuple):
    """The recorded creation of an object: its identity, and the keys that others may have added."""

    name: str = ""
    uid: Uid = NO_UID
    labels: Mapping[str, str] = MappingProxyType({})
    annotations: Mapping[str, str] = MappingProxyType({})


class RecordedNames:
    """Provides recorded names and uids; it is the `UidSource` of the timeline.

    `learn` takes recorded creations, `follow` takes events of the timeline. Fresh uids are none of
    those that `is_recorded`: a history may have made its own in the same way.
    """

    def __init__(self, fresh: UidSource, is_recorded: Callable[[Uid], bool]) -> None:
        self._fresh = fresh
        self._is_recorded = is_recorded
        self._known: dict[_Place, list[_Counterpart]] = defaultdict(list)
        self._made: set[Uid] = set()
        self._next: list[Uid] = []
        self._shares: dict[Uid, list[list[_Share]]] = defaultdict(list)
        self._shares_here: set[str] = set()

    def learn(self, event: Event) -> None:
        """Notes an object that was made in the recording, or shares that were allocated there."""
        shares = _shares_of(event.key, event.object)
        if shares and event.type is not EventType.OBJECT_DELETED:
            known = self._shares[event.uid]
            if shares not in known:
                known.append(shares)
        if event.type is EventType.OBJECT_CREATED and event.uid and _is_generated(event):
            form = _place(event.key, event.object)
            labels, annotations = meta.labels(event.object), meta.annotations(event.object)
            counterpart = _Counterpart(
                event.key.name, event.uid, _of_others(labels), _of_others(annotations)
            )
            self._known[form].append(counterpart)

    def follow(self, event: Event) -> None:
        """Notes the identities that are in use here."""
        if event.type is EventType.OBJECT_CREATED:
            self._made.add(event.uid)
        self._shares_here.update(share[-1] for share in _shares_of(event.key, event.object))

    def adapt(self, commands: Sequence[Command]) -> Sequence[Command]:
        """The commands with recorded names and shares; `uid` then returns the recorded uids."""
        self._next = []
        adapted: list[Command] = []
        used_uids: set[Uid] = set()
        renamed: dict[str, str] = {}
        made: dict[str, Uid] = {}
        for command in commands:
            if not isinstance(command, CreateObject):
                adapted.append(self._with_shares(command, made))
                continue
            counterpart = self._counterpart(command, used_uids)
            name, uid = counterpart.name, counterpart.uid
            command = replace(command, tree=_with_additions(command.tree, counterpart))
            used_uids.add(uid)
            self._next.append(uid)
            made[command.key.name] = uid
            if name and command.key.name and meta.generate_name(command.tree):
                # The plan has generated this name itself; its other commands use it too.
                renamed[command.key.name] = name
            elif name and not command.key.name:
                metadata = {**meta.metadata(command.tree), "name": name}
                tree: JsonObject = {**command.tree, "metadata": metadata}
                command = replace(command, key=command.key._replace(name=name), tree=tree)
            adapted.append(command)
        return [_renamed(command, renamed) for command in adapted] if renamed else adapted

    def uid(self) -> Uid:
        """The recorded uid of the next object that is made, or a fresh one."""
        recorded = self._next.pop(0) if self._next else NO_UID
        if recorded:
            return recorded
        while self._is_recorded(fresh := self._fresh.uid()):
            pass
        return fresh

    def _with_shares(self, command: Command, made: Mapping[str, Uid]) -> Command:
        """The command, with recorded share ids if it allocates shares of the recorded devices.

        `made` are the uids, by name, of objects that earlier commands make.
        """
        if not isinstance(command, UpdateObject):
            return command
        ours = _shares_of(command.key, command.tree)
        if not ours or any(share[-1] in self._shares_here for share in ours if share[-1]):
            return command
        uid = meta.uid(command.tree) or made.get(command.key.name, NO_UID)
        for shares in self._shares.get(uid, ()):
            is_used = any(share[-1] in self._shares_here for share in shares if share[-1])
            if not is_used and [share[:-1] for share in shares] == [share[:-1] for share in ours]:
                pairs = zip(ours, shares, strict=True)
                names = {mine[-1]: theirs[-1] for mine, theirs in pairs if mine[-1] and theirs[-1]}
                return replace(command, tree=_with_names(command.tree, names))
        return command

    def _counterpart(self, command: CreateObject, used_uids: set[Uid]) -> _Counterpart:
        for each in self._known.get(_place(command.key, command.tree), ()):
            if each.uid not in self._made and each.uid not in used_uids:
                return each
        return _Counterpart()


def _of_others(keys: Mapping[str, str]) -> dict[str, str]:
    """The labels or annotations whose keys are not of a domain of Kubernetes."""
    return {
        key: value
        for key, value in keys.items()
        if not f".{key.rpartition('/')[0]}".endswith(tuple(f".{each}" for each in _OF_KUBERNETES))
    }


def _with_additions(tree: JsonObject, counterpart: _Counterpart) -> JsonObject:
    """The object with the recorded labels and annotations that it lacks."""
    metadata: JsonObject = dict(meta.metadata(tree))
    for field, ours, theirs in (
        ("labels", meta.labels(tree), counterpart.labels),
        ("annotations", meta.annotations(tree), counterpart.annotations),
    ):
        if theirs.keys() - ours.keys():
            metadata[field] = {**theirs, **ours}
    return tree if metadata == meta.metadata(tree) else {**tree, "metadata": metadata}


def _place(key: ObjectKey, tree: JsonView) -> _Place:
    """The properties by which the recorded counterpart of an object is found."""
    uids = tuple(sorted(owner.uid for owner in meta.owners(tree)))
    return key.group, key.resource, key.namespace, meta.generate_name(tree) or key.name, uids


def _shares_of(key: ObjectKey, tree: JsonView) -> list[_Share]:
    """The results of a claim's allocation; empty when none of them is a share."""
    if key.resource != "resourceclaims":
        return []
    shares = [(result.request, *result.id, result.share_id) for result in dra.results(tree)]
    return shares if any(share[-1] for share in shares) else []


def _is_generated(event: Event) -> bool:
    """Whether the name of a created object consists of its generateName and a suffix.

    Parity: controllers.md 2.2.
    """
    base = meta.generate_name(event.object)[:GENERATED_BASE_MAX]
    return not base or event.key.name.startswith(base)


def _renamed(command: Command, names: dict[str, str]) -> Command:
    """The command with names replaced, in its key and in all values that equal one of them."""
    match command:
        case CreateObject() | UpdateObject():
            key = command.key._replace(name=names.get(command.key.name, command.key.name))
            return replace(command, key=key, tree=_with_names(command.tree, names))
        case PatchObject():
            key = command.key._replace(name=names.get(command.key.name, command.key.name))
            return replace(command, key=key, body=_with_names(command.body, names))
        case _:
            return command


def _with_names(tree: Any, names: dict[str, str]) -> Any:
    if isinstance(tree, dict):
        return {field: _with_names(value, names) for field, value in tree.items()}
    if isinstance(tree, list):
        return [_with_names(item, names) for item in tree]
    return names.get(tree, tree) if isinstance(tree, str) else tree
