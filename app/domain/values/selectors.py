"""Selectors: of labels (as text or as an object), of fields, and of nodes.

A selector is compiled once into a frozen value, which then matches objects. Unreadable texts raise
SelectorError. Parity: allocator.md 2.1 for node selectors, api.md for list parameters.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from app.domain.values import json_tree
from app.domain.values.fields import core
from app.domain.values.fields.core import SelectorRequirement
from app.domain.values.json_tree import JsonView

Labels: TypeAlias = Mapping[str, str]

TEXT_MAX = 64 * 1024
"""The most characters of a selector text; a longer one is refused."""

_PART = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?", re.ASCII)
_DOMAIN = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*", re.ASCII)
_INTEGER = re.compile(r"[+-]?[0-9]{1,19}", re.ASCII)
_SET_OF = re.compile(r"(in|notin)\s*\(", re.ASCII)
_LEXEME = re.compile(r"\s*([^\s,()=!<>]+)\s*", re.ASCII)
_TOKEN = re.compile(r"\s*([^\s,()=!<>]+|==|!=|[,()=!<>]|)", re.ASCII)
_COMPARED = re.compile(r"(==|=|!=|<|>)\s*([^\s,()=!<>]*)", re.ASCII)
_FIRST_VALUE = "',', ')' or identifier"
_NEXT_VALUE = "',', or identifier"
_AFTER_VALUE = "',' or ')'"
"""What a server expects at the beginning of a list of values, after a comma, and after a value."""
_OPERATORS = {
    "In": "in",
    "NotIn": "notin",
    "Exists": "exists",
    "DoesNotExist": "absent",
    "Gt": "gt",
    "Lt": "lt",
}


class SelectorError(ValueError):
    """A selector that cannot be read; the message names the position and the problem."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """One condition on one label; `operator` is in, notin, exists, absent, gt or lt."""

    key: str
    operator: str
    values: frozenset[str] = frozenset()
    bound: int = 0

    def holds(self, labels: Labels) -> bool:
        """Whether the labels satisfy the condition; an absent label satisfies notin and absent."""
        value = labels.get(self.key)
        match self.operator:
            case "in":
                return value is not None and value in self.values
            case "notin":
                return value is None or value not in self.values
            case "exists":
                return value is not None
            case "absent":
                return value is None
        if value is None or not _INTEGER.fullmatch(value):
            return False
        number = int(value)
        return number > self.bound if self.operator == "gt" else number < self.bound


def requirement_text(one: Requirement) -> str:
    """One requirement as kubectl writes it: `zone in (a, b)`, `!spot`."""
    match one.operator:
        case "in" | "notin":
            return f"{one.key} {one.operator} ({', '.join(sorted(one.values))})"
        case "exists":
            return one.key
        case "absent":
            return f"!{one.key}"
        case _:
            return f"{one.key} {'>' if one.operator == 'gt' else '<'} {one.bound}"


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelSelector:
    """Requirements that must all hold; an empty selector matches everything."""

    requirements: tuple[Requirement, ...] = ()

    def matches(self, labels: Labels) -> bool:
        """Whether the labels satisfy all requirements."""
        return all(requirement.holds(labels) for requirement in self.requirements)


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldRequirement:
    """One field compared with one text; with `equal` false they must differ."""

    field: str
    value: str
    equal: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldSelector:
    """Field comparisons that must all hold."""

    requirements: tuple[FieldRequirement, ...] = ()

    def matches(self, value_of: Callable[[str], str]) -> bool:
        """Whether all comparisons hold; `value_of` gives the text of a field, empty when unset."""
        return all(
            (value_of(requirement.field) == requirement.value) is requirement.equal
            for requirement in self.requirements
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSelectorTerm:
    """Label and name conditions that must all hold; `ignored` when the term is empty."""

    labels: tuple[Requirement, ...]
    fields: tuple[FieldRequirement, ...]

    def holds(self, name: str, labels: Labels) -> bool:
        """Whether the node satisfies the term; field conditions are skipped for a nameless node."""
        if not self.labels and not self.fields:
            return False
        if not all(requirement.holds(labels) for requirement in self.labels):
            return False
        if not name:
            return True
        known = {"metadata.name": name}
        return all(
            (known.get(requirement.field, "") == requirement.value) is requirement.equal
            for requirement in self.fields
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSelector:
    """Terms of which at least one must hold."""

    terms: tuple[NodeSelectorTerm, ...]

    def matches(self, name: str, labels: Labels) -> bool:
        """Whether one term holds for the node; empty terms never do."""
        return any(term.holds(name, labels) for term in self.terms)


def parse_labels(text: str) -> LabelSelector:
    """The selector of a list parameter: `a=b,c!=d,e in (x,y),f notin (z),g,!h,i>1`."""
    if len(text) > TEXT_MAX:
        raise SelectorError(f"the selector is longer than {TEXT_MAX} characters")
    requirements: list[Requirement] = []
    position, rest = 0, text.strip()
    if not rest:
        return LabelSelector()
    while True:
        requirement, position = _label_requirement(rest, position)
        requirements.append(requirement)
        if position == len(rest):
            return LabelSelector(requirements=tuple(requirements))
        if rest[position] != ",":
            raise SelectorError(f"{_found(rest, position)}, expected: ',' or 'end of string'")
        position += 1


def label_selector_of(tree: JsonView) -> LabelSelector:
    """The selector of an object with `matchLabels` and `matchExpressions`."""
    requirements = [
        Requirement(key=key, operator="in", values=frozenset((value,)))
        for key, value in sorted(json_tree.labels(tree, "matchLabels").items())
    ]
    for expression in core.expressions(tree):
        requirements.append(_expression_requirement(expression))
    return LabelSelector(requirements=tuple(requirements))


def parse_fields(text: str) -> FieldSelector:
    """The selector of a list parameter: `metadata.name=a,status.phase!=Failed`.

    A backslash escapes `,`, `=` and itself.
    """
    if len(text) > TEXT_MAX:
        raise SelectorError(f"the selector is longer than {TEXT_MAX} characters")
    requirements = []
    for term in _split_unescaped(text):
        if not term.strip():
            continue
        match = re.fullmatch(r"((?:[^\\=!]|\\.)+?)(!=|==|=)((?:[^\\]|\\.)*)", term, re.DOTALL)
        if match is None:
            raise SelectorError(f"invalid selector: '{term}'; can't understand '{term}'")
        field, operator, value = match.groups()
        value = re.sub(r"\\(.)", r"\1", value, flags=re.DOTALL)
        requirements.append(
            FieldRequirement(field=field.strip(), value=value, equal=operator != "!=")
        )
    return FieldSelector(requirements=tuple(requirements))


def node_selector_of(tree: JsonView) -> NodeSelector:
    """The selector of a NodeSelector object, with all its terms compiled.

    One unreadable term makes the whole selector an error. Parity: allocator.md 2.1.
    """
    terms = []
    for index, term in enumerate(core.node_selector_terms(tree)):
        path = f"nodeSelectorTerms[{index}]"
        labels = [
            _expression_requirement(expression, f"{path}.matchExpressions[{number}]")
            for number, expression in enumerate(core.expressions(term))
        ]
        fields = [
            _node_field(expression, f"{path}.matchFields[{number}]")
            for number, expression in enumerate(core.field_expressions(term))
        ]
        terms.append(NodeSelectorTerm(labels=tuple(labels), fields=tuple(fields)))
    return NodeSelector(terms=tuple(terms))


def node_selector_text(tree: JsonView) -> str:
    """The selector as it appears in error texts of the scheduler."""
    terms = "".join(
        f"NodeSelectorTerm{{MatchExpressions:{_go_text('Node', core.requirements(term))},"
        f"MatchFields:{_go_text('Node', core.field_requirements(term))},}},"
        for term in core.node_selector_terms(tree)
    )
    return f"&NodeSelector{{NodeSelectorTerms:[]NodeSelectorTerm{{{terms}}},}}"


def label_selector_text(tree: JsonView) -> str:
    """The selector as its Go type prints it, for tables and Events."""
    labels = json_tree.labels(tree, "matchLabels")
    pairs = "".join(f"{key}: {labels[key]}," for key in sorted(labels))
    return (
        f"&LabelSelector{{MatchLabels:map[string]string{{{pairs}}},"
        f"MatchExpressions:{_go_text('Label', core.requirements(tree))},}}"
    )


def _go_text(kind: str, requirements: Iterable[SelectorRequirement]) -> str:
    form = f"{kind}SelectorRequirement"
    shown = "".join(
        f"{form}{{Key:{one.key},Operator:{one.operator},Values:[{' '.join(one.values)}],}},"
        for one in requirements
    )
    return f"[]{form}{{{shown}}}"


def _label_requirement(text: str, start: int) -> tuple[Requirement, int]:
    """The requirement at `start` and the position after it."""
    position = start
    while position < len(text) and text[position].isspace():
        position += 1
    negated = text[position : position + 1] == "!"
    match = _LEXEME.match(text, position + (1 if negated else 0))
    if match is None:
        raise SelectorError(_without_key(text, start, position, negated=negated))
    key, position = match.group(1), match.end()
    _check_key(key, "")
    if negated or position == len(text) or text[position] == ",":
        return Requirement(key=key, operator="absent" if negated else "exists"), position
    listed = _SET_OF.match(text, position)
    if listed is not None:
        values, end = _values(text, listed.end())
        for value in values:
            _check_value(value, "")
        requirement = Requirement(key=key, operator=listed.group(1), values=values)
        return requirement, _skip_space(text, end)
    compared = _COMPARED.match(text, position)
    if compared is None:
        raise SelectorError(_without_operator(text, position))
    if not compared.group(2) and text[compared.end() : compared.end() + 1] not in ("", ","):
        problem = f"{_found(text, compared.end())}, expected: identifier"
        raise SelectorError(f"unable to parse requirement: {problem}")
    operator, value = compared.groups()
    end = _skip_space(text, compared.end())
    if operator in ("<", ">"):
        return Requirement(
            key=key, operator="gt" if operator == ">" else "lt", bound=_bound(value, "")
        ), end
    _check_value(value, "")
    name = "notin" if operator == "!=" else "in"
    return Requirement(key=key, operator=name, values=frozenset((value,))), end


def _without_key(text: str, start: int, position: int, *, negated: bool) -> str:
    """The message for a requirement without a key, in the words of a server."""
    if negated and text[position + 1 : position + 2] != "=":
        return f"unable to parse requirement: {_found(text, position + 1)}, expected: identifier"
    after = "identifier after ','" if start else "!, identifier, or 'end of string'"
    return f"{_found(text, position)}, expected: {after}"


def _without_operator(text: str, position: int) -> str:
    """The message for a key that no operator follows, or no list of values, likewise."""
    word = _TOKEN.match(text, position)
    if word is not None and word.group(1) in ("in", "notin"):
        return f"unable to parse requirement: {_found(text, word.end())} expected: '('"
    expected = "in, notin, =, ==, !=, gt, lt"
    return f"unable to parse requirement: {_found(text, position)}, expected: {expected}"


def _values(text: str, start: int) -> tuple[frozenset[str], int]:
    """The values up to the closing parenthesis, and the position after it.

    Between two commas, and between a comma and a parenthesis, is an empty value: `(x,)` has two.
    """
    values, position, expected = [""], start, _FIRST_VALUE
    while True:
        token = _TOKEN.match(text, position)
        word = token.group(1) if token else ""
        if token is not None and word == ")":
            return frozenset(values), token.end()
        if token is not None and word == ",":
            values.append("")
            expected = _NEXT_VALUE
        elif token is not None and word[:1] not in "()=!<>" and expected != _AFTER_VALUE:
            values[-1], expected = word, _AFTER_VALUE
        else:
            problem = f"found '{word}', expected: {expected}"
            raise SelectorError(f"unable to parse requirement: {problem}")
        position = token.end()


def _found(text: str, position: int) -> str:
    token = _TOKEN.match(text, position)
    return f"found '{token.group(1) if token else ''}'"


def _skip_space(text: str, position: int) -> int:
    while position < len(text) and text[position].isspace():
        position += 1
    return position


def _split_unescaped(text: str) -> list[str]:
    """The comma-separated terms; a comma after a backslash does not separate."""
    terms, start, position = [], 0, 0
    while position < len(text):
        if text[position] == "\\":
            position += 2
            continue
        if text[position] == ",":
            terms.append(text[start:position])
            start = position + 1
        position += 1
    terms.append(text[start:])
    return terms


def _expression_requirement(tree: JsonView, path: str = "") -> Requirement:
    written = core.requirement(tree)
    key, values = written.key, written.values
    operator = _OPERATORS.get(written.operator)
    if operator is None:
        raise SelectorError(
            _at(path, "operator", f'"{written.operator}" is not a valid selector operator')
        )
    _check_key(key, path)
    if operator in ("in", "notin") and not values:
        raise SelectorError(
            _at(path, "values", "for 'in', 'notin' operators, values set can't be empty")
        )
    if operator in ("exists", "absent") and values:
        raise SelectorError(
            _at(path, "values", "values set must be empty for exists and does not exist")
        )
    if operator in ("gt", "lt"):
        if len(values) != 1:
            raise SelectorError(
                _at(path, "values", "for 'Gt', 'Lt' operators, exactly one value is required")
            )
        return Requirement(key=key, operator=operator, bound=_bound(values[0], path))
    for value in values:
        _check_value(value, path)
    return Requirement(key=key, operator=operator, values=frozenset(values))


def _node_field(tree: JsonView, path: str) -> FieldRequirement:
    written = core.requirement(tree)
    operator, values = written.operator, written.values
    if operator not in ("In", "NotIn"):
        raise SelectorError(_at(path, "operator", f'"{operator}" is not a valid selector operator'))
    if len(values) != 1:
        raise SelectorError(_at(path, "values", "must have one element"))
    return FieldRequirement(field=written.key, value=values[0], equal=operator == "In")


def _bound(text: str, path: str) -> int:
    if not _INTEGER.fullmatch(text):
        raise SelectorError(
            _at(path, "values", "for 'Gt', 'Lt' operators, the value must be an integer")
        )
    return int(text)


def _check_key(key: str, path: str) -> None:
    domain, slash, name = key.rpartition("/")
    named = len(name) <= 63 and _PART.fullmatch(name) is not None
    if not named or (slash and (len(domain) > 253 or not _DOMAIN.fullmatch(domain))):
        raise SelectorError(_at(path, "key", f"{key!r} is not a qualified name"))


def _check_value(value: str, path: str) -> None:
    if value and (len(value) > 63 or not _PART.fullmatch(value)):
        raise SelectorError(_at(path, "values", f"{value!r} is not a label value"))


def _at(path: str, field: str, problem: str) -> str:
    return f"{path}.{field}: Invalid value: {problem}" if path else problem
