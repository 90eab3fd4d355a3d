"""Containers and the devices of their pod's claims: what is a mistake, and what is none."""

import pytest

from app.analysis.findings import containers
from app.analysis.views import LiveViews
from app.domain.objects.profile import Profile
from tests.cluster import Cluster

MISTAKE = "names a request which its claim does not have"
UNNAMED = "a claim that no container names"
ILL = "a device that is not healthy"


def container(*claims):
    return {"name": "main", "image": "i", "resources": {"claims": list(claims)}}


def told(containers_, status=None, *, node="n1", init=()):
    """What the findings say of a pod whose claim `c` has one request, `gpu`."""
    cluster = Cluster()
    cluster.node("n1")
    cluster.claim("c")
    more = {"nodeName": node} if node else {}
    if init:
        more["initContainers"] = [{**each, "name": "first"} for each in init]
    cluster.pod("p", claim="c", **{"containers": containers_, **more})
    if status is not None:
        cluster.patch("pods", "p", {"status": status}, subresource="status")
    views = LiveViews(Profile())
    for event in cluster.line.events:
        views.fold(event)
    return [finding.text for finding in containers.of_devices(views)]


GPU = {"name": "gpu"}
RIGHT = {"name": "gpu", "request": "gpu"}
TYPO = {"name": "gpu", "request": "gup"}


@pytest.mark.parametrize(
    ("claims", "init", "words"),
    [
        ([GPU], (), []),
        ([RIGHT], (), []),
        ([TYPO], (), [MISTAKE]),
        ([], (), [UNNAMED]),
        ([], [GPU], []),
        ([], [TYPO], [MISTAKE]),
    ],
)
def test_devices_that_no_container_gets_are_told(claims, init, words):
    found = told([container(*claims)], init=[container(*each) for each in [init] if init])
    assert [word in text for word, text in zip(words, found, strict=True)] == [True] * len(words)


def test_pod_without_a_node_or_that_has_ended_is_left_out():
    assert told([container(TYPO)], node="") == []
    assert told([container(TYPO)], {"phase": "Succeeded"}) == []


@pytest.mark.parametrize(
    ("health", "words"), [("Healthy", []), ("", []), ("Unhealthy", [ILL]), ("Unknown", [])]
)
def test_devices_that_are_not_well_are_told(health, words):
    """Unknown says that the health cannot be determined: such a device may be as well as any."""
    resources = [{"resourceID": "d/p/x", **({"health": health} if health else {})}]
    status = {
        "name": "main", "ready": True, "restartCount": 0, "image": "i", "imageID": "",
        "allocatedResourcesStatus": [{"name": "claim:gpu", "resources": resources}],
    }  # fmt: skip
    found = told([container(GPU)], {"phase": "Running", "containerStatuses": [status]})
    assert [word in text for word, text in zip(words, found, strict=True)] == [True] * len(words)
    assert all(f"d/p/x of claim:gpu as {health}" in text for text in found)
