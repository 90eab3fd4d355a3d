"""The rules of objects for a history, from its settings."""

from functools import cache

from app.adapters import schemas
from app.domain import cel
from app.domain.cel import object_rules, policy_rules
from app.domain.log import HistoryInfo
from app.domain.objects import profile as profiles
from app.domain.objects.expressions import ExpressionProblem
from app.domain.objects.field_errors import FieldError
from app.domain.objects.kind import Kind
from app.domain.objects.profile import Profile
from app.domain.objects.rules import Rules, ValidateCreate, ValidateUpdate, ValidationContext
from app.domain.values.json_tree import JsonObject


def rules_of(info: HistoryInfo) -> Rules:
    """The rules of a history: its profile, the schemas of that release, validation, CEL."""
    return rules_for(profiles.from_settings(info.settings))


def rules_for(profile: Profile) -> Rules:
    """The rules of a profile."""
    environment = cel.new_environment({gate: profile.enabled(gate) for gate in profiles.GATES})

    def check_expression(text: str) -> ExpressionProblem | None:
        problem = cel.check_admission(text, environment=environment)
        if problem is None:
            return None
        is_too_costly = problem.reason == "FieldValueForbidden"
        return ExpressionProblem(detail=problem.detail, is_too_costly=is_too_costly)

    return Rules(
        profile=profile,
        schemas=schemas.load(profile.version),
        validate_create=_validate_create,
        validate_update=_validate_update,
        check_expression=check_expression,
        object_rules=object_rules,
        policy_rules=policy_rules,
    )


@cache
def _validation() -> tuple[ValidateCreate, ValidateUpdate]:
    """Validation is loaded by the first write: commands that only read need none of it."""
    from app.domain.objects import validation

    return validation.validate_create, validation.validate_update


def _validate_create(kind: Kind, tree: JsonObject, context: ValidationContext) -> list[FieldError]:
    return _validation()[0](kind, tree, context)


def _validate_update(
    kind: Kind, tree: JsonObject, old: JsonObject, subresource: str, context: ValidationContext
) -> list[FieldError]:
    return _validation()[1](kind, tree, old, subresource, context)
