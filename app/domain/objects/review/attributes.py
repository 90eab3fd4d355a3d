"""The attributes of a write that webhooks and policies see.

An `Attributes` is made only if a webhook or policy has to be asked. Its trees are in the storage
version.
Parity: objects.md 15.4, AdmissionRequest of admission.k8s.io/v1.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from app.domain.log import Actor, ObjectKey
from app.domain.objects import registry
from app.domain.objects.kind import Kind
from app.domain.objects.reader import ObjectsReader
from app.domain.objects.schema import conversion
from app.domain.values import api_groups
from app.domain.values.fields import meta
from app.domain.values.json_tree import JsonObject, JsonView

CREATE = "CREATE"
UPDATE = "UPDATE"
DELETE = "DELETE"

_EXEMPT = frozenset(
    {
        "mutatingadmissionpolicies",
        "mutatingadmissionpolicybindings",
        "mutatingwebhookconfigurations",
        "validatingadmissionpolicies",
        "validatingadmissionpolicybindings",
        "validatingwebhookconfigurations",
    }
)
_OTHER_KINDS = {
    "scale": (api_groups.AUTOSCALING, "v1", "Scale"),
    "binding": ("", "v1", "Binding"),
    "eviction": (api_groups.POLICY, "v1", "Eviction"),
}
"""Subresources whose objects have another kind: group, version and kind of these objects."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Requester:
    """The uid and extra fields of the user who writes, which the log does not store."""

    uid: str = ""
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class Attributes:
    """One write: the actor, the operation, the object's key, and the object before and after.

    `group` and `version` are those of the request. `tree` is None for a delete, `old` for a
    create. `given` caches the variables of expressions by group and version.
    """

    kind: Kind
    key: ObjectKey
    group: str
    version: str
    operation: str
    subresource: str = ""
    tree: JsonObject | None = None
    old: JsonObject | None = None
    actor: Actor
    requester: Requester | None = None
    field_manager: str = ""
    dry_run: bool = False
    given: dict[tuple[str, str], dict[str, object]] = field(default_factory=dict)

    @property
    def resource(self) -> JsonObject:
        """Group, version and resource of the request."""
        return {"group": self.group, "version": self.version, "resource": self.kind.plural}

    @property
    def namespace(self) -> str:
        """The namespace of the object; for a namespace, its own name."""
        if self.kind.plural == "namespaces" and not self.kind.group:
            return self.key.name
        return self.key.namespace

    @property
    def is_of_another_kind(self) -> bool:
        """Whether the trees have another kind than `kind`: Scale, Binding or Eviction."""
        return self.subresource in _OTHER_KINDS

    def kind_in(self, group: str, version: str) -> JsonObject:
        """Group, version and kind of the trees; those of Scale, Binding and Eviction are fixed."""
        other = _OTHER_KINDS.get(self.subresource)
        if other is not None:
            group, version, name = other
        else:
            name = self.kind.kind
        return {"group": group, "version": version, "kind": name}

    def trees_in(self, group: str, version: str) -> tuple[JsonObject | None, JsonObject | None]:
        """The object after and before the write, converted to a version of its kind."""
        if self.subresource in _OTHER_KINDS:
            return self.tree, self.old
        target = registry.api_version(group, version)
        source = self.kind.storage_api_version
        if target == source:
            return self.tree, self.old
        tree, old = (
            None if side is None else conversion.convert(side, self.kind, source, target)
            for side in (self.tree, self.old)
        )
        return tree, old

    def request_in(self, group: str, version: str) -> JsonObject:
        """The AdmissionRequest without uid and objects, in the version of a webhook or policy."""
        request: JsonObject = {
            "kind": self.kind_in(group, version),
            "resource": {"group": group, "version": version, "resource": self.kind.plural},
            "requestKind": self.kind_in(self.group, self.version),
            "requestResource": self.resource,
            "operation": self.operation,
            "userInfo": _user(self.actor, self.requester),
            "dryRun": self.dry_run,
            "options": self._options(),
        }
        if self.subresource:
            request["subResource"] = request["requestSubResource"] = self.subresource
        if self.key.name:
            request["name"] = self.key.name
        if self.namespace:
            request["namespace"] = self.namespace
        return request

    def _options(self) -> JsonObject:
        name = {CREATE: "CreateOptions", DELETE: "DeleteOptions"}.get(
            self.operation, "UpdateOptions"
        )
        options: JsonObject = {"kind": name, "apiVersion": f"{api_groups.META}/v1"}
        if self.field_manager:
            options["fieldManager"] = self.field_manager
        if self.dry_run:
            options["dryRun"] = ["All"]
        return options


def is_exempt(group: str, resource: str) -> bool:
    """Whether a resource is exempt from review: configurations, policies and bindings."""
    return group == api_groups.ADMISSION_REGISTRATION and resource in _EXEMPT


def namespace_of(attributes: Attributes, reader: ObjectsReader) -> JsonObject | None:
    """The namespace object of the write; None for cluster-scoped objects and missing namespaces."""
    if not attributes.key.namespace:
        return None
    return reader.get(ObjectKey("", "namespaces", "", attributes.key.namespace))


def labels_of(tree: JsonView | None) -> Mapping[str, str]:
    """The labels of an object."""
    return meta.labels(tree or {})


def _user(actor: Actor, requester: Requester | None) -> JsonObject:
    user: JsonObject = {"username": actor.user}
    if actor.groups:
        user["groups"] = list(actor.groups)
    if requester is not None:
        if requester.uid:
            user["uid"] = requester.uid
        if requester.extra:
            user["extra"] = {name: list(texts) for name, texts in requester.extra.items()}
    return user
