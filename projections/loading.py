"""The loading of kept states of views that have very many parts.

This module is not a view. A part is decoded when it is taken over: of all decoded parts at once, a
large cluster has hundreds of megabytes, which a process keeps. And each decoded part has a text of
its own for each namespace, driver, node and name, where one for all would do.
"""

from sys import intern
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")


def shared(value: T) -> T:
    """An equal value whose texts are those of all shared values of the process.

    Tuples and structs are made anew, with shared parts; lists and mappings are left as they are.
    """
    part: Any = value
    kind: Any = part.__class__
    if kind is str:
        part = intern(part)
    elif kind is tuple:
        part = tuple([shared(each) for each in part])
    elif isinstance(part, tuple):
        part = kind._make([shared(each) for each in part])
    elif isinstance(part, msgspec.Struct):
        part = kind(*[shared(each) for each in msgspec.structs.astuple(part)])
    shared_value: T = part
    return shared_value
