"""Rules, roles and bindings: what a question is answered, row by row."""

from collections import Counter
from unittest import mock

import pytest

from app.domain.objects.access import defaults
from app.domain.objects.access import rules as access
from app.domain.objects.access.rules import AccessRequest, AccessRule, Binding, Book
from app.domain.objects.kinds import claim_rights
from app.domain.objects.kinds.claim_rights import ClaimRights
from app.domain.values import api_groups
from tests.together import together
from tests.unit.objects.builders import Cluster

RBAC = api_groups.RBAC
CLAIMS = {"group": "resource.k8s.io", "resource": "resourceclaims"}


def rule(verbs="get", groups="", resources="", names="", paths=""):
    """A rule from words; `-` is the core group."""
    return AccessRule(
        verbs=frozenset(verbs.split()),
        groups=frozenset("" if group == "-" else group for group in groups.split()),
        resources=frozenset(resources.split()),
        names=frozenset(names.split()),
        paths=tuple(paths.split()),
    )


def ask(verb="get", **more):
    return AccessRequest(verb=verb, **more)


PODS = {"resource": "pods"}
ROWS = [
    # rule                                      question                               allowed
    (rule("get", "-", "pods"), ask("get", **PODS), True),
    (rule("get", "-", "pods"), ask("list", **PODS), False),
    (rule("*", "-", "pods"), ask("list", **PODS), True),
    (rule("get", "apps", "pods"), ask("get", **PODS), False),
    (rule("get", "*", "pods"), ask("get", **PODS), True),
    (rule("get", "-", "*"), ask("get", **PODS), True),
    (rule("get", "-", "*"), ask("get", subresource="log", **PODS), True),
    (rule("get", "-", "pods"), ask("get", subresource="log", **PODS), False),
    (rule("get", "-", "pods/log"), ask("get", subresource="log", **PODS), True),
    (rule("get", "-", "pods/log"), ask("get", **PODS), False),
    (rule("get", "-", "*/log"), ask("get", subresource="log", **PODS), True),
    (rule("get", "-", "pods/*"), ask("get", subresource="log", **PODS), False),
    (rule("get", "-", "pods", "a b"), ask("get", name="b", **PODS), True),
    (rule("get", "-", "pods", "a b"), ask("get", name="c", **PODS), False),
    (rule("list", "-", "pods", "a"), ask("list", **PODS), False),
    (rule("get", "-", "pods"), ask("*", **PODS), False),
    (rule("*", "*", "*"), ask("*", group="*", resource="*"), True),
    (rule("get", "-", "pods"), ask("get", path="/api"), False),
    (rule("get", paths="/api"), ask("get", path="/api"), True),
    (rule("get", paths="/api"), ask("get", path="/api/v1"), False),
    (rule("get", paths="/api/*"), ask("get", path="/api/v1"), True),
    (rule("get", paths="/api/*"), ask("get", path="/apis"), False),
    (rule("get", paths="*"), ask("get", path="/metrics"), True),
    (rule("get", paths="*"), ask("get", **PODS), False),
    (rule("get", paths="/api"), ask("post", path="/api"), False),
]


@together(ROWS, lambda row: f"{row[0]} {row[1]}")
def test_rule_allows_what_it_names(row):
    held, question, allowed = row
    assert held.allows(question) is allowed


def role(cluster, name, *rules, namespace="", labels=None, aggregates=None):
    kind = "Role" if namespace else "ClusterRole"
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    if labels:
        metadata["labels"] = labels
    tree = {"apiVersion": f"{RBAC}/v1", "kind": kind, "metadata": metadata, "rules": list(rules)}
    if aggregates:
        tree["aggregationRule"] = {"clusterRoleSelectors": [{"matchLabels": aggregates}]}
    cluster.create(tree)


def bind(cluster, name, role, *subjects, namespace="", kind="ClusterRole"):
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    cluster.create(
        {
            "apiVersion": f"{RBAC}/v1",
            "kind": "RoleBinding" if namespace else "ClusterRoleBinding",
            "metadata": metadata,
            "roleRef": {"apiGroup": RBAC, "kind": kind, "name": role},
            "subjects": list(subjects),
        }
    )


def user(name):
    return {"kind": "User", "name": name, "apiGroup": RBAC}


READ_CLAIMS = {
    "apiGroups": ["resource.k8s.io"],
    "resources": ["resourceclaims"],
    "verbs": ["get", "list"],
}


@pytest.fixture
def cluster():
    made = Cluster()
    made.namespace("default")
    made.namespace("other")
    role(made, "readers", READ_CLAIMS)
    return made


def decide(cluster, name, question, *groups):
    book = access.read_book(cluster.world, defaults.ROLES)
    return book.grants(name, groups).decide(question)


def allowed(cluster, name, question, *groups):
    return decide(cluster, name, question, *groups).allowed


def test_only_roles_that_are_bound_are_read_each_once(cluster):
    for number in range(5):
        role(cluster, f"unbound-{number}", READ_CLAIMS)
        bind(cluster, f"bound-{number}", "readers", user("ann"), namespace="other")
    with mock.patch.object(cluster.world, "get", wraps=cluster.world.get) as get:
        assert allowed(cluster, "ann", ask("list", namespace="other", **CLAIMS))
    read = Counter(call.args[0].name for call in get.mock_calls)
    assert read == {"readers": 1} | {f"bound-{number}": 1 for number in range(5)}


def test_cluster_role_binding_holds_everywhere(cluster):
    bind(cluster, "all", "readers", user("ann"))
    assert allowed(cluster, "ann", ask("list", **CLAIMS))
    assert allowed(cluster, "ann", ask("get", namespace="other", **CLAIMS))
    assert not allowed(cluster, "bob", ask("get", namespace="other", **CLAIMS))


def test_role_binding_holds_in_its_namespace_only(cluster):
    bind(cluster, "here", "readers", user("ann"), namespace="default")
    assert allowed(cluster, "ann", ask("list", namespace="default", **CLAIMS))
    assert not allowed(cluster, "ann", ask("list", namespace="other", **CLAIMS))
    assert not allowed(cluster, "ann", ask("list", **CLAIMS))


def test_role_binding_never_opens_a_path(cluster):
    role(cluster, "paths", {"nonResourceURLs": ["*"], "verbs": ["*"]})
    bind(cluster, "here", "paths", user("ann"), namespace="default")
    assert not allowed(cluster, "ann", ask("get", path="/metrics"))


def test_role_of_one_namespace_is_not_found_from_another(cluster):
    role(cluster, "local", READ_CLAIMS, namespace="default")
    bind(cluster, "other", "local", user("ann"), namespace="other", kind="Role")
    found = decide(cluster, "ann", ask("get", namespace="other", **CLAIMS))
    assert not found.allowed
    assert found.reason == f'RBAC: role.{RBAC} "local" not found'


def test_groups_and_service_accounts_are_subjects(cluster):
    bind(cluster, "group", "readers", {"kind": "Group", "name": "team", "apiGroup": RBAC})
    account = {"kind": "ServiceAccount", "name": "driver", "namespace": "other"}
    bind(cluster, "account", "readers", account)
    assert allowed(cluster, "ann", ask("list", **CLAIMS), "team")
    assert allowed(cluster, "system:serviceaccount:other:driver", ask("list", **CLAIMS))
    assert not allowed(cluster, "system:serviceaccount:default:driver", ask("list", **CLAIMS))


def test_reason_names_binding_role_and_subject(cluster):
    bind(cluster, "here", "readers", user("ann"), namespace="default")
    found = decide(cluster, "ann", ask("get", namespace="default", **CLAIMS))
    assert found.reason == (
        'RBAC: allowed by RoleBinding "here/default" of ClusterRole "readers" to User "ann"'
    )


def test_aggregating_role_has_the_rules_of_the_roles_it_selects(cluster):
    role(cluster, "part", READ_CLAIMS, labels={"to": "all"})
    role(cluster, "whole", aggregates={"to": "all"})
    bind(cluster, "whole", "whole", user("ann"))
    assert allowed(cluster, "ann", ask("list", **CLAIMS))


def test_masters_may_do_everything_without_objects(cluster):
    assert allowed(cluster, "root", ask("delete", resource="nodes"), access.MASTERS)
    assert allowed(cluster, "root", ask("post", path="/x"), access.MASTERS)


def test_built_in_roles_can_be_bound(cluster):
    bind(cluster, "admins", "cluster-admin", user("ann"))
    bind(cluster, "viewers", "view", user("bob"), namespace="default")
    assert allowed(cluster, "ann", ask("delete", resource="nodes"))
    assert allowed(cluster, "bob", ask("list", namespace="default", **CLAIMS))
    assert not allowed(cluster, "bob", ask("list", namespace="default", resource="secrets"))


def test_everybody_may_discover_and_ask_about_themselves(cluster):
    review = ask("create", group="authorization.k8s.io", resource="selfsubjectaccessreviews")
    assert allowed(cluster, "ann", ask("get", path="/apis/apps/v1"), access.AUTHENTICATED)
    assert allowed(cluster, "ann", review, access.AUTHENTICATED)
    assert not allowed(cluster, "x", ask("get", path="/apis/apps/v1"), access.UNAUTHENTICATED)
    assert allowed(cluster, "x", ask("get", path="/version"), access.UNAUTHENTICATED)


def test_signature_changes_with_roles_and_with_nothing_else(cluster):
    first = access.signature(cluster.world)
    cluster.namespace("third")
    assert access.signature(cluster.world) == first
    bind(cluster, "new", "readers", user("ann"))
    assert access.signature(cluster.world) != first


def test_refusals_have_the_words_of_the_server():
    place = ask("get", namespace="d", name="x", **CLAIMS)
    assert access.forbidden(place, "u").message == (
        'resourceclaims.resource.k8s.io "x" is forbidden: User "u" cannot get resource '
        '"resourceclaims" in API group "resource.k8s.io" in the namespace "d"'
    )
    listing = ask("list", resource="pods", subresource="log")
    assert access.forbidden(listing, "u", "why").message == (
        'pods is forbidden: User "u" cannot list resource "pods/log" in API group "" '
        "at the cluster scope: why"
    )
    assert access.forbidden(ask("get", path="/x"), "u").message == (
        'forbidden: User "u" cannot get path "/x"'
    )


# Claim statuses

NODE = "node-1"
ALLOCATION = {
    "nodeSelector": {
        "nodeSelectorTerms": [
            {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [NODE]}]}
        ]
    }
}
DEVICE = {"driver": "gpu.example.com", "pool": "p", "device": "d"}
ACCOUNT = "system:serviceaccount:kube-system:driver"


def rights(*rules, user=ACCOUNT, node=NODE):
    book = Book((Binding(users=frozenset((user,)), rules=rules),))
    return ClaimRights(
        user=user, node=node, verb="update", namespace="default", grants=book.grants(user, ())
    )


def driver_rule(prefix, name=DEVICE["driver"]):
    return rule(f"{prefix}:update", "resource.k8s.io", "resourceclaims/driver", name)


BINDING = rule("update", "resource.k8s.io", "resourceclaims/binding")
BARE = {"status": {}}
ALLOCATED = {"status": {"allocation": ALLOCATION}}
REPORTED = {"status": {"allocation": ALLOCATION, "devices": [DEVICE]}}
RESERVED = {"status": {"allocation": ALLOCATION, "reservedFor": [{"uid": "u"}]}}

STATUS_ROWS = [
    # old        new        rights                                                     refused
    (BARE, ALLOCATED, rights(BINDING), []),
    (BARE, ALLOCATED, rights(), ["status"]),
    (ALLOCATED, RESERVED, rights(), ["status"]),
    (ALLOCATED, ALLOCATED, rights(), []),
    (ALLOCATED, REPORTED, rights(driver_rule("associated-node")), []),
    (ALLOCATED, REPORTED, rights(driver_rule("associated-node"), node="n2"), ["status.devices"]),
    (ALLOCATED, REPORTED, rights(driver_rule("associated-node"), user="ann"), ["status.devices"]),
    (ALLOCATED, REPORTED, rights(driver_rule("arbitrary-node"), node=""), []),
    (ALLOCATED, REPORTED, rights(driver_rule("arbitrary-node", "o")), ["status.devices"]),
    (REPORTED, ALLOCATED, rights(), ["status.devices"]),
    (BARE, REPORTED, rights(BINDING), ["status.devices"]),
]


@pytest.mark.parametrize(("old", "new", "held", "refused"), STATUS_ROWS)
def test_parts_of_a_claim_status_need_rights_of_their_own(old, new, held, refused):
    assert [error.path for error in claim_rights.check(old, new, held)] == refused


def test_refused_status_names_the_missing_right():
    (error,) = claim_rights.check(BARE, ALLOCATED, rights(user="ann"))
    assert str(error) == (
        "status: Forbidden: changing status.allocation or status.reservedFor requires "
        'resource="resourceclaims/binding", verb="update" permission: '
        'resourceclaims.resource.k8s.io is forbidden: User "ann" cannot update resource '
        '"resourceclaims/binding" in API group "resource.k8s.io" at the cluster scope'
    )
