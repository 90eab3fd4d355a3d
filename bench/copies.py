"""A long history on the embedded database: one pod's and one node's events, copied many times.

A control plane in memory runs one pod on one node. Its events are copied with other names, uids,
revisions and devices, so each copy is what the control plane writes, and objects refer to
each other as they do there. Writing them takes a tenth of the time of deciding them.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from app.bootstrap.histories import open_histories
from app.bootstrap.history_settings import history_settings
from app.bootstrap.process_settings import settings
from app.bootstrap.stores import open_store
from app.domain.log import Event, Head, HistoryId, ObjectKey, Revision, chain
from app.domain.objects.write.commands import DeleteObject
from app.domain.values.api_resources import RESOURCE_CLAIMS
from app.domain.values.identifiers import NO_UID, Uid
from app.ports import EventLog
from app.service.histories import DEFAULT_HISTORY
from app.service.runtime import HistoryRuntime
from bench import cluster
from bench.cluster import Cluster, node, pod, prepare, slice_of, submit_all
from bench.writer import BENCH

APPENDED = 5_000
"""Events of one append."""

NODE, POD = "copied-node", "copied-pod"
_TOKEN = re.compile(
    rb'[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|copied-node|copied-pod|gpu-0(?=")'
    rb'|(?<="resourceVersion":")[0-9]+(?=")|(?<="cause":)[0-9]+(?=,)'
)
"""What differs between two copies: uids, names, the device, and revisions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How many nodes, devices of each, and pods with a claim for one device each.

    `gone` pods came and went before those, of which only the log has events.
    """

    nodes: int
    devices: int
    pods: int
    gone: int = 0


@dataclass(frozen=True, slots=True)
class Story:
    """Events that one control plane wrote one after the other, about one node or pod."""

    events: Sequence[Event]

    def copy(self, after: Revision, names: Mapping[str, str], number: int) -> Iterator[Event]:
        """The events from the revision after `after` on, with other names; without hashes.

        `number` tells the uids of copies apart.
        """
        first = self.events[0].revision
        moved = after + 1 - first

        def later(revision: int) -> int:
            return revision + moved if revision >= first else revision

        def replaced(match: "re.Match[bytes]") -> bytes:
            word = match[0].decode()
            if word.isdigit():
                return b"%d" % later(int(word))
            return (names.get(word) or _uid(word, number)).encode()

        for event in self.events:
            stamp = msgspec.structs.replace(
                event.stamp,
                uid=_uid(event.stamp.uid, number),
                cause=later(event.stamp.cause),
                observed=later(event.stamp.observed),
            )
            yield msgspec.structs.replace(
                event,
                revision=Revision(later(event.revision)),
                key=event.key._replace(
                    name=event.key.name.replace(NODE, names[NODE]).replace(POD, names.get(POD, POD))
                ),
                uid=_uid(event.uid, number),
                body=_TOKEN.sub(replaced, event.body),
                stamp=stamp,
                tree=None,
            )


def _uid(uid: str, number: int) -> Uid:
    """The uid of a copied object: its last digits count the copies."""
    return Uid(f"{uid[:-8]}{number:08x}") if uid else NO_UID


async def stories(devices: int) -> tuple[Story, Story, Story]:
    """What a control plane writes about a node with so many devices, and about a pod there.

    The third one is of a pod that comes and goes; its Event objects go, too.
    """
    async with cluster.history_in_memory() as made:
        runtime = made.runtime
        await prepare(made, 0)
        published = slice_of(NODE, devices=devices)
        before = await _until_calm(runtime)
        await submit_all(runtime, [node(NODE), published])
        placed = await _until_calm(runtime)
        await submit_all(runtime, [pod(POD)])
        end = await _until_calm(runtime)
        events = await runtime.log.read(runtime.info.id, after=before, limit=end)
        started = runtime.views.objects.get(ObjectKey("", "pods", "default", POD)) or {}
        assert started["status"]["phase"] == "Running"
        about_node = [event for event in events if event.revision <= placed]
        await runtime.submit(DeleteObject(key=ObjectKey("", "pods", "default", POD)), actor=BENCH)
        await _until_calm(runtime)
        for key in runtime.views.objects.keys("", "events"):
            if key.name.startswith(POD):
                await runtime.submit(DeleteObject(key=key), actor=BENCH)
        gone = await _until_calm(runtime)
        life = await runtime.log.read(runtime.info.id, after=placed, limit=gone)
        assert runtime.views.objects.count(*RESOURCE_CLAIMS) == 0
        return Story(about_node), Story(events[len(about_node) :]), Story(life)


async def _until_calm(runtime: HistoryRuntime) -> Revision:
    """Wait until a second passes without an event; the head then."""
    with runtime.subscribe(after=runtime.head.revision) as followed:
        while await followed.next_batch(1.0):
            pass
    return runtime.head.revision


def copies(after: Revision, told: tuple[Story, Story, Story], size: Size) -> Iterator[Event]:
    """Nodes, then pods that went, then pods spread over the devices, after a revision."""
    for_node, for_pod, for_life = told
    for number in range(size.nodes):
        names = {NODE: f"node-{number:04}", "gpu-0": "gpu-0"}
        for event in for_node.copy(after, names, number):
            yield event
            after = event.revision
    for number in range(size.gone):
        names = {NODE: f"node-{number % size.nodes:04}", POD: f"gone-{number:07}", "gpu-0": "gpu-0"}
        for event in for_life.copy(after, names, number):
            yield event
            after = event.revision
    for number in range(size.pods):
        device, place = divmod(number, size.nodes)
        names = {NODE: f"node-{place:04}", POD: f"pod-{number:05}", "gpu-0": f"gpu-{device}"}
        for event in for_pod.copy(after, names, number):
            yield event
            after = event.revision


async def _append(log: EventLog, history: HistoryId, head: Head, page: Sequence[Event]) -> Head:
    events, previous = [], head.hash
    for event in page:
        events.append(chain.relinked(event, event.body, previous))
        previous = events[-1].hash
    return await log.append(history, expected=head, events=events) if events else head


async def write(folder: Path, size: Size) -> int:
    """Make the default history of a data folder so large; returns the number of its events."""
    told = await stories(size.devices)
    chosen = settings(data=folder)
    async with open_store(chosen, migrate=True) as store:
        async with open_histories(store, chosen) as histories:
            runtime = await histories.create_cluster(
                DEFAULT_HISTORY, settings=history_settings(chosen)
            )
            await prepare(
                Cluster(store=store, settings=chosen, runtime=runtime, has_tables=False), 0
            )
            info = runtime.info
        head = await store.log.head(info.id)
        page: list[Event] = []
        for event in copies(head.revision, told, size):
            page.append(event)
            if len(page) == APPENDED:
                head, page = await _append(store.log, info.id, head, page), []
        head = await _append(store.log, info.id, head, page)
        return head.revision
