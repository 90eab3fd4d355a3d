"""A request about a resource, taken apart: which kind, which verb, which timeline."""

from dataclasses import dataclass, replace
from functools import lru_cache

from app.api.kubernetes import discovery
from app.api.kubernetes.negotiation import PLAIN, Form
from app.api.kubernetes.paths import ResourcePath
from app.api.kubernetes.representations import Target, check_include
from app.api.kubernetes.timelines import Timeline
from app.api.server.messages import Header, Request, Response, warning
from app.domain.errors import NotFound
from app.domain.log import Actor, ObjectKey
from app.domain.objects import history_kinds, registry, rejections
from app.domain.objects.access.escalation import GiverRights
from app.domain.objects.kinds import secret_values
from app.domain.objects.kinds.claim_rights import ClaimRights
from app.domain.objects.kinds.secret_values import SecretCipher
from app.domain.objects.registry import Kind
from app.domain.objects.review.attributes import Requester
from app.domain.objects.write import admission

NO_CONTAINERS = "an emulated node runs no containers, so there is nothing to connect to"
INSIDE_CONTAINERS = ("attach", "exec", "portforward", "proxy")
"""Subresources of pods that a kubelet answers; there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A request about a resource, with everything that was learned about it.

    `rights` are set when the domain judges a write also by what the writer holds, `requester` when
    more is known of the writer than a name and groups.
    """

    request: Request
    timeline: Timeline
    path: ResourcePath
    kind: Kind
    actor: Actor
    rights: ClaimRights | GiverRights | None = None
    requester: Requester | None = None

    @property
    def key(self) -> ObjectKey:
        """The object that is named, as it is stored; without a name for a collection."""
        kind, path = self.kind, self.path
        return ObjectKey(kind.group, kind.plural, path.namespace, path.name)

    @property
    def asked_key(self) -> ObjectKey:
        """The same, with the group that was asked for: commands are judged and answered in it."""
        path = self.path
        return ObjectKey(path.group, self.kind.plural, path.namespace, path.name)

    @property
    def secrets(self) -> SecretCipher | None:
        """What reveals the values, when the request is about Secrets."""
        return self.timeline.runtime.rules.secrets if secret_values.is_secret(self.key) else None

    def target(self, form: Form) -> Target:
        """How the answer is to be shown."""
        if form is PLAIN and not self.request.query:
            path = self.path
            return _plain(
                self.timeline.runtime.life, self.kind, path.group, path.version, self.secrets
            )
        return Target(
            life=self.timeline.runtime.life,
            kind=self.kind,
            group=self.path.group,
            version=self.path.version,
            form=form,
            include=check_include(self.request.parameter("includeObject")),
            secrets=self.secrets,
        )


@lru_cache(maxsize=256)
def _plain(life: int, kind: Kind, group: str, version: str, secrets: SecretCipher | None) -> Target:
    """The target of a request that asks for nothing special."""
    return Target(life=life, kind=kind, group=group, version=version, form=PLAIN, secrets=secrets)


def find_served(timeline: Timeline, path: ResourcePath) -> Kind:
    """The kind that a path names. Raises NotFound when it is not served so."""
    kind = history_kinds.find(timeline.views.objects, path.group, path.resource)
    profile = timeline.views.profile
    if kind is None or not registry.is_served(kind, path.group, path.version, profile):
        raise rejections.unknown_resource()
    if path.namespace and not kind.namespaced:
        raise rejections.unknown_resource()
    if path.name and kind.namespaced and not path.namespace:
        raise rejections.unknown_resource()
    if path.subresource and path.subresource not in discovery.served_subresources(kind):
        inside = kind.plural == "pods" and path.subresource in INSIDE_CONTAINERS
        raise NotFound(NO_CONTAINERS) if inside else rejections.unknown_resource()
    return kind


def verb_of(request: Request, path: ResourcePath) -> str:
    """The API verb of a request. Raises MethodNotAllowed.

    Parity: api.md 6; resources know no HEAD, and `watch=true` means nothing beside the name of an
    object.
    """
    method = request.method
    if method == "GET":
        if path.subresource:
            return "get"
        if path.is_watch:
            return "watch"
        if path.name:
            return "get"
        return "watch" if request.query and request.flag("watch") else "list"
    if method == "POST" and (not path.name or path.subresource):
        return "create"
    if method == "PUT" and path.name:
        return "update"
    if method == "PATCH" and path.name:
        return "patch"
    if method == "DELETE" and not path.subresource:
        return "delete" if path.name else "deletecollection"
    raise rejections.not_allowed()


def deprecation(timeline: Timeline, path: ResourcePath, kind: Kind) -> str:
    """The warning that the version of a request gets, also when it is refused; or nothing."""
    if path.version == "v1" and kind.custom is None and kind.served is None:
        return ""
    return registry.deprecation(kind, path.version, timeline.views.profile)


def deprecated(answer: Response, timeline: Timeline, path: ResourcePath, kind: Kind) -> Response:
    """The answer with the warning that its version gets, if any."""
    text = deprecation(timeline, path, kind)
    if not text:
        return answer
    header: Header = warning(text)
    return replace(answer, headers=(*answer.headers, header))


def object_not_found(call: Call) -> NotFound:
    """The error for an object that does not exist, in the group that was asked for."""
    return rejections.not_found(admission.as_asked(call.kind, call.path.group), call.path.name)
