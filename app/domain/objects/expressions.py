"""What evaluates the expressions in objects. Plugged in, because CEL is a part of its own."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from app.domain.values.json_tree import JsonView


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


def accept_expression(expression: str) -> ExpressionProblem | None:
    """Takes every expression; for callers that bring no CEL."""
    return None
