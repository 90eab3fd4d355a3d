"""Recorders that continue a history and read less than the one before: what the history says."""

import pytest

from app.domain.errors import InputError
from app.domain.log import EventType, Head
from app.domain.log.recorded_cluster import ClusterIdentity
from app.domain.values.timestamps import SECOND
from app.service.recording.journal import RecordingProgress
from app.service.recording.resuming import Resumed, check_same_cluster
from tests.unit.service.test_expired_lists import BEGUN, NODES, PODS, Cluster, lines, recorded

UNREAD = (
    "this recorder does not read the kind (not served, or left out); changes of nodes are not "
    "recorded until one does"
)
GOES_ON = (
    "the recording did not continue where it had ended; changes of nodes up to resource version "
    "8 are not recorded; the objects that exist then are listed"
)


class Part(Cluster):
    """A cluster that is recorded in part: these kinds, in a namespace."""

    def __init__(self, nodes, *, kinds=(NODES, PODS), namespace="", **options):
        super().__init__(nodes, **options)
        self.read, self.namespace = kinds, namespace

    async def kinds(self):
        return list(self.read), []

    async def identity(self):
        return ClusterIdentity(
            server="https://cluster", release="v1.36.0", uid="", namespace=self.namespace
        )


BEFORE, LATER = {"a": 4, "b": 5}, {"a": 6, "c": 8}
LISTED = ["baseline a 4", "baseline b 5"]


def test_kind_that_is_not_read_any_more_is_a_gap():
    events = recorded(Part(BEFORE), then=[Part(LATER, kinds=[PODS])])
    assert lines(events) == [*LISTED, UNREAD]
    (at,) = [each.stamp.time for each in events if each.type is EventType.GAP_OBSERVED]
    assert at == BEGUN + 120 * SECOND


def test_kind_that_is_not_read_by_several_recorders_is_one_gap():
    then = [Part(LATER, kinds=[PODS]), Part(LATER, kinds=[PODS])]
    assert lines(recorded(Part(BEFORE), then=then)) == [*LISTED, UNREAD]


def test_kind_that_is_read_again_is_listed_behind_its_gaps():
    then = [Part(LATER, kinds=[PODS]), Part(LATER)]
    assert lines(recorded(Part(BEFORE), then=then)) == [
        *LISTED,
        UNREAD,
        GOES_ON,
        "changed a 6",
        "created c 8",
        "deleted b",
    ]


def test_kind_that_was_never_read_is_no_gap():
    cluster = Part(BEFORE, kinds=[PODS])
    assert lines(recorded(cluster, then=[Part(LATER, kinds=[PODS])])) == []
    assert lines(recorded(cluster, then=[Part(LATER)])) == ["baseline a 6", "baseline c 8"]


def test_kind_that_was_denied_and_is_left_out_has_the_gap_of_its_denial_alone():
    events = recorded(Part(BEFORE, denials=1_000), then=[Part(LATER, kinds=[PODS])])
    assert lines(events) == ["no; nodes are not recorded until that is allowed"]


@pytest.mark.parametrize(
    ("before", "now", "text"),
    [
        ("", "shop", "records all namespaces, and this recorder reads the namespace shop"),
        ("shop", "", "records the namespace shop, and this recorder reads all namespaces"),
        ("shop", "bank", "records the namespace shop, and this recorder reads the namespace bank"),
    ],
)
def test_history_of_other_namespaces_is_not_gone_on_with(before, now, text):
    then = [Part(LATER, namespace=now)]
    with pytest.raises(InputError, match=text) as problem:
        recorded(Part(BEFORE, namespace=before), then=then)
    assert problem.value.place == "--namespace"


@pytest.mark.parametrize("namespace", ["", "shop"])
def test_earlier_history_that_names_no_namespace_is_gone_on_with(namespace):
    opening = {"sources": [{"uid": "b7a5", "server": "https://cluster"}]}
    resumed = Resumed(head=Head(), progress=RecordingProgress(), opening=opening)
    identity = ClusterIdentity(
        server="https://elsewhere", release="v1.36.0", uid="b7a5", namespace=namespace
    )
    check_same_cluster(resumed, identity, "prod")


@pytest.mark.parametrize(
    ("uid", "server", "text"),
    [
        ("09cd", "https://other", "https://cluster; this one is https://other"),
        ("09cd", "https://cluster", "https://cluster; this one has its address now"),
        ("", "https://other", "https://cluster; this one is https://other"),
    ],
)
def test_history_of_another_cluster_names_both(uid, server, text):
    opening = {"sources": [{"uid": "b7a5", "server": "https://cluster", "namespace": ""}]}
    resumed = Resumed(head=Head(), progress=RecordingProgress(), opening=opening)
    identity = ClusterIdentity(server=server, release="v1.36.0", uid=uid)
    with pytest.raises(InputError, match=f"records another cluster, {text}") as problem:
        check_same_cluster(resumed, identity, "prod")
    assert problem.value.place == "--history"


@pytest.mark.parametrize("namespace", ["", "shop"])
def test_history_of_the_same_namespaces_is_gone_on_with(namespace):
    then = [Part(BEFORE, namespace=namespace)]
    assert lines(recorded(Part(BEFORE, namespace=namespace), then=then)) == LISTED
