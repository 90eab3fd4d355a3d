"""Files of users and rights: bearer tokens, and an access policy.

The token file has the format of the API server's static token file: lines of token, user, uid and
optionally groups, separated by commas, several groups in one quoted field. Parity: api.md
14.
"""

import csv
import io
from collections.abc import Mapping
from dataclasses import dataclass

from app.domain.errors import InputError
from app.domain.log import Actor
from app.domain.objects.access import rules as access
from app.domain.objects.access.rules import AUTHENTICATED, Binding
from app.domain.values import json_tree
from app.domain.values.json_tree import JsonObject

_TOKEN_MIN = 4
_FIELDS = frozenset(
    {
        "users", "groups", "histories", "namespaces",
        "verbs", "apiGroups", "resources", "resourceNames", "nonResourceURLs",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokens:
    """Users by token, and their uids by name."""

    actors: Mapping[str, Actor]
    uids: Mapping[str, str]


def parse_tokens(text: str, *, place: str) -> Tokens:
    """The tokens of a file. Raises InputError with the line."""
    actors: dict[str, Actor] = {}
    uids: dict[str, str] = {}
    reader = csv.reader(io.StringIO(text), skipinitialspace=True, strict=True)
    try:
        for row in reader:
            if not row or row[0].startswith("#"):
                continue
            line = f"{place}:{reader.line_num}"
            if len(row) < 3 or not row[1] or len(row[0]) < _TOKEN_MIN:
                raise InputError(
                    f"a line needs a token of at least {_TOKEN_MIN} characters, a user and a uid",
                    place=line,
                    cure='write token,user,uid,"group1,group2"',
                )
            token, user, uid = row[:3]
            if token in actors:
                raise InputError("this token is listed twice", place=line, cure="remove one line")
            groups = row[3].split(",") if len(row) > 3 else []
            named = tuple(group.strip() for group in groups if group.strip())
            actors[token] = Actor(user=user, groups=(*named, AUTHENTICATED))
            uids[user] = uid
    except csv.Error as problem:
        raise InputError(
            str(problem), place=f"{place}:{reader.line_num}", cure="check the quotes"
        ) from problem
    return Tokens(actors=actors, uids=uids)


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Bindings, each with its histories; None means all histories."""

    entries: tuple[tuple[frozenset[str] | None, Binding], ...]

    def bindings(self, history: str) -> tuple[Binding, ...]:
        """The bindings of a history."""
        return tuple(
            binding
            for histories, binding in self.entries
            if histories is None or history in histories
        )


def parse_policy(tree: JsonObject, *, place: str) -> Policy:
    """The policy of a file. Raises InputError with the rule."""
    rules = tree.get("rules")
    if not isinstance(rules, list) or set(tree) != {"rules"}:
        raise InputError("a policy is a list of rules", place=place, cure="begin with rules:")
    entries: list[tuple[frozenset[str] | None, Binding]] = []
    for index, rule in enumerate(rules):
        where = f"{place}: rules[{index}]"
        if not isinstance(rule, dict):
            raise InputError("a rule is an object", place=where)
        _check_rule(rule, where)
        histories = frozenset(json_tree.texts(rule, "histories")) if "histories" in rule else None
        entries += [
            (
                histories,
                Binding(
                    users=frozenset(json_tree.texts(rule, "users")),
                    groups=frozenset(json_tree.texts(rule, "groups")),
                    rules=(access.rule_of(rule),),
                    namespace=namespace,
                    label=f"allowed by rule {index} of the policy",
                ),
            )
            for namespace in json_tree.texts(rule, "namespaces") or [""]
        ]
    return Policy(entries=tuple(entries))


def _check_rule(rule: JsonObject, where: str) -> None:
    known = ", ".join(sorted(_FIELDS))
    for name, value in rule.items():
        if name not in _FIELDS:
            raise InputError(f"{name!r} is not a field of a rule", place=where, cure=f"use {known}")
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise InputError(f"{name} must be a list of texts", place=where)
        if not value:
            raise InputError(f"{name} is empty", place=where, cure="leave it out, or add values")
    if not rule.get("users") and not rule.get("groups"):
        raise InputError("no user or group is named", place=where, cure="add users or groups")
    if not rule.get("verbs"):
        raise InputError("no verbs", place=where, cure='add verbs, such as [get, list] or ["*"]')
    is_path = bool(rule.get("nonResourceURLs"))
    is_resource = bool(rule.get("resources")) and "apiGroups" in rule
    if is_path == is_resource or (is_path and rule.get("namespaces")):
        raise InputError(
            "a rule applies either to resources of API groups or to paths",
            place=where,
            cure='add apiGroups and resources, or nonResourceURLs; the core group is ""',
        )
