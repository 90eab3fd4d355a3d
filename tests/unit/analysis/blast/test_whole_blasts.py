"""Whole answers about what a change would do: each object deleted, each node cordoned or drained,
each driver tainted in small clusters, with all lines of the page.

Of each answer those lines are kept that no answer before has in its cluster.
`REDRA_REWRITE=1 pytest` of this module writes them anew; then read the difference.
"""

from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path

import pytest

from app.analysis.blast import compare, text
from app.analysis.blast.bounds import BlastBounds
from app.analysis.blast.compare import Put
from app.domain.errors import RedraError
from tests.cluster import DRIVER, Cluster
from tests.unit.analysis import kept_texts
from tests.unit.analysis.blast.worlds import ask, frozen, put
from tests.unit.analysis.explain import answered_worlds, seldom_worlds

FILE = Path(__file__).with_name("whole_blasts.txt")

EXAMPLES_MAX = 3

WORLDS = {
    name: made
    for name, made in (answered_worlds.STATES | seldom_worlds.SELDOM).items()
    if name
    in {
        "budget_that_keeps_a_pod_on_a_cordoned_node",
        "capacity_is_used_up",
        "claim_with_two_shares_of_one_device",
        "classes_that_others_wait_for",
        "consumers_that_ended_in_three_ways",
        "counters_are_used_up",
        "daemonset_on_every_node",
        "deployment_of_which_half_waits",
        "device_that_a_claim_tolerates_for_a_while",
        "devices_that_a_patch_takes_away",
        "extended_resource_is_more_than_a_node_has",
        "nodes_refuse_for_different_reasons",
        "other_nodes_had_an_earlier_alternative",
        "pod_on_devices_that_its_driver_taints",
        "pool_of_an_older_generation",
        "rule_that_evicts",
        "rule_over_a_claim_of_an_extended_resource",
        "statefulset_goes_on_one_by_one",
        "template_is_refused_by_a_quota",
        "two_claims_of_which_one_is_too_large",
        "two_patches_of_one_attribute",
    }
}

_UNASKED = ("events", "namespaces")


def changes_of(cluster: Cluster) -> Iterator[tuple[str, compare.Change]]:
    """Changes of each object that is there, with a name for each."""
    objects = cluster.line.views.objects
    for group, resource in sorted(objects.resources()):
        for key in sorted(objects.keys(group, resource)):
            if resource in _UNASKED:
                continue
            tree = objects.get(key)
            assert tree is not None
            place = f"{key.namespace}/" if resource in ("pods", "resourceclaims") else ""
            name = f"{tree['kind'].lower()}/{place}{key.name}"
            yield from ((f"delete {name}", one) for one in compare.read_changes((), [name]))
            if resource == "nodes":
                for how in ("cordons", "drains"):
                    (change,) = compare.read_changes((), (), **{how: [key.name]})
                    yield f"{how} {key.name}", change
            if resource == "resourceslices":
                fewer = deepcopy(tree)
                fewer["spec"]["devices"] = tree["spec"].get("devices", [])[1:]
                yield f"shorten {name}", Put(tree=fewer)
            if resource == "deviceclasses":
                other = deepcopy(tree)
                expression = "device.driver == 'other.example.com'"
                other["spec"]["selectors"] = [{"cel": {"expression": expression}}]
                yield f"narrow {name}", Put(tree=other)
    slices = cluster.line.views.inventory.slices()
    for driver in sorted({one.pool[0] for one in slices}):
        for effect in ("NoExecute", "NoSchedule", "None"):
            taint = {"key": "new", "value": "v", "effect": effect}
            spec = {"deviceSelector": {"driver": driver}, "taint": taint}
            yield f"taint {driver} {effect}", put("DeviceTaintRule", "new", spec)


def answer_to(cluster: Cluster, change: compare.Change) -> list[str]:
    """The page of a change, or the refusal."""
    try:
        radius = ask(cluster, change)
    except RedraError as refusal:
        return [f"refused: {refusal}"]
    return [*text.lines(radius, EXAMPLES_MAX)]


@pytest.mark.parametrize("name", WORLDS)
def test_blast_reads_the_same(name: str) -> None:
    cluster, *_ = WORLDS[name]()
    cluster.settle()
    known: set[str] = set()
    shown: list[str] = []
    for title, change in changes_of(cluster):
        answer = answer_to(cluster, change)
        shown += [f"# {title}", *(line for line in answer if line not in known)]
        known.update(answer)
    kept_texts.check(FILE, name, "\n".join(shown), WORLDS)


@pytest.mark.parametrize("name", WORLDS)
def test_rule_that_is_there_does_what_its_creation_would_do(name: str) -> None:
    """The answer about a rule is the one about its creation, where it is not there yet."""
    cluster, *_ = WORLDS[name]()
    cluster.settle().wait(1)
    change = put("DeviceTaintRule", "new", {
        "deviceSelector": {"driver": DRIVER},
        "taint": {"key": "new", "effect": "NoSchedule"},
    })  # fmt: skip
    before = [*text.reasons(ask(cluster, change), 99)][1:]
    assert isinstance(change, Put)
    cluster.stop()
    cluster.apply(deepcopy(change.tree))
    after = compare.blast_of_rule(frozen(cluster), "new", BlastBounds())
    assert [*text.reasons(after, 99)][1:] == before


def test_every_blast_has_its_world() -> None:
    assert list(kept_texts.kept(FILE)) == [*WORLDS]
    assert len(WORLDS) == 21
