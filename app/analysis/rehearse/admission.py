"""What another release's API makes of recorded writes: refused, without some fields, or as it was.

The rules of both releases judge each write from outside. What only the other one has against it is
the release's; what both have against it says that the recording, or what is known of the
recorded release, is imperfect, and changes nothing.
"""

from dataclasses import dataclass, field, replace

import msgspec

from app.analysis.rehearse import versions
from app.analysis.rehearse.attribution import Finding
from app.analysis.replay.inputs import Input
from app.domain.errors import Cause, Invalid, Rejected
from app.domain.log import ObjectKey, Revision
from app.domain.objects import field_errors, registry, rejections
from app.domain.objects.field_errors import FieldError, FieldErrorType
from app.domain.objects.reader import ObjectsReader
from app.domain.objects.registry import Kind
from app.domain.objects.rules import Rules
from app.domain.objects.schema import gates, prune, structural
from app.domain.objects.validation.devices import slices
from app.domain.objects.write.commands import Command, DeleteObject, ImportObject
from app.domain.values import api_groups
from app.domain.values.json_tree import JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedWrite:
    """A write that the other release refuses, with the text of its API.

    `version` is the API version of the write where that is what is not served, else empty. With
    `is_over_limit` a list of the object is too long there, or what is in one slice must be in
    several: `must_be_split`.
    """

    key: ObjectKey
    revision: Revision
    author: str
    change: str
    text: str
    version: str = ""
    is_over_limit: bool = False
    must_be_split: bool = False

    @property
    def finding(self) -> Finding:
        """What is refused and why, by which trials know it."""
        return ("refused", str(self.key), self.text)


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldsKept:
    """Fields of an object that are kept by one of the two releases only, as the warnings have it.

    `author` is empty where the recording does not name it.
    """

    key: ObjectKey
    revision: Revision
    author: str
    texts: tuple[str, ...]

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Each field of the object, by which trials know it."""
        return tuple(("dropped", str(self.key), text) for text in self.texts)


@dataclass(slots=True, kw_only=True, eq=False)
class Admission:
    """The API of the other release. `doubtful` are objects that both releases refuse here."""

    source: Rules
    target: Rules
    refused: list[RefusedWrite] = field(default_factory=list)
    dropped: list[FieldsKept] = field(default_factory=list)
    doubtful: dict[ObjectKey, str] = field(default_factory=dict)

    @property
    def concerned(self) -> frozenset[ObjectKey]:
        """The objects that are refused, or taken without some fields."""
        refused = {each.key for each in self.refused}
        return frozenset(refused | {each.key for each in self.dropped})

    def admit(self, given: Input, command: Command, objects: ObjectsReader) -> Command:
        """The write as the other release takes it. Raises Rejected."""
        event = given.event
        kind = registry.find(event.key.group, event.key.resource)
        if kind is None:
            return command
        try:
            self._check_served(given, kind)
            if not isinstance(command, ImportObject):
                return self._deletion(command, kind)
            return self._admitted(given, command, kind, objects)
        except Rejected as refusal:
            errors = refusal.causes if isinstance(refusal, Invalid) else ()
            self.refused.append(
                RefusedWrite(
                    key=event.key,
                    revision=event.revision,
                    author=versions.author_of(given),
                    change=event.type.value,
                    text=str(refusal),
                    version="" if isinstance(refusal, Invalid) else versions.version_of(given),
                    is_over_limit=any(_is_over_limit(cause) for cause in errors),
                    must_be_split=event.key.resource == "resourceslices"
                    and any(_is_over_limit(cause) and cause.field in _WHOLE for cause in errors),
                )
            )
            raise

    def _check_served(self, given: Input, kind: Kind) -> None:
        """Raise NotFound for a version that the other release alone does not serve."""
        version = versions.version_of(given)
        if not version:
            return
        place = (kind, given.event.key.group, version)
        if registry.is_served(*place, self.source.profile) and not registry.is_served(
            *place, self.target.profile
        ):
            raise rejections.unknown_resource()

    def _deletion(self, command: Command, kind: Kind) -> Command:
        """A deletion in a version that is served, where the recorded one never was."""
        if not isinstance(command, DeleteObject):
            return command
        group = command.key.group
        if registry.is_served(kind, group, command.version, self.target.profile):
            return command
        served = registry.served_versions(kind, self.target.profile)
        return replace(command, version=served[0][1]) if served else command

    def _admitted(
        self, given: Input, command: ImportObject, kind: Kind, objects: ObjectsReader
    ) -> Command:
        old = objects.get(command.key) if command.operation == "MODIFIED" else None
        if old is not None and given.is_about_status and kind.group != api_groups.RESOURCE:
            return command
        tree = self._kept(given, command, kind, old)
        subresource = "status" if given.is_about_status else ""
        errors = _errors(self.target, kind, tree, old, subresource, objects, given)
        if errors:
            known = _errors(self.source, kind, command.tree, old, subresource, objects, given)
            before = {str(error) for error in known}
            news = [error for error in errors if str(error) not in before]
            if news:
                name = given.event.key.name
                raise field_errors.rejection(kind.kind, kind.group, name, news)
            self.doubtful.setdefault(given.event.key, str(errors[0]))
        return command if tree is command.tree else replace(command, tree=tree)

    def _kept(
        self, given: Input, command: ImportObject, kind: Kind, old: JsonObject | None
    ) -> JsonObject:
        """The tree without what the other release alone drops."""
        dropped: list[str] = []
        tree = command.tree
        if self.source.schemas is not self.target.schemas:
            ours, unknown = _pruned(self.target, kind, tree)
            news = set(unknown) - set(_pruned(self.source, kind, tree)[1])
            if news:
                dropped += sorted(news)
                tree = ours
        texts, without = dropped_by(self.target, kind, tree, old)
        news = set(texts) - set(dropped_by(self.source, kind, command.tree, old)[0])
        if news:
            dropped += sorted(news)
            tree = without
        if dropped:
            self.dropped.append(
                FieldsKept(
                    key=given.event.key,
                    revision=given.event.revision,
                    author=versions.author_of(given),
                    texts=tuple(dropped),
                )
            )
        return tree


_WHOLE = frozenset(("spec", "spec.devices", "spec.sharedCounters"))
"""Where what is too much for one slice can be put into several."""

_LIMITS = frozenset((slices.APART_TEXT, *slices.TOTALS))
"""Limits that the API tells as invalid values."""


def _is_over_limit(cause: Cause) -> bool:
    """Whether a value is refused for its size or its number."""
    kinds = (FieldErrorType.TOO_MANY.value[1], FieldErrorType.TOO_LONG.value[1])
    return cause.reason in kinds or cause.message.rpartition(": ")[2] in _LIMITS


def dropped_by(
    rules: Rules, kind: Kind, tree: JsonObject, old: JsonObject | None
) -> tuple[tuple[str, ...], JsonObject]:
    """What a release drops of a tree because gates are off, in words, and a copy without it."""
    copied: JsonObject = msgspec.json.decode(msgspec.json.encode(tree))
    return gates.drop_disabled(kind, copied, old, rules.profile), copied


def _pruned(rules: Rules, kind: Kind, tree: JsonObject) -> tuple[JsonObject, list[str]]:
    """The tree without fields that the release does not know, and these in words."""
    try:
        return prune.clean(structural.storage_node(rules.schemas, kind), tree)
    except prune.WrongType:
        # What is recorded as another type is left to validation.
        return tree, []


def _errors(
    rules: Rules,
    kind: Kind,
    tree: JsonObject,
    old: JsonObject | None,
    subresource: str,
    objects: ObjectsReader,
    given: Input,
) -> list[FieldError]:
    context = rules.context(objects, given.time)
    if old is None:
        return rules.validate_create(kind, tree, context)
    return rules.validate_update(kind, tree, old, subresource, context)
