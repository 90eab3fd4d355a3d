"""Roles and bindings that every cluster has, whether or not a history holds them as objects.

A role among the objects wins over one of the same name here. Parity: api.md 14.
"""

from app.domain.objects.access import (
    AUTHENTICATED,
    EVERY_PATH,
    EVERYTHING,
    MASTERS,
    RBAC,
    UNAUTHENTICATED,
    Binding,
    Roles,
    Rule,
)

_READ = ("get", "list", "watch")
_WRITE = ("create", "delete", "deletecollection", "patch", "update")
_DISCOVERY = ("/api", "/api/*", "/apis", "/apis/*", "/openapi", "/openapi/*")
_PUBLIC = ("/healthz", "/livez", "/readyz", "/version", "/version/")


def _on(group: str, resources: str, *verbs: str) -> Rule:
    return Rule(
        verbs=frozenset(verbs), groups=frozenset((group,)), resources=frozenset(resources.split())
    )


def _paths(*paths: str) -> Rule:
    return Rule(verbs=frozenset(("get",)), paths=paths)


_PLAIN = (
    ("", "configmaps endpoints persistentvolumeclaims pods replicationcontrollers serviceaccounts"),
    ("", "services"),
    ("apps", "daemonsets deployments replicasets statefulsets"),
    ("batch", "cronjobs jobs"),
    ("policy", "poddisruptionbudgets"),
    ("resource.k8s.io", "resourceclaims resourceclaimtemplates"),
)
_SEEN = (
    ("", "bindings events limitranges namespaces pods/log pods/status resourcequotas"),
    ("apps", "daemonsets/status deployments/scale deployments/status replicasets/status"),
    ("apps", "statefulsets/scale statefulsets/status"),
    ("batch", "jobs/status"),
    ("policy", "poddisruptionbudgets/status"),
    ("resource.k8s.io", "resourceclaims/status"),
)
_VIEW = tuple(_on(group, resources, *_READ) for group, resources in (*_PLAIN, *_SEEN))
_EDIT = (
    *_VIEW,
    *(_on(group, resources, *_WRITE) for group, resources in _PLAIN),
    _on("", "secrets", *_READ, *_WRITE),
    _on("", "pods/eviction", "create"),
    _on("apps", "deployments/scale statefulsets/scale", "patch", "update"),
)
_ADMIN = (
    *_EDIT,
    _on(RBAC, "rolebindings roles", *_READ, *_WRITE),
    _on("authorization.k8s.io", "localsubjectaccessreviews", "create"),
)
_BASIC = (
    _on("authorization.k8s.io", "selfsubjectaccessreviews selfsubjectrulesreviews", "create"),
    _on("authentication.k8s.io", "selfsubjectreviews", "create"),
)
_RULES = {
    "cluster-admin": (EVERYTHING, EVERY_PATH),
    "admin": _ADMIN,
    "edit": _EDIT,
    "view": _VIEW,
    "system:basic-user": _BASIC,
    "system:discovery": (_paths(*_DISCOVERY, *_PUBLIC),),
    "system:public-info-viewer": (_paths(*_PUBLIC),),
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
