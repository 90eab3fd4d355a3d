"""Recorded writes under another release's API: refused, without some fields, or unchanged.

The rules of both releases judge each write from outside. An objection of the other release alone is
attributed to it. An objection of both shows that the recording, or the knowledge of the recorded
release, is imperfect, and has no effect.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import msgspec

from app.analysis.diff.causes import Proof
from app.analysis.rehearse import versions
from app.analysis.rehearse.attribution import Finding
from app.analysis.replay.inputs import Input
from app.domain.errors import Invalid, Rejected, StatusCause
from app.domain.log import ObjectKey, Revision
from app.domain.objects import field_errors, registry, rejections
from app.domain.objects.field_errors import FieldError, FieldErrorType
from app.domain.objects.reader import ObjectsReader
from app.domain.objects.registry import Kind
from app.domain.objects.rules import Rules
from app.domain.objects.schema import conversion, gates, prune, structural
from app.domain.objects.validation.devices import slices
from app.domain.objects.write.commands import Command, DeleteObject, ImportObject
from app.domain.values import api_groups, well_known
from app.domain.values.fields import core, dra, meta
from app.domain.values.json_tree import JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedWrite:
    """A write that the other release refuses, with the text of its API.

    `version` is the API version of the write if that version is not served, else empty. With
    `is_over_limit`, a list of the object is too long there. With `must_be_split`, the content of
    one slice must be divided into several.
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
        """The object and the refusal, as the key of the finding in trials."""
        return ("refused", str(self.key), self.text)


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldsKept:
    """Fields of an object that only one of the two releases keeps, in the words of its warnings.

    `author` is empty where the recording does not name it.
    """

    key: ObjectKey
    revision: Revision
    author: str
    texts: tuple[str, ...]

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The fields of the object, as the keys of findings in trials."""
        return tuple(("dropped", str(self.key), text) for text in self.texts)


@dataclass(slots=True, kw_only=True, eq=False)
class Admission:
    """The API of the other release. `doubtful` are objects that both releases refuse here.

    `placed` are those to which a scheduler from outside gave devices or a node, with its name: here
    redra's scheduler has decided already, so neither API lets the write change that.
    """

    source: Rules
    target: Rules
    refused: list[RefusedWrite] = field(default_factory=list)
    dropped: list[FieldsKept] = field(default_factory=list)
    doubtful: dict[ObjectKey, str] = field(default_factory=dict)
    placed: dict[ObjectKey, str] = field(default_factory=dict)

    @property
    def concerned(self) -> frozenset[ObjectKey]:
        """The objects that are refused, or accepted without some fields."""
        refused = {each.key for each in self.refused}
        return frozenset(refused | {each.key for each in self.dropped})

    def settings_of(self, proofs: Mapping[Finding, Proof]) -> dict[str, frozenset[str]]:
        """The settings to which refused and dropped parts of objects were put down, by object.

        Objects with a part whose settings are not known are left out.
        """
        findings = [(each.key, each.finding) for each in self.refused]
        findings += [(each.key, finding) for each in self.dropped for finding in each.findings]
        settings: dict[str, frozenset[str]] = {}
        unknown: set[str] = set()
        for key, finding in findings:
            name, proof = str(key), proofs.get(finding)
            if proof is None or not proof.settings:
                unknown.add(name)
            else:
                settings[name] = settings.get(name, frozenset()).union(proof.settings)
        return {name: each for name, each in settings.items() if name not in unknown}

    def admit(self, write: Input, command: Command, objects: ObjectsReader) -> Command:
        """The write as the other release accepts it. Raises Rejected."""
        event = write.event
        kind = registry.find(event.key.group, event.key.resource)
        if kind is None:
            return command
        try:
            self._check_served(write, kind)
            if not isinstance(command, ImportObject):
                return self._deletion(command, kind)
            return self._admitted(write, command, kind, objects)
        except Rejected as refusal:
            errors = refusal.causes if isinstance(refusal, Invalid) else ()
            self.refused.append(
                RefusedWrite(
                    key=event.key,
                    revision=event.revision,
                    author=versions.author_of(write),
                    change=event.type.value,
                    text=str(refusal),
                    version="" if isinstance(refusal, Invalid) else versions.version_of(write),
                    is_over_limit=any(_is_over_limit(cause) for cause in errors),
                    must_be_split=event.key.resource == "resourceslices"
                    and any(_is_over_limit(cause) and cause.field in _WHOLE for cause in errors),
                )
            )
            raise

    def _check_served(self, write: Input, kind: Kind) -> None:
        """Raises NotFound for a version that only the other release does not serve."""
        version = versions.version_of(write)
        if not version:
            return
        place = (kind, write.event.key.group, version)
        if registry.is_served(*place, self.source.profile) and not registry.is_served(
            *place, self.target.profile
        ):
            raise rejections.unknown_resource()

    def _deletion(self, command: Command, kind: Kind) -> Command:
        """A deletion in a served version, if the recorded version never was served."""
        if not isinstance(command, DeleteObject):
            return command
        group = command.key.group
        if registry.is_served(kind, group, command.version, self.target.profile):
            return command
        served = registry.served_versions(kind, self.target.profile)
        return msgspec.structs.replace(command, version=served[0][1]) if served else command

    def _admitted(
        self, write: Input, command: ImportObject, kind: Kind, objects: ObjectsReader
    ) -> Command:
        old = objects.get(command.key) if command.operation == "MODIFIED" else None
        if old is not None and write.is_about_status and kind.group != api_groups.RESOURCE:
            return command
        tree = self._kept(write, command, kind, old)
        subresource = "status" if write.is_about_status else ""
        errors = _errors(self.target, kind, tree, old, subresource, objects, write)
        if errors:
            known = _errors(self.source, kind, command.tree, old, subresource, objects, write)
            before = {str(error) for error in known}
            news = [error for error in errors if str(error) not in before]
            if news:
                name = write.event.key.name
                raise field_errors.rejection(kind.kind, kind.group, name, news)
            key = write.event.key
            if old is not None and _places(tree) not in (None, "", _places(old)):
                self.doubtful.pop(key, None)
                self.placed.setdefault(key, versions.author_of(write))
            elif key not in self.placed:
                self.doubtful.setdefault(key, str(errors[0]))
        return command if tree is command.tree else msgspec.structs.replace(command, tree=tree)

    def _kept(
        self, write: Input, command: ImportObject, kind: Kind, old: JsonObject | None
    ) -> JsonObject:
        """The tree without the fields that only the other release drops."""
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
                    key=write.event.key,
                    revision=write.event.revision,
                    author=versions.author_of(write),
                    texts=tuple(dropped),
                )
            )
        return tree


def _places(tree: JsonObject) -> object:
    """The node of a pod, or the allocation of a claim; nothing for other objects."""
    match meta.kind(tree):
        case "Pod":
            return core.node_name(tree)
        case "ResourceClaim":
            return dra.allocation(tree)
        case _:
            return None


_WHOLE = frozenset(("spec", "spec.devices", "spec.sharedCounters"))
"""The fields whose excess content can be divided into several slices."""

_LIMITS = frozenset((slices.APART_TEXT, *slices.TOTALS))
"""Limits that the API reports as invalid values."""


def _is_over_limit(cause: StatusCause) -> bool:
    """Whether a value is refused because of its size or number."""
    kinds = (FieldErrorType.TOO_MANY.value[1], FieldErrorType.TOO_LONG.value[1])
    return cause.reason in kinds or cause.message.rpartition(": ")[2] in _LIMITS


def dropped_by(
    rules: Rules, kind: Kind, tree: JsonObject, old: JsonObject | None
) -> tuple[tuple[str, ...], JsonObject]:
    """The fields that a release drops because of disabled gates, and a copy without them."""
    copied: JsonObject = msgspec.json.decode(msgspec.json.encode(tree))
    return gates.drop_disabled(kind, copied, old, rules.profile), copied


def _pruned(rules: Rules, kind: Kind, tree: JsonObject) -> tuple[JsonObject, list[str]]:
    """The tree without fields that the release does not know, and these as text."""
    try:
        return prune.clean(structural.storage_node(rules.schemas, kind), tree)
    except prune.WrongType:
        # A value of a wrong type is left to validation.
        return tree, []


def _errors(
    rules: Rules,
    kind: Kind,
    tree: JsonObject,
    old: JsonObject | None,
    subresource: str,
    objects: ObjectsReader,
    write: Input,
) -> list[FieldError]:
    context = rules.context(objects, write.time)
    if old is None:
        return rules.validate_create(kind, tree, context)
    return rules.validate_update(kind, tree, old, subresource, context)


def newly_kept(inputs: Iterable[Input], source: Rules, target: Rules) -> list[FieldsKept]:
    """The fields that were applied and dropped so far, and that the other release keeps.

    Each is returned once for each object. A recorded object lacks what its release dropped, but
    `kubectl apply` leaves the whole configuration in an annotation, which shows what was intended.
    """
    seen: set[tuple[ObjectKey, tuple[str, ...]]] = set()
    kept = []
    for given in inputs:
        texts = _newly_kept_texts(given, source, target)
        key = given.event.key
        if texts and (key, texts) not in seen:
            seen.add((key, texts))
            kept.append(
                FieldsKept(
                    key=key,
                    revision=given.event.revision,
                    author=versions.author_of(given),
                    texts=texts,
                )
            )
    return kept


def _newly_kept_texts(write: Input, source: Rules, target: Rules) -> tuple[str, ...]:
    event = write.event
    text = meta.annotations(event.object).get(well_known.LAST_APPLIED)
    kind = registry.find(event.key.group, event.key.resource)
    if not text or kind is None or source.profile.open_gates == target.profile.open_gates:
        return ()
    applied = _applied_tree(str(text))
    group, version = registry.split_api_version(str(applied.get("apiVersion", "")))
    if (group, version) not in kind.group_versions:
        return ()
    tree = conversion.convert(
        applied, kind, registry.api_version(group, version), kind.storage_api_version
    )
    still = set(dropped_by(target, kind, tree, None)[0])
    return tuple(each for each in dropped_by(source, kind, tree, None)[0] if each not in still)


def _applied_tree(text: str) -> JsonObject:
    """The configuration in an annotation, which anyone may have written; empty if unreadable."""
    try:
        tree = msgspec.json.decode(text)
    except msgspec.DecodeError:
        return {}
    return tree if isinstance(tree, dict) and isinstance(tree.get("spec"), dict) else {}
