"""Roles and bindings that hold in every cluster, whether or not a history has them as objects.

A role among the objects wins over one of the same name here. Parity: api.md 14.
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
"""What whoever is let in may do under any rules: discovery and questions about themselves."""

ROLES = Roles(
    rules={("", name): rules for name, rules in _RULES.items()},
    bindings=(_bound("cluster-admin", MASTERS), *EVERYBODY),
)
