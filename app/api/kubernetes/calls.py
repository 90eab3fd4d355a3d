"""A request about a resource after parsing: its kind, verb and timeline."""

from functools import lru_cache

import msgspec

from app.api.kubernetes import discovery
from app.api.kubernetes.negotiation import PLAIN, NegotiatedForm
from app.api.kubernetes.paths import ResourcePath
from app.api.kubernetes.representations import Target, check_include
from app.api.kubernetes.timelines import Timeline
from app.api.server.messages import Header, HttpRequest, Response, warning
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
"""Subresources of pods that need a kubelet with containers; the emulation has none."""


class ResourceCall(msgspec.Struct, frozen=True, kw_only=True):
    """A request about a resource, with all parsed facts about it.

    `rights` is set when the domain also judges a write by the rights of the writer; `requester` is
    set when more is known about the writer than name and groups.
    """

    request: HttpRequest
    timeline: Timeline
    path: ResourcePath
    kind: Kind
    actor: Actor
    rights: ClaimRights | GiverRights | None = None
    requester: Requester | None = None

    @property
    def key(self) -> ObjectKey:
        """The key of the object as stored; without a name for a collection."""
        kind, path = self.kind, self.path
        return ObjectKey(kind.group, kind.plural, path.namespace, path.name)

    @property
    def asked_key(self) -> ObjectKey:
        """The key with the requested group; commands are judged and answered in this group."""
        path = self.path
        return ObjectKey(path.group, self.kind.plural, path.namespace, path.name)

    @property
    def secrets(self) -> SecretCipher | None:
        """The cipher that reveals values, when the request is about Secrets; else None."""
        return self.timeline.runtime.rules.secrets if secret_values.is_secret(self.key) else None

    def target(self, form: NegotiatedForm) -> Target:
        """The representation of the response."""
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
    """The target of a request without special options."""
    return Target(life=life, kind=kind, group=group, version=version, form=PLAIN, secrets=secrets)


def find_served(timeline: Timeline, path: ResourcePath) -> Kind:
    """The kind at a path. Raises NotFound when it is not served there."""
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


def verb_of(request: HttpRequest, path: ResourcePath) -> str:
    """The API verb of a request. Raises MethodNotAllowed.

    Parity: api.md 6; resources do not support HEAD, and `watch=true` is ignored for the path of an
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
    """The deprecation warning of a version, also for refused requests; empty when there is none."""
    if path.version == "v1" and kind.custom is None and kind.served is None:
        return ""
    return registry.deprecation(kind, path.version, timeline.views.profile)


def deprecated(answer: Response, timeline: Timeline, path: ResourcePath, kind: Kind) -> Response:
    """The response with the deprecation warning of its version, if there is one."""
    text = deprecation(timeline, path, kind)
    if not text:
        return answer
    header: Header = warning(text)
    return msgspec.structs.replace(answer, headers=(*answer.headers, header))


def object_not_found(call: ResourceCall) -> NotFound:
    """The error for an object that does not exist, in the requested group."""
    return rejections.not_found(admission.in_group(call.kind, call.path.group), call.path.name)
