"""Subresources of objects: status, finalize, binding, eviction, log, …"""

from collections.abc import Awaitable, Callable
from dataclasses import replace

import anyio
import anyio.lowlevel
import msgspec

from app.api.identity.service_tokens import ServiceTokens
from app.api.kubernetes import calls, negotiation, parameters
from app.api.kubernetes.calls import ResourceCall
from app.api.kubernetes.representations import Representations, encode, respond
from app.api.kubernetes.writes import Writes, with_warnings
from app.api.server.limits import ApiLimits
from app.api.server.messages import TEXT, Response
from app.domain.controllers import conditions, registry
from app.domain.errors import BadRequest, Conflict, TooManyRequests
from app.domain.objects import field_errors, rejections
from app.domain.objects.review.attributes import CREATE, Attributes
from app.domain.objects.write import eviction, subresources
from app.domain.objects.write.commands import (
    BindPod,
    DeleteObject,
    PatchObject,
    PatchType,
    UpdateObject,
    WriteOptions,
)
from app.domain.values import condition_types, json_tree, timestamps
from app.domain.values.fields import core, entries, meta
from app.domain.values.json_tree import JsonObject

_CREATED: JsonObject = {
    "kind": "Status",
    "apiVersion": "v1",
    "metadata": {},
    "status": "Success",
    "code": 201,
}

_EVICTED: JsonObject = {
    "type": condition_types.DISRUPTION_TARGET,
    "status": "True",
    "reason": "EvictionByEvictionAPI",
    "message": "Eviction API: evicting",
}
"""The condition of a pod that is evicted by an API request."""


_STEP = WriteOptions(skips_review=True)
"""Options of the steps of an eviction; policies review the eviction as a whole."""


class Subresources:
    """Answers requests to subresources."""

    def __init__(
        self,
        writes: Writes,
        representations: Representations,
        tokens: ServiceTokens,
        limits: ApiLimits,
    ) -> None:
        self._writes = writes
        self._tokens = tokens
        self._representations = representations
        self._limits = limits
        self._evicting = anyio.Lock()

    async def answer(self, call: ResourceCall, verb: str) -> Response:
        """The response to a request for a subresource. Raises Rejected."""
        name = call.path.subresource
        own = _OWN.get((name, verb))
        if own is not None:
            return await own(self, call)
        if name in ("eviction", "binding", "log", "token"):
            raise rejections.not_allowed()
        if verb == "update":
            return await self._writes.update(call, name)
        if verb == "patch" and name != "finalize":
            return await self._writes.patch(call, name)
        if verb == "get" and name != "finalize":
            return self._get(call)
        raise rejections.not_allowed()

    def _get(self, call: ResourceCall) -> Response:
        form = negotiation.choose(call.request.header(b"accept"))
        event = call.timeline.views.objects.event(call.key)
        if event is None:
            raise calls.object_not_found(call)
        body = self._representations.shown_bytes(event, call.target(form), call.timeline.now)
        return respond(body, form)

    async def _bind(self, call: ResourceCall) -> Response:
        """POST of a Binding. Parity: controllers.md 4.6."""
        tree, _ = await self._writes.read_object(call)
        return await self._bind_pod(call, tree)

    async def bind_named(self, call: ResourceCall) -> Response:
        """POST of a Binding to the bindings of a namespace; its name is the name of the pod."""
        tree, _ = await self._writes.read_object(call)
        name = meta.name(tree)
        if not name:
            raise BadRequest("Name parameter required.")
        return await self._bind_pod(
            msgspec.structs.replace(call, path=replace(call.path, name=name)), tree
        )

    async def _bind_pod(self, call: ResourceCall, tree: JsonObject) -> Response:
        options = parameters.write_options(call.request, patch=None, action="Create")
        if meta.kind(tree) not in ("Binding", ""):
            raise BadRequest("the body must be a Binding")
        _check_name(call, tree, "Binding")
        target = json_tree.mapping(tree, "target")
        if (kind := meta.kind(target)) not in ("Node", ""):
            raise BadRequest(
                str(field_errors.not_supported("target.kind", kind, ("Node", "<empty>")))
            )
        node = entries.name(target)
        if not node:
            error = field_errors.required("target.name")
            raise field_errors.rejection("Binding", "", call.path.name, [error])
        outcome = await self._writes.submit(
            call,
            BindPod(
                key=call.key,
                node=node,
                uid=meta.uid(tree),
                labels=meta.labels(tree),
                annotations=meta.annotations(tree),
                options=options,
            ),
            "create",
        )
        return with_warnings(Response(encode(_CREATED), status=201), outcome.warnings)

    async def _evict(self, call: ResourceCall) -> Response:
        """POST of an Eviction: a delete that first asks the disruption budgets."""
        tree, _ = await self._writes.read_object(call)
        if meta.kind(tree) not in ("Eviction", ""):
            raise BadRequest("the body must be an Eviction")
        _check_name(call, tree, "Eviction")
        wanted = json_tree.get(tree, "deleteOptions")
        body: JsonObject = dict(wanted) if isinstance(wanted, dict) else {}
        body.pop("kind", None)
        options, dry_run = parameters.delete_options(call.request, body)
        dry_run = dry_run or bool(call.request.query.get("dryRun"))
        made = _eviction(call, tree, dry_run=dry_run)
        warnings = await call.timeline.runtime.review(made)
        # One at a time: the next check must see the budget after the last eviction.
        async with self._evicting:
            for _ in range(eviction.CONFLICTS_MAX):
                if await self._try_evict(call, options, dry_run=dry_run):
                    return with_warnings(Response(encode(_CREATED), status=201), warnings)
                await anyio.lowlevel.checkpoint()
        raise TooManyRequests("the pod or its disruption budget changes all the time")

    async def _try_evict(
        self, call: ResourceCall, options: parameters.DeleteOptions, *, dry_run: bool
    ) -> bool:
        """Ask the budgets, charge the eviction to them, and remove the pod.

        False when the budget, or a pod that waits to start, changed in the meantime: the caller
        then judges both again. When a budget allowed the eviction because the pod was not ready,
        the eviction is refused instead, so that its client decides.
        """
        permission = eviction.judge(call.timeline.views.objects, call.key, call.timeline.now)
        if permission.write is not None and not dry_run:
            try:
                await call.timeline.runtime.submit(
                    msgspec.structs.replace(permission.write, options=_STEP),
                    actor=registry.API_SERVER,
                    verb="update",
                )
            except Conflict:
                return False
        is_guarded = bool(permission.resource_version) and not options.resource_version
        if is_guarded:
            options = replace(options, resource_version=permission.resource_version)
        try:
            await self._remove(call, options, dry_run=dry_run)
        except Conflict as conflict:
            if not is_guarded:
                raise
            if permission.budget:
                raise eviction.changed_meanwhile(permission.budget) from conflict
            return False
        return True

    async def _remove(
        self, call: ResourceCall, options: parameters.DeleteOptions, *, dry_run: bool
    ) -> None:
        """Mark the pod as evicted, and delete it."""
        if not dry_run:
            options = await self._mark_evicted(call, options)
        await call.timeline.runtime.submit(
            DeleteObject(
                key=call.key,
                grace_seconds=options.grace_seconds,
                propagation=options.propagation,
                uid=options.uid,
                resource_version=options.resource_version,
                options=WriteOptions(dry_run=dry_run, skips_review=True),
            ),
            actor=call.actor,
            verb="create",
        )

    async def _mark_evicted(
        self, call: ResourceCall, options: parameters.DeleteOptions
    ) -> parameters.DeleteOptions:
        """Set the disruption condition of the pod; returns options for the pod's new version.

        Parity: controllers.md 11.2 (`EvictionByEvictionAPI`).
        """
        pod = call.timeline.views.objects.get(call.key) or {}
        if options.uid and options.uid != meta.uid(pod):
            return options  # The deletion refuses it.
        now = timestamps.seconds_text(call.timeline.now)
        condition = _EVICTED | {"lastProbeTime": None, "lastTransitionTime": now}
        version = options.resource_version
        body: JsonObject = {
            "metadata": {"resourceVersion": version} if version else {},
            "status": conditions.patch_of(pod, condition),
        }
        outcome = await call.timeline.runtime.submit(
            PatchObject(
                key=call.key,
                version="v1",
                type=PatchType.STRATEGIC,
                body=body,
                subresource="status",
                options=_STEP,
            ),
            actor=call.actor,
            verb="create",
        )
        if not options.resource_version:
            return options
        version = meta.resource_version(outcome.tree or {})
        if outcome.event is not None:
            version = str(outcome.event.revision)
        return replace(options, resource_version=version)

    async def _request_token(self, call: ResourceCall) -> Response:
        """POST of a TokenRequest. Nothing is written: the log contains no token."""
        tree, _ = await self._writes.read_object(call)
        if meta.kind(tree) not in ("TokenRequest", ""):
            raise BadRequest("the body must be a TokenRequest")
        timeline = call.timeline
        issued = self._tokens.issue(timeline.runtime, call.key, tree, timeline.now)
        return Response(encode(issued), status=201)

    async def _log(self, call: ResourceCall) -> Response:
        """GET of a log: empty, or an error for a pod on a node, because no containers run."""
        tree = call.timeline.views.objects.get(call.key)
        if tree is None:
            raise calls.object_not_found(call)
        if core.node_name(tree):
            raise BadRequest(
                f'no container output is kept for pod "{call.path.name}": an emulated node runs '
                "no containers"
            )
        return Response(b"", content_type=TEXT)

    async def _read_scale(self, call: ResourceCall) -> Response:
        """GET of a Scale: the present and the desired replicas of a workload."""
        tree = call.timeline.views.objects.get(call.key)
        if tree is None:
            raise calls.object_not_found(call)
        return Response(encode(subresources.scale_of(call.kind, tree)))

    async def _write_scale(self, call: ResourceCall) -> Response:
        """PUT of a Scale."""
        options = parameters.write_options(call.request, patch=None, action="Update")
        tree, _ = await self._writes.read_object(call)
        if meta.kind(tree) not in ("Scale", ""):
            raise BadRequest("the body must be a Scale")
        outcome = await self._writes.submit(
            call,
            UpdateObject(
                key=call.key,
                version=call.path.version,
                tree=tree,
                subresource=subresources.SCALE,
                options=options,
            ),
            "update",
        )
        answer = Response(encode(subresources.scale_of(call.kind, outcome.tree or {})))
        return with_warnings(answer, outcome.warnings)

    async def _patch_scale(self, call: ResourceCall) -> Response:
        """PATCH of a Scale."""
        outcome = await self._writes.submit_patch(call, subresources.SCALE)
        answer = Response(encode(subresources.scale_of(call.kind, outcome.tree or {})))
        return with_warnings(answer, outcome.warnings)


def _eviction(call: ResourceCall, tree: JsonObject, *, dry_run: bool) -> Attributes:
    """The attributes of an Eviction for policies and webhooks."""
    return Attributes(
        kind=call.kind,
        key=call.key,
        group=call.path.group,
        version=call.path.version,
        operation=CREATE,
        subresource="eviction",
        tree=tree,
        actor=call.actor,
        requester=call.requester,
        dry_run=dry_run,
    )


def _check_name(call: ResourceCall, tree: JsonObject, kind: str) -> None:
    """Raise BadRequest when the body names another object than the URL."""
    if meta.name(tree) != call.path.name:
        raise BadRequest(f"name in URL does not match name in {kind} object")


_OWN: dict[tuple[str, str], Callable[[Subresources, ResourceCall], Awaitable[Response]]] = {
    ("binding", "create"): Subresources._bind,
    ("eviction", "create"): Subresources._evict,
    ("log", "get"): Subresources._log,
    ("scale", "get"): Subresources._read_scale,
    ("scale", "patch"): Subresources._patch_scale,
    ("scale", "update"): Subresources._write_scale,
    ("token", "create"): Subresources._request_token,
}
