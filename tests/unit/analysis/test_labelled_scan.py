"""A scan by labels counts an incident where an object of the occurrence has them, and no other."""

import pytest

from app.analysis.scan.scanning import Scan
from app.analysis.scan.sightings import OBJECTS_MAX
from app.analysis.scope import LabelledObjects
from tests.cluster import Cluster

INCIDENT = "rule-without-selector"


def seen(cluster: Cluster, labels: str) -> list[tuple[int, list[str]]]:
    """How often the incident occurs at objects with the labels, and those objects."""
    scan = Scan(labelled=LabelledObjects(labels) if labels else None)
    scan.follow(cluster.line.events)
    sightings = [one for one in scan.sightings() if one.incident == INCIDENT]
    return [(one.times, [key.name for key in one.objects]) for one in sightings]


def cluster_with(rules: dict[str, str]) -> Cluster:
    """Rules without a selector, by name, with the team of each."""
    cluster = Cluster()
    for name, team in rules.items():
        cluster.apply(
            {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "DeviceTaintRule",
                "metadata": {"name": name, "labels": {"team": team}},
                "spec": {"taint": {"key": "example.com/bad", "effect": "NoSchedule"}},
            }
        )
    return cluster


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        ("", ["r-0", "r-1", "r-2"]),
        ("team=blue", ["r-0", "r-2"]),
        ("team!=blue", ["r-1"]),
        ("team in (red)", ["r-1"]),
        ("team=green", []),
    ],
)
def test_incident_counts_where_an_object_has_the_labels(labels, names):
    cluster = cluster_with({"r-0": "blue", "r-1": "red", "r-2": "blue"})
    assert seen(cluster, labels) == ([(len(names), names)] if names else [])


def test_object_beyond_those_that_a_sighting_names_is_found_by_its_labels():
    teams = {f"r-{number:02}": "red" for number in range(OBJECTS_MAX + 1)}
    cluster = cluster_with({**teams, "s": "blue"})
    assert seen(cluster, "team=blue") == [(1, ["s"])]


def test_claim_that_was_created_for_a_pod_has_its_labels():
    cluster = Cluster()
    cluster.device_class()
    cluster.template()
    for name in ("web", "other"):
        cluster.pod(name, template="gpu")
        cluster.patch("pods", name, {"metadata": {"labels": {"app": name}}})
    cluster.settle()
    labelled = LabelledObjects("app=web")
    keys = {}
    for event in cluster.line.events:
        labelled.fold(event)
        if event.key.resource == "resourceclaims":
            keys[event.key.name] = event.key
    assert {name for name, key in keys.items() if labelled.has(key)} == {cluster.claim_of("web")}
    assert len(keys) == 2
