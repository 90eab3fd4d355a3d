"""Recorders that continue a history and read less than the one before: what the history says."""

import pytest

from app.domain.errors import InputError
from app.domain.log.recorded_cluster import ClusterIdentity
from tests.unit.service.test_expired_lists import NODES, PODS, Cluster, lines, recorded

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
    assert lines(recorded(Part(BEFORE), then=[Part(LATER, kinds=[PODS])])) == [*LISTED, UNREAD]


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
    with pytest.raises(InputError, match=text):
        recorded(Part(BEFORE, namespace=before), then=then)


@pytest.mark.parametrize("namespace", ["", "shop"])
def test_history_of_the_same_namespaces_is_gone_on_with(namespace):
    then = [Part(BEFORE, namespace=namespace)]
    assert lines(recorded(Part(BEFORE, namespace=namespace), then=then)) == LISTED
