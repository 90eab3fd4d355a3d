"""What every namespace and cluster has is made and kept up; older histories do without."""

import pytest

from app.domain.controllers import registry
from app.domain.controllers.registry import ControllerOptions
from app.domain.log import ObjectKey
from app.domain.objects.profile import Profile
from app.domain.objects.write.commands import (
    CreateObject,
    DeleteObject,
    PatchObject,
    PatchType,
    UpdateObject,
)
from app.domain.values import json_tree
from app.domain.values.timestamps import SECOND, Instant
from tests.cluster import T0, USER, Cluster

RBAC = "rbac.authorization.k8s.io"
KEPT = ControllerOptions(cluster_objects=True)
ACCOUNT = ("", "serviceaccounts", "default")
CERTIFICATE = ("", "configmaps", "kube-root-ca.crt")


def cluster(**options) -> Cluster:
    made = Cluster(options=ControllerOptions(cluster_objects=True, **options))
    made.settle()
    return made


def at(place, namespace="default") -> ObjectKey:
    group, resource, name = place
    return ObjectKey(group, resource, namespace, name)


def get(made, key):
    return made.line.views.objects.get(key)


def create(made, key, tree, version="v1"):
    made.line.submit(CreateObject(key=key, version=version, tree=tree), actor=USER)


def writer_of(made, key) -> str:
    return str(made.line.views.objects.event(key).stamp.actor.user).rpartition(":")[2]


@pytest.mark.parametrize(
    ("place", "account"),
    [(ACCOUNT, "service-account-controller"), (CERTIFICATE, "root-ca-cert-publisher")],
)
def test_each_namespace_has_it_and_has_it_again_after_a_deletion(place, account):
    made = cluster()
    made.create("v1", "Namespace", "later")
    made.settle()
    for namespace in ("default", "later"):
        assert writer_of(made, at(place, namespace)) == account
    made.line.submit(DeleteObject(key=at(place)), actor=USER)
    assert get(made, at(place)) is None
    made.settle()
    assert get(made, at(place)) is not None


def test_certificate_that_another_controller_writes_is_left_alone():
    """A real kube-controller-manager publishes its own: two that disagree would never end."""
    made = cluster()
    key = at(CERTIFICATE)
    body = {"data": {"ca.crt": "x"}}
    made.line.submit(
        PatchObject(key=key, version="v1", type=PatchType.MERGE, body=body), actor=USER
    )
    before = made.line.head.revision
    made.settle()
    assert made.line.head.revision == before
    assert get(made, key)["data"] == {"ca.crt": "x"}


def test_namespace_that_ends_gets_nothing_and_ends():
    made = cluster()
    made.create("v1", "Namespace", "gone")
    made.settle()
    made.line.submit(DeleteObject(key=ObjectKey("", "namespaces", "", "gone")), actor=USER)
    made.settle()
    made.wait(30).settle()
    assert get(made, ObjectKey("", "namespaces", "", "gone")) is None
    assert get(made, at(ACCOUNT, "gone")) is None


def test_many_namespaces_cost_one_append_for_a_hundred():
    made = cluster()
    for number in range(250):
        made.create("v1", "Namespace", f"n{number}")
    first = made.line.head.revision
    made.settle()
    later = [event for event in made.line.events if event.revision > first]
    accounts = [event for event in later if event.key.resource == "serviceaccounts"]
    assert len(accounts) == 250
    assert len({event.stamp.observed for event in accounts}) == 3


def test_settled_cluster_is_left_alone():
    made = cluster()
    before = made.line.head.revision
    made.settle()
    made.restart()
    made.settle()
    assert made.line.head.revision == before


def test_histories_without_the_setting_and_recordings_get_nothing():
    assert not registry.CLUSTER_OBJECTS & set(registry.running(Profile()))
    assert set(registry.running(Profile(), KEPT)) >= registry.CLUSTER_OBJECTS
    assert registry.options_from({"controllers": {"clusterObjects": True}}).cluster_objects
    assert not registry.options_from({}).cluster_objects


def role(name, rules=(), labels=None, selector=None):
    tree = {
        "apiVersion": f"{RBAC}/v1",
        "kind": "ClusterRole",
        "metadata": {"name": name, "labels": labels or {}},
        "rules": list(rules),
    }
    if selector:
        tree["aggregationRule"] = {"clusterRoleSelectors": [{"matchLabels": selector}]}
    return tree


def rule(resource):
    return {"apiGroups": ["x.io"], "resources": [resource], "verbs": ["get"]}


def role_key(name):
    return ObjectKey(RBAC, "clusterroles", "", name)


def rules_of(made, name):
    return json_tree.objects(get(made, role_key(name)), "rules")


def test_cluster_role_collects_the_rules_of_others_through_others():
    made = cluster()
    create(made, role_key("top"), role("top", selector={"to": "top"}))
    create(made, role_key("middle"), role("middle", labels={"to": "top"}, selector={"to": "m"}))
    create(made, role_key("b"), role("b", [rule("b"), rule("a")], {"to": "m"}))
    create(made, role_key("a"), role("a", [rule("a")], {"to": "m"}))
    made.settle()
    assert rules_of(made, "top") == rules_of(made, "middle") == [rule("a"), rule("b")]
    managers = get(made, role_key("top"))["metadata"]["managedFields"]
    applied = [row["manager"] for row in managers if row["operation"] == "Apply"]
    assert applied == ["clusterrole-aggregation-controller"]
    made.line.submit(DeleteObject(key=role_key("a")), actor=USER)
    made.line.submit(DeleteObject(key=role_key("b")), actor=USER)
    made.settle()
    assert rules_of(made, "top") == []


def test_rules_that_somebody_writes_into_a_collecting_role_are_replaced():
    made = cluster()
    create(made, role_key("top"), role("top", selector={"to": "top"}))
    create(made, role_key("a"), role("a", [rule("a")], {"to": "top"}))
    made.settle()
    tree = {**get(made, role_key("top")), "rules": [rule("bogus")]}
    made.line.submit(UpdateObject(key=role_key("top"), version="v1", tree=tree), actor=USER)
    made.settle()
    assert rules_of(made, "top") == [rule("a")]


def service(name="s"):
    port = {"port": 443}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"ports": [port]},
    }


def api_service(**spec):
    return {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": "v1.x.io"},
        "spec": {
            "group": "x.io",
            "version": "v1",
            "groupPriorityMinimum": 10,
            "versionPriority": 10,
            **spec,
        },
    }


def available(made):
    (held,) = get(made, API_SERVICE)["status"]["conditions"]
    return held["status"], held["reason"], held["message"]


API_SERVICE = ObjectKey("apiregistration.k8s.io", "apiservices", "", "v1.x.io")


def test_api_service_says_whether_its_service_is_there_and_that_it_is_not_asked():
    made = cluster()
    create(made, API_SERVICE, api_service(service={"namespace": "default", "name": "s"}))
    made.settle()
    absent = ("False", "ServiceNotFound", 'service/s in "default" is not present')
    assert available(made) == absent
    create(made, ObjectKey("", "services", "default", "s"), service())
    made.settle()
    assert available(made)[:2] == ("False", "FailedDiscoveryCheck")
    assert "not passed on" in available(made)[2]
    made.line.submit(DeleteObject(key=ObjectKey("", "services", "default", "s")), actor=USER)
    made.settle()
    assert available(made) == absent


def test_api_service_that_becomes_local_becomes_available():
    made = cluster()
    create(made, API_SERVICE, api_service(service={"namespace": "default", "name": "s"}))
    made.settle()
    made.line.submit(
        PatchObject(
            key=API_SERVICE, version="v1", type=PatchType.MERGE, body={"spec": {"service": None}}
        ),
        actor=USER,
    )
    made.settle()
    assert available(made)[:2] == ("True", "Local")


def test_time_alone_changes_nothing():
    made = cluster()
    before = made.line.head.revision
    made.line.advance(Instant(T0 + 3_600 * SECOND))
    assert made.line.head.revision == before
