"""Lists that expire between their pages, and stores that are away while lists are compared.

Until a list is whole, a history has a gap.

Example: a cluster has the nodes a and b. The first page of the list at version 5 shows a, and the
token of the next page is refused with 410. Then a changes, b goes and c comes; the next list shows
a and c at version 8. Nobody saw b, and what happened between 5 and 8 is not known: that is a gap.
"""

import asyncio
from contextlib import asynccontextmanager

import anyio
import pytest

from app.adapters.memory import MemoryLeases, MemoryLog, MemoryStore
from app.domain.errors import Expired, Forbidden, LogUnavailable
from app.domain.log import EventType, Revision
from app.domain.log.recorded_cluster import ClusterIdentity, ListPage, ServedKind, WatchItem
from app.domain.log.records import LIST, Op, Record
from app.domain.values.timestamps import SECOND, Instant
from app.service.recording import recorder
from app.service.recording.following import FollowingBounds
from app.service.recording.recorder import Recorder, RecordingBounds, RecordingPorts
from app.service.recording.snapshot import SnapshotBounds
from tests.crash import virtual_loop

NODES = ServedKind(group="", version="v1", resource="nodes", kind="Node", is_namespaced=False)
PODS = ServedKind(group="", version="v1", resource="pods", kind="Pod", is_namespaced=True)
BEGUN = Instant(1_700_000_000 * SECOND)
BOUNDS = RecordingBounds(
    snapshot=SnapshotBounds(page_max=1), following=FollowingBounds(page_max=1, audit_seconds=1e6)
)


WORDS = {
    EventType.OBJECT_CREATED: "created",
    EventType.OBJECT_UPDATED: "changed",
    EventType.OBJECT_DELETED: "deleted",
}


class Cluster:
    """Lists nodes one by one; each of `losses` refuses a second page and makes its changes.

    The first `denials` lists are denied.
    """

    name, clock_offset, clock_spread = "cluster", 0, 0

    def __init__(self, nodes, *losses, denials=0, pods_version=""):
        self.nodes, self.version = dict(nodes), max(nodes.values())
        self.losses, self.denials = list(losses), denials
        self.pods_version, self.asked = pods_version, []

    async def identity(self):
        return ClusterIdentity(server="https://cluster", release="v1.36.0", uid="")

    async def kinds(self):
        return [NODES, PODS], []

    async def list_page(self, kind, *, limit, version="", token=""):
        self.asked.append((kind.name, version))
        if kind is NODES and self.denials:
            self.denials -= 1
            raise Forbidden("no")
        names = sorted(self.nodes) if kind is NODES else []
        first = int(token or 0)
        if first and self.losses:
            self.change(self.losses.pop(0))
            raise Expired("the list is too old")
        items = tuple(self.item(name) for name in names[first : first + limit])
        is_last = first + limit >= len(names)
        at = (kind is PODS and self.pods_version) or str(self.version)
        return ListPage(items=items, version=at, token="" if is_last else str(first + limit))

    def change(self, changes):
        self.version = max(self.version, *(at or 0 for at in changes.values()), 0)
        self.nodes = {name: at for name, at in (self.nodes | changes).items() if at}

    def item(self, name):
        at = str(self.nodes[name])
        tree = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "uid": f"uid-{name}", "resourceVersion": at},
        }
        record = Record(
            source="cluster", position=LIST, op=Op.BASELINE, resource="nodes", name=name,
            uid=f"uid-{name}", resource_version=at, object=tree, observed_at=BEGUN,
        )  # fmt: skip
        return WatchItem(version=at, record=record)

    @asynccontextmanager
    async def watch(self, kind, *, after, seconds):
        await anyio.sleep_forever()
        yield


def recorded(cluster, *, is_once=False, log_of=MemoryLog, then=()):
    """The events of a recording that goes on for two minutes, or of one snapshot.

    Recorders of the clusters in `then` continue it for as long, one after the other.
    """

    async def run():
        store = MemoryStore()
        clock = virtual_loop.LoopClock(asyncio.get_running_loop(), BEGUN)
        log, leases = log_of(store), MemoryLeases(store, clock)
        ports = RecordingPorts(log=log, leases=leases, clock=clock, holder="me")
        first = await recorder.look(cluster, BOUNDS, note=lambda _: None)
        info = await recorder.begin(
            ports, cluster, first, name="prod", settings={}, secrets=None, bounds=BOUNDS,
            is_once=is_once, note=lambda _: None,
        )  # fmt: skip
        if not is_once:
            going = Recorder(
                ports, cluster, first, info, secrets=None, bounds=BOUNDS, is_new=True
            )  # fmt: skip
            with anyio.move_on_after(120):
                await going.run()
        for other in then:
            first = await recorder.look(other, BOUNDS, note=lambda _: None)
            going = Recorder(
                ports, other, first, info, secrets=None, bounds=BOUNDS, is_new=False
            )  # fmt: skip
            with anyio.move_on_after(120):
                await going.run()
        return await log.read(info.id, after=Revision(0), limit=1_000)

    return virtual_loop.run(run())


def lines(events):
    """Each event about a node in short; of a gap its text."""
    shown = []
    for event in events:
        if event.type is EventType.GAP_OBSERVED:
            shown.append(event.object["message"])
        elif event.is_about_object:
            is_listed = event.stamp.verb == "baseline"
            what = "baseline" if is_listed else WORDS[event.type]
            version = event.stamp.origin.resource_version
            shown.append(f"{what} {event.key.name} {version}".strip())
    return shown


MEANWHILE = {"a": 6, "b": None, "c": 8}
"""Of a and b, of which the first page shows a: one changes, the other goes, and c is new."""

NOT_WHOLE = "the list is too old; the first list of nodes is not whole"


def gap_until(version):
    return (
        f"the list is too old; changes of nodes up to resource version {version} are not "
        "recorded; the objects that exist then are listed"
    )


def test_snapshot_whose_list_expires_says_that_it_is_not_whole():
    events = recorded(Cluster({"a": 4, "b": 5}, MEANWHILE), is_once=True)
    assert lines(events) == ["baseline a 4", NOT_WHOLE]
    assert events[-1].object["phase"] == "finished"
    assert {each.stamp.origin.source for each in events if each.stamp.origin} == {"cluster"}


PROBES = 3
"""The requests for one object of each kind, and of the first kind again."""


@pytest.mark.parametrize("is_once", [True, False])
@pytest.mark.parametrize(("pods_version", "asked"), [("", "5"), ("900", "")])
def test_first_lists_are_at_one_version_but_for_kinds_of_another_counter(
    pods_version, asked, is_once
):
    cluster = Cluster({"a": 4, "b": 5}, pods_version=pods_version)
    events = recorded(cluster, is_once=is_once)
    assert cluster.asked[PROBES:] == [("nodes", "5"), ("nodes", "5"), ("pods", asked)]
    report = events[-1].object
    assert report["positions"] == {"nodes": "5", "pods": pods_version or "5"}
    assert report["alone"] == (["pods"] if pods_version else [])


@pytest.mark.parametrize(
    ("changes", "listed"),
    [
        (MEANWHILE, ["changed a 6", "created c 8"]),
        ({"a": None, "c": 8}, ["created b 5", "created c 8", "deleted a"]),
        ({"a": 9}, ["changed a 9", "created b 5"]),
    ],
)
def test_recording_whose_first_list_expires_has_a_gap_until_its_next_list(changes, listed):
    cluster = Cluster({"a": 4, "b": 5}, changes)
    events = recorded(cluster)
    assert lines(events) == ["baseline a 4", NOT_WHOLE, gap_until(cluster.version), *listed]
    shown = [event.stamp.origin.losses for event in events if event.is_about_object][1:]
    assert all({"collapsed", "synthetic_delete"} & {*losses} for losses in shown)


def test_each_list_that_expires_moves_the_end_of_the_gap():
    cluster = Cluster({"a": 4, "b": 5}, {"c": 6}, {"a": 7}, {"d": 9})
    assert lines(recorded(cluster)) == [
        "baseline a 4",
        NOT_WHOLE,
        gap_until(6),
        gap_until(7),
        "changed a 7",
        gap_until(9),
        "created b 5",
        "created c 6",
        "created d 9",
    ]


def test_list_that_expires_and_begins_anew_at_one_version_is_one_gap():
    cluster = Cluster({"a": 4, "b": 5}, {}, {}, {})
    assert lines(recorded(cluster)) == ["baseline a 4", NOT_WHOLE, gap_until(5), "created b 5"]


def test_first_list_of_a_kind_that_was_denied_has_a_gap_once_it_expires():
    cluster = Cluster({"a": 4, "b": 5}, MEANWHILE, denials=1)
    assert lines(recorded(cluster)) == [
        "no; nodes are not recorded until that is allowed",
        "baseline a 4",
        gap_until(8),
        "changed a 6",
        "created c 8",
    ]


def test_first_list_of_a_kind_that_was_denied_is_its_baseline():
    assert lines(recorded(Cluster({"a": 4, "b": 5}, denials=1))) == [
        "no; nodes are not recorded until that is allowed",
        "baseline a 4",
        "baseline b 5",
    ]


class AwayOnce(MemoryLog):
    """A log that is away for a while when it is first asked for an object of the cluster."""

    away = 3

    async def read_object(self, history, key, **bounds):
        if key.resource == "nodes" and self.away:
            self.away -= 1
            raise LogUnavailable("the connection was lost")
        return await super().read_object(history, key, **bounds)


def test_store_that_is_away_while_lists_are_compared_is_waited_for():
    changes = {"a": None, "c": 8}
    events = recorded(Cluster({"a": 4, "b": 5}, changes), log_of=AwayOnce)
    assert lines(events)[3:] == ["created b 5", "created c 8", "deleted a"]


class LosesAnswers(MemoryLog):
    """A log that stores an append and loses the answer, and the next answers about its head."""

    lost = 0

    async def append(self, history, *, expected, events, leases=()):
        head = await super().append(history, expected=expected, events=events, leases=leases)
        if leases and not self.lost:
            self.lost = 3
            raise LogUnavailable("the connection was lost")
        return head

    async def head(self, history):
        if self.lost > 1:
            self.lost -= 1
            raise LogUnavailable("the connection was lost")
        return await super().head(history)


def test_append_whose_answer_was_lost_is_known_again_when_the_store_is_back():
    cluster = Cluster({"a": 4, "b": 5}, MEANWHILE)
    assert lines(recorded(cluster, log_of=LosesAnswers)) == [
        "baseline a 4",
        NOT_WHOLE,
        gap_until(8),
        "changed a 6",
        "created c 8",
    ]
