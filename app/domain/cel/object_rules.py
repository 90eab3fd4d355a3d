"""Rules over parts of objects: expressions with `self` and `oldSelf` instead of `device`.

The variables are dynamic, so a rule that upstream refuses because a field has another type fails
here at evaluation. Values are made from JSON by the OpenAPI schema of the part. Parity: objects.md
15.5, x-kubernetes-validations of apiextensions.k8s.io/v1.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from app.domain.cel.checking import checker, literals
from app.domain.cel.device import DeviceInput
from app.domain.cel.environment import STORED
from app.domain.cel.evaluation.closures import Compiler
from app.domain.cel.evaluation.state import COST_EXCEEDED, Code, Evaluation
from app.domain.cel.limits import COST_LIMIT, DEPTH_MAX
from app.domain.cel.program import error_text
from app.domain.cel.signatures import types
from app.domain.cel.syntax import parser
from app.domain.cel.syntax.issues import CompileError
from app.domain.cel.values import conversions
from app.domain.cel.values.value import CostExceeded, OptionalValue, Value
from app.domain.values.json_tree import JsonView

RULES_KEPT_MAX: Final = 2_048
"""The largest number of cached compiled rules."""

_VARIABLES: Final = ("self", "oldSelf")
_NO_DEVICE: Final = DeviceInput(driver="").value
_RESERVED: Final = frozenset(
    (
        *("true", "false", "null", "in", "as", "break", "const", "continue", "else", "for"),
        *("function", "if", "import", "let", "loop", "package", "namespace", "return"),
    )
)
_ESCAPES: Final = {"_": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
_ESCAPED = re.compile(r"__|[./-]")


class ObjectRule:
    """A compiled rule; immutable, may be shared."""

    __slots__ = ("_code", "_slots")

    def __init__(self, code: Code, slots: int) -> None:
        self._code = code
        self._slots = slots

    def run(self, value: Value, old: Value) -> Value:
        """Returns the result of the rule for a value, which may be an error."""
        ctx = Evaluation(_NO_DEVICE, COST_LIMIT, self._slots)
        ctx.slots[0], ctx.slots[1] = value, old
        try:
            return self._code(ctx)
        except CostExceeded:
            return COST_EXCEEDED


@lru_cache(maxsize=RULES_KEPT_MAX)
def compile_rule(expression: str) -> ObjectRule | str:
    """Returns the rule, or the error if it cannot be compiled."""
    try:
        parsed = parser.parse(expression)
        checked = checker.check(parsed, STORED, dict.fromkeys(_VARIABLES, types.DYN))
        literals.check_literals(checked)
        compiler = Compiler(checked=checked, environment=STORED)
        compiler.declare(*_VARIABLES)
        code = compiler.compile(checked.root)
    except CompileError as problem:
        return problem.text
    except RecursionError:
        return f"expression recursion limit exceeded: {DEPTH_MAX}"
    return ObjectRule(code, compiler.slots)


def problem_of(expression: str) -> str:
    """The compilation error of a rule; empty if there is none."""
    program = compile_rule(expression)
    return program if isinstance(program, str) else ""


def broken(
    expression: str, schema: JsonView, value: Any, old: Any, *, is_optional: bool = False
) -> str | None:
    """Returns None if a value satisfies the rule, an empty text if not, or the text of an error.

    `old` is the old value, or None; with `is_optional` the rule gets it as an optional value.
    """
    rule = compile_rule(expression)
    if isinstance(rule, str):
        return rule
    before = value_of(schema, old)
    if is_optional:
        before = OptionalValue(before, present=old is not None)
    answer = rule.run(value_of(schema, value), before)
    if answer is True:
        return None
    return "" if answer is False else error_text(answer)


def text_of(expression: str, schema: JsonView, value: Any, old: Any) -> str:
    """The text of a message expression; empty if it fails or its result is not a string."""
    rule = compile_rule(expression)
    if isinstance(rule, str):
        return ""
    answer = rule.run(value_of(schema, value), value_of(schema, old))
    return answer if isinstance(answer, str) else ""


def value_of(schema: JsonView, value: Any) -> Value:
    """The CEL value of a part of an object, by its schema."""
    if isinstance(value, dict):
        properties: Mapping[str, Any] = schema.get("properties") or {}
        more = schema.get("additionalProperties")
        fields: dict[str, Value] = {}
        for key, item in value.items():
            child = properties.get(key)
            if item is None:
                continue  # null counts as absent
            if isinstance(child, dict):
                fields[_escaped(key)] = value_of(child, item)
            elif isinstance(more, dict):
                fields[key] = value_of(more, item)
            else:
                fields[_escaped(key)] = value_of({}, item)
        return fields
    if isinstance(value, list):
        items = schema.get("items")
        inner = items if isinstance(items, dict) else {}
        return tuple(value_of(inner, item) for item in value)
    if schema.get("type") == "number" and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if isinstance(value, str):
        return _text(schema, value)
    return value


def _text(schema: JsonView, value: str) -> Value:
    match schema.get("format"):
        case "date-time":
            moment = conversions.parse_timestamp(value)
            return value if moment is None else moment
        case "duration":
            length = conversions.parse_duration(value)
            return value if length is None else length
    return value


def _escaped(key: str) -> str:
    """The escaped name of a property in rules."""
    if key in _RESERVED:
        return f"__{key}__"
    if "__" not in key and not any(char in key for char in "./-"):
        return key
    return _ESCAPED.sub(lambda match: _ESCAPES[match.group()[0]], key)
