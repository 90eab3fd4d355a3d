"""What the object rules depend on: release, schemas, and the validation that is plugged in."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

import msgspec

from app.domain.objects import webhook_targets
from app.domain.objects.expressions import (
    CheckExpression,
    NoObjectRules,
    ObjectRules,
    PolicyRules,
    accept_expression,
)
from app.domain.objects.field_errors import FieldError
from app.domain.objects.forms import Forms
from app.domain.objects.kinds.secret_values import SecretCipher
from app.domain.objects.kinds.services import ServiceRanges
from app.domain.objects.profile import Profile
from app.domain.objects.reader import ObjectsReader
from app.domain.objects.registry import Kind
from app.domain.objects.schema.structural import Schemas
from app.domain.objects.webhook_targets import Targets
from app.domain.values.json_tree import JsonObject
from app.domain.values.patches import OPERATIONS_MAX
from app.domain.values.timestamps import Instant


class ValidationContext(msgspec.Struct, frozen=True, kw_only=True):
    """What validation may look at besides the object: the release, other objects, the time."""

    profile: Profile
    schemas: Schemas
    reader: ObjectsReader
    now: Instant
    check_expression: CheckExpression
    object_rules: ObjectRules = NoObjectRules()
    policy_rules: PolicyRules | None = None


ValidateCreate: TypeAlias = Callable[[Kind, JsonObject, ValidationContext], list[FieldError]]
"""Errors of a new object in the storage version, after defaulting."""

ValidateUpdate: TypeAlias = Callable[
    [Kind, JsonObject, JsonObject, str, ValidationContext], list[FieldError]
]
"""Errors of a change: kind, new tree, old tree, subresource (empty for the main resource)."""


def accept_create(kind: Kind, tree: JsonObject, context: ValidationContext) -> list[FieldError]:
    """Takes every object; metadata is checked before by the lifecycle itself."""
    return []


def accept_update(
    kind: Kind, tree: JsonObject, old: JsonObject, subresource: str, context: ValidationContext
) -> list[FieldError]:
    """Takes every change; metadata is checked before by the lifecycle itself."""
    return []


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The rules of one history.

    `tracks_managers` keeps `metadata.managedFields`; without it only appliers have entries.
    `policy_rules` lets admission policies judge each write; without it nobody asks them.
    `webhooks` are those that may be called.
    `services` is what services are given. `secrets` protects the values of Secrets in the log;
    without it they are stored as they are. `forms` remember what creates have made of objects.
    """

    profile: Profile
    schemas: Schemas
    validate_create: ValidateCreate = accept_create
    validate_update: ValidateUpdate = accept_update
    check_expression: CheckExpression = accept_expression
    object_rules: ObjectRules = NoObjectRules()
    policy_rules: PolicyRules | None = None
    webhooks: Targets = webhook_targets.NONE
    patch_operations_max: int = OPERATIONS_MAX
    tracks_managers: bool = True
    services: ServiceRanges = ServiceRanges()
    secrets: SecretCipher | None = None
    forms: Forms = field(default_factory=Forms, compare=False, repr=False)

    def context(self, reader: ObjectsReader, now: Instant) -> ValidationContext:
        """What validation of one write may look at."""
        return ValidationContext(
            profile=self.profile,
            schemas=self.schemas,
            reader=reader,
            now=now,
            check_expression=self.check_expression,
            object_rules=self.object_rules,
            policy_rules=self.policy_rules,
        )
