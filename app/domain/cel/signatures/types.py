"""Types at compile time, their texts, and their assignability.

Parity: cel.md 2. `dyn` and `any` are assignable to and from every type; other types must be equal
after the type variables of the overload are bound. There are no numeric conversions. `null` is
assignable to optional values and to types that are objects upstream.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final


@dataclass(frozen=True, slots=True)
class Type:
    """A type. `kind` is a name such as `int`, `list` or `kubernetes.Semver`; the kind of a type
    variable is `_`, and its name is in `variable`."""

    kind: str
    params: tuple["Type", ...] = ()
    variable: str = ""

    def __str__(self) -> str:
        if self.variable:
            return self.variable
        name = "null" if self.kind == "null_type" else self.kind
        if not self.params:
            return name
        return f"{name}({', '.join(str(param) for param in self.params)})"


BOOL: Final = Type("bool")
INT: Final = Type("int")
UINT: Final = Type("uint")
DOUBLE: Final = Type("double")
STRING: Final = Type("string")
BYTES: Final = Type("bytes")
NULL: Final = Type("null_type")
DURATION: Final = Type("duration")
TIMESTAMP: Final = Type("timestamp")
DYN: Final = Type("dyn")
ANY: Final = Type("any")
ERROR: Final = Type("!error!")
QUANTITY: Final = Type("kubernetes.Quantity")
SEMVER: Final = Type("kubernetes.Semver")
DEVICE: Final = Type("kubernetes.DRADevice")
VARIABLE: Final = "_"

_WILDCARDS: Final = frozenset({"dyn", "any", "!error!"})
_NULLABLE: Final = frozenset(
    {"optional_type", "null_type", "duration", "timestamp", "kubernetes.Quantity"}
    | {"kubernetes.Semver", "kubernetes.URL", "net.IP", "net.CIDR", "kubernetes.NamedFormat"}
    | {"kubernetes.DRADevice", "kubernetes.AdmissionRequest", "kubernetes.UserInfo"}
    | {"kubernetes.GroupVersionKind", "kubernetes.GroupVersionResource", "kubernetes.variables"}
    | {f"kubernetes.Namespace{part}" for part in ("", "Metadata", "Spec", "Status")}
)


def list_of(element: Type) -> Type:
    """`list(element)`."""
    return Type("list", (element,))


def map_of(key: Type, value: Type) -> Type:
    """`map(key, value)`."""
    return Type("map", (key, value))


def optional_of(value: Type) -> Type:
    """`optional_type(value)`."""
    return Type("optional_type", (value,))


def type_of(value: Type) -> Type:
    """`type(value)`, the type of a type."""
    return Type("type", (value,))


def is_wildcard(type_: Type) -> bool:
    """Whether the type is `dyn`, `any`, or the type of a node with an error."""
    return type_.kind in _WILDCARDS


@dataclass(slots=True)
class Unifier:
    """The type variables of one compilation and their current bindings."""

    bound: dict[str, Type] = field(default_factory=dict)
    count: int = 0
    trail: list[tuple[str, Type | None]] = field(default_factory=list)

    def fresh(self) -> Type:
        """Returns a new, unbound type variable."""
        self.count += 1
        return Type(VARIABLE, variable=f"_var{self.count - 1}")

    def resolve(self, type_: Type, *, free_as_dyn: bool = False) -> Type:
        """The type with bound variables replaced; with `free_as_dyn`, unbound ones become `dyn`."""
        if type_.variable:
            target = self.bound.get(type_.variable)
            if target is not None:
                return self.resolve(target, free_as_dyn=free_as_dyn)
            return DYN if free_as_dyn else type_
        if not type_.params:
            return type_
        params = tuple(self.resolve(param, free_as_dyn=free_as_dyn) for param in type_.params)
        return Type(type_.kind, params) if params != type_.params else type_

    def assign(self, sources: Sequence[Type], targets: Sequence[Type]) -> bool:
        """Whether each source is assignable to its target; only then variables are bound."""
        if len(sources) != len(targets):
            return False
        self.trail.clear()
        if all(self._assignable(*pair) for pair in zip(sources, targets, strict=True)):
            return True
        for name, earlier in reversed(self.trail):
            if earlier is None:
                del self.bound[name]
            else:
                self.bound[name] = earlier
        return False

    def join(self, left: Type, right: Type) -> Type | None:
        """The more general of two types if one is assignable to the other, else None."""
        if self.assign([left], [right]):
            return left if _is_less_specific(left, right) else right
        return None

    def _assignable(self, source: Type, target: Type) -> bool:
        if target.variable:
            fits, was_bound = self._bind(source, target)
            if fits or was_bound:
                return fits
        if source.variable:
            return self._bind(target, source)[0]
        if source.kind in _WILDCARDS or target.kind in _WILDCARDS:
            return True
        if source.kind == "null_type":
            return target.kind in _NULLABLE
        if target.kind == "null_type":
            return source.kind in _NULLABLE
        if source.kind != target.kind:
            return False
        if source.kind == "type" or not source.params:
            return True
        pairs = zip(source.params, target.params, strict=True)
        return all(self._assignable(*pair) for pair in pairs)

    def _bind(self, value: Type, variable: Type) -> tuple[bool, bool]:
        """Binds `variable` to `value`; returns whether it fits, and whether it was bound before."""
        if value == variable:
            return True, True
        present = self.bound.get(variable.variable)
        if present is not None:
            if value == present:
                return True, True
            if self._assignable(value, present):
                general = value if _is_less_specific(value, present) else present
                if not self._refers(general, variable):
                    self._set(variable.variable, general)
                return True, True
            return False, True
        if self._refers(value, variable):
            return False, False
        self._set(variable.variable, value)
        return True, False

    def _set(self, name: str, value: Type) -> None:
        self.trail.append((name, self.bound.get(name)))
        self.bound[name] = value

    def _refers(self, type_: Type, variable: Type) -> bool:
        """Whether `variable` occurs in the type, also through bound variables."""
        if type_.variable:
            if type_.variable == variable.variable:
                return True
            target = self.bound.get(type_.variable)
            return target is not None and self._refers(target, variable)
        return any(self._refers(param, variable) for param in type_.params)


def _is_less_specific(left: Type, right: Type) -> bool:
    """Whether `left` is equal to `right` or more general."""
    if left.kind == "dyn" or left.variable:
        return True
    if right.kind == "dyn" or right.variable or left.kind != right.kind:
        return False
    if left.kind == "type" or not left.params:
        return True
    return all(_is_less_specific(*pair) for pair in zip(left.params, right.params, strict=True))
