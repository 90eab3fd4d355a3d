"""Requests that change objects: they read the body, submit a command and answer the outcome.

This module checks only that the body agrees with the URL. The domain decides everything else.
Parity: api.md 5.
"""

from collections.abc import Sequence
from typing import Any

import anyio
import msgspec

from app.api.kubernetes import bodies, lists, negotiation, parameters, selection, status
from app.api.kubernetes.calls import ResourceCall
from app.api.kubernetes.negotiation import PLAIN
from app.api.kubernetes.representations import Representations, encode, respond
from app.api.server.limits import ApiLimits
from app.api.server.messages import Header, Response, warning
from app.domain.errors import BadRequest, NotFound, RedraError
from app.domain.log import Event, EventType, ObjectKey
from app.domain.objects import registry, rejections
from app.domain.objects.registry import Kind
from app.domain.objects.write import admission
from app.domain.objects.write.commands import (
    CreateObject,
    DeleteObject,
    PatchObject,
    UpdateObject,
    WriteOptions,
)
from app.domain.values import api_groups, api_resources
from app.domain.values.fields import meta
from app.domain.values.json_tree import JsonObject
from app.service.writing import WriteOutcome

_RETURNED_WHEN_DELETED = frozenset(
    {
        api_resources.PODS,
        ("", "podtemplates"),
        api_resources.SERVICES,
        api_resources.SERVICE_ACCOUNTS,
        api_resources.PERSISTENT_VOLUMES,
        api_resources.PERSISTENT_VOLUME_CLAIMS,
        api_resources.RESOURCE_QUOTAS,
    }
)
"""Kinds whose delete returns the deleted object; kinds of resource.k8s.io do so as well."""

_TOGETHER = 128
"""Concurrent deletes of one deletecollection."""


class Writes:
    """Answers creates, updates, patches and deletes."""

    def __init__(self, representations: Representations, limits: ApiLimits) -> None:
        self._representations = representations
        self._limits = limits
        self._bounds = limits.body

    async def create(self, call: ResourceCall) -> Response:
        """POST to a collection."""
        kind, path = call.kind, call.path
        if kind.namespaced and not path.namespace:
            raise rejections.not_allowed()
        options = _judged(parameters.write_options(call.request, patch=None, action="Create"), call)
        tree, problems = await self.read_object(call)
        metadata = self._agree(call, tree)
        name = metadata.get("name")
        key = ObjectKey(
            path.group, kind.plural, path.namespace, name if isinstance(name, str) else ""
        )
        outcome = await self.submit(
            call,
            CreateObject(
                key=key,
                version=path.version,
                tree=tree,
                options=parameters.with_problems(options, problems),
            ),
            "create",
        )
        return self.outcome(call, outcome, status=201)

    async def update(self, call: ResourceCall, subresource: str = "") -> Response:
        """PUT of an object or of a subresource."""
        options = _judged(parameters.write_options(call.request, patch=None, action="Update"), call)
        tree, problems = await self.read_object(call)
        metadata = self._agree(call, tree)
        name = metadata.get("name")
        if not name:
            raise rejections.nameless(call.path.name)
        if name != call.path.name:
            raise BadRequest(
                f"the name of the object ({name}) does not match the name on the URL "
                f"({call.path.name})"
            )
        outcome = await self.submit(
            call,
            UpdateObject(
                key=call.asked_key,
                version=call.path.version,
                tree=tree,
                subresource=subresource,
                options=parameters.with_problems(options, problems),
            ),
            "update",
        )
        return self.outcome(call, outcome, status=201 if outcome.created else 200)

    async def patch(self, call: ResourceCall, subresource: str = "") -> Response:
        """PATCH of an object or of a subresource."""
        outcome = await self.submit_patch(call, subresource)
        return self.outcome(call, outcome, status=201 if outcome.created else 200)

    async def submit_patch(self, call: ResourceCall, subresource: str) -> WriteOutcome:
        """Read the patch in the body and apply it."""
        patch = bodies.patch_type(call.request, is_custom=call.kind.custom is not None)
        options = _judged(parameters.write_options(call.request, patch=patch, action="Patch"), call)
        text = await self._read(call)
        body, problems = bodies.decode_patch(
            text, patch, self._bounds, operations_max=self._limits.patch_operations_max
        )
        return await self.submit(
            call,
            PatchObject(
                key=call.asked_key,
                version=call.path.version,
                type=patch,
                body=body,
                subresource=subresource,
                options=parameters.with_problems(options, problems),
            ),
            "patch",
        )

    async def delete(self, call: ResourceCall) -> Response:
        """DELETE of one object."""
        body = await self._read_options(call)
        options, dry_run = parameters.delete_options(call.request, body)
        command = _delete_command(call.asked_key, call.path.version, options, dry_run)
        outcome = await self.submit(call, command, "delete")
        return self._deleted(call, outcome)

    async def delete_collection(self, call: ResourceCall) -> Response:
        """DELETE of a collection; returns the selected objects as they were before.

        With a limit only the first objects in list order are deleted, and the response has a
        continue token like a page of a list.
        """
        kind, path = call.kind, call.path
        if kind.namespaced and not path.namespace:
            raise rejections.not_allowed()
        body = await self._read_options(call)
        options, dry_run = parameters.delete_options(call.request, body)
        wanted = parameters.list_options(call.request)
        chosen = selection.compile_selection(
            kind,
            group=path.group,
            namespace=path.namespace or None,
            name="",
            label_selector=wanted.label_selector,
            field_selector=wanted.field_selector,
        )
        every = chosen.select(call.timeline.views.objects, kind)
        page, metadata = lists.first_page(every, call.timeline.revision, chosen, wanted.limit)
        commands = [_delete_command(event.key, path.version, options, dry_run) for event in page]
        problems: list[RedraError] = []
        for start in range(0, len(commands), _TOGETHER):
            async with anyio.create_task_group() as tasks:
                for command in commands[start : start + _TOGETHER]:
                    tasks.start_soon(self._delete_one, call, command, problems)
        if problems:
            raise problems[0]
        return self._collection(call, page, metadata)

    async def read_object(self, call: ResourceCall) -> tuple[JsonObject, tuple[str, ...]]:
        """The object in the body, and the problems with its keys."""
        text = await self._read(call)
        if not text:
            raise BadRequest("the body of the request is empty")
        decoded = bodies.decode_object(
            text,
            bodies.media_type(call.request),
            self._bounds,
            kind=call.kind.kind,
            is_custom=call.kind.custom is not None and call.path.subresource != "scale",
        )
        return decoded.value, decoded.problems

    def outcome(self, call: ResourceCall, outcome: WriteOutcome, *, status: int) -> Response:
        """The response to a write: the object as it is now, with warnings."""
        form = negotiation.choose(call.request.header(b"accept"))
        event, tree = outcome.event, outcome.tree
        # The event's tree is the tree of the response unless the response shows an earlier state.
        is_event = event is not None and (tree is None or event.tree is tree)
        target = call.target(form)
        if is_event and event is not None:
            if form is PLAIN and target.serves(event):
                body = event.body
            else:
                body = self._representations.shown_bytes(event, target, call.timeline.now)
        else:
            assert tree is not None, "a write answers with an object"
            body = self._representations.shown_tree(tree, target, call.timeline.now)
        answer = respond(body, form, status=status)
        return with_warnings(answer, outcome.warnings)

    async def _delete_one(
        self, call: ResourceCall, command: DeleteObject, problems: list[RedraError]
    ) -> None:
        """Delete one of many objects; a missing object is ignored, other errors are collected."""
        try:
            await self.submit(call, command, "deletecollection")
        except NotFound:
            return
        except RedraError as problem:
            problems.append(problem)

    async def submit(self, call: ResourceCall, command: Any, verb: str) -> WriteOutcome:
        """Submit a command on behalf of the user. Raises Rejected."""
        if call.requester is not None:
            options = msgspec.structs.replace(command.options, requester=call.requester)
            command = msgspec.structs.replace(command, options=options)
        return await call.timeline.runtime.submit(
            command, actor=call.actor, verb=verb, request_id=call.request.header(b"audit-id")[:64]
        )

    async def _read(self, call: ResourceCall) -> bytes:
        limits = self._limits
        return await call.request.body(
            bytes_max=limits.body_bytes_max, seconds_max=limits.body_seconds_max
        )

    async def _read_options(self, call: ResourceCall) -> JsonObject | None:
        text = await self._read(call)
        if not text.strip():
            return None
        content_type = bodies.media_type(call.request)
        decoded = bodies.decode_object(text, content_type, self._bounds, kind="DeleteOptions")
        return decoded.value or None

    def _agree(self, call: ResourceCall, tree: JsonObject) -> JsonObject:
        """Fill in fields from the URL and refuse contradictions; returns the metadata."""
        path, kind = call.path, call.kind
        expected = registry.api_version(path.group, path.version)
        admission.check_type(kind, expected, tree)
        tree["apiVersion"], tree["kind"] = expected, kind.kind
        metadata = tree.get("metadata")
        if metadata is None:
            metadata = tree["metadata"] = {}
        if not isinstance(metadata, dict):
            raise BadRequest("metadata must be an object")
        namespace = metadata.get("namespace") or ""
        if namespace and namespace != path.namespace and kind.namespaced:
            raise BadRequest(
                "the namespace of the provided object does not match the namespace sent on the "
                "request"
            )
        if path.namespace:
            metadata["namespace"] = path.namespace
        return metadata

    def _deleted(self, call: ResourceCall, outcome: WriteOutcome) -> Response:
        kind, event = call.kind, outcome.event
        tree = outcome.tree if outcome.tree is not None else {}
        survives = bool(meta.deletion_timestamp(tree))
        if event is not None:
            survives = event.type is not EventType.OBJECT_DELETED
        if survives or is_returned_when_deleted(kind):
            return self.outcome(call, outcome, status=200)
        uid = meta.uid(tree)
        body = status.success(name=call.path.name, group=kind.group, resource=kind.plural, uid=uid)
        return with_warnings(Response(encode(body)), outcome.warnings)

    def _collection(
        self, call: ResourceCall, events: Sequence[Event], metadata: JsonObject
    ) -> Response:
        form = negotiation.choose(call.request.header(b"accept"))
        target, now = call.target(form), call.timeline.now
        body = self._representations.list_bytes(events, target, now, metadata=metadata)
        return respond(body, form)


def with_warnings(answer: Response, texts: Sequence[str]) -> Response:
    """The response with one Warning header for each text."""
    if not texts:
        return answer
    headers: tuple[Header, ...] = tuple(warning(text) for text in texts)
    return msgspec.structs.replace(answer, headers=(*answer.headers, *headers))


def _judged(options: WriteOptions, call: ResourceCall) -> WriteOptions:
    return (
        msgspec.structs.replace(options, rights=call.rights) if call.rights is not None else options
    )


def is_returned_when_deleted(kind: Kind) -> bool:
    """Whether a delete returns the deleted object, not a Status."""
    return kind.group == api_groups.RESOURCE or (kind.group, kind.plural) in _RETURNED_WHEN_DELETED


def _delete_command(
    key: ObjectKey, version: str, options: parameters.DeleteOptions, dry_run: bool
) -> DeleteObject:
    return DeleteObject(
        key=key,
        version=version,
        grace_seconds=options.grace_seconds,
        propagation=options.propagation,
        uid=options.uid,
        resource_version=options.resource_version,
        options=WriteOptions(dry_run=dry_run),
    )
