"""A plug-in of mypy that refuses `dataclasses.replace` of structs.

mypy takes a `msgspec.Struct` for a dataclass, because its fields are declared as those of one; the
call fails when it runs. `msgspec.structs.replace` is the one for structs.
"""

from collections.abc import Callable

from mypy.plugin import FunctionContext, Plugin
from mypy.types import Instance, Type, TypeVarType, UnionType, get_proper_type

REFUSED = "a struct is no dataclass: use msgspec.structs.replace"


class StructReplacement(Plugin):
    """Checks the first argument of each call of `dataclasses.replace`."""

    def get_function_hook(self, fullname: str) -> Callable[[FunctionContext], Type] | None:
        """The check for `dataclasses.replace`, none for other functions."""
        return _checked if fullname == "dataclasses.replace" else None


def _checked(context: FunctionContext) -> Type:
    if any(_may_be_struct(each) for each in context.arg_types[0]):
        context.api.fail(REFUSED, context.context)
    return context.default_return_type


def _may_be_struct(kind: Type) -> bool:
    proper = get_proper_type(kind)
    if isinstance(proper, UnionType):
        return any(_may_be_struct(item) for item in proper.items)
    if isinstance(proper, TypeVarType):
        bounds = proper.values or [proper.upper_bound]
        return any(_may_be_struct(bound) for bound in bounds)
    return isinstance(proper, Instance) and any(
        base.fullname.startswith("msgspec.") and base.name == "Struct" for base in proper.type.mro
    )


def plugin(version: str) -> type[Plugin]:
    """The plug-in, for mypy."""
    return StructReplacement
