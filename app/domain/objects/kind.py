"""The description of a kind: names, versions, scope, subresources, selectable fields, behaviour."""

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
    """A selectable field: its label, its path, and its text when unset."""

    label: str
    path: tuple[str, ...]
    default: str = ""

    def value(self, tree: JsonView) -> str:
        """The text that selectors compare: booleans are `true` or `false`, numbers are digits."""
        value: Any = json_tree.get(tree, *self.path)
        if value is None:
            return self.default
        if isinstance(value, bool):
            return "true" if value else "false"
        return str(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """The releases that serve a version of a kind, and the release that deprecates it.

    Numbers are minor releases. `until` is the first release without the version; 0 when no such
    release is planned. `successor` names the replacement.
    """

    since: int = 0
    deprecated: int = 0
    until: int = 0
    successor: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """The paths of the fields of a Scale in an object; `selector` is empty when there is none."""

    spec_replicas: tuple[str, ...]
    status_replicas: tuple[str, ...]
    selector: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomVersion:
    """A version of a custom kind: the schema as written, the columns, the warning for requests."""

    name: str
    schema: JsonView = field(default_factory=dict)
    columns: tuple[JsonView, ...] = ()
    scale: Scale | None = None
    has_rules: bool = False
    warning: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Custom:
    """The versions of a custom kind by name.

    `revision` is the revision of the definition. Objects written before that revision may have
    another version or lack defaults.
    """

    versions: Mapping[str, CustomVersion]
    list_kind: str
    revision: int
    is_terminating: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, weakref_slot=True)
class Kind:
    """One kind, compared by identity. `versions` has the storage version first.

    `alias_group` is a second group that serves the same objects (events.k8s.io for Events). With
    the subresource `status`, writes to the main resource keep the status, and writes to `/status`
    change only the status. With `has_generation`, a change of the field `counted` raises the
    generation. `unconditional_update` allows a PUT without resourceVersion; `created_by_update`
    allows a PUT of an object that does not exist. When `orphans` is set, a delete keeps the
    dependents unless the request says otherwise. The kind is served only while `gate` is on; an
    empty gate is always on. `custom` is set for kinds that a history defines itself.
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
        """The version in which the log stores objects."""
        return self.versions[0]

    @property
    def storage_api_version(self) -> str:
        """The `apiVersion` of stored objects."""
        return api_version(self.group, self.versions[0])

    @property
    def has_status(self) -> bool:
        """True when the status is written only through its subresource."""
        return "status" in self.subresources

    @property
    def qualified_plural(self) -> str:
        """The plural with its group, as messages name it; core kinds have no group."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def qualified_kind(self) -> str:
        """The kind with its group: `ResourceClaim.resource.k8s.io`; core kinds have no group."""
        return f"{self.kind}.{self.group}" if self.group else self.kind

    @property
    def group_versions(self) -> tuple[tuple[str, str], ...]:
        """Every (group, version) that can serve the kind, storage version first."""
        own = tuple((self.group, version) for version in self.versions)
        return (*own, (self.alias_group, "v1")) if self.alias_group else own

    @property
    def list_kind(self) -> str:
        """The kind of a list of these objects."""
        return self.custom.list_kind if self.custom is not None else f"{self.kind}List"

    def field_label(self, label: str) -> FieldLabel | None:
        """The selectable field with this label; None when the label is not supported."""
        for known in self.field_labels:
            if known.label == label:
                return known
        return None


def api_version(group: str, version: str) -> str:
    """The `apiVersion`: `group/version`, or the version alone for the core group."""
    return f"{group}/{version}" if group else version


def split_api_version(text: str) -> tuple[str, str]:
    """The group and version of an `apiVersion`."""
    group, slash, version = text.partition("/")
    return (group, version) if slash else (api_groups.CORE, group)
