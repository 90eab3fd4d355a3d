"""Recorded identities for objects that our controllers make.

The suffix of a generated name and a uid are random. An object that a controller makes here gets the
name and the uid that its recorded counterpart had: the one with the same owner and the same
generateName, the first such that was not made yet. Then what comes from outside and names the
object needs no translation, and comparisons are literal.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from app.domain.log import Event, EventType, ObjectKey
from app.domain.objects.commands import Command, CreateObject, PatchObject, UpdateObject
from app.domain.values import json_tree
from app.domain.values.json_tree import JsonObject, JsonView
from app.ports import UidSource

_Place: TypeAlias = tuple[str, str, str, str, tuple[str, ...]]


class RecordedNames:
    """Hands out recorded names and uids, and is the `UidSource` of the timeline.

    Feed recorded creations by `learn` and events of the timeline by `follow`.
    """

    def __init__(self, fresh: UidSource) -> None:
        self._fresh = fresh
        self._known: dict[_Place, list[tuple[str, str]]] = defaultdict(list)
        self._made: set[str] = set()
        self._next: list[str] = []

    def learn(self, event: Event) -> None:
        """Remember an object that a controller made in the recording."""
        if event.type is EventType.OBJECT_CREATED and event.uid:
            place = _place(event.key, event.object)
            self._known[place].append((event.key.name, event.uid))

    def follow(self, event: Event) -> None:
        """See which identities are in use here."""
        if event.type is EventType.OBJECT_CREATED:
            self._made.add(event.uid)

    def adapt(self, commands: Sequence[Command]) -> Sequence[Command]:
        """The commands with recorded names; the next uids are the recorded ones."""
        self._next = []
        adapted: list[Command] = []
        taken: set[str] = set()
        renamed: dict[str, str] = {}
        for command in commands:
            if not isinstance(command, CreateObject):
                adapted.append(command)
                continue
            name, uid = self._identity(command, taken)
            taken.add(uid)
            self._next.append(uid)
            if name and command.key.name and _base(command.tree):
                # A name that the plan has drawn itself; its other commands use it too.
                renamed[command.key.name] = name
            elif name and not command.key.name:
                metadata = {**json_tree.mapping(command.tree, "metadata"), "name": name}
                tree: JsonObject = {**command.tree, "metadata": metadata}
                command = replace(command, key=command.key._replace(name=name), tree=tree)
            adapted.append(command)
        return [_renamed(command, renamed) for command in adapted] if renamed else adapted

    def uid(self) -> str:
        """The recorded uid of the object that is made now, or a fresh one."""
        return (self._next.pop(0) if self._next else "") or self._fresh.uid()

    def _identity(self, command: CreateObject, taken: set[str]) -> tuple[str, str]:
        for name, uid in self._known.get(_place(command.key, command.tree), ()):
            if uid not in self._made and uid not in taken:
                return name, uid
        return "", ""


def _place(key: ObjectKey, tree: JsonView) -> _Place:
    """What an object and its recorded counterpart have in common."""
    owners = json_tree.objects(tree, "metadata", "ownerReferences")
    uids = tuple(sorted(json_tree.text(owner, "uid") for owner in owners))
    return key.group, key.resource, key.namespace, _base(tree) or key.name, uids


def _base(tree: JsonView) -> str:
    return json_tree.text(tree, "metadata", "generateName")


def _renamed(command: Command, names: dict[str, str]) -> Command:
    """The command with other names, in its key and wherever a value is one of them."""
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
