"""LimitRange admission, in the words of a real server."""

import pytest

from app.bootstrap.rules import rules_for
from app.domain.errors import Forbidden
from app.domain.objects.profile import Profile
from tests.unit.objects.builders import cluster, key, pod
from tests.unit.objects.stored_rules import right

ANNOTATION = "kubernetes.io/limit-ranger"


def limited(*items, name="lr"):
    """A cluster whose namespace has one limit range."""
    made = cluster()
    made.rules = rules_for(Profile())
    made.create(limit_range(*items, name=name))
    return made


def limit_range(*items, name="lr"):
    return {
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"limits": list(items)},
    }


def asking(requests=None, limits=None, **spec):
    resources = {"requests": requests or {}, "limits": limits or {}}
    container = {"name": "a", "image": "i", "resources": resources}
    return pod(containers=[container], **spec)


def container(**amounts):
    return {"type": "Container", **amounts}


def test_containers_get_what_they_do_not_say():
    item = container(default={"cpu": "1"}, defaultRequest={"cpu": "500m"})
    made = limited(item).create(
        asking(initContainers=[{"name": "i", "image": "i", "resources": {"limits": {"cpu": "2"}}}])
    )
    assert made["spec"]["containers"][0]["resources"] == {
        "limits": {"cpu": "1"},
        "requests": {"cpu": "500m"},
    }
    assert made["spec"]["initContainers"][0]["resources"]["limits"] == {"cpu": "2"}
    assert made["metadata"]["annotations"][ANNOTATION] == (
        "LimitRanger plugin set: cpu request for container a; cpu limit for container a"
    )
    assert made["status"]["qosClass"] == "Burstable"


def test_several_amounts_of_an_init_container_are_told_together():
    item = container(default={"memory": "1Gi", "cpu": "1"})
    own = {"limits": {"cpu": "1", "memory": "1Gi"}}
    containers = [{"name": "a", "image": "i", "resources": own}]
    made = limited(item).create(
        pod(containers=containers, initContainers=[{"name": "i", "image": "i"}])
    )
    assert made["metadata"]["annotations"][ANNOTATION] == (
        "LimitRanger plugin set: cpu, memory request for init container i; cpu, memory limit for "
        "init container i"
    )


def test_pod_that_says_all_is_left_alone():
    item = container(default={"cpu": "1"}, defaultRequest={"cpu": "500m"})
    made = limited(item).create(asking({"cpu": "1"}, {"cpu": "1"}))
    assert "annotations" not in made["metadata"]


@pytest.mark.parametrize(
    ("item", "filled"),
    [
        (container(max={"cpu": "2"}), {"default": {"cpu": "2"}, "defaultRequest": {"cpu": "2"}}),
        (container(min={"cpu": "1"}), {"defaultRequest": {"cpu": "1"}}),
        (
            container(min={"cpu": "1"}, max={"cpu": "3"}, default={"cpu": "2"}),
            {"default": {"cpu": "2"}, "defaultRequest": {"cpu": "2"}},
        ),
        ({"type": "Pod", "max": {"cpu": "2"}}, {}),
    ],
)
def test_defaults_of_a_limit_range_follow_from_its_bounds(item, filled):
    made = cluster().create(limit_range(item))
    assert made["spec"]["limits"] == [item | filled]


REFUSED = [
    (
        container(min={"cpu": "1"}),
        asking({"cpu": "500m"}),
        "minimum cpu usage per Container is 1, but request is 500m",
    ),
    (
        container(max={"memory": "1Gi"}),
        asking({"memory": "1Gi"}, {"memory": "2Gi"}),
        "maximum memory usage per Container is 1Gi, but limit is 2Gi",
    ),
    (
        {"type": "Pod", "max": {"cpu": "1"}},
        asking({"cpu": "1"}),
        "maximum cpu usage per Pod is 1.  No limit is specified",
    ),
    (
        {"type": "Pod", "min": {"cpu": "1"}},
        asking({"memory": "1"}),
        "minimum cpu usage per Pod is 1.  No request is specified",
    ),
    (
        container(maxLimitRequestRatio={"cpu": "2"}),
        asking({"cpu": "1"}, {"cpu": "3"}),
        "cpu max limit to request ratio per Container is 2, but provided ratio is 3.000000",
    ),
    (
        container(maxLimitRequestRatio={"cpu": "2"}),
        asking({"cpu": "1"}),
        "cpu max limit to request ratio per Container is 2, but no limit is specified or limit "
        "is 0",
    ),
    (
        container(min={"cpu": "1"}, max={"memory": "1"}),
        asking({"cpu": "1m", "memory": "2"}, {"memory": "2"}),
        "[minimum cpu usage per Container is 1, but request is 1m, maximum memory usage per "
        "Container is 1, but limit is 2]",
    ),
]


@pytest.mark.parametrize(("item", "tree", "text"), REFUSED)
def test_pod_beyond_the_limits_is_forbidden(item, tree, text):
    made = limited(item)
    with pytest.raises(Forbidden) as problem:
        made.create(tree)
    assert problem.value.message == f'pods "p" is forbidden: {text}'


def test_pod_within_the_limits_is_taken():
    item = container(min={"cpu": "1"}, max={"cpu": "4"}, maxLimitRequestRatio={"cpu": "2"})
    whole = {"type": "Pod", "max": {"cpu": "4"}}
    assert limited(item, whole).create(asking({"cpu": "1"}, {"cpu": "2"}))


def test_limits_of_another_namespace_do_not_count():
    made = limited(container(min={"cpu": "1"}))
    made.namespace("other")
    made.create({**asking({"cpu": "1m"}), "metadata": {"name": "p", "namespace": "other"}})


def test_volume_claims_are_judged_on_every_write():
    item = {"type": "PersistentVolumeClaim", "min": {"storage": "1Gi"}, "max": {"storage": "2Gi"}}
    made = limited(item)
    with pytest.raises(Forbidden, match=r"minimum storage usage .* is 1Gi, but request is 1Mi"):
        made.create(right("PersistentVolumeClaim", spec__resources__requests__storage="1Mi"))
    tree = made.create(right("PersistentVolumeClaim"))
    place = key("persistentvolumeclaims", "x", "default")
    made.patch(place, {"status": {"phase": "Bound"}}, subresource="status")
    with pytest.raises(Forbidden) as problem:
        made.patch(place, {"spec": {"resources": {"requests": {"storage": "3Gi"}}}})
    assert problem.value.message == (
        'persistentvolumeclaims "x" is forbidden: maximum storage usage per PersistentVolumeClaim '
        "is 2Gi, but request is 3Gi"
    )
    assert made.get(place)["spec"] == tree["spec"]


def test_limits_are_asked_after_the_rules_and_before_quotas():
    made = limited(container(min={"cpu": "1"}))
    quota = {"hard": {"pods": "0"}}
    made.create({**limit_range(), "kind": "ResourceQuota", "spec": quota})
    with pytest.raises(Forbidden, match="minimum cpu usage"):
        made.create(asking({"cpu": "1m"}))
