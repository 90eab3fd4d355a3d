"""The parts of a device that an expression reads, on which its outcome can depend.

Two devices with equal parts have the same match, error and cost. The analysis follows constant
names and `cel.bind`; for other expressions it returns a larger part: a whole domain, all
attributes, or the whole device.
"""

from dataclasses import dataclass, field
from typing import TypeAlias

from app.domain.cel.checking.checker import Checked
from app.domain.cel.device import DeviceValue
from app.domain.cel.syntax import tree
from app.domain.cel.syntax.tree import Call, Comprehension, Ident, Literal, Node, Select, children
from app.domain.cel.values.value import DefaultingMap, QuantityValue, Value

Read: TypeAlias = tuple[str, ...]
"""`()` is the whole device, `("driver",)` a field, `("attributes", "d")` a domain,
`("attributes", "d", "x")` one value or its absence, `("attributes?", "d")` whether a domain
exists."""

_WHOLE_LENGTH = 3
_STEPS = frozenset({tree.INDEX, tree.OPTIONAL_INDEX, tree.OPTIONAL_SELECT})
_MAPS = ("attributes", "capacity")


def of(checked: Checked) -> frozenset[Read]:
    """The parts that an expression reads, without parts that are within another one."""
    reader = _FieldReader(checked=checked)
    reader.visit(checked.root)
    reads = reader.reads
    return frozenset(
        read for read in reads if not any(read[:length] in reads for length in range(len(read)))
    )


@dataclass(slots=True, kw_only=True)
class _FieldReader:
    checked: Checked
    reads: set[Read] = field(default_factory=set)
    scopes: list[dict[str, Read | None]] = field(default_factory=list)

    def visit(self, node: Node) -> None:
        """Records the parts that a node reads."""
        read = self._resolve(node)
        if read is not None:
            self.reads.add(read)
        elif isinstance(node, Select) and node.test_only:
            self._presence(node)
        elif isinstance(node, Call) and node.id in self.checked.calls:
            self._call(node)
        elif isinstance(node, Comprehension):
            self._comprehension(node)
        else:
            for child in children(node):
                self.visit(child)

    def _presence(self, node: Select) -> None:
        held = self._resolve(node.operand)
        if held is None:
            self.visit(node.operand)
        elif len(held) < _WHOLE_LENGTH - 1:
            # `has(device.attributes)` and `has(device.attributes.dom)` are always true.
            return
        else:
            self.reads.add((*held, node.field)[:_WHOLE_LENGTH])

    def _call(self, node: Call) -> None:
        args = self.checked.calls[node.id].args
        if node.function == tree.IN and self._membership(args[0], args[1]):
            return
        for argument in args:
            self.visit(argument)

    def _membership(self, element: Node, container: Node) -> bool:
        held = self._resolve(container)
        if held is None or held[:1] not in (("attributes",), ("capacity",)):
            return False
        if not isinstance(element, Literal) or not isinstance(element.value, str):
            return False
        if len(held) == 1:
            self.reads.add((f"{held[0]}?", element.value))
            return True
        if len(held) == _WHOLE_LENGTH - 1:
            self.reads.add((*held, element.value))
            return True
        return False

    def _comprehension(self, node: Comprehension) -> None:
        if node.is_bind:
            alias = self._resolve(node.init)
            if alias is None or len(alias) == _WHOLE_LENGTH:
                self.visit(node.init)
            self.scopes.append({node.accumulator: alias})
            self.visit(node.result)
            self.scopes.pop()
            return
        self.visit(node.range)
        self.visit(node.init)
        self.scopes.append({node.accumulator: None})
        self.scopes.append(dict.fromkeys((node.variable, node.second_variable)))
        self.visit(node.condition)
        self.visit(node.step)
        self.scopes.pop()
        self.visit(node.result)
        self.scopes.pop()

    def _resolve(self, node: Node) -> Read | None:
        """The part of the device that a node denotes; None for other nodes."""
        steps: list[str] = []
        while True:
            if isinstance(node, Select) and not node.test_only:
                steps.append(node.field)
                node = node.operand
            elif isinstance(node, Call) and node.function in _STEPS:
                operand, key = self.checked.calls[node.id].args
                if not isinstance(key, Literal) or not isinstance(key.value, str):
                    return None
                steps.append(key.value)
                node = operand
            else:
                break
        if not isinstance(node, Ident):
            return None
        start = self._start(node.name.removeprefix("."))
        if start is None:
            return None
        read = (*start, *reversed(steps))
        is_deep = len(read) > _WHOLE_LENGTH or (len(read) > 1 and read[0] not in _MAPS)
        return None if is_deep else read

    def _start(self, name: str) -> Read | None:
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        return () if name == "device" else None


def key(device: DeviceValue, read: Read) -> object:
    """The value of a part of a device, in a form that can be compared and hashed."""
    if device.failure is not None:
        return CONVERSION_FAILED, device.failure.message
    if len(read) == _WHOLE_LENGTH:
        domains = device.attributes if read[0] == "attributes" else device.capacity
        inner = domains.get(read[1])
        if inner is None:
            return _ABSENT
        value: Value = inner.get(read[2], _ABSENT)  # type: ignore[attr-defined]  # a map
        kind = value.__class__
        return value if kind is str or value is _ABSENT else _hashable(value)
    match read:
        case ():
            fields = ("driver", "allowMultipleAllocations", "attributes", "capacity")
            return tuple(_hashable(device.field(name)) for name in fields)
        case (name,):
            return _hashable(device.field(name))
        case ("attributes?" | "capacity?" as name, domain):
            return domain in _domains(device, name[:-1])
        case (name, domain):
            return _hashable(_domains(device, name).get(domain, _ABSENT))
        case _:
            raise AssertionError("a read has at most three parts")


CONVERSION_FAILED = "conversion failed"
_ABSENT = "<absent>", "nothing is there"


def _domains(device: DeviceValue, name: str) -> DefaultingMap:
    return device.attributes if name == "attributes" else device.capacity


def _hashable(value: Value) -> object:
    if isinstance(value, dict):
        return tuple((name, _hashable(item)) for name, item in value.items())
    if isinstance(value, tuple):
        return value.__class__, tuple(_hashable(item) for item in value)
    if isinstance(value, QuantityValue):
        return value.quantity
    return value.__class__, value
