"""The entry point of cel-python: parses an expression once and evaluates it for each device."""

import sys
from collections.abc import Mapping
from typing import Any, Final

import celpy
import lark
from celpy import celtypes
from celpy.celparser import CELParseError
from celpy.evaluation import CELEvalError

from app.adapters.second_opinion import evaluator, optional_syntax
from app.adapters.second_opinion.values import FAILURES, Failed, Unsupported, device_of
from app.ports import Match, Opinion

EXPRESSIONS_MAX: Final = 4_096
"""Parsed expressions in the cache; a full cache is cleared."""

BYTES_MAX: Final = 10_240
"""The longest expression that is parsed, in bytes: the API server's own bound."""


class CelPython:
    """cel-python as a second opinion."""

    name = "cel-python"

    def __init__(self) -> None:
        limit = sys.getrecursionlimit()
        self._environment = celpy.Environment()
        # Creating an environment changes the recursion limit of the whole process.
        sys.setrecursionlimit(limit)
        self._parsed: dict[str, lark.Tree[Any] | str] = {}

    def ask(
        self,
        expression: str,
        *,
        driver: str,
        attributes: Mapping[str, Any],
        capacity: Mapping[str, Any],
        allow_multiple_allocations: bool,
    ) -> Opinion:
        """The opinion for one device: an answer, or the reason why there is none."""
        tree = self._tree(expression)
        if isinstance(tree, str):
            return Opinion(answer=None, reason=tree)
        try:
            device = device_of(driver, attributes, capacity, allow_multiple_allocations)
        except Failed:
            return Opinion(answer=Match.ERROR)
        except Unsupported as problem:
            return Opinion(answer=None, reason=f"it does not know: {problem}")
        try:
            value = evaluator.evaluate(tree, device)
        except RecursionError:
            return Opinion(answer=None, reason="it ends by itself: the expression is too deep")
        except Exception as problem:
            # A defect of cel-python is no statement about the history.
            return Opinion(answer=None, reason=f"it ends by itself: {type(problem).__name__}")
        return _opinion(tree, value)

    def _tree(self, expression: str) -> lark.Tree[Any] | str:
        """The parsed expression, or the reason why it is not evaluated."""
        tree = self._parsed.get(expression)
        if tree is None:
            if len(self._parsed) >= EXPRESSIONS_MAX:
                self._parsed.clear()
            tree = self._parsed[expression] = self._parse(expression)
        return tree

    def _parse(self, expression: str) -> lark.Tree[Any] | str:
        if len(expression.encode(errors="replace")) > BYTES_MAX:
            return "the expression is too long for it"
        if optional_syntax.FIELD in expression or optional_syntax.INDEX in expression:
            return "the expression has names that are used to pass on optional access"
        try:
            tree = self._environment.compile(optional_syntax.rewrite(expression))
            problem = evaluator.obstacle(tree)
        except CELParseError:
            is_optional = optional_syntax.is_used(expression)
            what = "it cannot parse the expression"
            return f"{what}, which has optional access" if is_optional else what
        except RecursionError:
            return "it ends by itself: the expression is too deep"
        return f"it does not know: {problem}" if problem else tree


def _opinion(tree: lark.Tree[Any], value: Any) -> Opinion:
    if isinstance(value, celtypes.BoolType):
        return Opinion(answer=Match.MATCH if value else Match.NO_MATCH)
    if not isinstance(value, CELEvalError):
        # A selector must evaluate to a bool.
        return Opinion(answer=Match.ERROR)
    kind = value.args[1] if len(value.args) > 1 else None
    if kind is Unsupported:
        return Opinion(answer=None, reason=f"it does not know: {value.args[0]}")
    if kind not in FAILURES or "undeclared" in str(value.args[0]):
        # The details are left out, because equal reasons are counted.
        return Opinion(answer=None, reason=f"it fails: {getattr(kind, '__name__', kind)}")
    if evaluator.has_eager_macro(tree):
        return Opinion(answer=None, reason="it fails at the first error in map, filter, exists_one")
    return Opinion(answer=Match.ERROR)
