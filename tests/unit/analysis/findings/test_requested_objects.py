"""Pods and claims of which a recording has only the request that created them."""

import msgspec
import pytest

from app.analysis.chronicle import Chronicle
from app.analysis.findings import claims, pods
from app.analysis.findings.report import FindingKind
from app.analysis.views import LiveViews
from app.domain.log import EventType, Revision
from app.domain.log.event import Origin
from app.domain.log.records import Loss
from app.domain.objects.profile import Profile
from tests.cluster import Cluster


def recorded(cluster, losses):
    """The events as a recording has them that lacks this information."""
    origin = Origin(source="audit.log", losses=losses)
    for event in cluster.line.events:
        stamp = msgspec.structs.replace(event.stamp, origin=origin)
        yield msgspec.structs.replace(event, stamp=stamp)


def kinds_of(cluster, losses=(Loss.NO_UID.value, Loss.NO_RV.value)):
    chronicle, views = Chronicle(), LiveViews(Profile())
    events = list(recorded(cluster, losses))
    for event in events:
        # The request has no status; what the API adds is in its answer.
        if event.type is EventType.OBJECT_CREATED:
            body = {name: value for name, value in event.object.items() if name != "status"}
            event = msgspec.structs.replace(event, body=msgspec.json.encode(body), tree=None)
        chronicle.fold([event])
        views.fold(event)
    until = Revision(len(events))
    waiting = pods.waiting(chronicle, views, until, lambda _: "")
    findings = [*waiting, *claims.unused(views)]
    return {finding.kind: finding for finding in findings}


def test_pod_of_which_only_the_request_is_known_is_not_said_to_wait():
    cluster = Cluster()
    cluster.pod("p")
    cluster.pod("q")
    (kind,) = (findings := kinds_of(cluster))
    assert kind is FindingKind.REQUESTED_PODS
    assert findings[kind].text == (
        "2 pods are known only from the requests that created them: the recording does not show "
        "whether they got a node"
    )
    assert (findings[kind].count, findings[kind].present) == (2, 2)


def test_claim_of_which_only_the_request_is_known_is_not_said_to_wait():
    cluster = Cluster()
    cluster.claim("c")
    (kind,) = (findings := kinds_of(cluster))
    assert kind is FindingKind.REQUESTED_CLAIMS
    assert findings[kind].text == (
        "1 claim is known only from the request that created it: the recording does not show "
        "whether it has devices"
    )


@pytest.mark.parametrize("losses", [(), (Loss.NO_RV.value,)])
def test_pod_whose_creation_was_answered_waits(losses):
    cluster = Cluster()
    cluster.pod("p")
    assert FindingKind.WAITING_PODS in kinds_of(cluster, losses)


def test_pod_of_which_a_later_line_is_known_waits():
    cluster = Cluster()
    cluster.pod("p")
    cluster.patch("pods", "p", {"metadata": {"labels": {"seen": "later"}}})
    assert FindingKind.WAITING_PODS in kinds_of(cluster)
