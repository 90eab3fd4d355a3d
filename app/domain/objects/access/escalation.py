"""Prevention of privilege escalation by writes of roles and bindings.

A user may write a role only if they hold each of its rules, or may `escalate` it, and a binding
only if they hold the rules of its role, or may `bind` the role. Otherwise the right to write
bindings would imply all rights. Parity: objects.md 15.6, RBAC's prevention of privilege escalation.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from app.domain.errors import Forbidden
from app.domain.log import ObjectKey
from app.domain.objects.access import defaults
from app.domain.objects.access import rules as access
from app.domain.objects.access.rules import (
    EVERYTHING,
    AccessRequest,
    AccessRule,
    Grants,
    RolesOfObjects,
)
from app.domain.objects.reader import ObjectsReader
from app.domain.values import api_groups, json_tree
from app.domain.values.json_tree import JsonView

_ROLES = ("clusterroles", "roles")
_BINDINGS = ("clusterrolebindings", "rolebindings")
_QUESTIONS_MAX = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class GiverRights:
    """The user who writes a role or a binding, with their groups and grants."""

    user: str
    groups: tuple[str, ...]
    grants: Grants


def is_judged(group: str, resource: str) -> bool:
    """Whether the resource is one of RBAC's roles and bindings."""
    return group == api_groups.RBAC and resource in (*_ROLES, *_BINDINGS)


def check(reader: ObjectsReader, key: ObjectKey, tree: JsonView, rights: GiverRights) -> None:
    """Raises Forbidden if `tree` would grant rights that the writer does not hold."""
    old = reader.get(key)
    if key.resource in _ROLES:
        _check_role(key, tree, old, rights)
    elif old is None or any(old.get(part) != tree.get(part) for part in ("roleRef", "subjects")):
        _check_binding(reader, key, tree, rights)


def _check_role(key: ObjectKey, tree: JsonView, old: JsonView | None, rights: GiverRights) -> None:
    before = old if old is not None else {}
    if all(before.get(part) == tree.get(part) for part in ("rules", "aggregationRule")):
        return
    if _may(rights, "escalate", key.resource, key.namespace, key.name):
        return
    rules = [access.rule_of(rule) for rule in json_tree.objects(tree, "rules")]
    if json_tree.get(tree, "aggregationRule"):
        # Its selection may grow later, so the writer must hold all rights.
        rules.append(EVERYTHING)
    _check_held(key, rules, rights)


def _check_binding(
    reader: ObjectsReader, key: ObjectKey, tree: JsonView, rights: GiverRights
) -> None:
    kind, name = json_tree.text(tree, "roleRef", "kind"), json_tree.text(tree, "roleRef", "name")
    is_cluster = kind == "ClusterRole"
    if _may(rights, "bind", "clusterroles" if is_cluster else "roles", key.namespace, name):
        return
    roles = RolesOfObjects(reader, defaults.ROLES)
    rules = roles.rules("" if is_cluster else key.namespace, name)
    if rules is None:
        raise _refusal(key, rights, f'{kind.lower()}.{api_groups.RBAC} "{name}" not found')
    _check_held(key, list(rules), rights)


def _check_held(key: ObjectKey, rules: list[AccessRule], rights: GiverRights) -> None:
    questions = 0
    for rule in rules:
        for question in _questions(rule, key.namespace):
            questions += 1
            if questions > _QUESTIONS_MAX:
                raise _refusal(key, rights, f"the rules name more than {_QUESTIONS_MAX} rights")
            if not rights.grants.decide(question).allowed:
                raise _refusal(
                    key,
                    rights,
                    "is attempting to grant RBAC permissions not currently held:\n"
                    f"{_shown(question)}",
                )


def _questions(rule: AccessRule, namespace: str) -> Iterator[AccessRequest]:
    """Yields the single rights of a rule as questions."""
    for verb in sorted(rule.verbs):
        for path in rule.paths:
            yield AccessRequest(verb=verb, path=path)
        for group in sorted(rule.groups):
            for full in sorted(rule.resources):
                resource, _, part = full.partition("/")
                for name in sorted(rule.names) or [""]:
                    yield AccessRequest(
                        verb=verb,
                        group=group,
                        resource=resource,
                        subresource=part,
                        namespace=namespace,
                        name=name,
                    )


def _may(rights: GiverRights, verb: str, resource: str, namespace: str, name: str) -> bool:
    question = AccessRequest(
        verb=verb, group=api_groups.RBAC, resource=resource, namespace=namespace, name=name
    )
    return rights.grants.decide(question).allowed


def _shown(question: AccessRequest) -> str:
    """The text of one right, as the real server prints it."""
    if question.path:
        return f'{{NonResourceURLs:["{question.path}"], Verbs:["{question.verb}"]}}'
    names = f', ResourceNames:["{question.name}"]' if question.name else ""
    return (
        f'{{APIGroups:["{question.group}"], Resources:["{question.full_resource}"]{names}, '
        f'Verbs:["{question.verb}"]}}'
    )


def _refusal(key: ObjectKey, rights: GiverRights, why: str) -> Forbidden:
    groups = " ".join(f'"{group}"' for group in rights.groups)
    return Forbidden(
        f'{key.resource}.{api_groups.RBAC} "{key.name}" is forbidden: user "{rights.user}" '
        f"(groups=[{groups}]) {why}",
        group=api_groups.RBAC,
        resource=key.resource,
        name=key.name,
    )
