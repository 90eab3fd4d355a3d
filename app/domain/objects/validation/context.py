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


class Context(msgspec.Struct, frozen=True, kw_only=True):
    """The imitated release, the labels of the namespace, and the checks of CEL expressions."""

    profile: Profile
    namespace_labels: Mapping[str, str] = msgspec.field(default_factory=dict)
    check_expression: CheckExpression = accept_expression
    object_rules: ObjectRules = NoObjectRules()
    policy_rules: PolicyRules | None = None
