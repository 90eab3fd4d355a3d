"""The implementations of overloads, and their selection at run time.

A call with one candidate only checks whether the values fit that overload. With several candidates
all overloads of the function are tried. A few functions have one implementation for all overloads,
which checks the values itself. Parity: cel.md 2 and 5.2 (calls with failing arguments).
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, TypeAlias

from app.domain.cel.library import lists, named_formats, network, quantities, texts, times
from app.domain.cel.library.formatting import format_text
from app.domain.cel.library.named_formats import NamedFormat
from app.domain.cel.library.network import Cidr, Ip, Url
from app.domain.cel.library.quantities import Forms
from app.domain.cel.library.standard import TIMESTAMP_PARTS
from app.domain.cel.limits import INCLUDES_ELEMENTS_MAX
from app.domain.cel.signatures.declarations import Overload
from app.domain.cel.signatures.types import Type
from app.domain.cel.values import arithmetic, conversions, equality
from app.domain.cel.values.value import (
    NO_SUCH_OVERLOAD,
    NONE,
    CelError,
    DefaultingMap,
    Duration,
    OptionalValue,
    QuantityValue,
    Timestamp,
    TypeValue,
    Uint,
    Value,
    type_name,
)
from app.domain.values.semver import Semver

Implementation: TypeAlias = Callable[..., Value]


def logical_not(value: Value) -> Value:
    """`!value`."""
    return not value if value.__class__ is bool else NO_SUCH_OVERLOAD


def _relation(name: str, accepted: frozenset[int]) -> Implementation:
    unknown = CelError(f"no such overload: {name}")

    def ask(left: Value, right: Value) -> Value:
        order = equality.compare(left, right)
        if isinstance(order, CelError):
            return order if equality.is_ordered(left) else unknown
        return order in accepted

    return ask


def includes(target: Value, wanted: Value) -> Value:
    """`target.includes(wanted)`. Parity: allocator.md 11.3."""
    if not isinstance(target, tuple):
        return equality.equal(target, wanted) is True
    for item in target[:INCLUDES_ELEMENTS_MAX]:
        if equality.equal(item, wanted) is True:
            return True
    if len(target) > INCLUDES_ELEMENTS_MAX:
        return CelError(
            "'includes' function cannot be applied to lists longer than"
            f" {INCLUDES_ELEMENTS_MAX} values"
        )
    return False


def _identity(value: Value) -> Value:
    """Returns the value itself; `partial` makes it a function without arguments."""
    return value


# Functions with one implementation for all overloads.
SINGLETONS: Final[dict[str, Implementation]] = {
    "!_": logical_not,
    "-_": arithmetic.negate,
    "_+_": arithmetic.add,
    "_-_": arithmetic.subtract,
    "_*_": arithmetic.multiply,
    "_/_": arithmetic.divide,
    "_%_": arithmetic.modulo,
    "_<_": _relation("_<_", frozenset({-1})),
    "_<=_": _relation("_<=_", frozenset({-1, 0})),
    "_>_": _relation("_>_", frozenset({1})),
    "_>=_": _relation("_>=_", frozenset({0, 1})),
    "@in": equality.contains,
    "size": lists.measure,
    "isSorted": lists.is_sorted,
    "sum": lists.total,
    "min": lists.minimum,
    "max": lists.maximum,
    "contains": texts.contains,
    "startsWith": texts.starts_with,
    "endsWith": texts.ends_with,
    "matches": texts.matches,
    "dyn": conversions.identity,
    "type": conversions.type_of,
    "includes": includes,
}

_ELEMENTS: Final = ("int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes")

_BY_OVERLOAD: Final[dict[str, Implementation]] = {
    "optional_of": OptionalValue,
    "optional_ofNonZeroValue": lists.non_zero_optional,
    "optional_none": lambda: NONE,
    "optional_unwrap": lists.unwrap,
    "optional_unwrapOpt": lists.unwrap,
    "optional_value": lists.optional_value,
    "optional_hasValue": lambda value: value.present,
    "list_first": lists.first,
    "list_last": lists.last,
    "map_insert_key_value": lists.insert,
    "map_insert_map": lists.insert_all,
    "string_char_at_int": texts.char_at,
    "string_format": format_text,
    "string_index_of_string": texts.index_of,
    "string_index_of_string_int": texts.index_of,
    "list_join": texts.join,
    "list_join_string": texts.join,
    "string_last_index_of_string": texts.last_index_of,
    "string_last_index_of_string_int": texts.last_index_of_from,
    "string_lower_ascii": texts.lower_ascii,
    "string_upper_ascii": texts.upper_ascii,
    "string_replace_string_string": texts.replace,
    "string_replace_string_string_int": texts.replace,
    "string_split_string": texts.split,
    "string_split_string_int": texts.split,
    "string_substring_int": texts.substring,
    "string_substring_int_int": texts.substring_between,
    "string_trim": texts.trim,
    "strings_quote": texts.quote,
    "string_find_string": texts.find,
    "string_find_all_string": texts.find_all,
    "string_find_all_string_int": texts.find_all,
    "list_sets_contains_list": lists.set_contains,
    "list_sets_equivalent_list": lists.set_equivalent,
    "list_sets_intersects_list": lists.set_intersects,
    "list_slice": lists.slice_of,
    "list_flatten": lists.flatten,
    "list_flatten_int": lists.flatten,
    "lists_range": lists.range_of,
    "list_distinct": lists.distinct,
    "list_reverse": lists.reverse,
    "list_a_index_of_int": lists.index_of,
    "list_a_last_index_of_int": lists.last_index_of,
    **{f"list_{kind}_sort": lists.sort for kind in _ELEMENTS},
    **{f"list_{kind}_sortByAssociatedKeys": lists.sort_by_keys for kind in _ELEMENTS},
    **{f"timestamp_{name}": times.part_of_timestamp(name) for name in TIMESTAMP_PARTS},
    **{f"timestamp_{name}_with_tz": times.part_in_zone(name) for name in TIMESTAMP_PARTS},
    "duration_to_hours": times.part_of_duration("getHours"),
    "duration_to_minutes": times.part_of_duration("getMinutes"),
    "duration_to_seconds": times.part_of_duration("getSeconds"),
    "duration_to_milliseconds": times.part_of_duration("getMilliseconds"),
    "string_to_url": network.url,
    "is_url_string": network.is_url,
    "url_get_scheme": network.scheme,
    "url_get_host": network.host,
    "url_get_hostname": network.hostname,
    "url_get_port": network.port,
    "url_get_escaped_path": network.escaped_path,
    "url_get_query": network.query,
    "string_to_ip": network.ip,
    "is_ip": network.is_ip,
    "ip_is_canonical": network.is_canonical,
    "ip_to_string": network.ip_text,
    "family": network.family,
    "is_unspecified": network.is_unspecified,
    "is_loopback": network.is_loopback,
    "is_link_local_multicast": network.is_link_local_multicast,
    "is_link_local_unicast": network.is_link_local_unicast,
    "is_global_unicast": network.is_global_unicast,
    "string_to_cidr": network.cidr,
    "is_cidr": network.is_cidr,
    "cidr_to_string": network.cidr_text,
    "cidr_contains_ip_ip": network.contains_ip,
    "cidr_contains_ip_string": network.contains_ip_text,
    "cidr_contains_cidr": network.contains_cidr,
    "cidr_contains_cidr_string": network.contains_cidr_text,
    "cidr_ip": network.cidr_ip,
    "cidr_prefix_length": network.prefix_length,
    "cidr_masked": network.masked,
    "format-named": named_formats.named,
    "format-validate": named_formats.validate,
    **{
        f"format-{name}": partial(_identity, named_format)
        for name, named_format in named_formats.FORMATS.items()
    },
    "string_to_quantity": quantities.parse_quantity,
    "is_quantity_string": quantities.is_quantity,
    "quantity_sign": quantities.sign,
    "quantity_get_float": quantities.as_approximate_float,
    "quantity_add": quantities.add,
    "quantity_add_int": quantities.add_integer,
    "quantity_sub": quantities.subtract,
    "quantity_sub_int": quantities.subtract_integer,
    "string_to_semver": quantities.parse_semver,
    "string_bool_to_semver": quantities.parse_semver,
    "is_semver_string": quantities.is_semver,
    "is_semver_string_bool": quantities.is_semver,
    "semver_is_greater_than": quantities.is_newer,
    "semver_is_less_than": quantities.is_older,
    "semver_compare_to": quantities.compare_versions,
    "semver_major": quantities.major,
    "semver_minor": quantities.minor,
    "semver_patch": quantities.patch,
}

# These also read or record the forms of quantities, which are their first argument.
_WITH_FORMS: Final[dict[str, Callable[..., Value]]] = {
    "quantity_is_greater_than": quantities.comparison(1),
    "quantity_is_less_than": quantities.comparison(-1),
    "quantity_compare_to": quantities.compare,
    "quantity_is_integer": quantities.is_integer,
    "quantity_get_int": quantities.as_integer,
}

_CLASSES: Final[dict[str, tuple[type, ...]]] = {
    "bool": (bool,),
    "int": (int,),
    "uint": (Uint,),
    "double": (float,),
    "string": (str,),
    "bytes": (bytes,),
    "null_type": (type(None),),
    "duration": (Duration,),
    "timestamp": (Timestamp,),
    "type": (TypeValue,),
    "list": (tuple,),
    "map": (dict, DefaultingMap),
    "optional_type": (OptionalValue,),
    "kubernetes.Quantity": (QuantityValue,),
    "kubernetes.Semver": (Semver,),
    "kubernetes.URL": (Url,),
    "kubernetes.NamedFormat": (NamedFormat,),
    "net.IP": (Ip,),
    "net.CIDR": (Cidr,),
}


def fits(value: Value, wanted: Type) -> bool:
    """Whether a value has the type; of a list, only the first element is checked."""
    if wanted.variable or wanted.kind in ("dyn", "any"):
        return True
    if value.__class__ not in _CLASSES.get(wanted.kind, ()):
        return False
    if wanted.params and isinstance(value, tuple) and value:
        return fits(value[0], wanted.params[0])
    return True


def no_such_overload(function: str, values: Sequence[Value]) -> CelError:
    """The error of a call whose values do not fit any overload."""
    return CelError(f"no such overload: {function}({', '.join(map(type_name, values))})")


def bind(
    function: str, candidates: Sequence[Overload], overloads: Sequence[Overload]
) -> tuple[Implementation, bool]:
    """Returns the implementation of a call, and whether its first argument is `Forms`.

    `overloads` are all overloads of the function; they are used if there are several candidates.
    """
    if function in SINGLETONS:
        return SINGLETONS[function], False
    if len(candidates) == 1:
        tried = list(candidates)
    else:
        count = len(candidates[0].params)
        tried = [overload for overload in overloads if len(overload.params) == count]
    with_forms = any(overload.id in _WITH_FORMS for overload in tried)
    rows = [(overload, _code(function, overload, with_forms=with_forms)) for overload in tried]
    if len(rows) == 1:
        return _guarded(function, *rows[0], with_forms=with_forms), with_forms
    return _dispatcher(function, rows, with_forms=with_forms), with_forms


def _code(function: str, overload: Overload, *, with_forms: bool) -> Implementation:
    factory = _WITH_FORMS.get(overload.id)
    if factory is not None:
        return factory
    plain = _BY_OVERLOAD.get(overload.id) or conversions.CONVERSIONS.get(function)
    if plain is None:
        # These are the authorizer's functions: no value of their types can exist here.
        refused = CelError(f"no such overload: {function}")
        return lambda *values: refused
    if overload.id in _IDENTITIES:
        plain = conversions.identity
    if not with_forms:
        return plain
    code = plain
    return lambda forms, *values: code(*values)


_IDENTITIES: Final = frozenset(
    (
        *("bool_to_bool", "bytes_to_bytes", "double_to_double", "duration_to_duration"),
        *("int64_to_int64", "string_to_string", "timestamp_to_timestamp", "uint64_to_uint64"),
    )
)


def _guarded(
    function: str, overload: Overload, code: Implementation, *, with_forms: bool
) -> Implementation:
    """The code of one overload, which first checks whether the values fit it."""
    params = overload.params
    simple = [_CLASSES.get(param.kind, ()) for param in params if not param.params]
    if len(simple) == len(params) and all(len(kinds) == 1 for kinds in simple):
        return _guarded_by_class(function, tuple(kinds[0] for kinds in simple), code, with_forms)

    def checked(*values: Value) -> Value:
        own = values[1:] if with_forms else values
        if all(fits(*pair) for pair in zip(own, params, strict=True)):
            return code(*values)
        return no_such_overload(function, own)

    return checked


def _guarded_by_class(
    function: str,
    kinds: tuple[type, ...],
    code: Implementation,
    with_forms: bool,
) -> Implementation:
    if with_forms and len(kinds) == 2:
        first, second = kinds

        def both_with_forms(forms: Forms, left: Value, right: Value) -> Value:
            if left.__class__ is first and right.__class__ is second:
                return code(forms, left, right)
            return no_such_overload(function, (left, right))

        return both_with_forms
    if with_forms:
        only = kinds[0]

        def one_with_forms(forms: Forms, value: Value) -> Value:
            if value.__class__ is only:
                return code(forms, value)
            return no_such_overload(function, (value,))

        return one_with_forms

    def checked(*values: Value) -> Value:
        for value, kind in zip(values, kinds, strict=True):
            if value.__class__ is not kind:
                return no_such_overload(function, values)
        return code(*values)

    return checked


def _dispatcher(
    function: str, rows: Sequence[tuple[Overload, Implementation]], *, with_forms: bool
) -> Implementation:
    def dispatch(*values: Value) -> Value:
        own = values[1:] if with_forms else values
        for overload, code in rows:
            if all(fits(*pair) for pair in zip(own, overload.params, strict=True)):
                return code(*values)
        return no_such_overload(function, own)

    return dispatch
