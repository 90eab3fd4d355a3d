"""Validation of roles and of bindings, whose `roleRef` is immutable.

Parity: objects.md 15.1; the messages are upstream's.
"""

from app.domain.objects.field_errors import FieldError, invalid, not_supported, required
from app.domain.objects.validation import label_selectors, shared
from app.domain.objects.validation.context import Context
from app.domain.values import api_groups, json_tree, names
from app.domain.values.fields import entries, meta
from app.domain.values.json_tree import JsonView

_SUBJECTS = ("Group", "ServiceAccount", "User")


def create_role(tree: JsonView, _context: Context) -> list[FieldError]:
    """Checks a new Role."""
    return _rules(tree, is_namespaced=True)


def create_cluster_role(tree: JsonView, _context: Context) -> list[FieldError]:
    """Checks a new ClusterRole."""
    errors = _rules(tree, is_namespaced=False)
    aggregation = tree.get("aggregationRule")
    if aggregation is None:
        return errors
    selectors = json_tree.objects(tree, "aggregationRule", "clusterRoleSelectors")
    path = "aggregationRule.clusterRoleSelectors"
    if not selectors:
        errors.append(
            required(
                path, "at least one clusterRoleSelector required if aggregationRule is non-nil"
            )
        )
    for index, selector in enumerate(selectors):
        errors += label_selectors.check(selector, f"{path}[{index}]")
    return errors


def create_role_binding(tree: JsonView, _context: Context) -> list[FieldError]:
    """Checks a new RoleBinding."""
    return _binding(tree, ("Role", "ClusterRole"), is_namespaced=True)


def create_cluster_role_binding(tree: JsonView, _context: Context) -> list[FieldError]:
    """Checks a new ClusterRoleBinding."""
    return _binding(tree, ("ClusterRole",), is_namespaced=False)


def update_role_binding(
    tree: JsonView, old: JsonView, _subresource: str, context: Context
) -> list[FieldError]:
    """Checks a changed RoleBinding."""
    return create_role_binding(tree, context) + _kept(tree, old)


def update_cluster_role_binding(
    tree: JsonView, old: JsonView, _subresource: str, context: Context
) -> list[FieldError]:
    """Checks a changed ClusterRoleBinding."""
    return create_cluster_role_binding(tree, context) + _kept(tree, old)


def _kept(tree: JsonView, old: JsonView) -> list[FieldError]:
    role = json_tree.mapping(tree, "roleRef")
    if role == json_tree.mapping(old, "roleRef"):
        return []
    names_in_go = {"APIGroup": "apiGroup", "Kind": "kind", "Name": "name"}
    shown = {name: role.get(key, "") for name, key in names_in_go.items()}
    return [invalid("roleRef", shown, "cannot change roleRef")]


def _binding(tree: JsonView, kinds: tuple[str, ...], *, is_namespaced: bool) -> list[FieldError]:
    role = json_tree.mapping(tree, "roleRef")
    errors: list[FieldError] = []
    group, kind = json_tree.text(role, "apiGroup"), meta.kind(role)
    if group != api_groups.RBAC:
        errors.append(not_supported("roleRef.apiGroup", group, (api_groups.RBAC,)))
    if kind not in kinds:
        errors.append(not_supported("roleRef.kind", kind, kinds))
    name = entries.name(role)
    errors += shared.required_name(name, "roleRef.name", names.path_segment)
    for index, subject in enumerate(json_tree.objects(tree, "subjects")):
        errors += _subject(subject, f"subjects[{index}]", is_namespaced=is_namespaced)
    return errors


def _subject(subject: JsonView, path: str, *, is_namespaced: bool) -> list[FieldError]:
    name, kind = entries.name(subject), meta.kind(subject)
    group = json_tree.text(subject, "apiGroup")
    errors: list[FieldError] = [] if name else [required(f"{path}.name")]
    if kind == "ServiceAccount":
        if name:
            errors += shared.formatted(name, f"{path}.name", names.subdomain)
        if group:
            errors.append(not_supported(f"{path}.apiGroup", group, ("",)))
        if not is_namespaced and not subject.get("namespace"):
            errors.append(required(f"{path}.namespace"))
    elif kind in _SUBJECTS:
        if group != api_groups.RBAC:
            errors.append(not_supported(f"{path}.apiGroup", group, (api_groups.RBAC,)))
    else:
        errors.append(not_supported(f"{path}.kind", kind, ("ServiceAccount", "User", "Group")))
    return errors


def _rules(tree: JsonView, *, is_namespaced: bool) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, rule in enumerate(json_tree.objects(tree, "rules")):
        path = f"rules[{index}]"
        if not rule.get("verbs"):
            errors.append(required(f"{path}.verbs", "verbs must contain at least one value"))
        paths = rule.get("nonResourceURLs")
        if paths:
            at = f"{path}.nonResourceURLs"
            if is_namespaced:
                detail = "namespaced rules cannot apply to non-resource URLs"
                errors.append(invalid(at, paths, detail))
            if any(rule.get(name) for name in ("apiGroups", "resources", "resourceNames")):
                detail = "rules cannot apply to both regular resources and non-resource URLs"
                errors.append(invalid(at, paths, detail))
            continue
        if not rule.get("apiGroups"):
            detail = "resource rules must supply at least one api group"
            errors.append(required(f"{path}.apiGroups", detail))
        if not rule.get("resources"):
            detail = "resource rules must supply at least one resource"
            errors.append(required(f"{path}.resources", detail))
    return errors
