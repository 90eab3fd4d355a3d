"""A long history on the embedded database: one pod's and one node's events, copied many times.

A control plane in memory runs one pod on one node. Its events are copied with other names, uids,
revisions, times and devices, so each copy is what the control plane writes, and objects refer to
each other as they do there. Bodies are split once at what differs, so that a copied event takes a
few microseconds: the log takes them as fast as it takes any. Decisions keep the hash of the plan
that was copied, so `verify` judges the chain and the invariants of such a history, not its
decisions.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

import anyio.lowlevel
import msgspec

from app.adapters.clock import SystemClock
from app.bootstrap.histories import open_histories
from app.bootstrap.history_settings import history_settings
from app.bootstrap.process_settings import settings
from app.bootstrap.stores import Store, open_store
from app.domain.log import Event, Head, HistoryId, ObjectKey, Revision, chain
from app.domain.log.pages import Page
from app.domain.objects.write.commands import DeleteObject
from app.domain.values import timestamps
from app.domain.values.api_resources import RESOURCE_CLAIMS
from app.domain.values.identifiers import NO_UID, Uid
from app.domain.values.timestamps import SECOND, Instant
from app.service import chronicles
from app.service.folding import snapshots
from app.service.histories import DEFAULT_HISTORY
from app.service.runtime import HistoryRuntime, RuntimeBounds
from bench import cluster
from bench.cluster import Cluster, node, pod, prepare, slice_of, submit_all
from bench.writer import BENCH
from projections.objects import ObjectsProjection

APPENDED = 5_000
"""Events of one append."""

NODE, POD = "copied-node", "copied-pod"
_TOKEN = re.compile(
    rb'[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|copied-node|copied-pod|gpu-0(?=")'
    rb'|(?<="resourceVersion":")[0-9]+(?=")|(?<="cause":)[0-9]+(?=,)'
    rb'|(?<=")[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{6})?Z(?=")'
)
"""What differs between two copies: uids, names, the device, revisions, and times."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How many nodes, devices of each, and pods with a claim for one device each.

    `gone` pods came and went before those, of which only the log has events.
    """

    nodes: int
    devices: int
    pods: int
    gone: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Template:
    """An event of a story, with its body split at the words that differ between copies."""

    event: Event
    parts: Sequence[bytes]

    @classmethod
    def of(cls, event: Event) -> "_Template":
        """The template of one event: every second part is such a word."""
        parts: list[bytes] = []
        end = 0
        for match in _TOKEN.finditer(event.body):
            parts += (event.body[end : match.start()], match[0])
            end = match.end()
        return cls(event=event, parts=(*parts, event.body[end:]))


class Story:
    """Events that one control plane wrote one after the other, about one node or pod."""

    def __init__(self, events: Sequence[Event]) -> None:
        self._first = events[0].revision
        self._began = events[0].stamp.time
        self.lasts = events[-1].stamp.time - self._began
        self._templates = [_Template.of(event) for event in events]
        self._words = {word for each in self._templates for word in each.parts[1::2]}

    def copy(
        self, after: Revision, time: Instant, names: Mapping[str, str], number: int
    ) -> Iterator[Event]:
        """The events from the revision after `after` on, with other names; without hashes.

        They begin within the second after `time`: instants of whole seconds stay such. `number`
        tells the uids of copies apart.
        """
        first = self._first
        moved, delay = after + 1 - first, -((self._began - time) // SECOND) * SECOND

        def later(revision: int) -> int:
            return revision + moved if revision >= first else revision

        def replaced(word: str) -> str:
            if word.isdigit():
                return str(later(int(word)))
            if not word.endswith("Z"):
                return names.get(word) or _uid(word, number)
            instant = Instant(timestamps.parse(word) + delay)
            return (timestamps.micro_text if "." in word else timestamps.seconds_text)(instant)

        words = {word: replaced(word.decode()).encode() for word in self._words}
        node, pod_name = names[NODE], names.get(POD, POD)
        for template in self._templates:
            event, parts = template.event, [*template.parts]
            parts[1::2] = [words[word] for word in parts[1::2]]
            stamp, key = event.stamp, event.key
            yield Event(
                revision=Revision(later(event.revision)),
                type=event.type,
                key=key._replace(name=key.name.replace(NODE, node).replace(POD, pod_name)),
                uid=_uid(event.uid, number),
                body=b"".join(parts),
                stamp=msgspec.structs.replace(
                    stamp,
                    time=Instant(stamp.time + delay),
                    uid=_uid(stamp.uid, number),
                    cause=later(stamp.cause),
                    observed=later(stamp.observed),
                ),
                format=event.format,
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


def copies(
    after: Revision, time: Instant, told: tuple[Story, Story, Story], size: Size
) -> Iterator[Event]:
    """Nodes, then pods that went, then pods spread over the devices, after a revision and time."""
    for_node, for_pod, for_life = told

    def chosen() -> Iterator[tuple[Story, Mapping[str, str], int]]:
        for number in range(size.nodes):
            yield for_node, {NODE: f"node-{number:04}", "gpu-0": "gpu-0"}, number
        for number in range(size.gone):
            home, name = f"node-{number % size.nodes:04}", f"gone-{number:07}"
            yield for_life, {NODE: home, POD: name, "gpu-0": "gpu-0"}, number
        for number in range(size.pods):
            device, place = divmod(number, size.nodes)
            names = {NODE: f"node-{place:04}", POD: f"pod-{number:05}", "gpu-0": f"gpu-{device}"}
            yield for_pod, names, size.gone + number

    for story, names, number in chosen():
        for event in story.copy(after, time, names, number):
            yield event
            after, time = event.revision, event.stamp.time


class _EarlierClock(SystemClock):
    """A clock that is behind, so that the copies that follow end at the present."""

    def __init__(self, behind: int) -> None:
        super().__init__()
        self._behind = behind

    def now(self) -> Instant:
        """The instant that many microseconds ago."""
        return Instant(super().now() - self._behind)


def _lasts(told: tuple[Story, Story, Story], size: Size) -> int:
    """The microseconds that the copies of a history take at most."""
    counts = (size.nodes, size.pods, size.gone)
    stories = zip(told, counts, strict=True)
    return sum((story.lasts + 2 * SECOND) * count for story, count in stories)


class _Writer:
    """Appends copies, and keeps states of the objects as often as a server that is never idle."""

    def __init__(self, store: Store, history: HistoryId, head: Head) -> None:
        self._store = store
        self._history = history
        self._objects = ObjectsProjection(tells_changes=False)
        self._kept = Revision(0)
        self.head = head

    async def begin(self) -> None:
        """Fold the events that the history has."""
        page = await self._store.log.read(
            self._history, after=Revision(0), limit=self.head.revision
        )
        self._objects.fold_page(Page(page))

    async def append(self, page: Sequence[Event]) -> None:
        """Seal and append the next events."""
        events, previous = [], self.head.hash
        for event in page:
            events.append(chain.relinked(event, event.body, previous))
            previous = events[-1].hash
        self.head = await self._store.log.append(self._history, expected=self.head, events=events)
        self._objects.fold_page(Page(events))
        if self.head.revision - self._kept >= RuntimeBounds().snapshot_every:
            await self._keep()

    async def _keep(self) -> None:
        objects = self._objects
        view = (objects.name, objects.version)
        revision, parts = objects.revision, objects.dump_parts()
        store, last = self._store.ports.views, self.head.hash
        assert store is not None
        await snapshots.keep(store, self._history, view, revision, last, parts)
        self._kept = revision


async def write(folder: Path, size: Size, *, with_chronicle: bool = False) -> int:
    """Make the default history of a data folder so large; returns the number of its events.

    With its chronicle, it is kept as by a server that has followed the history.
    """
    told = await stories(size.devices)
    chosen = settings(data=folder)
    async with open_store(chosen, migrate=True) as store:
        ports = replace(store.ports, clock=_EarlierClock(_lasts(told, size)))
        store = replace(store, ports=ports)
        async with open_histories(store, chosen) as histories:
            runtime = await histories.create_cluster(
                DEFAULT_HISTORY, settings=history_settings(chosen)
            )
            await prepare(
                Cluster(store=store, settings=chosen, runtime=runtime, has_tables=False), 0
            )
            info = runtime.info
        writer = _Writer(store, info.id, await store.log.head(info.id))
        await writer.begin()
        events = copies(writer.head.revision, writer.head.time, told, size)
        while page := [*islice(events, APPENDED)]:
            await writer.append(page)
        if with_chronicle:
            async with open_histories(store, chosen) as histories:
                await _keep_chronicle(await histories.open(DEFAULT_HISTORY))
        return writer.head.revision


async def _keep_chronicle(runtime: HistoryRuntime) -> None:
    """Keep all stretches that are due."""
    kept, keeping = None, await chronicles.keep_next(runtime, anyio.lowlevel.checkpoint)
    while keeping is not None and keeping.revision != kept:
        kept = keeping.revision
        keeping = await chronicles.keep_next(runtime, anyio.lowlevel.checkpoint)
