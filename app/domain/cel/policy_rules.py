"""Expressions about a write: `object`, `oldObject`, `request`, `params`, `variables`, …

The fields of a request and of a namespace are declared, so a mistake in them is found at
compilation; objects are dynamic, regardless of their schema. Parity: objects.md 15.4, CEL of
admissionregistration.k8s.io/v1. There is no `authorizer`: a policy that uses it is refused.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

import msgspec

from app.domain.cel.checking import checker, literals
from app.domain.cel.device import DeviceInput
from app.domain.cel.environment import STORED
from app.domain.cel.evaluation.closures import Compiler
from app.domain.cel.evaluation.state import COST_EXCEEDED, Code, Evaluation
from app.domain.cel.limits import COST_LIMIT, DEPTH_MAX
from app.domain.cel.signatures import types
from app.domain.cel.signatures.types import Type
from app.domain.cel.syntax import parser
from app.domain.cel.syntax.issues import CompileError
from app.domain.cel.values.value import INT_MAX, INT_MIN, CelError, CostExceeded, Value

PROGRAMS_KEPT_MAX: Final = 4_096
"""The largest number of cached compiled expressions."""

BUDGET: Final = 10_000_000
"""The largest total cost of a policy's expressions in one evaluation."""

CONDITIONS_BUDGET: Final = 2_500_000
"""The largest total cost of the conditions of a policy or webhook in one evaluation."""

_NO_DEVICE: Final = DeviceInput(driver="").value
_OUT_OF_BUDGET = (
    "validation failed due to running out of cost budget, no further validation rules will be run"
)

_REQUEST: Final = Type("kubernetes.AdmissionRequest")
_NAMESPACE: Final = Type("kubernetes.Namespace")
_VARIABLES: Final = Type("kubernetes.variables")
_KIND: Final = Type("kubernetes.GroupVersionKind")
_RESOURCE: Final = Type("kubernetes.GroupVersionResource")
_USER: Final = Type("kubernetes.UserInfo")
_META: Final = Type("kubernetes.NamespaceMetadata")
_SPEC: Final = Type("kubernetes.NamespaceSpec")
_STATUS: Final = Type("kubernetes.NamespaceStatus")
_TEXTS: Final = types.map_of(types.STRING, types.STRING)

_FIELDS: Final[Mapping[str, Mapping[str, Type]]] = {
    _REQUEST.kind: {
        "kind": _KIND,
        "resource": _RESOURCE,
        "subResource": types.STRING,
        "requestKind": _KIND,
        "requestResource": _RESOURCE,
        "requestSubResource": types.STRING,
        "name": types.STRING,
        "namespace": types.STRING,
        "operation": types.STRING,
        "userInfo": _USER,
        "dryRun": types.BOOL,
        "options": types.DYN,
    },
    _KIND.kind: dict.fromkeys(("group", "version", "kind"), types.STRING),
    _RESOURCE.kind: dict.fromkeys(("group", "version", "resource"), types.STRING),
    _USER.kind: {
        "username": types.STRING,
        "uid": types.STRING,
        "groups": types.list_of(types.STRING),
        "extra": types.map_of(types.STRING, types.list_of(types.STRING)),
    },
    _NAMESPACE.kind: {"metadata": _META, "spec": _SPEC, "status": _STATUS},
    _META.kind: {
        **dict.fromkeys(("name", "generateName", "namespace"), types.STRING),
        **dict.fromkeys(("labels", "annotations"), _TEXTS),
        **dict.fromkeys(("UID", "resourceVersion"), types.STRING),
        **dict.fromkeys(("creationTimestamp", "deletionTimestamp"), types.TIMESTAMP),
        **dict.fromkeys(("deletionGracePeriodSeconds", "generation"), types.INT),
        "finalizers": types.list_of(types.STRING),
    },
    _SPEC.kind: {"finalizers": types.list_of(types.STRING)},
    _STATUS.kind: {"conditions": types.list_of(types.DYN), "phase": types.STRING},
}

_SLOTS: Final = ("object", "oldObject", "request", "namespaceObject", "params", "variables")
"""The order of the variables in the slots of an evaluation."""


class Evaluated(msgspec.Struct, frozen=True, kw_only=True):
    """The result of an expression: a value, or the text of an error."""

    value: Value = None
    error: str = ""


class VariableScope(msgspec.Struct, frozen=True, kw_only=True):
    """The variables that expressions can use.

    `variables` are the names and expressions of a policy's variables in order, or None for
    conditions, which have none.
    """

    has_params: bool = False
    variables: tuple[tuple[str, str], ...] | None = None


class _CompiledExpression(msgspec.Struct, frozen=True):
    code: Code
    slots: int
    type: Type


@lru_cache(maxsize=PROGRAMS_KEPT_MAX)
def _compiled(expression: str, scope: VariableScope) -> _CompiledExpression | str:
    """Returns the program of an expression, or the error if it cannot be compiled."""
    names: dict[str, Type] = {
        "object": types.DYN,
        "oldObject": types.DYN,
        "request": _REQUEST,
        "namespaceObject": _NAMESPACE,
    }
    if scope.has_params:
        names["params"] = types.DYN
    fields = _FIELDS
    if scope.variables is not None:
        names["variables"] = _VARIABLES
        fields = {**_FIELDS, _VARIABLES.kind: _variable_types(scope)}
    try:
        parsed = parser.parse(expression)
        checked = checker.check(parsed, STORED, names, fields)
        literals.check_literals(checked)
        compiler = Compiler(checked=checked, environment=STORED)
        compiler.declare(*_SLOTS)
        code = compiler.compile(checked.root)
    except CompileError as problem:
        return problem.text
    except RecursionError:
        return f"compilation failed: expression recursion limit exceeded: {DEPTH_MAX}"
    return _CompiledExpression(code, compiler.slots, checked.types[checked.root.id])


def _variable_types(scope: VariableScope) -> dict[str, Type]:
    """The types of the variables; `dyn` for one that cannot be compiled."""
    kinds: dict[str, Type] = {}
    for index, (name, expression) in enumerate(scope.variables or ()):
        program = _compiled(expression, _before(scope, index))
        kinds[name] = types.DYN if isinstance(program, str) else program.type
    return kinds


def _before(scope: VariableScope, index: int) -> VariableScope:
    """The scope of a variable, which has the variables before it."""
    variables = (scope.variables or ())[:index]
    return VariableScope(has_params=scope.has_params, variables=variables)


def scope(*, has_params: bool, variables: tuple[tuple[str, str], ...] | None) -> VariableScope:
    """Returns the scope of a policy's expressions."""
    return VariableScope(has_params=has_params, variables=variables)


def session(
    scope: VariableScope, values: Mapping[str, Value], *, is_about_conditions: bool = False
) -> "Session":
    """Begins an evaluation with values that `value_of` made; an absent value is null."""
    return Session(scope, values, CONDITIONS_BUDGET if is_about_conditions else BUDGET)


def problem_of(expression: str, scope: VariableScope, *results: str) -> str:
    """The error of a refused expression; empty if it is accepted.

    `results` are the names of allowed result types; without them every type is allowed.
    """
    program = _compiled(expression, scope)
    if isinstance(program, str):
        return program
    if not results or program.type.kind in results:
        return ""
    if len(results) == 1:
        return f"must evaluate to {results[0]}"
    return f"must evaluate to one of [{' '.join(results)}]"


def value_of(tree: Any) -> Value:
    """The CEL value of a JSON tree."""
    if isinstance(tree, dict):
        return {key: value_of(item) for key, item in tree.items()}
    if isinstance(tree, list):
        return tuple(value_of(item) for item in tree)
    if isinstance(tree, int) and not isinstance(tree, bool) and not INT_MIN <= tree <= INT_MAX:
        return float(tree)
    return tree


class Session:
    """The evaluation of a policy's expressions about a write, with shared budget and variables."""

    __slots__ = ("_left", "_scope", "_values")

    def __init__(self, scope: VariableScope, values: Mapping[str, Value], budget: int) -> None:
        """`values` are made by `value_of`; an absent value is null."""
        self._scope = scope
        self._left = budget
        slots = [values.get(name) for name in _SLOTS]
        if scope.variables is not None:
            slots[-1] = _Variables(self)
        self._values = slots

    def ask(self, expression: str) -> Evaluated:
        """Returns the result of an expression. The text of an error names the expression."""
        value = self.run(expression, self._scope)
        if self._left < 0:
            return Evaluated(error=_OUT_OF_BUDGET)
        if isinstance(value, CelError):
            return Evaluated(error=f"expression '{expression}' resulted in error: {value.message}")
        return Evaluated(value=value)

    def run(self, expression: str, scope: VariableScope) -> Value:
        """Returns the value of an expression, which may be an error."""
        program = _compiled(expression, scope)
        if isinstance(program, str):
            return CelError(program)
        ctx = Evaluation(_NO_DEVICE, min(COST_LIMIT, max(self._left, 0)), program.slots)
        ctx.slots[: len(_SLOTS)] = self._values
        try:
            return program.code(ctx)
        except CostExceeded:
            return COST_EXCEEDED
        except RecursionError:
            return CelError("the value is nested too deeply")
        finally:
            self._left -= ctx.cost

    def variable(self, index: int) -> Value:
        """Returns the value of a variable of the policy."""
        name, expression = (self._scope.variables or ())[index]
        value = self.run(expression, _before(self._scope, index))
        if isinstance(value, CelError):
            return CelError(f'composited variable "{name}" fails to evaluate: {value.message}')
        return value

    def names(self) -> list[str]:
        """The names of the variables, in their order."""
        return [name for name, _ in self._scope.variables or ()]


class _Variables(dict[str, Value]):
    """The variables of a policy, each of which is evaluated once, on first use."""

    __slots__ = ("_names", "_session")

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self._names = session.names()

    def get(self, key: Any, default: Any = None) -> Any:
        """The value of a variable; `default` for an unknown name."""
        if key not in self and key in self._names:
            self[key] = self._session.variable(self._names.index(key))
        return super().get(key, default)
