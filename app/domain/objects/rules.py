"""The inputs of the object rules: release, schemas, and the validation that callers pass in."""

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
from app.domain.objects.kinds.secret_values import SecretCipher
from app.domain.objects.kinds.services import ServiceRanges
from app.domain.objects.prepared_creates import Forms
from app.domain.objects.profile import Profile
from app.domain.objects.reader import ObjectsReader
from app.domain.objects.registry import Kind
from app.domain.objects.schema.structural import Schemas
from app.domain.objects.webhook_targets import Targets
from app.domain.values.bounded import Bounded
from app.domain.values.json_tree import JsonObject
from app.domain.values.patches import OPERATIONS_MAX
from app.domain.values.timestamps import Instant

FLAWLESS_MAX = 1_024
"""The largest number of cached specs without errors: claims of a template have the same spec."""

FlawlessSpecs: TypeAlias = Bounded[bytes, None]
"""The texts of specs of claims that the rules of one history have accepted."""


def _no_specs() -> FlawlessSpecs:
    return Bounded(FLAWLESS_MAX)


class ValidationContext(msgspec.Struct, frozen=True, kw_only=True):
    """The inputs of validation besides the object: the release, other objects, the time.

    `flawless_specs` belongs to the rules, and is filled by validation.
    """

    profile: Profile
    schemas: Schemas
    reader: ObjectsReader
    now: Instant
    check_expression: CheckExpression
    object_rules: ObjectRules = NoObjectRules()
    policy_rules: PolicyRules | None = None
    flawless_specs: FlawlessSpecs = msgspec.field(default_factory=_no_specs)


ValidateCreate: TypeAlias = Callable[[Kind, JsonObject, ValidationContext], list[FieldError]]
"""Returns the errors of a new object in the storage version, after defaulting."""

ValidateUpdate: TypeAlias = Callable[
    [Kind, JsonObject, JsonObject, str, ValidationContext], list[FieldError]
]
"""Returns the errors of a change.

Takes the kind, the new tree, the old tree, and the subresource (empty for the main resource).
"""


def accept_create(kind: Kind, tree: JsonObject, context: ValidationContext) -> list[FieldError]:
    """Accepts every object; the lifecycle checks metadata before."""
    return []


def accept_update(
    kind: Kind, tree: JsonObject, old: JsonObject, subresource: str, context: ValidationContext
) -> list[FieldError]:
    """Accepts every change; the lifecycle checks metadata before."""
    return []


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The rules of one history.

    With `tracks_managers` every writer has entries in `metadata.managedFields`; without it only
    appliers have them. `policy_rules` evaluates admission policies; without it they have no effect.
    `webhooks` are the webhooks that may be called. `services` are the address and port ranges of
    Services. `secrets` encrypts the values of Secrets in the log; without it they are stored as
    plain values. `forms` is the cache of prepared creates, `flawless_specs` that of specs of claims
    without errors.
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
    flawless_specs: FlawlessSpecs = field(default_factory=_no_specs, compare=False, repr=False)

    def context(self, reader: ObjectsReader, now: Instant) -> ValidationContext:
        """The inputs of validation for one write."""
        return ValidationContext(
            profile=self.profile,
            schemas=self.schemas,
            reader=reader,
            now=now,
            check_expression=self.check_expression,
            object_rules=self.object_rules,
            policy_rules=self.policy_rules,
            flawless_specs=self.flawless_specs,
        )
