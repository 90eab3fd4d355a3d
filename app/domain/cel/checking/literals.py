"""Checks of literals in addition to type checking.

Parity: cel.md 3. They follow type checking and come before the result type: homogeneous list and
map literals, constant patterns, durations and timestamps, and literal format texts.
"""

from app.domain.cel.checking.checker import Checked
from app.domain.cel.library import formatting, texts
from app.domain.cel.library.formatting import FormatError
from app.domain.cel.signatures.types import Type
from app.domain.cel.syntax.issues import CompileError, Issue
from app.domain.cel.syntax.tree import Call, ListLiteral, Literal, MapLiteral, Node, children
from app.domain.cel.values import conversions
from app.domain.cel.values.value import CelError
from app.domain.values.regular_expressions import Pattern

_RESULTS = frozenset({"bool", "dyn", "any"})


def check_literals(checked: Checked) -> None:
    """Raises CompileError with all errors in literals."""
    issues: list[Issue] = []
    pending: list[tuple[Node, bool]] = [(checked.root, False)]
    while pending:
        node, exempt = pending.pop()
        if isinstance(node, ListLiteral) and not exempt:
            _check_list(checked, node, issues)
        elif isinstance(node, MapLiteral) and not exempt:
            _check_map(checked, node, issues)
        elif isinstance(node, Call) and node.id in checked.calls:
            _check_call(checked, node, issues)
            exempt = exempt or checked.calls[node.id].function == "format"
        pending.extend((child, exempt) for child in children(node))
    if issues:
        raise checked.parsed.source.failure(issues)


def check_result(checked: Checked) -> None:
    """Raises CompileError unless the type of the expression is bool or only known at run time."""
    kind = checked.types[checked.root.id]
    if kind.kind not in _RESULTS:
        shown = "null_type" if kind.kind == "null_type" else str(kind)
        raise CompileError(f"must evaluate to bool or the unknown type, not {shown}")


def _check_list(checked: Checked, node: ListLiteral, issues: list[Issue]) -> None:
    elements = [
        (element, _unwrapped(checked.types[element.id], optional=index in node.optional))
        for index, element in enumerate(node.elements)
    ]
    _check_same(elements, issues)


def _check_map(checked: Checked, node: MapLiteral, issues: list[Issue]) -> None:
    _check_same([(entry.key, checked.types[entry.key.id]) for entry in node.entries], issues)
    values = [
        (entry.value, _unwrapped(checked.types[entry.value.id], optional=entry.optional))
        for entry in node.entries
    ]
    _check_same(values, issues)


def _unwrapped(element: Type, *, optional: bool) -> Type:
    return element.params[0] if optional and element.kind == "optional_type" else element


def _check_same(parts: list[tuple[Node, Type]], issues: list[Issue]) -> None:
    for node, kind in parts:
        first = parts[0][1]
        if kind != first:
            message = f"expected type '{first}' but found '{kind}'"
            issues.append(Issue(position=node.position, message=message))
            return


def _check_call(checked: Checked, node: Call, issues: list[Issue]) -> None:
    resolution = checked.calls[node.id]
    name, args = resolution.function, resolution.args
    if name == "format" and len(args) == 2:
        _check_format(checked, args[0], args[1], issues)
        return
    index = 1 if name == "matches" else 0
    if index >= len(args):
        return
    argument = args[index]
    if not isinstance(argument, Literal) or not isinstance(argument.value, str):
        return
    text = argument.value
    wrong = (
        (name == "matches" and not isinstance(texts.compile_pattern(text), Pattern))
        or (name == "duration" and conversions.parse_duration(text) is None)
        or (name == "timestamp" and isinstance(conversions.to_timestamp(text), CelError))
    )
    if wrong:
        issues.append(Issue(position=argument.position, message=f"invalid {name} argument"))


def _check_format(checked: Checked, text: Node, arguments: Node, issues: list[Issue]) -> None:
    """Checks number and kinds of the arguments of `format` if text and list are both literals."""
    if not isinstance(text, Literal) or not isinstance(text.value, str):
        return
    try:
        clauses = formatting.clauses(text.value)
    except FormatError as error:
        issues.append(Issue(position=text.position, message=str(error)))
        return
    if not isinstance(arguments, ListLiteral):
        return
    elements = arguments.elements
    if len(clauses) > len(elements):
        message = f"index {len(elements)} out of range"
        issues.append(Issue(position=text.position, message=message))
    elif len(clauses) < len(elements):
        message = (
            "too many arguments supplied to string.format"
            f" (expected {len(clauses)}, got {len(elements)})"
        )
        issues.append(Issue(position=text.position, message=message))
    for clause, element in zip(clauses, elements, strict=False):
        refusal = formatting.accepts(clause.verb, checked.types[element.id].kind)
        if refusal is not None:
            issues.append(Issue(position=element.position, message=refusal))
