"""Redaction: replaces names without changing decisions, because sort order and equality are kept.

Names of objects, namespaces, pools, devices, counters and requests, values of labels, and texts in
attributes become `a0001`, `a0002`, … in their sort order, in every place; the name of a
claim that was made for a pod is composed of the new name of the pod. So do values of taints
and string literals of selectors, unless a literal is a driver, the key of an attribute, a version
or a quantity. Comments of selectors are left out. Names that every cluster has (`default`,
`kube-system`) are kept, and the prefix of a new name places it between them in the sort order.
Uids, also those of shares, become others in the same order. Objects of kinds that no decision reads
are left out. From other objects, everything that may
identify a cluster is left out: annotations, environment, arguments, messages, addresses, data of
drivers. Kept are kinds, keys of labels and taints, types of conditions, names of drivers and
attributes, words of Kubernetes, numbers that are values, versions and quantities, because decisions
use them. Text of any other field is replaced.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import msgspec

from app.analysis.handover import generated, places
from app.analysis.handover.generated import GeneratedName
from app.analysis.replay import writers
from app.analysis.replay.authors import UNNAMED
from app.analysis.replay.inputs import Input
from app.domain.log import Actor, Event, ObjectKey
from app.domain.log.chain import canonical_json
from app.domain.objects.kinds import extended_resources
from app.domain.objects.quota import usage
from app.domain.values.fields import core, dra, meta
from app.domain.values.json_tree import JsonObject

Decided: TypeAlias = tuple[ObjectKey, str, tuple[str, tuple[tuple[str, ...], ...]]]
"""The object, the outcome of a decision, and its node and devices."""

_STAYING = (
    "default",
    "false",
    "kube-node-lease",
    "kube-public",
    "kube-system",
    "system-cluster-critical",
    "system-node-critical",
    "true",
)
_BEGINNINGS = ("a", "e", "g", "kube-o", "kube-q", "l", "system-d", "t", "u")
"""The prefixes of names before, between and after the kept names, so that they sort there."""

_UID = "{:08x}-0000-4000-8000-000000000000"

_KEPT = re.compile(rf"(|{'|'.join(_STAYING)})", re.IGNORECASE)
_NUMBER = re.compile(r"[+-]?\d+")

_LITERAL = re.compile(
    r"\b[rR](?:\"\"\"((?s:.*?))\"\"\"|'''((?s:.*?))'''|\"([^\"\n]*)\"|'([^'\n]*)')"
    r"|\"\"\"((?s:(?:[^\\]|\\.)*?))\"\"\"|'''((?s:(?:[^\\]|\\.)*?))'''"
    r"|\"((?:[^\"\\]|\\.)*)\"|'((?:[^'\\]|\\.)*)'"
)
"""A string literal of CEL in each of its forms: raw, between three quotes, between one."""

_COMMENT_OR_LITERAL = re.compile(rf"(?P<comment>//[^\n]*)|(?:{_LITERAL.pattern})")
_INDEXED = re.compile(r"[\w)\]}]\s*\[\??\s*$")
_LISTED = re.compile(r"\bin\s*\[\s*$")
_LOOKED_UP = re.compile(r"\s*in\s+device\s*\.")
_READ = re.compile(r"\b(quantity|isQuantity|semver|isSemver)\s*\(\s*$")

_OF_CLASS = re.compile(
    rf"((?:{re.escape(usage.REQUESTS)})?{re.escape(extended_resources.IMPLICIT)})(.+)()"
    rf"|()(.+)({re.escape(usage.DEVICES_SUFFIX)}|{re.escape(usage.STORAGE_CLASS)}.+)",
    re.DOTALL,
)
"""The name of a resource that contains the name of a class, in two forms."""

_NODE_USER = "system:node:"
_ACCOUNT_USER = "system:serviceaccount:"
_USERS = writers.MANAGED | {
    UNNAMED,
    "system:admin",
    "system:anonymous",
    "system:apiserver",
    "system:kube-controller-manager",
    "system:kube-proxy",
    "system:kube-scheduler",
}
"""Users that keep their names, because every cluster has them."""

_GROUPS = frozenset(
    (
        "system:authenticated",
        "system:bootstrappers",
        "system:masters",
        "system:nodes",
        "system:unauthenticated",
    )
)
"""Groups that keep their names."""
_OWN_SCHEDULER = "default-scheduler"


@dataclass(frozen=True, slots=True, kw_only=True)
class Redaction:
    """The replacement of each name; `given` are the new names of objects written from outside.

    `uids` are the new uids by the old ones. `composed` are the new names of claims for which a
    controller composes the name.

    `drivers` are names of drivers. In a selector such a name means the driver, even if a class has
    the same name.
    """

    names: Mapping[str, str]
    uids: Mapping[str, str] = field(default_factory=dict)
    given: frozenset[str] = frozenset()
    drivers: frozenset[str] = frozenset()
    composed: Mapping[str, GeneratedName] = field(default_factory=dict)

    def input(self, step: Input) -> Input:
        """A step with its names replaced."""
        event = step.event
        tree = self.tree(event.object)
        key = self.key(event.key)
        author = self.user(step.author)
        stamp = msgspec.structs.replace(
            event.stamp, actor=self.actor(event.stamp.actor), request_id="", origin=None
        )
        uid = self._uid(event.uid)
        fresh = msgspec.structs.replace(
            event, key=key, uid=uid, body=canonical_json(tree), tree=tree, stamp=stamp
        )
        before = None if step.before is None else self.tree(step.before)
        subjects = frozenset(map(self._uid, step.subjects))
        return replace(step, event=fresh, before=before, author=author, subjects=subjects)

    def event(self, event: Event) -> Event:
        """An event with its names replaced."""
        tree = self.tree(event.object)
        key = self.key(event.key)
        return msgspec.structs.replace(
            event, key=key, uid=self._uid(event.uid), body=canonical_json(tree), tree=tree
        )

    def decision(self, event: Event) -> Decided:
        """The decision of an event, with the new names."""
        node, devices = placed(event)
        return (
            self._known(self.key(event.key)),
            event.object.get("outcome", ""),
            (self._name(node), tuple(tuple(map(self._name, each)) for each in devices)),
        )

    def decided(self, event: Event) -> Decided:
        """The decision of an event of the redacted history."""
        return self._known(event.key), event.object.get("outcome", ""), placed(event)

    def _known(self, key: ObjectKey) -> ObjectKey:
        """A new key, without a name that a controller generated."""
        return key if key.name in self.given else key._replace(name="")

    def tree(self, tree: JsonObject) -> JsonObject:
        """An object with its names replaced."""
        texts = _Texts(name=self._name, value=self._name, expression=self._literals, uid=self._uid)
        redacted: JsonObject = _mapped(places.exported_part(tree), "", texts)
        name = self.composed.get(meta.name(tree))
        if name is not None and meta.generate_name(tree):
            redacted["metadata"]["generateName"] = name.base
        return redacted

    def key(self, key: ObjectKey) -> ObjectKey:
        """A key with its names replaced."""
        return key._replace(namespace=self._name(key.namespace), name=self._name(key.name))

    def actor(self, actor: Actor) -> Actor:
        """The actor, without its program and without groups that are not Kubernetes' own."""
        return Actor(
            user=self.user(actor.user),
            groups=tuple(each for each in actor.groups if each in _GROUPS),
        )

    def user(self, user: str) -> str:
        """The user: programs of the cluster keep their names, names of nodes are replaced."""
        if user.startswith(_NODE_USER):
            return _NODE_USER + self._name(user.removeprefix(_NODE_USER))
        if account := _account(user):
            return _ACCOUNT_USER + ":".join(map(self._name, account))
        return user if user in _USERS else "user"

    def _uid(self, text: str) -> str:
        return self.uids.get(text, text)

    def _name(self, text: str) -> str:
        """The replacement of a name, or of the parts of a subrequest's name."""
        if text in self.names:
            return self.names[text]
        return "/".join(self.names.get(part, part) for part in text.split("/"))

    def _literals(self, expression: str) -> str:
        """A selector with its string literals replaced, without its comments."""
        code = _without_comments(expression)

        def replaced(literal: re.Match[str]) -> str:
            text = _text_of(literal)
            is_name = _is_name(code, literal) and text not in self.drivers
            return f'"{self._name(text)}"' if is_name else literal[0]

        return _LITERAL.sub(replaced, code)


def placed(event: Event) -> tuple[str, tuple[tuple[str, ...], ...]]:
    """The node of a pod, or the devices of a claim."""
    return core.node_name(event.object), tuple(
        (each.pool, each.device) for each in dra.results(event.object)
    )


def redaction_of(inputs: Iterable[Input], made: Sequence[Event] = ()) -> Redaction:
    """New names for all names of inputs, and new uids for those of `made`, too, in the same order.

    `made` are events of controllers.
    """
    known: set[str] = set()
    uids: set[str] = set()

    def note_uid(text: str) -> str:
        uids.add(text)
        return text

    def note(text: str) -> str:
        known.update(part for part in text.split("/") if not _KEPT.fullmatch(part))
        return text

    def note_value(text: str) -> str:
        return text if _NUMBER.fullmatch(text) else note(text)

    def note_literals(expression: str) -> str:
        code = _without_comments(expression)
        for literal in _LITERAL.finditer(code):
            if _is_name(code, literal):
                note_value(_text_of(literal))
        return expression

    texts = _Texts(name=note, value=note_value, expression=note_literals, uid=note_uid)
    drivers: set[str] = set()
    keys: set[str] = set()
    for event in made:
        uids.add(event.uid)
        _mapped(event.object, "", replace(texts, name=str, value=str, expression=str))
    for step in inputs:
        uids |= {step.event.uid, *step.subjects}
        keys.add(step.event.key.name)
        for tree in (step.event.object, step.before or {}):
            _mapped(places.exported_part(tree), "", texts)
            drivers.update(_drivers(tree))
        for user in (step.author, step.event.stamp.actor.user):
            for name in _account(user):
                note(name)
        note(step.event.key.namespace)
        note(step.event.key.name)
    width = max(4, len(str(len(known))))
    names = {
        name: f"{_beginning(name)}{number:0{width}}"
        for number, name in enumerate(sorted(known), start=1)
    }
    composed = generated.new_names(made, lambda name: names.get(name, name))
    names |= {old: new.name for old, new in composed.items()}
    renamed = frozenset(names.get(name, name) for name in keys)
    return Redaction(
        names=names,
        uids={uid: _UID.format(number) for number, uid in enumerate(sorted(uids - {""}), start=1)},
        given=renamed,
        drivers=frozenset(drivers),
        composed=composed,
    )


def _drivers(tree: Any) -> Iterator[str]:
    """The names of drivers in a tree, in any place, and the domains of attributes."""
    if isinstance(tree, dict):
        for key, value in tree.items():
            if key == "driver" and isinstance(value, str):
                yield value
            elif key in ("attributes", "capacity") and isinstance(value, dict):
                yield from (name.partition("/")[0] for name in value if "/" in name)
            yield from _drivers(value)
    elif isinstance(tree, list):
        for item in tree:
            yield from _drivers(item)


def _beginning(name: str) -> str:
    """The prefix of a new name: it sorts among the kept names like the old name."""
    return _BEGINNINGS[sum(name > kept for kept in _STAYING)]


def _account(user: str) -> tuple[str, ...]:
    """The namespace and name of a service account; empty for a controller of Kubernetes."""
    namespace, _, name = user.removeprefix(_ACCOUNT_USER).partition(":")
    is_account = user.startswith(_ACCOUNT_USER) and user not in _USERS
    return (namespace, name) if is_account else ()


def _without_comments(expression: str) -> str:
    """A selector without comments: people write them, and a quote in one begins no literal."""
    return _COMMENT_OR_LITERAL.sub(
        lambda part: " " if part["comment"] is not None else part[0], expression
    )


def _text_of(literal: re.Match[str]) -> str:
    return next(text for text in literal.groups() if text is not None)


def _is_name(expression: str, literal: re.Match[str]) -> bool:
    """Whether a selector's literal is compared with texts; keys, versions, quantities are not."""
    before, after = expression[: literal.start()], expression[literal.end() :]
    is_key = bool(_INDEXED.search(before)) and not _LISTED.search(before)
    return not (is_key or _LOOKED_UP.match(after) or _READ.search(before))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Texts:
    """The functions for names, for values that may be numbers, for selectors, and for uids."""

    name: Callable[[str], str]
    value: Callable[[str], str]
    expression: Callable[[str], str]
    uid: Callable[[str], str]


def _mapped(tree: Any, field: str, texts: _Texts) -> Any:
    if isinstance(tree, dict):
        return dict(_fields(tree, field, texts))
    if isinstance(tree, list):
        return [_mapped(item, field, texts) for item in tree]
    if not isinstance(tree, str) or not tree:
        return tree
    if field in places.UIDS:
        return texts.uid(tree)
    if field == "expression":
        return texts.expression(tree)
    if field in places.VALUES:
        return texts.value(tree)
    if field == "schedulerName" and tree == _OWN_SCHEDULER:
        return tree
    if field not in places.NAMES and places.reveals_nothing(field, tree):
        return _resource(tree, texts) if field in places.RESOURCES else tree
    return texts.name(tree)


def _resource(name: str, texts: _Texts) -> str:
    """The name of a resource; a class in it is replaced."""
    match = _OF_CLASS.fullmatch(name)
    if match is None:
        return name
    before, of_class, after = match.group(*((1, 2, 3) if match[2] else (4, 5, 6)))
    return f"{before}{texts.name(of_class)}{after}"


def _fields(tree: JsonObject, field: str, texts: _Texts) -> Iterator[tuple[str, Any]]:
    has_fields = field not in places.NAMED_BY_USERS
    for key, value in tree.items():
        if has_fields and key in places.LEFT_OUT:
            continue
        if has_fields and key == "parameters":
            yield key, {}  # of drivers: the field is required, with any content
            continue
        is_value = field in places.LABELS or (key == "value" and field in places.TAINTS)
        is_value = is_value and isinstance(value, str)
        name = texts.name(key) if field == places.COUNTERS else _resource(key, texts)
        yield name, _mapped(value, "values" if is_value else key, texts)
