"""What differs between releases besides gates: quirks by profile (controllers.md 10)."""

from dataclasses import fields

import pytest

from app.analysis.views import features_of
from app.domain.allocation import Allocator, Quirks
from app.domain.allocation.allocator import Bounds
from app.domain.controllers import registry, releases
from app.domain.controllers.quirks import ControllerQuirks
from app.domain.controllers.registry import ControllerOptions
from app.domain.controllers.scheduling.framework import pod_spec
from app.domain.controllers.scheduling.framework.nodes import NodeIndex
from app.domain.controllers.scheduling.plugins.dynamic_resources import pod_claims
from app.domain.controllers.scheduling.scheduling_cycle import cycle
from app.domain.controllers.scheduling.scheduling_cycle.verdicts import Verdicts
from app.domain.devices.cel_selectors import CelCompiler
from app.domain.errors import InputError
from app.domain.objects import profile as profiles
from app.domain.objects.profile import Profile
from tests.cluster import Cluster, check_decisions

RELEASES = ("1.34", "1.35", "1.36.0", "1.36.1", "1.36.2", "1.36", "1.37")


def having(quirk: str) -> set[str]:
    return {name for name in RELEASES if getattr(releases.quirks_of(Profile(version=name)), quirk)}


@pytest.mark.parametrize(
    ("quirk", "expected"),
    [
        ("c15", set(RELEASES) - {"1.37"}),
        ("c24", {"1.36.0", "1.36.1", "1.36.2"}),
        ("r1", {"1.34"}),
        ("r2", {"1.35", "1.36.0", "1.36.1"}),
        ("r3", {"1.34", "1.35"}),
        ("r4", set(RELEASES) - {"1.37"}),
        ("r5", {"1.34", "1.35"}),
        ("r7", set(RELEASES) - {"1.37"}),
        ("r8", set(RELEASES) - {"1.37"}),
    ],
)
def test_releases_that_have_a_quirk(quirk, expected):
    assert having(quirk) == expected


def test_all_other_quirks_are_the_same_in_every_release():
    told = {"c15", "c24", "r1", "r2", "r3", "r4", "r5", "r7", "r8"}
    names = {field.name for field in fields(ControllerQuirks)} - told
    assert {name: having(name) for name in names} == {
        name: set(RELEASES) if getattr(ControllerQuirks(), name) else set() for name in names
    }


@pytest.mark.parametrize("release", RELEASES)
def test_the_reference_release_is_what_the_defaults_say(release):
    gone = ("q1", "q2", "q5") if release == "1.37" else ()
    assert releases.allocator_quirks_of(Profile(version=release)).repaired() == gone
    if release == "1.36":
        assert releases.quirks_of(Profile(version=release)) == ControllerQuirks()


def test_history_may_switch_on_what_its_release_has_repaired():
    settings = {"profile": "1.37", "quirks": {"q1": True, "c15": True, "c16": False}}
    options = registry.options_from(settings)
    assert options.allocator_quirks == Quirks.named("q2", "q5")
    assert options.quirks is not None
    assert (options.quirks.c15, options.quirks.c16) == (True, False)
    assert registry.options_from({"profile": "1.36"}).allocator_quirks == Quirks()


def test_switching_one_quirk_of_a_patch_release_leaves_the_others():
    options = registry.options_from({"profile": "1.36.1", "quirks": {"c24": False}})
    assert options.quirks is not None
    assert (options.quirks.c24, options.quirks.r2) == (False, True)
    options = registry.options_from({"profile": "1.36", "quirks": {"c24": True}})
    assert options.quirks is not None
    assert (options.quirks.c24, options.quirks.r2) == (True, False)


@pytest.mark.parametrize(("release", "same"), [("1.36.3", "1.36"), ("1.35.12", "1.35")])
def test_patch_release_without_a_profile_of_its_own_is_its_minor_release(release, same):
    """1.36.3 repaired what 1.36.0 to 1.36.2 have; for the others no difference is known."""
    for quirks in ({}, {"c24": True}, {"c24": False, "q3": False}):
        settings, minor = ({"profile": each, "quirks": quirks} for each in (release, same))
        assert profiles.from_settings(settings) == profiles.from_settings(minor)
        assert registry.options_from(settings) == registry.options_from(minor)
    assert Profile(version=release).settings()["profile"] == same


@pytest.mark.parametrize("release", ["1.36.x", "1.36.", "1.38.1", "v1.36.3", "1.36.3.1", "1.36.²"])
def test_text_that_is_no_release_is_refused_with_those_there_are(release):
    with pytest.raises(InputError) as refusal:
        Profile(version=release)
    assert "1.36.2; any other patch release is its minor release" in str(refusal.value)


IN_VAIN = "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."


@pytest.mark.parametrize("release", ["1.36", "1.37"])
@pytest.mark.parametrize(
    ("asked", "detail", "undone"),
    [
        ({"claim": "claim"}, "1 cannot allocate all claims", "still not schedulable"),
        ({"claim": "odd"}, "request gpu: device class odd does", "no new claims to deallocate"),
        ({"nodeSelector": {"a": "b"}}, "1 node(s) didn't match", "no new claims to deallocate"),
    ],
    ids=["no device", "no class", "no claims"],
)
def test_r8_tells_what_was_not_done(release, asked, detail, undone):
    cluster = Cluster(profile=Profile(version=release))
    cluster.node()
    cluster.device_class()
    cluster.claim("claim")
    cluster.claim("odd", class_name="odd")
    cluster.pod("pod", **asked)
    condition = cluster.settle().pod_condition("pod")
    assert condition is not None
    before, _, after = condition["message"].partition(". ")
    assert before.startswith(f"0/1 nodes are available: {detail}")
    assert after == (f"{undone}, {IN_VAIN}" if release == "1.36" else IN_VAIN)


def partitioned(**more) -> Cluster:
    """A tainted device that needs all memory stands before one that fits (allocator.md Q1)."""
    made = Cluster(**more)
    made.node()
    made.device_class()

    def uses(amount: int) -> list[dict[str, object]]:
        return [{"counterSet": "set", "counters": {"memory": {"value": str(amount)}}}]

    taint = {"key": "a", "effect": "NoSchedule"}
    made.create(
        "resource.k8s.io/v1",
        "ResourceSlice",
        "counters",
        spec={
            "driver": "gpu.example.com",
            "nodeName": "n1",
            "pool": {"name": "n1", "generation": 1, "resourceSliceCount": 2},
            "sharedCounters": [{"name": "set", "counters": {"memory": {"value": "40"}}}],
        },
    )
    made.create(
        "resource.k8s.io/v1",
        "ResourceSlice",
        "devices",
        spec={
            "driver": "gpu.example.com",
            "nodeName": "n1",
            "pool": {"name": "n1", "generation": 1, "resourceSliceCount": 2},
            "devices": [
                {"name": "d0", "consumesCounters": uses(40), "taints": [taint]},
                {"name": "d1", "consumesCounters": uses(20)},
            ],
        },
    )
    made.claim()
    made.pod(claim="claim")
    made.settle()
    decisions, effects = check_decisions(made)
    assert (decisions.differences, effects.differences) == ((), ())
    return made


def test_refused_device_gives_its_counters_back_since_1_37():
    assert partitioned(profile=Profile(version="1.37")).devices_of("claim") == ["n1/d1"]


def test_refused_device_keeps_its_counters_up_to_1_36_and_where_q1_is_on():
    for more in (
        {"profile": Profile(version="1.36")},
        {
            "profile": Profile(version="1.37"),
            "options": ControllerOptions(allocator_quirks=Quirks()),
        },
    ):
        condition = partitioned(**more).pod_condition("pod")
        assert "1 cannot allocate all claims" in condition["message"]


def mixed(version: str, nodes: int) -> Cluster:
    """A pod with an allocated claim that all nodes reach and one that is not allocated."""
    made = Cluster(profile=Profile(version=version))
    made.device_class()
    for number in range(1, nodes + 1):
        made.node(f"n{number}")
        made.slice(f"n{number}", devices=1)
    spec = {
        "driver": "net.example.com",
        "allNodes": True,
        "pool": {"name": "net", "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": "net"}],
    }
    made.create("resource.k8s.io/v1", "ResourceSlice", "net", spec=spec)
    made.device_class("net", selector='device.driver == "net.example.com"')
    made.device_class("local", selector='device.driver == "gpu.example.com"')
    made.claim("shared", class_name="net")
    made.pod("first", claim="shared")
    made.settle()
    assert made.devices_of("shared") == ["net/net"]
    made.claim("own", class_name="local")
    entries = [
        {"name": "shared", "resourceClaimName": "shared"},
        {"name": "own", "resourceClaimName": "own"},
    ]
    made.pod("pod", resourceClaims=entries)
    made.settle()
    decisions, effects = check_decisions(made)
    assert (decisions.differences, effects.differences) == ((), ())
    return made


@pytest.mark.parametrize("version", ["1.35", "1.36.0", "1.36.1"])
def test_scoring_fails_for_mixed_claims_in_1_35_and_early_1_36(version):
    condition = mixed(version, nodes=2).pod_condition("pod")
    assert (condition["reason"], condition["message"]) == (
        "SchedulerError",
        'running Score plugins: plugin "DynamicResources" failed with: '
        "number of allocations 1 is smaller than number of claims needing allocation",
    )


@pytest.mark.parametrize(("version", "nodes"), [("1.34", 2), ("1.35", 1), ("1.36.2", 2)])
def test_mixed_claims_are_no_problem_for_one_node_and_in_other_releases(version, nodes):
    assert mixed(version, nodes).must("pods", "pod")["spec"]["nodeName"]


@pytest.mark.parametrize(("version", "node"), [("1.34", "n1"), ("1.35", "n2"), ("1.37", "n2")])
def test_better_alternative_decides_since_1_35(version, node):
    made = Cluster(profile=Profile(version=version))
    made.device_class()
    made.device_class("better", selector="device.attributes['gpu.example.com'].good")
    for name, good in (("n1", False), ("n2", True)):
        made.node(name)
        made.slice(name, devices=[{"name": "d", "attributes": {"good": {"bool": good}}}])
    alternatives = [
        {"name": "best", "deviceClassName": "better"},
        {"name": "any", "deviceClassName": "gpu"},
    ]
    requests = [{"name": "gpu", "firstAvailable": alternatives}]
    made.create(
        "resource.k8s.io/v1", "ResourceClaim", "claim", spec={"devices": {"requests": requests}}
    )
    made.pod(claim="claim")
    made.settle()
    assert made.must("pods", "pod")["spec"]["nodeName"] == node


def given_up(version: str) -> tuple[cycle.Cycle, NodeIndex]:
    """An attempt whose search may take no step."""
    made = Cluster(
        profile=Profile(version=version), options=ControllerOptions(off=frozenset({"scheduling"}))
    )
    made.node()
    made.device_class()
    made.slice()
    made.claim()
    pod = pod_spec.read(made.pod(claim="claim"))
    made.settle()
    views = made.line.views
    nodes = NodeIndex()
    nodes.put(made.must("nodes", "n1"))
    rules = cycle.SchedulerRules(
        gates=made.profile,
        features=features_of(made.profile),
        compiler=CelCompiler(detailed_errors=True),
        quirks=releases.quirks_of(made.profile),
    )
    claims = pod_claims.resolve(views.objects, pod.facts)
    begun = cycle.begin(rules, views, nodes, Verdicts(), pod, claims, made.line.now)
    begun.allocator = Allocator(
        views.inventory,
        cycle.Classes(views.objects),
        views.allocated,
        rules.features,
        compiler=rules.compiler,
        bounds=Bounds(steps_max=0),
    )
    return begun, nodes


def test_search_that_is_given_up_rejects_its_node_before_1_36():
    begun, nodes = given_up("1.35")
    info = nodes.order()[0]
    refusal = begun.check(info, begun.verdict(info))
    assert refusal is not None
    assert refusal.reasons == ("timed out trying to allocate devices",)
    assert not refusal.resolvable


def test_search_that_is_given_up_ends_the_attempt_since_1_36():
    begun, nodes = given_up("1.36")
    info = nodes.order()[0]
    with pytest.raises(cycle.Aborted) as raised:
        begun.check(info, begun.verdict(info))
    assert raised.value.text == "node n1: timed out trying to allocate devices"


@pytest.mark.parametrize(("version", "node"), [("1.35", "n2"), ("1.36", "n1"), ("1.37", "n1")])
def test_what_a_pod_does_for_the_balance_counts_since_1_36(version, node):
    """n1 uses 0.8 of its cpu, n2 0.4 of cpu and memory; the pod asks for 0.2 of the memory.

    Least allocated is 50 on both. The pod leaves a balance of 70 on n1 and of 90 on n2, so n2 was
    better; but n1 had 60 and n2 100 before: 50 + (50 + 10) / 2 = 80 and 50 + (50 - 10) / 2 = 70.
    """
    made = Cluster(profile=Profile(version=version))
    for name, cpu, memory in (("n1", "3200m", "0"), ("n2", "1600m", "26214Mi")):
        made.node(name, cpu="4")
        chosen = {"kubernetes.io/hostname": name}
        made.pod(f"on-{name}", requests={"cpu": cpu, "memory": memory}, nodeSelector=chosen)
    made.settle()
    made.pod(requests={"cpu": "0", "memory": "13107Mi"})
    made.settle()
    assert made.must("pods", "pod")["spec"]["nodeName"] == node
