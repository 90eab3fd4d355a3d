"""Validation of an expression that is written to the API.

Parity: allocator.md 11.6: first the length, then compilation in the New environment, then the
estimated cost.
"""

from dataclasses import dataclass

from app.domain.cel.environment import Environment
from app.domain.cel.limits import COST_LIMIT, EXPRESSION_BYTES_MAX
from app.domain.cel.program import compile_expression
from app.domain.cel.syntax.issues import CompileError


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionProblem:
    """The problem of a refused expression. `reason` is a cause type of the Kubernetes Status.

    `detail` is the text after the kind of problem; `str()` includes upstream's kind before it.
    """

    reason: str
    detail: str

    def __str__(self) -> str:
        return f"{_KINDS[self.reason]}: {self.detail}"


_KINDS = {
    "FieldValueTooLong": "Too long",
    "FieldValueInvalid": "Invalid value",
    "FieldValueForbidden": "Forbidden",
}


def check_admission(
    expression: str,
    *,
    environment: Environment,
    cost_limit: int = COST_LIMIT,
    bytes_max: int = EXPRESSION_BYTES_MAX,
) -> AdmissionProblem | None:
    """Returns the problem of a new or changed expression, or None if it may be stored.

    `environment` is that of `new_environment(features)`.
    """
    if len(expression.encode()) > bytes_max:
        detail = f"may not be more than {bytes_max} bytes"
        return AdmissionProblem(reason="FieldValueTooLong", detail=detail)
    try:
        program = compile_expression(expression, environment=environment)
    except CompileError as error:
        return AdmissionProblem(reason="FieldValueInvalid", detail=error.text)
    if program.max_cost > cost_limit:
        detail = "too complex, exceeds cost limit"
        return AdmissionProblem(reason="FieldValueForbidden", detail=detail)
    return None
