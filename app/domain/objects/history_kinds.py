"""The kinds of a history: those that every server has, and those that its definitions add.

Built-in kinds are found without looking at the objects; only a name that no built-in kind has costs
a look at the definitions. The definitions are those that `reader` shows, so a past moment has the
kinds of then.
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
    """The kind that an object names; None when this version of it is not known."""
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
