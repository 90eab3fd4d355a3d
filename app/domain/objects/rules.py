"""What the object rules depend on: release, schemas, and the validation that is plugged in."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import msgspec

from app.domain.objects.field_errors import FieldError
from app.domain.objects.kinds.secret_values import SecretCipher
from app.domain.objects.kinds.services import ServiceRanges
from app.domain.objects.profile import Profile
from app.domain.objects.reader import ObjectsReader
from app.domain.objects.registry import Kind
from app.domain.objects.review import targets
from app.domain.objects.review.targets import Targets
from app.domain.objects.schema.structural import Schemas
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.patches import OPERATIONS_MAX
from app.domain.values.timestamps import Instant


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpressionProblem:
    """Why a CEL selector is refused: it does not compile, or it may cost too much."""

    detail: str
    is_too_costly: bool = False


CheckExpression: TypeAlias = Callable[[str], ExpressionProblem | None]
"""Says what is wrong with a selector in a new object. Plugged in, because CEL is its own part."""


class ObjectRules(Protocol):
    """Evaluates `x-kubernetes-validations`. Plugged in, because CEL is its own part."""

    def problem_of(self, expression: str) -> str:
        """Why a rule cannot be compiled; empty when it can."""
        ...

    def broken(
        self, expression: str, schema: JsonView, value: Any, old: Any, *, is_optional: bool
    ) -> str | None:
        """None when the rule holds; empty when it does not; else the text of an error."""
        ...

    def text_of(self, expression: str, schema: JsonView, value: Any, old: Any) -> str:
        """The text that a message expression gives; empty when it gives none."""
        ...


class NoObjectRules:
    """Takes everything; for callers that bring no CEL."""

    def problem_of(self, expression: str) -> str:
        """Every rule is taken."""
        return ""

    def broken(
        self, expression: str, schema: JsonView, value: Any, old: Any, *, is_optional: bool
    ) -> str | None:
        """Every rule holds."""
        return None

    def text_of(self, expression: str, schema: JsonView, value: Any, old: Any) -> str:
        """There are no messages."""
        return ""


class PolicyAnswer(Protocol):
    """What an expression gives: a value, or the text of an error."""

    @property
    def value(self) -> Any:
        """The value; None beside an error."""
        ...

    @property
    def error(self) -> str:
        """Why there is no value; empty when there is one."""
        ...


PolicyScope: TypeAlias = Any
"""What the expressions of a policy may name, as `PolicyRules.scope` made it."""


class PolicySession(Protocol):
    """Expressions of one policy about one write; they share a budget and their variables."""

    def ask(self, expression: str) -> PolicyAnswer:
        """What an expression says."""
        ...


class PolicyRules(Protocol):
    """Evaluates the expressions of policies and webhooks. Plugged in, because CEL is its own part.

    `variables` are names and expressions in their order, None where there can be none.
    """

    def scope(
        self, *, has_params: bool, variables: tuple[tuple[str, str], ...] | None
    ) -> PolicyScope:
        """What the expressions of a policy may name."""
        ...

    def problem_of(self, expression: str, scope: PolicyScope, *results: str) -> str:
        """Why an expression that is to give one of `results` is refused; empty when it is not."""
        ...

    def value_of(self, tree: Any) -> Any:
        """What expressions see of a JSON tree."""
        ...

    def session(
        self,
        scope: PolicyScope,
        values: Mapping[str, Any],
        *,
        is_about_conditions: bool = False,
    ) -> PolicySession:
        """Begins an evaluation; conditions have a budget of their own."""
        ...


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


def accept_expression(expression: str) -> ExpressionProblem | None:
    """Takes every expression; for callers that bring no CEL."""
    return None


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
    without it they are stored as they are.
    """

    profile: Profile
    schemas: Schemas
    validate_create: ValidateCreate = accept_create
    validate_update: ValidateUpdate = accept_update
    check_expression: CheckExpression = accept_expression
    object_rules: ObjectRules = NoObjectRules()
    policy_rules: PolicyRules | None = None
    webhooks: Targets = targets.NONE
    patch_operations_max: int = OPERATIONS_MAX
    tracks_managers: bool = True
    services: ServiceRanges = ServiceRanges()
    secrets: SecretCipher | None = None

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
