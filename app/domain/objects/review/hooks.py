"""Webhooks: which of them a write calls, the requests they get, and how their responses are read.

Parity: objects.md 15.4; AdmissionReview of admission.k8s.io/v1 and v1beta1, with the messages of
the real server.
"""

import base64
import binascii
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from app.domain.errors import Denied, RedraError, Rejected, StatusCause
from app.domain.objects import rejections
from app.domain.objects.reader import ObjectsReader
from app.domain.objects.review import matching, policies
from app.domain.objects.review.attributes import Attributes, is_exempt
from app.domain.objects.review.changes import Patch
from app.domain.objects.review.matching import GroupVersion
from app.domain.objects.rules import Rules
from app.domain.objects.webhook_targets import WebhookTarget
from app.domain.values import api_groups, json_tree
from app.domain.values.fields import entries, records
from app.domain.values.fields.records import FieldRecord
from app.domain.values.json_tree import JsonObject, JsonView

SECONDS = 10
_MUTATING = "mutatingwebhookconfigurations"
_VALIDATING = "validatingwebhookconfigurations"
_REVIEW_VERSIONS = ("v1", "v1beta1")


class WebhookFailed(RedraError):
    """A webhook cannot be called, or its response is invalid."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hook:
    """A webhook to call. `group_version` is the group and version of the object in its request."""

    configuration: str
    tree: JsonObject
    group_version: GroupVersion
    target: WebhookTarget

    @property
    def id(self) -> tuple[str, str]:
        """The configuration and the name, which identify a webhook."""
        return self.configuration, self.name

    @property
    def name(self) -> str:
        """The name of the webhook, as used in messages."""
        return entries.name(self.tree)

    @property
    def seconds(self) -> int:
        """The timeout of a call in seconds."""
        return json_tree.integer(self.tree, "timeoutSeconds") or SECONDS

    @property
    def is_ignored_when_failing(self) -> bool:
        """Whether a failed call is ignored (failurePolicy Ignore)."""
        return json_tree.text(self.tree, "failurePolicy") == "Ignore"

    @property
    def is_reinvoked(self) -> bool:
        """Whether the webhook is called again if later webhooks changed the object."""
        return json_tree.text(self.tree, "reinvocationPolicy") == "IfNeeded"

    @property
    def version(self) -> str:
        """The AdmissionReview version: the first supported one of the webhook, else v1."""
        wanted = json_tree.texts(self.tree, "admissionReviewVersions")
        return next((each for each in wanted if each in _REVIEW_VERSIONS), "v1")


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookReview:
    """The result of a webhook call: a refusal or None, the warnings, and a patch or None."""

    refusal: Rejected | None = None
    warnings: tuple[str, ...] = ()
    patch: Patch | None = None


def are_there(reader: ObjectsReader) -> bool:
    """Whether the history has any webhook configuration."""
    for resource in (_MUTATING, _VALIDATING):
        for _ in reader.keys(api_groups.ADMISSION_REGISTRATION, resource):
            return True
    return False


def mutating(reader: ObjectsReader) -> Iterator[tuple[str, JsonObject]]:
    """Yields mutating webhooks with the names of their configurations, in order."""
    return _all(reader, _MUTATING)


def validating(reader: ObjectsReader) -> Iterator[tuple[str, JsonObject]]:
    """Yields validating webhooks with the names of their configurations, in order."""
    return _all(reader, _VALIDATING)


def _all(reader: ObjectsReader, resource: str) -> Iterator[tuple[str, JsonObject]]:
    for key in sorted(
        reader.keys(api_groups.ADMISSION_REGISTRATION, resource), key=lambda key: key.name
    ):
        tree = reader.get(key)
        for webhook in json_tree.objects(tree or {}, "webhooks"):
            yield key.name, webhook


def hook_for(
    configuration: str,
    webhook: JsonObject,
    attributes: Attributes,
    reader: ObjectsReader,
    rules: Rules,
) -> Hook | None:
    """Returns the webhook to call for the write; None if it does not match or may not be called.

    Raises Forbidden if its match conditions cannot be evaluated and its failures are not ignored.
    """
    if is_exempt(attributes.kind.group, attributes.kind.plural):
        return None
    target = rules.webhooks.find(json_tree.mapping(webhook, "clientConfig"))
    if target is None:
        return None
    matched = matching.of_webhook(webhook, attributes, reader)
    if matched is None:
        return None
    hook = Hook(configuration=configuration, tree=webhook, group_version=matched, target=target)
    return hook if _conditions_hold(hook, attributes, reader, rules) else None


def _conditions_hold(
    hook: Hook, attributes: Attributes, reader: ObjectsReader, rules: Rules
) -> bool:
    conditions = json_tree.objects(hook.tree, "matchConditions")
    if not conditions or rules.policy_rules is None:
        return True
    values = policies.common_variables(attributes, hook.group_version, reader, rules.policy_rules)
    scope = policies.condition_scope(hook.tree, rules.policy_rules)
    session = rules.policy_rules.session(scope, values, is_about_conditions=True)
    is_met, error = policies.conditions_met(conditions, session)
    if error and not hook.is_ignored_when_failing:
        raise rejections.forbidden(attributes.kind, attributes.key.name, error)
    return is_met


def request_of(hook: Hook, attributes: Attributes, uid: str) -> bytes:
    """The body of the request to a webhook: an AdmissionReview."""
    tree, old = attributes.trees_in(*hook.group_version)
    request = {
        "uid": uid,
        **attributes.request_in(*hook.group_version),
        "object": tree,
        "oldObject": old,
    }
    return msgspec.json.encode(
        {
            "kind": "AdmissionReview",
            "apiVersion": f"admission.k8s.io/{hook.version}",
            "request": request,
        }
    )


def verdict_of(hook: Hook, body: bytes, uid: str, *, is_mutating: bool) -> WebhookReview:
    """Returns the result in the response of a webhook. Raises WebhookFailed if it is invalid."""
    response = _response(hook, body, uid)
    warnings = tuple(json_tree.texts(response, "warnings"))
    operations = _operations(response, is_mutating=is_mutating, is_strict=hook.version == "v1")
    if response.get("allowed") is not True:
        return WebhookReview(refusal=_refusal(hook, response), warnings=warnings)
    patch = Patch(hook.group_version, operations) if operations else None
    return WebhookReview(warnings=warnings, patch=patch)


def _response(hook: Hook, body: bytes, uid: str) -> JsonView:
    try:
        review = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError) as problem:
        raise WebhookFailed(f"received invalid webhook response: {problem}") from problem
    answer = review if isinstance(review, dict) else {}
    expected = f"admission.k8s.io/{hook.version}"
    if hook.version == "v1" and (answer.get("apiVersion"), answer.get("kind")) != (
        expected,
        "AdmissionReview",
    ):
        named = f"{answer.get('apiVersion') or '/'}, Kind={answer.get('kind') or ''}"
        raise _unexpected(
            f"expected webhook response of {expected}, Kind=AdmissionReview, got {named}"
        )
    response = answer.get("response")
    if not isinstance(response, dict):
        raise _unexpected("webhook response was absent")
    if hook.version == "v1" and response.get("uid") != uid:
        got = entries.uid(response)
        raise _unexpected(f'expected response.uid="{uid}", got "{got}"')
    return response


def _unexpected(text: str) -> WebhookFailed:
    return WebhookFailed(f"received invalid webhook response: {text}")


def _operations(
    response: JsonView, *, is_mutating: bool, is_strict: bool
) -> tuple[JsonObject, ...]:
    """The operations of the JSON patch in a response. Raises WebhookFailed if they are invalid."""
    text, kind = response.get("patch"), response.get("patchType")
    if not is_mutating:
        for name, value in (("patch", text), ("patchType", kind)):
            if value and is_strict:
                raise _unexpected(f"validating webhook may not return response.{name}")
        return ()
    if is_strict and text and not kind:
        raise _unexpected("webhook returned response.patch but not response.patchType")
    if is_strict and kind and not text:
        raise _unexpected("webhook returned response.patchType but not response.patch")
    if kind not in (None, "", "JSONPatch"):
        raise _unexpected(f"invalid response.patchType: {kind}")
    if not text:
        return ()
    return _decoded(text)


def _decoded(text: Any) -> tuple[JsonObject, ...]:
    try:
        operations = msgspec.json.decode(base64.b64decode(text, validate=True))
    except (binascii.Error, ValueError, TypeError, msgspec.DecodeError, RecursionError) as problem:
        raise _unexpected(f"response.patch cannot be read: {problem}") from problem
    if not isinstance(operations, list) or not all(isinstance(each, dict) for each in operations):
        raise _unexpected("response.patch is no list of operations")
    return tuple(operations)


class _Cause(FieldRecord, frozen=True):
    """One cause in the details of a Status."""

    reason: str = ""
    message: str = ""
    field: str = ""


class _Details(FieldRecord, frozen=True):
    """The details of a Status."""

    group: str = ""
    kind: str = ""
    name: str = ""
    causes: tuple[_Cause, ...] = ()


class _WebhookStatus(FieldRecord, frozen=True):
    """The Status in the response of a webhook."""

    message: str = ""
    reason: str = ""
    code: int = 0
    details: _Details = _Details()


_read_status = records.of_tree(_WebhookStatus)


def _refusal(hook: Hook, response: JsonView) -> Rejected:
    """The refusal made from the Status of a webhook; its message begins with the webhook's name.

    Parity: objects.md 15.4; upstream's texts.
    """
    status = _read_status(response.get("status"))
    begin = f'admission webhook "{hook.name}" denied the request'
    explanation = status.message or status.reason
    code, details = status.code, status.details
    return Denied(
        f"{begin}: {explanation}" if explanation else f"{begin} without explanation",
        code=code if 400 <= code < 600 else 400,
        reason=status.reason,
        group=details.group,
        resource=details.kind,
        name=details.name,
        causes=tuple(
            StatusCause(reason=cause.reason, message=cause.message, field=cause.field)
            for cause in details.causes
        ),
    )


def failure_text(hook: Hook, problem: WebhookFailed) -> str:
    """The message about a failed webhook call."""
    return f'failed calling webhook "{hook.name}": {problem}'
