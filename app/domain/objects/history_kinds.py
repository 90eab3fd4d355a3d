"""The kinds of a history: the built-in kinds, and those of its CustomResourceDefinitions.

Built-in kinds are found without reading objects; the definitions are read only for a name that no
built-in kind has. The definitions are those at the revision of `reader`, so a past moment has the
kinds of that moment.
"""

from collections.abc import Iterator

from app.domain.objects import registry
from app.domain.objects.custom import definitions
from app.domain.objects.reader import ObjectsReader
from app.domain.objects.registry import Kind


def find(reader: ObjectsReader, group: str, resource: str) -> Kind | None:
    """The kind that a path names by group and plural."""
    builtin = registry.find(group, resource)
    return builtin if builtin is not None else definitions.find(reader, group, resource)


def find_kind(reader: ObjectsReader, group: str, version: str, kind: str) -> Kind | None:
    """The kind with this group, version and name; None when the kind has no such version."""
    builtin = registry.find_kind(group, version, kind)
    if builtin is not None:
        return builtin
    for custom in definitions.all_kinds(reader):
        if custom.group == group and custom.kind == kind and version in custom.versions:
            return custom
    return None


def all_kinds(reader: ObjectsReader) -> Iterator[Kind]:
    """Built-in kinds in the order of their table, then custom ones by name."""
    yield from registry.kinds()
    yield from definitions.all_kinds(reader)
