"""RBAC: rules, the grants of users and groups, and decisions about single requests.

As in RBAC, a rule allows verbs on resources or on paths, a role has rules, a binding grants a role
to subjects, in one namespace or in all. Rights are additive; no rule denies anything. Parity:
api.md 10 and 14, objects.md 5.4.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from app.domain.errors import Forbidden
from app.domain.log import ObjectKey
from app.domain.objects.reader import ObjectsReader
from app.domain.values import api_groups, identifiers, json_tree, selectors
from app.domain.values.fields import entries, meta
from app.domain.values.json_tree import JsonObject, JsonView

MASTERS = "system:masters"
"""Members of this group may do everything, regardless of rules."""
AUTHENTICATED = "system:authenticated"
UNAUTHENTICATED = "system:unauthenticated"

_RESOURCES = ("clusterrolebindings", "clusterroles", "rolebindings", "roles")
_ANY = "*"


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessRequest:
    """A request to authorize: a verb on a resource, or on a path.

    `path` is empty for resources. The namespace is empty for cluster-scoped resources and for all
    namespaces at once.
    """

    verb: str
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""

    @property
    def full_resource(self) -> str:
        """The resource as in rules, such as `pods/log`."""
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource

    @property
    def size(self) -> int:
        """The total number of characters in its fields."""
        part = len(self.verb) + len(self.group) + len(self.resource) + len(self.subresource)
        return part + len(self.namespace) + len(self.name) + len(self.path)


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessDecision:
    """The decision: whether the request is allowed, and the grant or the problems of rules."""

    allowed: bool
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessRule:
    """The verbs that are allowed on resources or on paths; `*` stands for all.

    A resource may be `pods/log`, or `*/status` for this subresource of all resources. `names`
    restrict the rule to these objects; without names it applies to all. A path may end in `*`.
    """

    verbs: frozenset[str]
    groups: frozenset[str] = frozenset()
    resources: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()
    paths: tuple[str, ...] = ()

    def allows(self, question: AccessRequest) -> bool:
        """Whether this rule alone allows the request."""
        if question.verb not in self.verbs and _ANY not in self.verbs:
            return False
        if question.path:
            return any(_covers(path, question.path) for path in self.paths)
        if question.group not in self.groups and _ANY not in self.groups:
            return False
        if self.names and question.name not in self.names:
            return False
        resources = self.resources
        if question.full_resource in resources or _ANY in resources:
            return True
        return bool(question.subresource) and f"*/{question.subresource}" in resources

    def tree(self) -> JsonObject:
        """The rule in the form of a rules review."""
        shown: JsonObject = {"verbs": sorted(self.verbs)}
        if self.paths:
            return shown | {"nonResourceURLs": sorted(self.paths)}
        shown |= {"apiGroups": sorted(self.groups), "resources": sorted(self.resources)}
        if self.names:
            shown["resourceNames"] = sorted(self.names)
        return shown


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """A rule that a user holds, in all namespaces or in one, and its source."""

    rule: AccessRule
    namespace: str = ""
    source: str = ""

    def allows(self, question: AccessRequest) -> bool:
        """Whether this grant alone allows the request; one of a namespace never allows a path."""
        if self.namespace and (question.path or question.namespace != self.namespace):
            return False
        return self.rule.allows(question)


@dataclass(frozen=True, slots=True, kw_only=True)
class Grants:
    """The grants of one user with their groups. `problems` are bound roles that do not exist."""

    grants: tuple[Grant, ...] = ()
    problems: tuple[str, ...] = ()

    def decide(self, question: AccessRequest) -> AccessDecision:
        """Returns the decision: allowed by the first grant that allows it, else not allowed."""
        for grant in self.grants:
            if grant.allows(question):
                return AccessDecision(allowed=True, reason=grant.source)
        return AccessDecision(allowed=False, reason=_problems_text(self.problems))

    def rules(self, namespace: str) -> list[AccessRule]:
        """The rules that apply in a namespace, each once."""
        held = [grant.rule for grant in self.grants if grant.namespace in ("", namespace)]
        return list(dict.fromkeys(held))


EVERYTHING = AccessRule(
    verbs=frozenset((_ANY,)), groups=frozenset((_ANY,)), resources=frozenset((_ANY,))
)
EVERY_PATH = AccessRule(verbs=frozenset((_ANY,)), paths=(_ANY,))


def all_rights(source: str) -> Grants:
    """The grants of a user who may do everything."""
    return Grants(
        grants=(
            Grant(rule=EVERYTHING, source=source),
            Grant(rule=EVERY_PATH, source=source),
        )
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """Rules granted to subjects: users and groups by name. `missing` names an unknown role."""

    users: frozenset[str] = frozenset()
    groups: frozenset[str] = frozenset()
    rules: tuple[AccessRule, ...] = ()
    namespace: str = ""
    label: str = ""
    role: str = ""
    missing: str = ""

    def source(self, user: str, groups: Iterable[str]) -> str:
        """The text of binding, role and subject that allow a user; empty if none matches."""
        subject = ""
        if user in self.users:
            subject = f'User "{user}"'
        else:
            group = next((group for group in groups if group in self.groups), None)
            if group is None:
                return ""
            subject = f'Group "{group}"'
        return f"{self.label} of {self.role} to {subject}" if self.role else self.label


@dataclass(frozen=True, slots=True)
class Book:
    """All bindings, indexed by subject."""

    bindings: tuple[Binding, ...]
    _by_subject: Mapping[tuple[str, str], tuple[int, ...]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        bindings_of: dict[tuple[str, str], list[int]] = {}
        for index, binding in enumerate(self.bindings):
            for user in binding.users:
                bindings_of.setdefault(("user", user), []).append(index)
            for group in binding.groups:
                bindings_of.setdefault(("group", group), []).append(index)
        places = {subject: tuple(indices) for subject, indices in bindings_of.items()}
        object.__setattr__(self, "_by_subject", places)

    def grants(self, user: str, groups: tuple[str, ...]) -> Grants:
        """Returns the grants of a user with these groups."""
        if MASTERS in groups:
            return all_rights(f'Group "{MASTERS}" may do everything')
        indices = set(self._by_subject.get(("user", user), ()))
        for group in groups:
            indices.update(self._by_subject.get(("group", group), ()))
        grants: list[Grant] = []
        problems: list[str] = []
        for index in sorted(indices):
            binding = self.bindings[index]
            source = binding.source(user, groups)
            if binding.missing:
                problems.append(binding.missing)
            grants += [
                Grant(rule=rule, namespace=binding.namespace, source=source)
                for rule in binding.rules
            ]
        return Grants(grants=tuple(grants), problems=tuple(dict.fromkeys(problems)))

    def joined(self, other: "Book") -> "Book":
        """Returns a book with the bindings of both."""
        return Book((*self.bindings, *other.bindings))


def rule_of(tree: JsonView) -> AccessRule:
    """Reads a rule of a role."""
    return AccessRule(
        verbs=frozenset(json_tree.texts(tree, "verbs")),
        groups=frozenset(json_tree.texts(tree, "apiGroups")),
        resources=frozenset(json_tree.texts(tree, "resources")),
        names=frozenset(json_tree.texts(tree, "resourceNames")),
        paths=tuple(json_tree.texts(tree, "nonResourceURLs")),
    )


def signature(reader: ObjectsReader) -> tuple[int, ...]:
    """Returns a value that changes if and only if a role or binding does; cheap to compute."""
    revisions: list[int] = []
    for resource in _RESOURCES:
        keys = list(reader.keys(api_groups.RBAC, resource))
        revisions.append(len(keys))
        for key in keys:
            event = reader.event(key)
            revisions.append(event.revision if event is not None else 0)
    return tuple(revisions)


def read_book(reader: ObjectsReader, built_in: "Roles") -> Book:
    """Returns the bindings of the objects and the built-in ones."""
    roles = RolesOfObjects(reader, built_in)
    bindings = list(built_in.bindings)
    for tree in _trees(reader, "clusterrolebindings"):
        bindings.append(_binding(tree, roles, namespace=""))
    for tree in _trees(reader, "rolebindings"):
        namespace = meta.namespace(tree)
        bindings.append(_binding(tree, roles, namespace=namespace))
    return Book(tuple(bindings))


@dataclass(frozen=True, slots=True, kw_only=True)
class Roles:
    """Roles by namespace (empty for cluster roles) and name, and bindings that always apply."""

    rules: Mapping[tuple[str, str], tuple[AccessRule, ...]]
    bindings: tuple[Binding, ...] = ()


class RolesOfObjects:
    """The roles of the objects, which have priority over built-in ones of equal names.

    A role is parsed when its rules are asked for, once; most roles of a cluster are not bound.
    """

    def __init__(self, reader: ObjectsReader, built_in: Roles) -> None:
        self._reader = reader
        self._built_in = built_in
        self._rules: dict[tuple[str, str], tuple[AccessRule, ...] | None] = {}

    def rules(self, namespace: str, name: str) -> tuple[AccessRule, ...] | None:
        """The rules of a role, or of a cluster role (no namespace); None if there is none."""
        place = namespace, name
        if place not in self._rules:
            self._rules[place] = self._read(namespace, name)
        return self._rules[place]

    def _read(self, namespace: str, name: str) -> tuple[AccessRule, ...] | None:
        resource = "roles" if namespace else "clusterroles"
        tree = self._reader.get(ObjectKey(api_groups.RBAC, resource, namespace, name))
        if tree is None:
            return self._built_in.rules.get((namespace, name))
        return _own_rules(tree) if namespace else _aggregated(tree, self._reader)


def forbidden(question: AccessRequest, user: str, reason: str = "") -> Forbidden:
    """The refusal of a request, with the message of the real server. Parity: api.md 10."""
    why = f": {reason}" if reason else ""
    if question.path:
        return Forbidden(
            f'forbidden: User "{user}" cannot {question.verb} path "{question.path}"{why}'
        )
    qualified = identifiers.qualified_resource(question.group, question.resource)
    subject = f'{qualified} "{question.name}"' if question.name else qualified
    place = (
        f'in the namespace "{question.namespace}"' if question.namespace else "at the cluster scope"
    )
    return Forbidden(
        f'{subject} is forbidden: User "{user}" cannot {question.verb} resource '
        f'"{question.full_resource}" in API group "{question.group}" {place}{why}',
        group=question.group,
        resource=question.resource,
        name=question.name,
    )


def service_account(namespace: str, name: str) -> str:
    """The user name of a service account."""
    return f"system:serviceaccount:{namespace}:{name}"


def split_service_account(user: str) -> tuple[str, str] | None:
    """The namespace and name of a service account; None for another user."""
    parts = user.split(":")
    if len(parts) != 4 or parts[:2] != ["system", "serviceaccount"] or not all(parts[2:]):
        return None
    return parts[2], parts[3]


def _covers(pattern: str, path: str) -> bool:
    if pattern == path:
        return True
    return pattern.endswith(_ANY) and path.startswith(pattern.rstrip(_ANY))


def _problems_text(problems: tuple[str, ...]) -> str:
    if not problems:
        return ""
    listed = problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"
    return f"RBAC: {listed}"


def _trees(reader: ObjectsReader, resource: str) -> Iterator[JsonObject]:
    for key in reader.keys(api_groups.RBAC, resource):
        tree = reader.get(ObjectKey(*key))
        if tree is not None:
            yield tree


def _own_rules(tree: JsonView) -> tuple[AccessRule, ...]:
    return tuple(rule_of(rule) for rule in json_tree.objects(tree, "rules"))


def _aggregated(tree: JsonView, reader: ObjectsReader) -> tuple[AccessRule, ...]:
    """A cluster role's own rules and those that its aggregation rule selects, each once."""
    rules = list(_own_rules(tree))
    for wanted in json_tree.objects(tree, "aggregationRule", "clusterRoleSelectors"):
        try:
            selector = selectors.label_selector_of(wanted)
        except selectors.SelectorError:
            continue
        for other in _trees(reader, "clusterroles"):
            if selector.matches(meta.labels(other)):
                rules += _own_rules(other)
    return tuple(dict.fromkeys(rules))


def _binding(tree: JsonView, roles: RolesOfObjects, *, namespace: str) -> Binding:
    kind, name = json_tree.text(tree, "roleRef", "kind"), json_tree.text(tree, "roleRef", "name")
    rules = roles.rules("" if kind == "ClusterRole" else namespace, name)
    users: set[str] = set()
    groups: set[str] = set()
    for subject in json_tree.objects(tree, "subjects"):
        subject_name = entries.name(subject)
        match meta.kind(subject):
            case "User":
                users.add(subject_name)
            case "Group":
                groups.add(subject_name)
            case "ServiceAccount":
                users.add(
                    service_account(json_tree.text(subject, "namespace") or namespace, subject_name)
                )
    own = meta.name(tree)
    label = f'RoleBinding "{own}/{namespace}"' if namespace else f'ClusterRoleBinding "{own}"'
    return Binding(
        users=frozenset(users),
        groups=frozenset(groups),
        rules=rules or (),
        namespace=namespace,
        label=f"RBAC: allowed by {label}",
        role=f'{kind} "{name}"',
        missing="" if rules is not None else f'{kind.lower()}.{api_groups.RBAC} "{name}" not found',
    )
