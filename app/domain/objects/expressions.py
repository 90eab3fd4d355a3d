"""Interfaces to the evaluator of CEL expressions in objects, which callers pass in.

The object rules do not import `app/domain/cel`; the two packages are independent.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from app.domain.values.json_tree import JsonView


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpressionProblem:
    """The refusal of a CEL selector: it does not compile, or it may cost too much."""

    detail: str
    is_too_costly: bool = False


CheckExpression: TypeAlias = Callable[[str], ExpressionProblem | None]
"""Returns the problem of a selector in a new object, or None. The caller passes it in."""


class ObjectRules(Protocol):
    """Evaluates `x-kubernetes-validations`. The caller passes it in."""

    def problem_of(self, expression: str) -> str:
        """The reason why a rule does not compile; empty when it compiles."""
        ...

    def broken(
        self, expression: str, schema: JsonView, value: Any, old: Any, *, is_optional: bool
    ) -> str | None:
        """None when the rule holds, empty when it is broken, otherwise the text of an error."""
        ...

    def text_of(self, expression: str, schema: JsonView, value: Any, old: Any) -> str:
        """The result of a message expression; empty when it has no usable result."""
        ...


class NoObjectRules:
    """Accepts every rule and value; for callers without CEL."""

    def problem_of(self, expression: str) -> str:
        """Every rule is accepted."""
        return ""

    def broken(
        self, expression: str, schema: JsonView, value: Any, old: Any, *, is_optional: bool
    ) -> str | None:
        """Every rule holds."""
        return None

    def text_of(self, expression: str, schema: JsonView, value: Any, old: Any) -> str:
        """The empty text: there are no messages."""
        return ""


class PolicyAnswer(Protocol):
    """The result of an expression: a value, or the text of an error."""

    @property
    def value(self) -> Any:
        """The value; None when there is an error."""
        ...

    @property
    def error(self) -> str:
        """The text of the error; empty when there is a value."""
        ...


PolicyScope: TypeAlias = Any
"""The names that the expressions of a policy may use, as `PolicyRules.scope` returns them."""


class PolicySession(Protocol):
    """Evaluates the expressions of one policy for one write; they share budget and variables."""

    def ask(self, expression: str) -> PolicyAnswer:
        """Evaluates an expression."""
        ...


class PolicyRules(Protocol):
    """Evaluates the expressions of policies and webhooks. The caller passes it in.

    `variables` are names and expressions in their order; None where variables are not possible.
    """

    def scope(
        self, *, has_params: bool, variables: tuple[tuple[str, str], ...] | None
    ) -> PolicyScope:
        """The names that the expressions of a policy may use."""
        ...

    def problem_of(self, expression: str, scope: PolicyScope, *results: str) -> str:
        """The reason to refuse an expression of one of the types `results`; empty when valid."""
        ...

    def value_of(self, tree: Any) -> Any:
        """The CEL value of a JSON tree."""
        ...

    def session(
        self,
        scope: PolicyScope,
        values: Mapping[str, Any],
        *,
        is_about_conditions: bool = False,
    ) -> PolicySession:
        """Starts an evaluation; match conditions have their own budget."""
        ...


def accept_expression(expression: str) -> ExpressionProblem | None:
    """Accepts every expression; for callers without CEL."""
    return None
