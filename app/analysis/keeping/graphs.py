"""The state of objects that refer to each other as bytes: each object once, and its references.

Only classes that the caller names are written and read, and nothing of what is read is called but
their constructors. What is one object before is one object after, also where objects refer to each
other in a circle. The order of dictionaries is kept, that of sets is not.

Example, a list that contains itself and twice the tuple (1, 2): [LIST], [TUPLE, 1, 2], then what
fills the list, [FILL, 0, [0], [1], [1]]. A list of one number refers to an object by its place.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import is_dataclass
from enum import Enum
from functools import partial
from itertools import chain
from types import MappingProxyType
from typing import Any, TypeAlias, cast

import msgspec
from msgspec import Raw

_ATOMS = frozenset((type(None), bool, float, str, bytes))

_NUMBER_MAX = 2**63
"""The numbers from here on are written as texts: MessagePack does not hold them."""

_FILL, _TUPLE, _FROZENSET, _RAW, _NAMED, _MADE, _ENUM, _CALL, _PROXY = range(9)
_LIST, _DICT, _SET, _DEQUE, _LISTS, _COUNTER, _OBJECT, _CONSTANT, _NUMBER = range(9, 18)

_Op: TypeAlias = list[Any]


class UnknownForm(ValueError):
    """An object of a class that is not to be kept, or bytes that are not of a kept state."""


class GraphForms:
    """The classes and functions that a graph may contain, and objects that it refers to by name.

    `constants` are compared by identity, so that they are not to be made anew. `plain` gives the
    form in which an object of a class is written, without what can be worked out again.
    """

    def __init__(
        self,
        classes: Iterable[type],
        functions: Iterable[Callable[..., Any]] = (),
        constants: Mapping[str, object] = MappingProxyType({}),
        plain: Mapping[type, Callable[[Any], Any]] = MappingProxyType({}),
    ) -> None:
        self.classes = {_name_of(each): each for each in classes}
        self.functions = {_name_of(each): each for each in functions}
        self.constants = constants
        self.named = {id(each): name for name, each in constants.items()}
        self.plain = plain

    def class_of(self, name: str) -> Any:
        """The class of a name."""
        if name not in self.classes:
            raise UnknownForm(f"no class {name} is kept")
        return self.classes[name]


def dump(root: object, forms: GraphForms) -> bytes:
    """The bytes of an object and of all that it refers to. Raises UnknownForm."""
    writer = _Writer(forms)
    first = writer.value(root)
    writer.fill()
    return _encode((writer.classes, writer.ops, first))


def load(data: bytes, forms: GraphForms) -> Any:
    """The object that was dumped. Raises UnknownForm."""
    try:
        names, ops, first = _decode(data)
        return _Reader(forms, names).read(ops, first)
    except (msgspec.MsgspecError, LookupError, TypeError, ValueError, AttributeError) as problem:
        raise UnknownForm(f"the kept state cannot be read: {problem}") from problem


class _Writer:
    def __init__(self, forms: GraphForms) -> None:
        self.ops: list[_Op] = []
        self.classes: list[str] = []
        self._forms = forms
        self._numbers: dict[str, int] = {}
        self._places: dict[int, int] = {}
        self._seen: list[object] = []  # An id is that of another object once its object is gone.
        self._unfilled: deque[tuple[int, object]] = deque()

    def value(self, item: Any) -> Any:
        """An atom as it is, another object as a reference."""
        kind = item.__class__
        if kind in _ATOMS or (kind is int and -_NUMBER_MAX <= item < _NUMBER_MAX):
            return item
        place = self._places.get(id(item))
        return [self._place(item) if place is None else place]

    def fill(self) -> None:
        """Write what the objects contain that were only named so far."""
        while self._unfilled:
            place, item = self._unfilled.popleft()
            self.ops.append([_FILL, place, *map(self.value, _content(item))])

    def _place(self, item: Any) -> int:
        kind = item.__class__
        head: _Op | None = None
        parts: Iterable[Any] = ()
        if id(item) in self._forms.named:
            head = [_CONSTANT, self._forms.named[id(item)]]
        elif kind is tuple:
            head, parts = [_TUPLE], item
        elif kind is frozenset:
            head, parts = [_FROZENSET], item
        elif kind is MappingProxyType:
            head, parts = [_PROXY], chain.from_iterable(item.items())
        elif kind is Raw:
            head = [_RAW, bytes(item)]
        elif kind is int:
            head = [_NUMBER, str(item)]
        elif kind is partial:
            name = _name_of(item.func)
            if name not in self._forms.functions or item.keywords:
                raise UnknownForm(f"no function {name} is kept")
            head, parts = [_CALL, name], item.args
        elif isinstance(item, Enum):
            head = [_ENUM, self._number(kind), item.value]
        elif issubclass(kind, tuple):
            head, parts = [_NAMED, self._number(kind)], item
        elif _is_made_whole(kind):
            plain = self._forms.plain.get(kind)
            head, parts = [_MADE, self._number(kind)], _fields(plain(item) if plain else item)
        if head is not None:
            written = [*head, *map(self.value, parts)]
            return self._add(item, written)
        code = _EMPTY.get(kind)
        if code is None:
            return self._later(item, [_OBJECT, self._number(kind)])
        if code == _DEQUE and item.maxlen is not None:
            raise UnknownForm("no deque with a bound is kept")
        if code == _LISTS and item.default_factory is not list:
            raise UnknownForm("no dictionary with such values is kept")
        return self._later(item, [code])

    def _later(self, item: object, op: _Op) -> int:
        place = self._add(item, op)
        self._unfilled.append((place, item))
        return place

    def _add(self, item: object, op: _Op) -> int:
        place = self._places[id(item)] = len(self._seen)
        self._seen.append(item)
        self.ops.append(op)
        return place

    def _number(self, kind: type) -> int:
        name = _name_of(kind)
        number = self._numbers.get(name)
        if number is None:
            if self._forms.classes.get(name) is not kind:
                raise UnknownForm(f"no class {name} is kept")
            number = self._numbers[name] = len(self.classes)
            self.classes.append(name)
        return number


class _Reader:
    def __init__(self, forms: GraphForms, names: list[str]) -> None:
        self._forms = forms
        self._classes = [forms.class_of(name) for name in names]
        self._made: list[Any] = []

    def read(self, ops: list[_Op], first: Any) -> Any:
        """The object to which `first` refers, with all others."""
        made = self._made
        for op in ops:
            code = op[0]
            if code == _FILL:
                self._fill(made[op[1]], op[2:])
            elif code >= _LIST and code < _OBJECT:
                made.append(_NEW[code]())
            elif code == _OBJECT:
                kind = self._classes[op[1]]
                made.append(kind.__new__(kind))
            else:
                made.append(self._whole(code, op))
        return self._values([first])[0]

    def _values(self, items: list[Any]) -> list[Any]:
        made = self._made
        return [made[item[0]] if item.__class__ is list else item for item in items]

    def _whole(self, code: int, op: _Op) -> Any:
        """An object that has all it contains from the beginning."""
        if code == _TUPLE:
            return tuple(self._values(op[1:]))
        if code == _NAMED:
            return self._classes[op[1]]._make(self._values(op[2:]))
        if code == _MADE:
            return _made(self._classes[op[1]], self._values(op[2:]))
        if code == _RAW:
            return Raw(op[1])
        if code == _FROZENSET:
            return frozenset(self._values(op[1:]))
        if code == _ENUM:
            return self._classes[op[1]](op[2])
        if code == _CALL:
            return partial(self._forms.functions[op[1]], *self._values(op[2:]))
        if code == _PROXY:
            values = self._values(op[1:])
            return MappingProxyType(dict(zip(values[::2], values[1::2], strict=True)))
        if code == _NUMBER:
            return int(op[1])
        if code == _CONSTANT:
            return self._forms.constants[op[1]]
        raise UnknownForm(f"there is no form {code}")

    def _fill(self, item: Any, parts: list[Any]) -> None:
        values = self._values(parts)
        if isinstance(item, dict):
            dict.update(item, zip(values[::2], values[1::2], strict=True))
        elif isinstance(item, set):
            item.update(values)
        elif isinstance(item, (list, deque)):
            item.extend(values)
        elif item.__class__ in self._classes:
            for name, value in zip(values[::2], values[1::2], strict=True):
                setattr(item, name, value)
        else:
            raise UnknownForm("an object is filled that is whole")


_EMPTY: Mapping[type, int] = {
    list: _LIST,
    dict: _DICT,
    set: _SET,
    deque: _DEQUE,
    defaultdict: _LISTS,
    Counter: _COUNTER,
}

_NEW: Mapping[int, Callable[[], Any]] = {
    _LIST: list,
    _DICT: dict,
    _SET: set,
    _DEQUE: deque,
    _LISTS: partial(defaultdict, list),
    _COUNTER: Counter,
}


def _name_of(form: Any) -> str:
    return f"{form.__module__}.{form.__qualname__}"


def _is_made_whole(kind: type) -> bool:
    """Whether objects of a class have all they contain from the beginning."""
    if issubclass(kind, msgspec.Struct):
        return True
    return is_dataclass(kind) and bool(cast(Any, kind).__dataclass_params__.frozen)


def _fields(item: Any) -> list[Any]:
    """The values of an object that is made whole, in the order of its fields."""
    return [getattr(item, name) for name in _field_names(item.__class__)]


def _field_names(kind: Any) -> Iterable[str]:
    if issubclass(kind, msgspec.Struct):
        return cast(Iterable[str], kind.__struct_fields__)
    return cast(Iterable[str], kind.__dataclass_fields__)


def _made(kind: Any, values: list[Any]) -> Any:
    names = _field_names(kind)
    if issubclass(kind, msgspec.Struct):
        return kind(**dict(zip(names, values, strict=True)))
    made = kind.__new__(kind)
    for name, value in zip(names, values, strict=True):
        object.__setattr__(made, name, value)
    return made


def _content(item: Any) -> Iterable[Any]:
    """The content of an object: items, or keys and values, or names and values of attributes."""
    if isinstance(item, dict):
        return chain.from_iterable(item.items())
    if isinstance(item, (list, set, deque)):
        return item
    return chain.from_iterable(
        (name, getattr(item, name)) for name in _attributes(item) if hasattr(item, name)
    )


def _attributes(item: Any) -> Iterable[str]:
    slots = (
        name
        for kind in reversed(item.__class__.__mro__)
        for name in _listed(kind.__dict__.get("__slots__", ()))
        if name not in ("__dict__", "__weakref__")
    )
    return chain(slots, getattr(item, "__dict__", ()))


def _listed(slots: str | Iterable[str]) -> Iterable[str]:
    return (slots,) if isinstance(slots, str) else slots


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(tuple[list[str], list[_Op], Any]).decode
