"""What a kind is: names, versions, scope, subresources, selectable fields, behaviour."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from app.domain.values import api_groups, json_tree
from app.domain.values.json_tree import JsonView

READ_VERBS = ("get", "list", "watch")
WRITE_VERBS = ("create", "delete", "deletecollection", "patch", "update")
ALL_VERBS = tuple(sorted(READ_VERBS + WRITE_VERBS))


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldLabel:
    """A selectable field: its label, where it stands, and its text when unset."""

    label: str
    path: tuple[str, ...]
    default: str = ""

    def value(self, tree: JsonView) -> str:
        """The field as selectors see it: booleans as `true` and `false`, numbers in digits."""
        value: Any = json_tree.get(tree, *self.path)
        if value is None:
            return self.default
        if isinstance(value, bool):
            return "true" if value else "false"
        return str(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """In which releases a version of a kind is served and since when it is deprecated.

    Numbers are minor releases. `until` is the first release without it, 0 when none is planned.
    `successor` names what to use instead.
    """

    since: int = 0
    deprecated: int = 0
    until: int = 0
    successor: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """Where the parts of a Scale stand in an object; `selector` is empty when there is none."""

    spec_replicas: tuple[str, ...]
    status_replicas: tuple[str, ...]
    selector: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomVersion:
    """One version: its schema as written, its columns, and the warning that requests for it get."""

    name: str
    schema: JsonView = field(default_factory=dict)
    columns: tuple[JsonView, ...] = ()
    scale: Scale | None = None
    has_rules: bool = False
    warning: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Custom:
    """All versions of a custom kind by name.

    `revision` is that of the definition: objects that were written before it may have another
    version or lack defaults.
    """

    versions: Mapping[str, CustomVersion]
    list_kind: str
    revision: int
    is_terminating: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, weakref_slot=True)
class Kind:
    """One kind, compared by identity. `versions` has the storage version first.

    `alias_group` is a second group under which the same objects are served (events.k8s.io for
    Events). `status` tells that main-resource writes leave the status alone and `/status` writes
    only it. A generation is a change of the field `counted`. `unconditional_update` allows a PUT
    without resourceVersion, `created_by_update` one of an object that is not there. A delete of a
    kind that `orphans` keeps the dependents unless it says otherwise. `gate` must be on for the
    kind to be served at all. `custom` is set for kinds that a history defines itself.
    """

    group: str
    versions: tuple[str, ...]
    kind: str
    plural: str
    singular: str
    namespaced: bool
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()
    has_generation: bool = False
    counted: str = "spec"
    unconditional_update: bool = True
    created_by_update: bool = False
    orphans: bool = False
    columns: str = "NameAge"
    field_labels: tuple[FieldLabel, ...] = ()
    verbs: tuple[str, ...] = ALL_VERBS
    served: Mapping[str, Served] | None = None
    gate: str = ""
    alias_group: str = ""
    name_format: str = "subdomain"
    custom: Custom | None = None

    @property
    def storage_version(self) -> str:
        """The version in which objects stand in the log."""
        return self.versions[0]

    @property
    def storage_api_version(self) -> str:
        """`apiVersion` of stored trees."""
        return api_version(self.group, self.versions[0])

    @property
    def has_status(self) -> bool:
        """True when status is written through its subresource only."""
        return "status" in self.subresources

    @property
    def qualified_plural(self) -> str:
        """`resourceclaims.resource.k8s.io`; for core kinds just the plural. As messages name it."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def qualified_kind(self) -> str:
        """`ResourceClaim.resource.k8s.io`; for core kinds just the kind."""
        return f"{self.kind}.{self.group}" if self.group else self.kind

    @property
    def group_versions(self) -> tuple[tuple[str, str], ...]:
        """Every (group, version) under which objects of the kind can be read, storage first."""
        own = tuple((self.group, version) for version in self.versions)
        return (*own, (self.alias_group, "v1")) if self.alias_group else own

    @property
    def list_kind(self) -> str:
        """The kind of its lists."""
        return self.custom.list_kind if self.custom is not None else f"{self.kind}List"

    def field_label(self, label: str) -> FieldLabel | None:
        """The selectable field of that label; None when it is not supported."""
        for known in self.field_labels:
            if known.label == label:
                return known
        return None


def api_version(group: str, version: str) -> str:
    """`group/version`, or the version alone for the core group."""
    return f"{group}/{version}" if group else version


def split_api_version(text: str) -> tuple[str, str]:
    """Group and version of an `apiVersion`."""
    group, slash, version = text.partition("/")
    return (group, version) if slash else (api_groups.CORE, group)
