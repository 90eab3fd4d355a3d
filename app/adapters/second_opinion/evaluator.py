"""cel-python's evaluator with additions for selectors: optional values, `cel.bind`, `has`.

An expression is checked first: one with an unregistered function or macro is not evaluated, because
an unknown function inside `has` or `||` would give an ordinary answer.
"""

from collections.abc import Iterator
from typing import Any, Final

import lark
from celpy import celtypes
from celpy.evaluation import Activation, CELEvalError, Evaluator

from app.adapters.second_opinion.functions import FUNCTIONS, NAMES, OPTIONAL, item_of
from app.adapters.second_opinion.values import NONE, Maybe, failed, unsupported

MACROS: Final = frozenset(("all", "exists", "exists_one", "filter", "map"))
EAGER_MACROS: Final = frozenset(("exists_one", "filter", "map"))
"""Macros of cel-python in which the first error ends the evaluation of the whole expression."""

_LAZY: Final = {"orValue": 1, "or": 1, "optMap": 2, "optFlatMap": 2}
"""Methods of optional values that may skip their arguments, with the number of arguments."""


def obstacle(tree: lark.Tree[Any]) -> str:
    """The part of the expression that cannot be evaluated; empty when there is none."""
    for node in tree.iter_subtrees():
        match node.data:
            case "ident_arg":
                name, count = str(node.children[0]), len(_arguments(node))
                if not (name in NAMES or (name in ("has", "dyn") and count == 1)):
                    return f"the function {name}"
            case "member_dot_arg":
                if problem := _method_obstacle(node):
                    return problem
            case "dot_ident" | "dot_ident_arg" | "member_object":
                return "names that begin with a dot, and messages"
    return ""


def has_eager_macro(tree: lark.Tree[Any]) -> bool:
    """True if an error may end the evaluation where CEL would continue."""
    return any(str(node.children[1]) in EAGER_MACROS for node in tree.find_data("member_dot_arg"))


def _method_obstacle(node: lark.Tree[Any]) -> str:
    name, arguments = str(node.children[1]), _arguments(node)
    namespace = _name_of(node.children[0])
    if namespace == "cel" and name == "bind":
        is_known = len(arguments) == 3 and bool(_name_of(arguments[0]))
    elif namespace == "optional":
        is_known = name in OPTIONAL
    elif name in MACROS:
        is_known = len(arguments) == 2 and bool(_name_of(arguments[0]))
    elif name in _LAZY:
        is_known = len(arguments) == _LAZY[name]
    else:
        is_known = name in NAMES
    return "" if is_known else f"the function {name}"


def _arguments(node: lark.Tree[Any]) -> list[Any]:
    last = node.children[-1]
    return list(last.children) if isinstance(last, lark.Tree) and last.data == "exprlist" else []


def _only(tree: Any) -> Iterator[Any]:
    while isinstance(tree, lark.Tree) and len(tree.children) == 1:
        yield tree
        tree = tree.children[0]


def _name_of(tree: Any) -> str:
    """The name if the tree is a single identifier, else empty."""
    for node in _only(tree):
        if node.data == "ident":
            return str(node.children[0])
    return ""


class DeviceEvaluator(Evaluator):
    """Evaluates one parsed expression. Its methods are named after the rules of the grammar."""

    def sub_evaluator(self, ast: Any) -> Evaluator:
        """The evaluator of a macro's body."""
        return DeviceEvaluator(ast, activation=self.activation)

    def evaluated(self, tree: Any) -> Any:
        """The value of a part that is evaluated already."""
        return tree.children[0]

    def macro_has_eval(self, exprlist: Any) -> Any:
        """True if the last field exists; errors in the fields before it remain errors.

        cel-python gives false for every error.
        """
        selection = exprlist
        while isinstance(selection, lark.Tree) and selection.data != "member_dot":
            if len(selection.children) != 1:
                return unsupported("has() of anything but a field")
            selection = selection.children[0]
        if not isinstance(selection, lark.Tree):
            return unsupported("has() of anything but a field")
        container = self.visit(selection.children[0])
        if isinstance(container, CELEvalError):
            return container
        if isinstance(container, Maybe):
            return unsupported("has() of an optional value")
        if isinstance(container, celtypes.ListType):
            return failed("unsupported index type")
        inside = item_of(container, celtypes.StringType(str(selection.children[1])))
        return celtypes.BoolType(not isinstance(inside, CELEvalError))

    def conditionalor(self, tree: Any) -> Any:
        """`||`, which does not evaluate the right side if the left side decides."""
        return self._logical(tree, deciding=True)

    def conditionaland(self, tree: Any) -> Any:
        """`&&`, which does not evaluate the right side if the left side decides."""
        return self._logical(tree, deciding=False)

    def member_dot(self, tree: Any) -> Any:
        """A field, including one of an optional value."""
        return item_of(self.visit(tree.children[0]), celtypes.StringType(tree.children[1]))

    def member_dot_arg(self, tree: Any) -> Any:
        """A method or macro."""
        name = str(tree.children[1])
        namespace = _name_of(tree.children[0])
        arguments = _arguments(tree)
        if namespace == "cel" and name == "bind":
            value = self.visit(arguments[1])
            # An error is bound too, and takes effect where the name is used.
            return self._bound(arguments[0], value, arguments[2])
        if namespace == "optional":
            values = [self.visit(argument) for argument in arguments]
            errors = [value for value in values if isinstance(value, CELEvalError)]
            return errors[0] if errors else OPTIONAL[name](*values)
        receiver = self.visit(tree.children[0])
        if isinstance(receiver, CELEvalError):
            return receiver
        if name in _LAZY:
            return self._of_optional(receiver, name, arguments)
        if name in MACROS and not isinstance(receiver, celtypes.ListType | celtypes.MapType):
            return failed("expected iterable type")
        if name in ("all", "exists"):
            return self._quantified(tree, receiver, deciding=name == "exists")
        known = lark.Tree("evaluated", [receiver], tree.meta)
        return super().member_dot_arg(lark.Tree(tree.data, [known, *tree.children[1:]], tree.meta))

    def _logical(self, tree: Any, *, deciding: bool) -> Any:
        left = self.visit(tree.children[0])
        if len(tree.children) == 1 or _is_bool(left, deciding):
            return left
        return _joined(left, self.visit(tree.children[1]), deciding=deciding)

    def _quantified(self, tree: Any, elements: Any, *, deciding: bool) -> Any:
        body = self.build_ss_macro_eval(tree)
        result: Any = celtypes.BoolType(not deciding)
        for element in elements:
            result = _joined(result, body(element), deciding=deciding)
            if _is_bool(result, deciding):
                break
        return result

    def _of_optional(self, receiver: Any, name: str, arguments: list[Any]) -> Any:
        if not isinstance(receiver, Maybe):
            return failed("no such overload")
        if name in ("optMap", "optFlatMap"):
            if not receiver.present:
                return NONE
            value = self._bound(arguments[0], receiver.value, arguments[1])
            is_plain = name == "optFlatMap" or isinstance(value, CELEvalError)
            return value if is_plain else Maybe(value)
        if receiver.present:
            return receiver if name == "or" else receiver.value
        return self.visit(arguments[0])

    def _bound(self, name: Any, value: Any, body: Any) -> Any:
        inner = self.sub_evaluator(body)
        inner.set_activation({_name_of(name): value})
        return inner.visit(body)


def _is_bool(value: Any, wanted: bool) -> bool:
    return isinstance(value, celtypes.BoolType) and bool(value) is wanted


def _joined(left: Any, right: Any, *, deciding: bool) -> Any:
    """The result of `||` (true decides) or `&&` (false decides), by cel-python's rules."""
    join = FUNCTIONS["_||_" if deciding else "_&&_"]
    try:
        return join(left, right)
    except TypeError:
        return failed("no such overload")


def evaluate(tree: lark.Tree[Any], device: celtypes.MapType) -> Any:
    """The value of an expression for a device; an error is returned as a value."""
    activation = Activation(vars={"device": device}, functions=FUNCTIONS)
    try:
        return DeviceEvaluator(tree, activation).visit(tree)
    except CELEvalError as error:
        return error
