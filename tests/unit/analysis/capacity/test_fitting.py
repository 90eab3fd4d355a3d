"""How many copies fit, where a machine or a hand can count them."""

import itertools
import random

import pytest

from app.analysis.blast import world as hypothetical
from app.analysis.capacity import fitting, subjects
from app.analysis.capacity import text as capacity_text
from app.analysis.capacity.answers import Fit
from app.analysis.capacity.fitting import FitBounds
from app.domain.errors import InputError, Invalid
from app.domain.log import HistoryInfo
from tests.cluster import DRIVER, Cluster, claim_spec

INFO = HistoryInfo(id=1, name="default")


def ask(cluster: Cluster, *documents: dict, class_name: str = "", **bounds: int) -> Fit:
    line = cluster.line
    frozen = hypothetical.freeze(line.views, INFO, line.rules, line.now)
    if class_name:
        subject = subjects.of_class(class_name)
    else:
        named = [(f"document {n}", tree) for n, tree in enumerate(documents)]
        (subject,) = subjects.of_documents(named, "")
    return fitting.fit(frozen, subject, FitBounds(**bounds))


def claim(name: str = "wanted", **request: object) -> dict:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name},
        "spec": claim_spec(**request),
    }


def cluster_of(*counts: int) -> Cluster:
    """A node for each count, with so many devices."""
    cluster = Cluster()
    cluster.device_class()
    for number, count in enumerate(counts):
        cluster.node(f"n{number}")
        cluster.slice(f"n{number}", devices=count)
    return cluster.settle()


@pytest.mark.parametrize("seed", range(12))
def test_pairs_fit_as_often_as_nodes_have_two_devices(seed):
    """The verdict is the sum of halves: a claim cannot have devices of two nodes."""
    chosen = random.Random(seed)
    counts = [chosen.randrange(6) for _ in range(1 + seed % 4)]
    size = 1 + seed % 3
    answer = ask(cluster_of(*counts), claim(count=size))
    assert answer.count == sum(count // size for count in counts)
    assert {one.node: one.count for one in answer.nodes} == {
        f"n{number}": count // size for number, count in enumerate(counts) if count // size
    }
    assert answer.at_most == sum(counts) // size


def partitions(chosen: random.Random) -> tuple[list[dict], int]:
    """Devices that draw one to three of a shared counter, and what there is of it."""
    total = chosen.randrange(3, 7)
    devices = [
        {
            "name": f"part-{number}",
            "consumesCounters": [
                {
                    "counterSet": "card",
                    "counters": {"slices": {"value": str(chosen.randrange(1, 4))}},
                }
            ],
        }
        for number in range(chosen.randrange(3, 7))
    ]
    return devices, total


@pytest.mark.parametrize("seed", range(20))
def test_no_choice_of_partitions_serves_more_than_the_bound(seed):
    """Every set of partitions is tried by hand: the number is between nothing and the best set."""
    chosen = random.Random(seed)
    devices, total = partitions(chosen)
    cluster = Cluster()
    cluster.device_class()
    cluster.node("n1")
    pool = {"name": "n1", "generation": 1, "resourceSliceCount": 2}
    spec = {"driver": "gpu.example.com", "nodeName": "n1", "pool": pool}
    counters = [{"name": "card", "counters": {"slices": {"value": str(total)}}}]
    cluster.create(
        "resource.k8s.io/v1", "ResourceSlice", "sets", spec={**spec, "sharedCounters": counters}
    )
    cluster.create(
        "resource.k8s.io/v1", "ResourceSlice", "parts", spec={**spec, "devices": devices}
    )
    cluster.settle()
    draws = [int(one["consumesCounters"][0]["counters"]["slices"]["value"]) for one in devices]
    best = max(
        len(subset)
        for size in range(len(draws) + 1)
        for subset in itertools.combinations(draws, size)
        if sum(subset) <= total
    )
    answer = ask(cluster, claim())
    assert 1 <= answer.count <= best
    assert answer.at_most is not None
    assert answer.at_most >= best
    # The number is what the order of the devices comes to: each takes what is left.
    left, placed = total, 0
    for amount in draws:
        if amount <= left:
            left, placed = left - amount, placed + 1
    assert answer.count == placed


def test_other_resources_limit_pods():
    cluster = cluster_of(5)
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web"},
        "spec": {
            "containers": [
                {"name": "main", "image": "x", "resources": {"requests": {"cpu": "10"}}}
            ],
            "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpu"}],
        },
    }
    template = {**claim("gpu"), "kind": "ResourceClaimTemplate", "spec": {"spec": claim_spec()}}
    answer = ask(cluster, pod, template)
    assert (answer.subject, answer.count, answer.at_most) == ("Pod default/web", 3, 5)
    assert answer.limit.nodes == {"Insufficient cpu": 1}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {"template": {"metadata": {"labels": {"app": "web"}}, "spec": pod["spec"]}},
    }
    assert ask(cluster, deployment, template).count == 3


def test_recording_without_namespaces_is_asked_all_the_same():
    cluster = Cluster(namespaces=())
    cluster.device_class()
    cluster.node("n0")
    cluster.slice("n0", devices=2)
    cluster.settle()
    assert ask(cluster, claim()).count == 2
    elsewhere = {**claim(), "metadata": {"name": "wanted", "namespace": "lab"}}
    assert ask(cluster, elsewhere).count == 2
    with pytest.raises(InputError, match='namespaces "lab" not found'):
        ask(cluster_of(2), elsewhere)


def test_quota_limits_claims():
    cluster = cluster_of(5)
    hard = {"gpu.deviceclass.resource.k8s.io/devices": "3"}
    cluster.create("v1", "ResourceQuota", "few", spec={"hard": hard})
    cluster.settle()
    answer = ask(cluster, claim())
    assert (answer.count, answer.limit.kind, answer.at_most) == (3, "refused", 5)
    assert "exceeded quota: few" in answer.limit.text


def test_copies_share_a_claim_that_they_name():
    cluster = cluster_of(2)
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web"},
        "spec": {
            "containers": [{"name": "main", "image": "x"}],
            "resourceClaims": [{"name": "gpu", "resourceClaimName": "wanted"}],
        },
    }
    answer = ask(cluster, pod, claim(), copies_max=20)
    assert (answer.count, answer.limit.kind, answer.at_most) == (20, "bound", None)


def test_cordoned_and_tainted_devices_give_nothing():
    cluster = cluster_of(2, 3, 4)
    cluster.patch("nodes", "n2", {"spec": {"unschedulable": True}})
    cluster.rule(selector={"driver": "gpu.example.com", "pool": "n1"}, effect="NoSchedule")
    cluster.settle()
    answer = ask(cluster, class_name="gpu")
    assert [(one.node, one.count) for one in answer.nodes] == [("n0", 2)]
    assert answer.limit.nodes["node(s) were unschedulable"] == 1
    assert {cause.cause for cause in answer.limit.causes} == {"allocated", "taint"}


def test_only_requests_that_are_short_are_told():
    """A GPU is left for the next copy, but no NIC; the GPUs that are held are not NICs."""
    cluster = Cluster()
    for name in ("gpu", "nic"):
        cluster.device_class(name, selector=f'device.attributes["{DRIVER}"].kind == "{name}"')
    cluster.node("n0")
    kinds = {"g0": "gpu", "g1": "gpu", "n0": "nic"}
    cluster.slice(
        "n0",
        devices=[
            {"name": name, "attributes": {"kind": {"string": kind}}} for name, kind in kinds.items()
        ],
    )
    cluster.settle()
    both = claim()
    both["spec"]["devices"]["requests"] = [
        {"name": name, "exactly": {"deviceClassName": name}} for name in ("gpu", "nic")
    ]
    answer = ask(cluster, both)
    assert answer.count == 1
    assert list(capacity_text.limit_lines(answer)) == [
        "the next one: 0/1 nodes are available: 1 cannot allocate all claims",
        "  request nic: 1 device allocated to others, on 1 node",
        f"  request nic: 2 devices not selected (selector #0 of class nic: "
        f'device.attributes["{DRIVER}"].kind == "nic"), on 1 node',
    ]


def test_pools_that_cannot_be_used_are_told():
    """Half of the devices of the second node are in a slice that is not there yet."""
    cluster = cluster_of(1)
    cluster.node("n1")
    pool = {"name": "n1", "generation": 1, "resourceSliceCount": 2}
    cluster.create(
        "resource.k8s.io/v1",
        "ResourceSlice",
        "part",
        spec={"driver": DRIVER, "nodeName": "n1", "pool": pool, "devices": [{"name": "d"}]},
    )
    cluster.settle()
    answer = ask(cluster, class_name="gpu")
    assert (answer.count, [pool.count for pool in answer.limit.pools]) == (1, [1])
    told = "  a pool cannot be used, as 1 node says: incomplete: 1 of 2 slices are there"
    assert told in list(capacity_text.limit_lines(answer))


def test_shared_claim_takes_256_consumers():
    """The room would do for 300 (controllers.md C14)."""
    cluster = cluster_of(1)
    cluster.patch("nodes", "n0", {"status": {"allocatable": {"pods": "300"}}}, subresource="status")
    cluster.claim("shared")
    cluster.pod("first", claim="shared")
    cluster.settle()
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "more"},
        "spec": {
            "containers": [{"name": "main", "image": "x"}],
            "resourceClaims": [{"name": "gpu", "resourceClaimName": "shared"}],
        },
    }
    answer = ask(cluster, pod)
    assert (answer.count, answer.limit.kind) == (255, "error")
    assert "reserved for 256 consumers" in answer.limit.text


def test_victims_of_a_copy_are_named_and_stay():
    cluster = cluster_of(2)
    cluster.create("scheduling.k8s.io/v1", "PriorityClass", "high", value=1000)
    cluster.node("small", pods=1)
    cluster.pod("low", nodeSelector={"kubernetes.io/hostname": "small"})
    cluster.settle()
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "first"},
        "spec": {
            "containers": [{"name": "main", "image": "x"}],
            "priorityClassName": "high",
            "nodeSelector": {"kubernetes.io/hostname": "small"},
        },
    }
    answer = ask(cluster, pod)
    assert (answer.count, answer.limit.victims) == (0, ("default/low",))


def pod_for(template: str, name: str = "web", **spec: object) -> dict:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "containers": [{"name": "main", "image": "x"}],
            "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": template}],
            **spec,
        },
    }


def template(name: str = "gpu") -> dict:
    return {**claim(name), "kind": "ResourceClaimTemplate", "spec": {"spec": claim_spec()}}


def ask_all(cluster: Cluster, *documents: dict, goes_on=lambda: True, **bounds: int):
    line = cluster.line
    frozen = hypothetical.freeze(line.views, INFO, line.rules, line.now)
    named = [(f"document {n}", tree) for n, tree in enumerate(documents)]
    wanted = subjects.of_documents(named, "")
    return fitting.fit_all(frozen, wanted, FitBounds(**bounds), goes_on)


def ask_together(cluster: Cluster, *documents: dict, **bounds: int):
    line = cluster.line
    frozen = hypothetical.freeze(line.views, INFO, line.rules, line.now)
    named = [(f"document {n}", tree) for n, tree in enumerate(documents)]
    return fitting.fit_together(frozen, subjects.of_documents(named, ""), FitBounds(**bounds))


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ({"schedulerName": "other"}, "another scheduler, other"),
        ({"schedulingGates": [{"name": "example.com/quota"}]}, "gated"),
    ],
)
def test_pods_that_the_scheduler_leaves_alone_do_not_fit(spec, reason):
    answer = ask(cluster_of(3), pod_for("gpu", **spec), template())
    assert (answer.count, answer.limit.kind) == (0, "left")
    assert reason in answer.limit.text


def test_copies_have_names_that_no_pod_has():
    cluster = cluster_of(3)
    cluster.pod("web-0")
    cluster.pod("web-2")
    cluster.settle()
    stateful = {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "web"},
        "spec": {"template": {"spec": pod_for("gpu")["spec"]}},
    }
    assert ask(cluster, stateful, template()).count == 3


@pytest.mark.parametrize("seed", range(4))
def test_what_fits_at_once_shares_the_devices_and_a_quota(seed):
    """Claims of one device each: what the one has, the other has not, on each node."""
    chosen = random.Random(seed)
    counts = [chosen.randrange(1, 5) for _ in range(2 + seed % 2)]
    cluster, total, most = cluster_of(*counts), sum(counts), chosen.choice((1, 2, 99))
    hard = {"count/resourceclaims.resource.k8s.io": str(most)}
    cluster.create("v1", "Namespace", "poor")
    limit = {"name": "limit", "namespace": "poor"}
    cluster.create("v1", "ResourceQuota", "limit", metadata=limit, spec={"hard": hard})
    cluster.settle()
    poor = claim("second")
    poor["metadata"]["namespace"] = "poor"
    together = ask_together(cluster, claim("first"), poor)
    assert together is not None
    second = min(most, total // 2)
    assert [(one.subject.split()[-1], one.count) for one in together.subjects] == [
        ("default/first", total - second),
        ("poor/second", second),
    ]
    assert {one.node: one.count for one in together.nodes} == {
        f"n{number}": count for number, count in enumerate(counts)
    }
    assert together.count == total
    lines = list(capacity_text.together_lines(together))
    assert f"all at once, one of each in turn: {total} more fit" in lines[0]
    assert f"{second} of" in lines[2]


def test_what_fits_at_once_is_of_several_and_within_the_bounds():
    assert ask_together(cluster_of(2), claim()) is None
    small = ask_together(cluster_of(8), claim("one"), claim("two", count=2), attempts_max=3)
    assert small is not None
    assert [one.count for one in small.subjects] == [2, 1]
    assert small.is_least
    assert "at least 3 more fit" in next(iter(capacity_text.together_lines(small)))
    bad = {**claim("bad"), "spec": {"devicess": {}}}
    refused = ask_together(cluster_of(3), bad, claim("good"))
    assert refused is not None
    assert [one.count for one in refused.subjects] == [0, 3]


def test_one_that_cannot_be_copied_leaves_the_others_their_answers():
    bad = [
        pod_for("gpu", "placed", nodeName="n0"),
        pod_for("none", "lacking"),
        pod_for("gpu", "empty", containers=[]),
    ]
    fits = ask_all(cluster_of(2), *bad, pod_for("gpu", "good"), template())
    assert [one.count for one in fits] == [0, 0, 0, 2]
    assert [one.limit.kind for one in fits[:3]] == ["refused"] * 3
    assert "spec.nodeName" in fits[0].limit.text
    claims = [{**claim("one"), "spec": {"devicess": {}}}, {**claim("two"), "spce": {}}, claim("ok")]
    fits = ask_all(cluster_of(2), *claims)
    assert [one.count for one in fits] == [0, 0, 2]


@pytest.mark.parametrize("kind", ["ResourceClaim", "ResourceClaimTemplate"])
def test_refusal_of_a_claim_is_about_what_was_written(kind):
    spec = {"devices": {"requests": [{"name": "x", "exactlyy": {}}]}}
    whole = {"spec": spec} if kind == "ResourceClaimTemplate" else spec
    for tree in (
        {**claim("mine"), "kind": kind, "spec": whole},
        {**claim("mine"), "kind": kind, "apiVersion": "resource.k8s.io/v9"},
        {**claim("mine"), "kind": kind, "spce": {}},
    ):
        with pytest.raises(InputError) as refused:
            ask(cluster_of(1), tree)
        text = str(refused.value)
        assert text.startswith("document 0: ")
        assert kind in text
        assert "redra-fit" not in text
        if kind == "ResourceClaim":
            assert "Template" not in text
            assert "spec.spec" not in text
    spec["devices"]["requests"] = [{"name": "x", "exactly": {"deviceClassName": "no such"}}]
    path = "spec.spec.devices" if kind == "ResourceClaimTemplate" else "spec.devices"
    with pytest.raises(InputError, match=f'"mine" is invalid: {path}'):
        ask(cluster_of(1), {**claim("mine"), "kind": kind, "spec": whole})


def test_question_has_one_budget_for_all_that_it_names():
    pods = [pod_for("gpu", f"web-{number}") for number in range(3)]
    fits = ask_all(cluster_of(3), *pods, template(), attempts_max=6)
    # Three copies and the refusal of a fourth; two more; the third is not tried.
    assert [one.count for one in fits] == [3, 2]
    assert fits[1].limit.kind == "bound"
    assert "REDRA_FIT_ATTEMPTS_MAX" in fits[1].limit.text
    with pytest.raises(InputError, match="REDRA_FIT_PUTS_MAX"):
        ask_all(cluster_of(3), *pods, template(), template("second"), puts_max=1)


def test_objects_beside_are_put_once(monkeypatch):
    puts = []
    put = fitting._put
    monkeypatch.setattr(fitting, "_put", lambda *given: (puts.append(given[1]), put(*given)))
    pods = [pod_for("gpu", f"web-{number}") for number in range(3)]
    assert [one.count for one in ask_all(cluster_of(3), *pods, template())] == [3, 3, 3]
    assert len(puts) == 1


def test_question_that_nobody_waits_for_ends_at_the_next_copy():
    left = 3

    def goes_on():
        nonlocal left
        left -= 1
        return left >= 0

    with pytest.raises(InputError, match="nobody waits"):
        ask_all(cluster_of(9), claim(), claim("other"), goes_on=goes_on)
    assert left == -2


@pytest.mark.parametrize(
    ("document", "error"),
    [
        ({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}, InputError),
        ({**claim(), "spec": 3}, InputError),
        ({**claim(), "apiVersion": "resource.k8s.io/v9"}, InputError),
        ({**claim(), "spec": {"devices": {"requests": [{"name": "x"}]}}}, InputError),
        (
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": "p"},
                "spec": {"nodeName": "n0", "containers": []},
            },
            InputError,
        ),
        (
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": "p"},
                "spec": {"containers": []},
            },
            Invalid,
        ),
    ],
)
def test_what_cannot_be_copied_is_refused(document, error):
    with pytest.raises(error):
        ask(cluster_of(1), document)


def test_daemon_set_is_no_question_of_how_many():
    with pytest.raises(InputError, match="one pod for each node"):
        ask(
            cluster_of(1),
            {
                "apiVersion": "apps/v1",
                "kind": "DaemonSet",
                "metadata": {"name": "ds"},
                "spec": {
                    "selector": {"matchLabels": {"app": "ds"}},
                    "template": {
                        "metadata": {"labels": {"app": "ds"}},
                        "spec": {"containers": [{"name": "main", "image": "x"}]},
                    },
                },
            },
        )
