"""What a rule may need beside the object."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from app.domain.objects.profile import Profile
from app.domain.objects.rules import (
    CheckExpression,
    NoObjectRules,
    ObjectRules,
    accept_expression,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """The release imitated, the labels of the object's namespace, and the check for expressions."""

    profile: Profile
    namespace_labels: Mapping[str, str] = field(default_factory=dict)
    check_expression: CheckExpression = accept_expression
    object_rules: ObjectRules = NoObjectRules()
