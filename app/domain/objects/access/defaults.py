"""Roles and bindings that apply in every cluster, even if a history does not have them as objects.

A role object has priority over a default role of the same name. Parity: api.md 14.
"""

from app.domain.objects.access import cluster_roles
from app.domain.objects.access import rules as access
from app.domain.objects.access.rules import AUTHENTICATED, MASTERS, UNAUTHENTICATED, Binding, Roles

_RULES = {
    tree["metadata"]["name"]: tuple(access.rule_of(rule) for rule in tree["rules"])
    for tree in cluster_roles.roles()
}


def _bound(role: str, *groups: str) -> Binding:
    return Binding(
        groups=frozenset(groups),
        rules=_RULES[role],
        label=f'RBAC: allowed by ClusterRoleBinding "{role}"',
        role=f'ClusterRole "{role}"',
    )


EVERYBODY = (
    _bound("system:basic-user", AUTHENTICATED),
    _bound("system:discovery", AUTHENTICATED),
    _bound("system:public-info-viewer", AUTHENTICATED, UNAUTHENTICATED),
)
"""The bindings that apply under any rules: discovery, and reviews of a user's own access."""

ROLES = Roles(
    rules={("", name): rules for name, rules in _RULES.items()},
    bindings=(_bound("cluster-admin", MASTERS), *EVERYBODY),
)
