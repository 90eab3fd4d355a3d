"""Selectors that do not match devices: the part that is false, and the values that make it false.

A selector excludes a device as a whole. The expression is evaluated again for people, to find which
of its conditions is false and which values the device has there.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import islice

from app.analysis.explain.hardware import devices
from app.analysis.explain.nearby import keys as keys_nearby
from app.analysis.explain.pods import Steps
from app.analysis.explain.reasons import Reason
from app.analysis.explain.tallies import devices_text
from app.analysis.views import LiveViews
from app.domain.cel import (
    STORED,
    CompileError,
    DeviceInput,
    Falsity,
    Program,
    compile_expression,
    falsities,
)
from app.domain.devices.model import AppliedPatch
from app.domain.log import ObjectKey
from app.domain.values import api_resources, counts, identifiers
from app.domain.values.fields import dra
from app.domain.values.identifiers import DeviceId, PoolId
from app.domain.values.json_tree import JsonView

DEVICES_MAX = 256
"""The number of devices per line on which a selector is evaluated again."""

LINES_MAX = 200
"""The number of lines with a selector that are examined."""

VALUES_MAX = 4
"""The number of different values shown for one selector."""


def with_values(views: LiveViews, reasons: Sequence[Reason]) -> Steps[tuple[Reason, ...]]:
    """The tree with the false part and the devices' values added under each selector."""
    return (yield from _FalseParts(views).explained(reasons))


AS_TEXT = (
    'texts are compared character by character, so "10" comes before "9"; publish a number or a '
    "version to compare it as one"
)
_ORDER = re.compile(r"[<>]=?\s*['\"]|['\"]\s*[<>]")
"""A comparison by order with a text."""

_WORD = re.compile(r"\w[\w./-]*(?=['\"])|\w+")
"""A step of a path: a field, or a text in quotes."""

_NUMERIC_TEXT = re.compile(r' is "v?\d')
"""A value that is a text and begins like a number."""

_EQUAL = re.compile(r"^(?P<path>device\.[^=!<>]+?) == (?P<literal>'[^']*'|\"[^\"]*\"|[\w.-]+)$")
"""A comparison of a value of a device with a literal."""

_SORTS = (
    (re.compile(r"['\"]"), "a text"),
    (re.compile(r"(?:true|false)$"), "true or false"),
    (re.compile(r"-?\d"), "a number"),
    (re.compile(r"semver\("), "a version"),
    (re.compile(r"quantity\("), "a quantity"),
)
"""The beginnings of values and literals with their types, in words."""


class _FalseParts:
    """Evaluates selectors again; each pool's devices are looked up once."""

    def __init__(self, views: LiveViews) -> None:
        self._left = LINES_MAX
        self._inputs_of = cache(self._inputs)
        self._views = views

    def explained(self, reasons: Sequence[Reason]) -> Steps[tuple[Reason, ...]]:
        """The reasons, each with the details of its selector."""
        made: list[Reason] = []
        for reason in reasons:
            if reason.unselected is None:
                children = yield from self.explained(reason.children)
                made.append(replace(reason, children=children))
            elif self._left:
                self._left -= 1
                made.append(self._with_values(reason, *reason.unselected))
                yield
            else:
                made.append(reason)
        return tuple(made)

    def _with_values(self, reason: Reason, about: str, groups: Sequence[Sequence[str]]) -> Reason:
        expression = about.partition(": ")[2]
        try:
            program = compile_expression(expression, environment=STORED)
        except CompileError:
            return reason
        inputs = {name: self._input(name) for name in _first(groups, DEVICES_MAX)}
        known = {name: one for name, one in inputs.items() if one is not None}
        counted: dict[Falsity, int] = {}
        patched: dict[str, tuple[Reason, int]] = {}
        for name, falsity in zip(known, falsities(program, [*known.values()]), strict=True):
            if falsity is None:
                continue
            counted[falsity] = counted.get(falsity, 0) + 1
            for line in self._patched(name, falsity):
                _, count = patched.get(line.text, (line, 0))
                patched[line.text] = line, count + 1
        if not counted:
            return reason
        parts = {falsity.text for falsity in counted}
        marked = parts.pop() if len(parts) == 1 else ""
        lines = (
            *_lines(counted, expression, reason.count - len(known)),
            *_meant(self._views, known, counted),
            *_patches(patched, sum(counted.values())),
        )
        return replace(reason, children=lines, marked=marked)

    def _patched(self, name: str, falsity: Falsity) -> Iterator[Reason]:
        """The values of a device by which a condition is false and that patches changed."""
        return devices.patched(
            self._views,
            identifiers.parse_device(name),
            lambda applied: any(_is_read(applied, path) for path, _ in falsity.reads),
        )

    def _input(self, name: str) -> DeviceInput | None:
        device = identifiers.parse_device(name)
        return self._inputs_of(device[:2]).get(device)

    def _inputs(self, pool: PoolId) -> dict[DeviceId, DeviceInput]:
        return {
            device.id: device.cel_input
            for one in self._views.inventory.slices_of(pool)
            for device in one.devices
        }


def differing(views: LiveViews, claim: JsonView) -> Iterator[str]:
    """The values of the devices of its class by which a request selects none of them.

    Those of a list of alternatives are left out: one of them is enough.
    """
    for request in dra.requests(claim):
        wish = request.exactly
        if wish is None or not wish.selectors:
            continue
        key = ObjectKey(*api_resources.DEVICE_CLASSES, "", wish.device_class_name)
        of_class = dra.class_selectors(views.objects.get(key) or {})
        lines = _differing(views, _programs(of_class), _programs(wish.selectors))
        for reason in lines:
            yield f"request {request.name}: {reason.text}"


def _programs(selectors: Iterable[JsonView]) -> list[tuple[str, Program]] | None:
    """The expressions with their programs; None if one cannot be compiled."""
    try:
        texts = [*filter(None, map(dra.selector_expression, selectors))]
        return [(text, compile_expression(text, environment=STORED)) for text in texts]
    except CompileError:
        return None


def _differing(
    views: LiveViews,
    of_class: Sequence[tuple[str, Program]] | None,
    wanted: Sequence[tuple[str, Program]] | None,
) -> Iterator[Reason]:
    if of_class is None or not wanted:
        return
    unselected: dict[str, dict[str, DeviceInput]] = {}
    for device in keys_nearby.first_devices(views):
        given = device.cel_input
        if not all(program.evaluate(given).match for _, program in of_class):
            continue
        text = next((text for text, program in wanted if not program.evaluate(given).match), None)
        if text is None:
            return
        unselected.setdefault(text, {})["/".join(device.id)] = given
    for expression, known in sorted(unselected.items(), key=lambda item: -len(item[1]))[:1]:
        some = dict(islice(known.items(), DEVICES_MAX))
        program = dict(wanted)[expression]
        counted = Counter(filter(None, falsities(program, [*some.values()])))
        yield from _lines(counted, expression, 0)
        yield from _meant(views, some, counted)


def _meant(
    views: LiveViews, known: Mapping[str, DeviceInput], counted: Iterable[Falsity]
) -> Iterator[Reason]:
    """The names that may have been meant by those that a condition reads and no device has."""
    missing = {
        key
        for falsity in counted
        for path, value in falsity.reads
        if _is_missing(path, value)
        for key in keys_nearby.keys_in(path)
    }
    device = next(iter(known.values()))
    for key in sorted(missing)[:VALUES_MAX]:
        if text := keys_nearby.meant(views, key, device):
            text = text if len(missing) == 1 else f"for {key.path}, {text}"
            yield Reason(text=text, is_kept=True)


def _is_read(applied: AppliedPatch, path: str) -> bool:
    """Whether a path into a device, as an expression writes it, leads to the patched value."""
    domain, _, name = applied.name.rpartition("/")
    words = _WORD.findall(path)
    return words[:2] == ["device", applied.field] and words[2:4] == [domain, name]


def _patches(patched: Mapping[str, tuple[Reason, int]], devices_count: int) -> Iterator[Reason]:
    """The patched values, those of the most devices first."""
    ordered = sorted(patched.values(), key=lambda one: -one[1])
    for line, count in ordered[:VALUES_MAX]:
        text = line.text if count == devices_count else f"{line.text} ({devices_text(count)})"
        yield replace(line, text=text)
    if (more := len(ordered) - VALUES_MAX) > 0:
        yield Reason(text=f"{counts.of(more, 'more value')} by patches")


def _first(groups: Sequence[Sequence[str]], count: int) -> list[str]:
    """The first names, without duplicates."""
    names: dict[str, None] = {}
    for group in groups:
        names.update(dict.fromkeys(group))
        if len(names) >= count:
            break
    return list(names)[:count]


def _lines(counted: dict[Falsity, int], expression: str, untried: int) -> Iterator[Reason]:
    """One line for each false part, those with the most devices first."""
    by_part: dict[str, dict[str, int]] = {}
    for falsity, count in counted.items():
        value_text = " and ".join(
            _value_text(path, value) for path, value in falsity.reads if _is_shown(value)
        )
        values = by_part.setdefault(falsity.text, {})
        values[value_text] = values.get(value_text, 0) + count
    for part, values in sorted(by_part.items(), key=lambda item: -sum(item[1].values())):
        is_one = len(values) == 1 and len(by_part) == 1 and not untried
        where = "" if part == expression else f"{part} is false"
        text = ": ".join(piece for piece in (where, _values(values, is_one)) if piece)
        if text:
            yield Reason(text=text, count=sum(values.values()))
        if _ORDER.search(part) and any(_NUMERIC_TEXT.search(text) for text in values):
            yield Reason(text=AS_TEXT)
    for text in dict.fromkeys(filter(None, map(_of_other_types, counted))):
        yield Reason(text=text, is_kept=True)
    if untried > 0:
        was = counts.verb(untried, "was")
        text = f"{devices_text(untried)} more {was} not looked at for it"
        yield Reason(text=text, count=untried)


def _values(values: dict[str, int], is_one: bool) -> str:
    """The devices' values, the most frequent first, with device counts unless all are equal."""
    texts = sorted((one for one in values if one), key=lambda one: -values[one])
    shown = [
        one if is_one else f"{one} ({devices_text(values[one])})" for one in texts[:VALUES_MAX]
    ]
    # A single path is named once: `memory is 20Gi (1 device), 40Gi (2 devices)`.
    paths = {one.partition(" is ")[0] for one in texts}
    is_short = len(paths) == 1 and not any(" and " in one for one in texts)
    if is_short and all(" is " in one for one in texts):
        shown = [shown[0], *(one.partition(" is ")[2] for one in shown[1:])]
    if (more := len(texts) - VALUES_MAX) > 0:
        shown.append(f"{more} more {counts.plural(more, 'value')}")
    return (", " if is_short else "; ").join(shown)


def _of_other_types(falsity: Falsity) -> str:
    """The types of a value and of the literal that it is compared with, if they differ."""
    match, values = _EQUAL.match(falsity.text), dict(falsity.reads)
    if match is None or (value := values.get(match["path"])) is None:
        return ""
    literal = match["literal"]
    published, wanted = _sort_of(value), _sort_of(literal)
    if not published or not wanted or published == wanted:
        return ""
    return f"{match['path']} is {published}, and {literal} is {wanted}: these are never equal"


def _sort_of(text: str) -> str:
    return next((words for begins, words in _SORTS if begins.match(text)), "")


def _is_missing(path: str, value: str) -> bool:
    """Whether a path leads to nothing on a device."""
    return value == "optional.none()" or (path.startswith("has(") and value == "false")


def _is_shown(value: str) -> bool:
    """Whether a value is short enough to be shown; whole maps are not."""
    return not value.startswith("{")


def _value_text(path: str, value: str) -> str:
    if path.startswith("has(") and value == "false":
        return f"there is no {path.removeprefix('has(').removesuffix(')')}"
    if value == "optional.none()":
        return f"there is no {path}"
    for kind in ("quantity", "semver", "optional"):
        if value.startswith(f"{kind}("):
            value = value.removeprefix(f"{kind}(").removesuffix(")").strip('"')
    return f"{path} is {value}"
