"""The drivers that a device selector requires: what it compares `device.driver` with."""

from collections.abc import Iterator

from app.domain.cel.program import Program
from app.domain.cel.syntax.tree import EQUALS, LOGICAL_AND, Call, Ident, Literal, Node, Select


def drivers(program: Program) -> tuple[str, ...]:
    """The names that the driver of each matching device equals, each once.

    Only conditions count that must be true in any case: the expression, or the operands of its
    outermost `&&`. A selector that names two drivers matches no device.
    """
    return tuple(dict.fromkeys(_compared(program.checked.root)))


def _compared(node: Node) -> Iterator[str]:
    if not isinstance(node, Call):
        return
    if node.function == LOGICAL_AND:
        for operand in node.args:
            yield from _compared(operand)
    elif node.function == EQUALS and any(map(_is_driver, node.args)):
        for side in node.args:
            if isinstance(side, Literal) and isinstance(side.value, str):
                yield side.value


def _is_driver(node: Node) -> bool:
    """Whether a node is `device.driver`."""
    return (
        isinstance(node, Select)
        and node.field == "driver"
        and not node.test_only
        and isinstance(node.operand, Ident)
        and node.operand.name == "device"
    )
