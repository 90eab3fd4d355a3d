"""ResourceQuotas that are put, changed or deleted: who is refused from then on, and who passes."""

from dataclasses import replace

import pytest

from app.analysis.blast import compare, text
from app.analysis.blast.compare import ProposedDeletion, Put
from app.domain.errors import InputError
from tests.cluster import Cluster, claim_spec
from tests.unit.analysis.blast.worlds import ask, frozen, running

DEVICES = "gpu.deviceclass.resource.k8s.io/devices"


def quota(name="limit", namespace="default", **hard):
    tree = {"apiVersion": "v1", "kind": "ResourceQuota", "spec": {"hard": hard},
            "metadata": {"name": name, "namespace": namespace}}  # fmt: skip
    return Put(tree=tree)


def refused(answer):
    return {(one.kind, one.source) for one in answer.writes if one.is_refused}


def test_quota_below_its_use_refuses_what_comes_next_and_takes_nothing():
    answer = ask(running(), quota(**{DEVICES: "2"}))
    (fate,) = answer.quotas
    assert (fate.before, fate.after, fate.used, fate.is_over) == ("", "2", "3", True)
    templates = {"ResourceClaimTemplate/gpu", "ResourceClaimTemplate/patient",
                 "ResourceClaimTemplate/careless"}  # fmt: skip
    assert refused(answer) == {("ResourceClaim", name) for name in templates}
    assert not answer.pods
    assert not answer.claims
    said = f"exceeded quota: limit, requested: {DEVICES}=1, used: {DEVICES}=3, limited: {DEVICES}=2"
    assert {one.text for one in answer.writes} == {said}
    page = [line.strip() for line in text.lines(answer, 5)]
    assert f"default/limit: {DEVICES} no limit → 2, 3 in use: more than allowed" in page
    assert f"one more claim from template default/gpu is refused: {said}" in page


def test_quota_with_room_refuses_nothing():
    answer = ask(running(), quota(**{DEVICES: "4"}))
    assert not answer.writes
    assert not answer.quotas[0].is_over


def test_template_that_asks_for_more_than_is_left_is_refused_alone():
    cluster = running()
    cluster.create("resource.k8s.io/v1", "ResourceClaimTemplate", "pair",
                   spec={"spec": claim_spec(count=2)})  # fmt: skip
    answer = ask(cluster, quota(**{DEVICES: "4"}))
    assert refused(answer) == {("ResourceClaim", "ResourceClaimTemplate/pair")}


def test_quota_of_another_namespace_concerns_nobody_here():
    cluster = running()
    cluster.create("v1", "Namespace", "other")
    assert not ask(cluster, quota(namespace="other", **{DEVICES: "0"})).writes


def test_pods_of_an_owner_are_refused_by_a_quota_of_pods():
    cluster = Cluster()
    cluster.create("apps/v1", "Deployment", "web", spec={
        "replicas": 2, "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}},
                     "spec": {"containers": [{"name": "c", "image": "example.com/c:1"}]}},
    })  # fmt: skip
    cluster.settle()
    answer = ask(cluster, quota(pods="2"))
    assert refused(answer) == {("Pod", "Deployment/web")}
    assert not ask(cluster, quota(pods="3")).writes


def test_raised_quota_lets_the_claims_of_waiting_pods_be_made_and_places_them():
    cluster = running()
    cluster.apply(quota(**{DEVICES: "3"}).tree)
    cluster.settle()
    cluster.pod("late", template="gpu")
    cluster.pod("later", template="gpu")
    cluster.wait(5)
    answer = ask(cluster, quota(**{DEVICES: "4"}))
    passed = {(one.kind, one.source) for one in answer.writes if not one.is_refused}
    assert ("ResourceClaim", "Pod/late") in passed
    assert ("ResourceClaim", "Pod/later") not in passed
    assert [pod.name for pod in answer.waiting] == ["late"]


def test_deleted_quota_refuses_nobody():
    cluster = running()
    cluster.apply(quota(**{DEVICES: "1"}).tree)
    cluster.settle()
    answer = ask(cluster, ProposedDeletion(kind="resourcequota", name="default/limit"))
    assert answer.totals["writes_refused"] == 0
    assert answer.totals["writes_admitted"] == 3
    assert (answer.quotas[0].before, answer.quotas[0].after) == ("1", "")


def test_numbers_of_other_objects_are_told_as_far_as_the_quota_tells_them():
    answer = ask(running(), quota(secrets="10", **{DEVICES: "9"}))
    assert {fate.name: fate.used for fate in answer.quotas} == {DEVICES: "3", "secrets": ""}
    cluster = Cluster()
    for name in ("first", "second"):
        cluster.create("v1", "Service", name, spec={"ports": [{"port": 80}]})
    cluster.apply(quota(services="3").tree)
    cluster.wait(30)
    answer = ask(cluster, quota(services="1"))
    (fate,) = answer.quotas
    assert (fate.name, fate.before, fate.after) == ("services", "3", "1")
    assert (fate.used, fate.is_over) == ("2", True)
    assert "services 3 → 1, 2 in use: more than allowed" in " ".join(text.lines(answer, 5))


def test_quota_that_the_api_refuses_is_refused():
    with pytest.raises(InputError, match="quantit"):
        ask(running(), Put(tree=quota(**{DEVICES: "many"}).tree, place="file.yaml"))


def test_question_that_nobody_waits_for_ends_before_the_next_try():
    cluster = running()
    for number in range(9):
        cluster.pod(f"late-{number}", template="gpu")
    cluster.settle()
    left = 6

    def goes_on():
        nonlocal left
        left -= 1
        return left >= 0

    asked = replace(frozen(cluster), goes_on=goes_on)
    with pytest.raises(InputError, match="nobody waits"):
        compare.blast(asked, [quota(pods="1")])
    assert left == -1
