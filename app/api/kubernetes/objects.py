"""Requests about resources: their verb, their object and their response.

Reads come from the views. Writes become commands, and the domain decides whether they are allowed.
Parity: api.md 5, 6, 8.
"""

from collections.abc import Awaitable, Callable
from dataclasses import replace

import msgspec

from app.api.identity.authentication import Identity
from app.api.identity.service_tokens import ServiceTokens
from app.api.kubernetes import calls, negotiation, parameters, selection, status
from app.api.kubernetes.calls import ResourceCall
from app.api.kubernetes.lists import Lists
from app.api.kubernetes.negotiation import PLAIN
from app.api.kubernetes.parameters import ListOptions
from app.api.kubernetes.paths import ResourcePath
from app.api.kubernetes.representations import Representations, Target, respond
from app.api.kubernetes.subresources import Subresources
from app.api.kubernetes.timelines import Timeline
from app.api.kubernetes.watching import Watching
from app.api.kubernetes.writes import Writes, with_warnings
from app.api.server.limits import ApiLimits
from app.api.server.messages import PUSH, HttpRequest, RequestLabels, Response, Stream, warning
from app.api.server.metrics import METRIC_VERBS
from app.domain.errors import RedraError
from app.domain.log import Event
from app.domain.objects import registry, rejections
from app.domain.objects.access.escalation import GiverRights
from app.domain.objects.kinds import secret_values
from app.domain.objects.kinds.claim_rights import ClaimRights
from app.domain.objects.review.attributes import Requester


class Objects:
    """Answers all requests below a group-version."""

    def __init__(
        self,
        *,
        lists: Lists,
        watching: Watching,
        representations: Representations,
        tokens: ServiceTokens,
        limits: ApiLimits,
    ) -> None:
        self._lists = lists
        self._watching = watching
        self._representations = representations
        self._limits = limits
        self._writes = Writes(representations, limits)
        self._subresources = Subresources(self._writes, representations, tokens, limits)

    async def answer(
        self,
        request: HttpRequest,
        timeline: Timeline,
        path: ResourcePath,
        identity: Identity,
        rights: ClaimRights | GiverRights | None = None,
    ) -> Response | Stream:
        """The response to a request about a resource. Raises Rejected."""
        kind = calls.find_served(timeline, path)
        call = ResourceCall(
            request=request,
            timeline=timeline,
            path=path,
            kind=kind,
            actor=identity.actor,
            rights=rights,
            requester=_requester(identity),
        )
        verb = calls.verb_of(request, path)
        request.subject = RequestLabels(
            history=timeline.runtime.info.name,
            verb=METRIC_VERBS[verb],
            group=path.group,
            version=path.version,
            resource=path.resource,
            subresource=path.subresource,
            scope="resource" if path.name else "namespace" if path.namespace else "cluster",
        )
        try:
            answer = await self._answer(call, verb)
        except RedraError as problem:
            if not calls.deprecation(timeline, path, kind):
                raise
            answer = status.answer(problem)
        if isinstance(answer, Stream):
            return answer
        return calls.deprecated(answer, timeline, path, kind)

    async def _answer(self, call: ResourceCall, verb: str) -> Response | Stream:
        request, timeline = call.request, call.timeline
        if verb not in ("get", "list", "watch"):
            timeline.check_writable()
            # No write happens for a client that could not receive the response.
            call.target(negotiation.choose(request.header(b"accept")))
        if call.path.subresource:
            return await self._subresources.answer(call, verb)
        if verb == "get":
            if request.query and (revision := parameters.get_revision(request)):
                await timeline.wait_for(revision, self._limits.revision_wait_seconds)
            return self._get(call)
        if verb == "list":
            return await self._list(call)
        if verb == "watch":
            return await self._watch(call)
        return await self._write(call, verb)

    async def bind(
        self, request: HttpRequest, timeline: Timeline, path: ResourcePath, identity: Identity
    ) -> Response:
        """The response to a Binding whose body names the pod. Raises Rejected."""
        timeline.check_writable()
        pods = replace(path, resource="pods", subresource="binding")
        kind = calls.find_served(timeline, pods)
        call = ResourceCall(
            request=request,
            timeline=timeline,
            path=pods,
            kind=kind,
            actor=identity.actor,
            requester=_requester(identity),
        )
        call.target(negotiation.choose(request.header(b"accept")))
        return await self._subresources.bind_named(call)

    async def _write(self, call: ResourceCall, verb: str) -> Response:
        if verb not in call.kind.verbs:
            raise rejections.not_allowed()
        write = _WRITES.get(verb)
        if write is None:
            raise rejections.not_allowed()
        return await write(self._writes, call)

    def _get(self, call: ResourceCall) -> Response:
        form = negotiation.choose(call.request.header(b"accept"))
        event = call.timeline.views.objects.event(call.key)
        if event is None:
            raise calls.object_not_found(call)
        target = call.target(form)
        negotiation.check_of(form, is_list=False, kind=call.kind)
        if form is PLAIN and target.serves(event):
            return Response(event.body)
        now = call.timeline.now
        answer = respond(self._representations.shown_bytes(event, target, now), form)
        return with_warnings(answer, _unreadable(event, target))

    async def _list(self, call: ResourceCall) -> Response:
        form = negotiation.choose(call.request.header(b"accept"))
        negotiation.check_of(form, is_list=True, kind=call.kind)
        options = parameters.list_options(call.request)
        body = await self._lists.read(
            call.timeline, call.target(form), _selection(call, options), options
        )
        return respond(body, form)

    async def _watch(self, call: ResourceCall) -> Stream:
        form = negotiation.choose(call.request.header(b"accept"))
        options = replace(parameters.list_options(call.request), watch=True)
        stream = await self._watching.open(
            call.timeline,
            call.target(form),
            _selection(call, options),
            options,
            push=call.request.scope.get(PUSH),
        )
        text = registry.deprecation(call.kind, call.path.version, call.timeline.views.profile)
        return msgspec.structs.replace(stream, headers=(warning(text),)) if text else stream


_WRITES: dict[str, Callable[[Writes, ResourceCall], Awaitable[Response]]] = {
    "create": Writes.create,
    "update": Writes.update,
    "patch": Writes.patch,
    "delete": Writes.delete,
    "deletecollection": Writes.delete_collection,
}


def _requester(identity: Identity) -> Requester | None:
    """The facts about the user beside name and groups; None when there are none."""
    if not identity.uid and not identity.extra:
        return None
    return Requester(uid=identity.uid, extra=identity.extra)


def _unreadable(event: Event, target: Target) -> tuple[str, ...]:
    """The warning that values of a Secret are digests, or encrypted with an unknown key."""
    if target.secrets is None:
        return ()
    names = secret_values.unreadable(
        secret_values.revealed(event.key, event.object, target.secrets)
    )
    if not names:
        return ()
    return (f"values cannot be read here, and placeholders are shown: {', '.join(names)}",)


def _selection(call: ResourceCall, options: ListOptions) -> selection.Selection:
    return selection.compile_selection(
        call.kind,
        group=call.path.group,
        namespace=call.path.namespace or None,
        name=call.path.name,
        label_selector=options.label_selector,
        field_selector=options.field_selector,
    )
