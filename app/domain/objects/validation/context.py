"""The context of validation: inputs of a rule other than the object."""

from collections.abc import Mapping

import msgspec

from app.domain.objects.expressions import (
    CheckExpression,
    NoObjectRules,
    ObjectRules,
    PolicyRules,
    accept_expression,
)
from app.domain.objects.profile import Profile
from app.domain.objects.rules import FLAWLESS_MAX, FlawlessSpecs
from app.domain.values.bounded import Bounded


class Context(msgspec.Struct, frozen=True, kw_only=True):
    """The imitated release, the labels of the namespace, and the checks of CEL expressions.

    `flawless_specs` are the specs of claims that were checked before and have no errors.
    """

    profile: Profile
    namespace_labels: Mapping[str, str] = msgspec.field(default_factory=dict)
    check_expression: CheckExpression = accept_expression
    object_rules: ObjectRules = NoObjectRules()
    policy_rules: PolicyRules | None = None
    flawless_specs: FlawlessSpecs = msgspec.field(default_factory=lambda: Bounded(FLAWLESS_MAX))
