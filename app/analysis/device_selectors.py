"""Selectors that match no published device: which part of them, and what there is."""

from collections.abc import Collection, Iterable, Iterator
from difflib import get_close_matches

from app.domain.cel.program import Program
from app.domain.cel.syntax.tree import EQUALS, LOGICAL_AND, Call, Ident, Literal, Node, Select
from app.domain.values import counts
from app.domain.values.identifiers import DeviceId
from app.domain.values.json_tree import JsonObject

PARTS = ("driver", "pool", "device")
"""The fields of a device selector, from the widest."""

_NAMES_MAX = 3


def matches(selector: JsonObject, device: DeviceId) -> bool:
    """Whether each part that the selector names is that of the device."""
    wanted = zip(PARTS, device, strict=True)
    return all(selector.get(part) in (None, name) for part, name in wanted)


def unmatched(selector: object, devices: Iterable[DeviceId]) -> str:
    """The reason why a selector matches none of the devices, with the nearest names.

    Empty when it matches one. A part is looked for among the devices that the wider parts match.
    """
    left = list(devices)
    if not isinstance(selector, dict):
        return ""
    parts: list[str] = []
    for index, part in enumerate(PARTS):
        wanted = selector.get(part)
        if wanted is None:
            continue
        known = {device[index] for device in left}
        if wanted not in known:
            of = f" of {' and '.join(parts)}" if parts else ""
            return f"it selects no device: there is no {part} {wanted}{of}{_near(wanted, known)}"
        left = [device for device in left if device[index] == wanted]
        parts.append(f"{part} {wanted}")
    return "" if left else "it selects no device: there is none"


def unpublished(program: Program, published: Collection[str]) -> str:
    """The driver that a selector requires and that publishes nothing, with the nearest names.

    Empty when it requires none, or one of those that publish.
    """
    for driver in required_drivers(program):
        if driver not in published:
            return f"there is no driver {driver}{_near(driver, published)}"
    return ""


def required_drivers(program: Program) -> tuple[str, ...]:
    """The names that a selector compares `device.driver` with, each once.

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


def _near(wanted: object, known: Collection[str]) -> str:
    near = get_close_matches(str(wanted), sorted(known), n=_NAMES_MAX)
    if near:
        verb = "name is" if len(near) == 1 else "names are"
        return f"; the nearest {verb} {', '.join(near)}"
    if not known:
        return ""
    shown = sorted(known)[:_NAMES_MAX]
    more = f" and {len(known) - _NAMES_MAX} more" if len(known) > _NAMES_MAX else ""
    return f"; there {counts.verb(len(known), 'is')} {', '.join(shown)}{more}"
