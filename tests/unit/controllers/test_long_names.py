"""Objects whose names leave no room for the name of an Event about them."""

import pytest

from app.domain.values import api_resources
from tests.cluster import Cluster


@pytest.mark.parametrize("length", [236, 237, 253])
def test_pod_with_a_long_name_is_scheduled_and_reported(length: int) -> None:
    """The Event has a UUID as its name where `<pod>.<16 digits>` is too long (controllers 11.1)."""
    cluster = Cluster()
    cluster.device_class()
    cluster.node()
    cluster.slice()
    cluster.claim()
    name = "p" * length
    cluster.pod(name, claim="claim")
    cluster.settle()
    pod = cluster.get("pods", name)
    assert pod["spec"]["nodeName"] == "n1"
    events = cluster.line.views.objects.events(*api_resources.EVENTS)
    (event,) = (each for each in events if each.object["involvedObject"]["name"] == name)
    assert event.key.name.startswith(name) is (length == 236)
    assert length == 236 or len(event.key.name) == 36
