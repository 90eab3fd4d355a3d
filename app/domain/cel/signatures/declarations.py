"""Overloads as rows of text: the signatures of functions in our own notation.

A row reads `function  id  signature`. A signature is `(int, A) bool` for a function and
`string.(int) string` for a method; `A`, `B`, … are type variables. The id names the overload in
the tables of costs and of implementations.
"""

import re
from dataclasses import dataclass
from typing import Final

from app.domain.cel.signatures import types
from app.domain.cel.signatures.types import Type

_NAMES: Final[dict[str, Type]] = {
    "bool": types.BOOL,
    "int": types.INT,
    "uint": types.UINT,
    "double": types.DOUBLE,
    "string": types.STRING,
    "bytes": types.BYTES,
    "null": types.NULL,
    "duration": types.DURATION,
    "timestamp": types.TIMESTAMP,
    "dyn": types.DYN,
    "Quantity": types.QUANTITY,
    "Semver": types.SEMVER,
    "URL": Type("kubernetes.URL"),
    "IP": Type("net.IP"),
    "CIDR": Type("net.CIDR"),
    "Format": Type("kubernetes.NamedFormat"),
    "Path": Type("kubernetes.authorization.PathCheck"),
    "Group": Type("kubernetes.authorization.GroupCheck"),
    "Resource": Type("kubernetes.authorization.ResourceCheck"),
    "Decision": Type("kubernetes.authorization.Decision"),
    "Authorizer": Type("kubernetes.authorization.Authorizer"),
}
_KINDS: Final = {"list": "list", "map": "map", "optional": "optional_type", "type": "type"}
_PART = re.compile(r"[A-Za-z]+|[(),.]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Overload:
    """One signature of a function; `params` includes the receiver of a method."""

    function: str
    id: str
    is_method: bool
    params: tuple[Type, ...]
    result: Type
    variables: tuple[str, ...]


def read(rows: str) -> dict[str, tuple[Overload, ...]]:
    """The overloads of a table by function name, in the order of the rows."""
    by_function: dict[str, list[Overload]] = {}
    for row in rows.splitlines():
        if row.strip() and not row.lstrip().startswith("#"):
            function, name, signature = row.split(maxsplit=2)
            by_function.setdefault(function, []).append(_overload(function, name, signature))
    return {function: tuple(overloads) for function, overloads in by_function.items()}


def merge(*tables: dict[str, tuple[Overload, ...]]) -> dict[str, tuple[Overload, ...]]:
    """Merges tables into one; overloads of one name keep the order of the tables."""
    merged: dict[str, tuple[Overload, ...]] = {}
    for table in tables:
        for function, overloads in table.items():
            merged[function] = merged.get(function, ()) + overloads
    return merged


def _overload(function: str, name: str, signature: str) -> Overload:
    reader = _SignatureCursor(_PART.findall(signature))
    is_method = reader.parts[0] != "("
    params = [reader.type()] if is_method else []
    if is_method:
        reader.take(".")
    reader.take("(")
    while reader.peek() != ")":
        params.append(reader.type())
        if reader.peek() == ",":
            reader.take(",")
    reader.take(")")
    return Overload(
        function=function,
        id=name,
        is_method=is_method,
        params=tuple(params),
        result=reader.type(),
        variables=tuple(dict.fromkeys(reader.variables)),
    )


class _SignatureCursor:
    """A cursor over the parts of a signature. Mistakes in our tables are assertion errors."""

    def __init__(self, parts: list[str]) -> None:
        self.parts = parts
        self.index = 0
        self.variables: list[str] = []

    def peek(self) -> str:
        return self.parts[self.index]

    def take(self, expected: str) -> None:
        assert self.parts[self.index] == expected, self.parts
        self.index += 1

    def type(self) -> Type:
        name = self.parts[self.index]
        self.index += 1
        if name in _KINDS:
            if self.index >= len(self.parts) or self.peek() != "(":
                return Type(_KINDS[name])
            return Type(_KINDS[name], self._params())
        if len(name) == 1:
            self.variables.append(name)
            return Type(types.VARIABLE, variable=name)
        return _NAMES[name]

    def _params(self) -> tuple[Type, ...]:
        self.take("(")
        params = [self.type()]
        while self.peek() == ",":
            self.take(",")
            params.append(self.type())
        self.take(")")
        return tuple(params)
