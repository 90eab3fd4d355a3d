"""Environments of expressions: variables, functions, and the gates that add to them.

Two environments exist (Parity: allocator.md 11.1). *Stored* is for expressions that were accepted
before: it has all declarations regardless of gates; the scheduler and the allocator use it. *New*
is for expressions in a write: it has only declarations of enabled gates.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Final

from app.domain.cel.library.extensions import EXTENSIONS, INCLUDES
from app.domain.cel.library.standard import STANDARD
from app.domain.cel.signatures import declarations, types
from app.domain.cel.signatures.declarations import Overload
from app.domain.cel.signatures.types import Type

LIST_TYPE_ATTRIBUTES: Final = "DRAListTypeAttributes"
CONSUMABLE_CAPACITY: Final = "DRAConsumableCapacity"

TYPE_NAMES: Final = frozenset(
    ("int", "uint", "double", "bool", "string", "bytes", "list", "map", "null_type", "type")
)
"""The names that are constants of type `type`."""


@dataclass(frozen=True, kw_only=True)
class Environment:
    """The declarations of a compilation. Equal environments share programs."""

    list_attributes: bool
    multiple_allocations: bool

    @cached_property
    def functions(self) -> Mapping[str, tuple[Overload, ...]]:
        """The overloads by function name."""
        return _functions(self.list_attributes)

    @cached_property
    def device_fields(self) -> Mapping[str, Type]:
        """The types of the fields of `device`. Parity: allocator.md 11.2."""
        attribute = types.DYN if self.list_attributes else types.ANY
        fields = {
            "driver": types.STRING,
            "attributes": _domains(attribute),
            "capacity": _domains(types.QUANTITY),
        }
        if self.multiple_allocations:
            fields["allowMultipleAllocations"] = types.BOOL
        return fields


def new_environment(features: Mapping[str, bool]) -> Environment:
    """The environment for new expressions under the given gates; an absent gate is off."""
    return Environment(
        list_attributes=features.get(LIST_TYPE_ATTRIBUTES, False),
        multiple_allocations=features.get(CONSUMABLE_CAPACITY, False),
    )


STORED: Final = Environment(list_attributes=True, multiple_allocations=True)
"""The environment of the scheduler and the allocator."""


def _domains(value: Type) -> Type:
    return types.map_of(types.STRING, types.map_of(types.STRING, value))


@lru_cache(maxsize=2)
def _functions(with_includes: bool) -> dict[str, tuple[Overload, ...]]:
    if with_includes:
        return declarations.merge(STANDARD, EXTENSIONS, INCLUDES)
    return declarations.merge(STANDARD, EXTENSIONS)
