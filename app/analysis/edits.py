"""Changes of objects as people write them: manifests to apply, objects to delete, patches."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from app.domain.errors import InputError
from app.domain.log import ObjectKey
from app.domain.objects import history_kinds, registry
from app.domain.objects.kind import Kind
from app.domain.objects.profile import Profile
from app.domain.objects.reader import ObjectsReader
from app.domain.objects.write.commands import (
    Command,
    DeleteObject,
    FieldValidation,
    PatchObject,
    PatchType,
    WriteOptions,
)
from app.domain.values import counts
from app.domain.values.fields import meta
from app.domain.values.json_tree import JsonObject

_DEFAULT_NAMESPACE = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class Apply:
    """The desired object; `place` is where it was written."""

    tree: JsonObject
    place: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteEdit:
    """An object to delete: `KIND/NAME`, or `KIND/NAMESPACE/NAME`."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchEdit:
    """A merge patch of an object; `name` as for `DeleteEdit`."""

    name: str
    body: JsonObject


class MissingObject(InputError):
    """An edit names an object that does not exist at its moment."""

    def __init__(self, problem: str, *, key: ObjectKey) -> None:
        self.key = key
        super().__init__(problem)


Edit: TypeAlias = Apply | DeleteEdit | PatchEdit


def commands_of(
    edits: Iterable[Edit], reader: ObjectsReader, profile: Profile, *, manager: str
) -> list[Command]:
    """The commands that make the changes, in their order. Raises InputError for unclear changes.

    Manifests are applied server-side; `manager` then owns their fields, taking over ownership.
    """
    options = WriteOptions(
        field_manager=manager, force=True, field_validation=FieldValidation.STRICT
    )
    return [_command(edit, reader, profile, options) for edit in edits]


def read_manifests(trees: Iterable[tuple[str, object]]) -> list[Apply]:
    """The objects in documents, each with its place; lists are expanded. Raises InputError."""
    edits: list[Apply] = []
    for place, tree in trees:
        if not isinstance(tree, dict):
            raise InputError("a document must be an object", place=place)
        items = tree.get("items")
        if str(tree.get("kind", "")).endswith("List") and isinstance(items, list):
            edits += read_manifests((f"{place} items[{n}]", item) for n, item in enumerate(items))
        else:
            edits.append(Apply(tree=tree, place=place))
    return edits


def key_of(text: str, reader: ObjectsReader) -> ObjectKey:
    """The key of an object that a person names, whether it exists or not. Raises InputError."""
    word, *names = text.split("/")
    kinds = _kinds(word, reader)
    if not kinds:
        raise InputError(f"there is no kind {word!r}", place=text)
    return _key(text, kinds[0], names)


def _key(text: str, kind: Kind, names: Sequence[str]) -> ObjectKey:
    if not all(names) or len(names) not in ((1, 2) if kind.namespaced else (1,)):
        word = text.partition("/")[0]
        form = f"{word}/NAMESPACE/NAME" if kind.namespaced else f"{word}/NAME"
        raise InputError(f"{text!r} does not name an object", cure=f"write it as {form}")
    namespace = names[0] if len(names) > 1 else _DEFAULT_NAMESPACE if kind.namespaced else ""
    return ObjectKey(kind.group, kind.plural, namespace, names[-1])


def _command(edit: Edit, reader: ObjectsReader, profile: Profile, options: WriteOptions) -> Command:
    match edit:
        case Apply(tree=tree, place=place):
            return _applied(tree, place, reader, profile, options)
        case DeleteEdit(name=name):
            key, version, _ = _object(name, reader, profile)
            return DeleteObject(key=key, version=version)
        case PatchEdit(name=name, body=body):
            key, version, kind = _object(name, reader, profile)
            form = PatchType.STRATEGIC if kind.custom is None else PatchType.MERGE
            return PatchObject(key=key, version=version, type=form, body=body, options=options)


def _applied(
    tree: JsonObject, place: str, reader: ObjectsReader, profile: Profile, options: WriteOptions
) -> Command:
    api_version, kind_name = tree.get("apiVersion"), tree.get("kind")
    if not isinstance(kind_name, str) or not kind_name:
        raise InputError("it has no kind", place=place)
    if not isinstance(api_version, str) or not api_version:
        raise InputError("it has no apiVersion", place=place)
    group, version = registry.split_api_version(api_version)
    kind = history_kinds.find_kind(reader, group, version, kind_name)
    if kind is None or not registry.is_served(kind, group, version, profile):
        raise InputError(
            f"there is no {kind_name} in {api_version}",
            place=place,
            cure=f"`kubectl explain {kind_name.lower()}` lists the versions",
        )
    if not meta.name(tree):
        raise InputError("it has no metadata.name", place=place)
    namespace = (meta.namespace(tree) or _DEFAULT_NAMESPACE) if kind.namespaced else ""
    key = ObjectKey(group, kind.plural, namespace, meta.name(tree))
    return PatchObject(key=key, version=version, type=PatchType.APPLY, body=tree, options=options)


def _object(text: str, reader: ObjectsReader, profile: Profile) -> tuple[ObjectKey, str, Kind]:
    """The object that a person names, and a version in which it is served."""
    word, *names = text.split("/")
    kinds = [kind for kind in _kinds(word, reader) if registry.served_versions(kind, profile)]
    if not kinds:
        raise InputError(f"there is no kind {word!r}", place=text)
    kind = kinds[0]
    stored_key = _key(text, kind, names)
    group, version = registry.served_versions(kind, profile)[0]
    key = stored_key._replace(group=group)
    if reader.get(stored_key) is None:
        problem = f"{text!r} does not exist at that moment{_elsewhere(key, reader)}"
        raise MissingObject(problem, key=stored_key)
    return key, version, kind


def _kinds(word: str, reader: ObjectsReader) -> Sequence[Kind]:
    """The kinds that a word may stand for, built-in ones first."""
    return registry.named(word, history_kinds.all_kinds(reader))


def _elsewhere(key: ObjectKey, reader: ObjectsReader) -> str:
    """A text with the other namespaces that have an object of that name; empty if there is none."""
    places = sorted(
        other.namespace
        for other in reader.keys(key.group, key.resource)
        if other.name == key.name and other.namespace != key.namespace
    )
    noun = counts.plural(len(places), "namespace")
    return f", but in {noun} {', '.join(places[:3])}" if places else ""
