"""A recorder in this process over a store in memory, and checks of its log."""

import re
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio

from app.bootstrap import stores
from app.bootstrap.recording import recorders
from app.bootstrap.recording.recording_request import Wanted
from app.domain.log import EventType, Revision
from app.domain.log.records import LIST, WATCH
from app.domain.values import json_tree
from app.service import recorded_doubts
from app.service.recording.journal import GAPS_NAMED_MAX
from app.settings import Settings
from tests.patience import PATIENCE_SECONDS

QUICK = {
    "lease_seconds": 0.3,
    "record_pause_seconds_max": 0.1,
    "record_denied_seconds": 0.1,
    "record_page_max": 7,
    "record_audit_pages_per_minute": 1e6,
    # The server of these tests shares a processor with everything else: it is late with its dates.
    "record_clock_seconds": 10,
}


@dataclass
class Recording:
    """The history `prod` of a cluster, which may be recorded several times."""

    wanted: Wanted
    settings: Settings
    store: stores.Store = field(default_factory=stores.memory_store)
    notes: list = field(default_factory=list)

    def opened(self):
        """The cluster, asked for what it has."""
        return recorders.open_cluster(
            self.store, self.settings, self.wanted, note=self.notes.append
        )

    @asynccontextmanager
    async def going(self, *, is_killed=False):
        """Runs a recorder during the block; kills it at the end, or stops it in order."""
        stopped, started = anyio.Event(), anyio.Event()
        async with (
            self.opened() as opened,
            anyio.create_task_group() as tasks,
        ):
            info = await recorders.begin(
                self.store, self.settings, self.wanted, opened, note=self.notes.append
            )

            async def follow():
                await recorders.follow(
                    self.store, self.settings, opened, info,
                    started=started.set, note=self.notes.append, stopped=stopped,
                )  # fmt: skip
                stopped.set()

            begun, noted = len(await self.log()), len(self.notes)
            tasks.start_soon(follow)
            await started.wait()
            yield
            if is_killed:
                tasks.cancel_scope.cancel()
            else:
                stopped.set()
        if not is_killed:
            self.check_said(await self.gaps(after=begun), self.notes[noted:])

    def check_said(self, gaps, notes):
        """Asserts that the screen counts each gap, and names it or the last one like it."""
        named = [note for note in notes if note.startswith("prod: gap: ")]
        joined = [note for note in notes if note.startswith("prod: gap of ")]
        alike = [note for note in notes if note.startswith("prod: gap, ")]
        more = sum(int(note.split()[1]) for note in notes if "more gap" in note)
        like = sum(int(note.split()[2]) for note in alike)
        of_kinds = sum(int(note.split()[3]) for note in joined)
        assert len(named) + of_kinds + like + more == len(gaps)
        shapes = [in_common(note) for note in (*named, *joined)]
        texts = {in_common(text) for _, text in gaps}
        unsaid = {text for text in texts if not any(each.endswith(text) for each in shapes)}
        assert not unsaid or (more and len(named) >= GAPS_NAMED_MAX)

    async def once(self):
        async with self.opened() as opened:
            return await recorders.begin(
                self.store,
                self.settings,
                self.wanted,
                opened,
                note=self.notes.append,
                is_once=True,
            )

    async def info(self):
        return await self.store.log.find_history(self.wanted.history)

    async def log(self):
        """All events of the history; none when there is no history."""
        info = await self.info()
        if info is None:
            return []
        return await self.store.log.read(info.id, after=Revision(0), limit=10**6)

    async def doubts(self):
        return await recorded_doubts.doubts_of(self.store.log, await self.info())

    async def gaps(self, *, after=0):
        """The kind and message of each gap, also of those behind a number of events."""
        return [
            (event.key.resource, event.object["message"])
            for event in (await self.log())[after:]
            if event.type is EventType.GAP_OBSERVED
        ]

    async def wait_for(self, seen):
        """Waits until `seen(events)` is true for the log."""
        info = await self.info()
        with anyio.fail_after(PATIENCE_SECONDS):
            async with self.store.ports.wake_up.listen(info.id) as listener:
                while not seen(await self.log()):
                    await listener.wait(1.0)

    async def wait_for_version(self, version):
        """Waits until the log has a change with this resource version or a later one."""
        await self.wait_for(lambda events: any(version_of(event) >= version for event in events))


def recording_of(source, **choices):
    """A recording of a source with small bounds."""
    bounds = QUICK | {
        name: choices.pop(name) for name in list(choices) if name.startswith("record_")
    }
    wanted = Wanted(
        history="prod", kubeconfig=choices.pop("kubeconfig", "") or source.kubeconfig(), **choices
    )
    return Recording(wanted, Settings(**bounds))


def in_common(text):
    """What gaps that are alike have in common: no numbers, and no kind."""
    text = re.sub(r"/apis?/\S+: |changes of \S+ ", "", text)
    return "".join(letter for letter in text if not letter.isdigit())


def version_of(event):
    """The resource version that an event had in the cluster; 0 for other events."""
    origin = event.stamp.origin
    return int(origin.resource_version or 0) if origin is not None else 0


def content(event):
    """The object without its resourceVersion, which differs between logs."""
    tree = json_tree.copy(event.object)
    del tree["metadata"]["resourceVersion"]
    return tree


def state_of(events):
    """The objects that exist at the end: uid and content by key."""
    found = {}
    for event in events:
        if event.type is EventType.OBJECT_DELETED:
            found.pop(event.key, None)
        elif event.is_about_object:
            found[event.key] = event.uid, content(event)
    return found


RECORDED = frozenset(
    {("", "pods"), ("", "nodes"), ("", "namespaces"), ("resource.k8s.io", "resourceclaims")}
)


def of_recorded_kinds(events):
    """The events about objects of the kinds that are compared."""
    return [event for event in events if event.is_about_object and event.key[:2] in RECORDED]


def check_same(happened, recorded, *, without=(), may_be_late=False):
    """Asserts that the recording is complete and in order, or names a gap; returns the gaps.

    With gaps, the final state is the same, and the changes from watches are in order. Late changes
    (allowed by `may_be_late`) are marked as late.
    """
    happened = [
        event for event in happened
        if event.key[:2] in RECORDED and event.key.resource not in without
    ]  # fmt: skip
    objects = of_recorded_kinds(recorded)
    assert state_of(objects) == state_of(happened)
    baseline = [event for event in objects if event.stamp.verb == "baseline"]
    watched = [event for event in objects if event.stamp.origin.position == WATCH]
    facts = {event.revision: event for event in happened}
    for event in watched:
        fact = facts[version_of(event)]
        assert (fact.type, fact.key, fact.uid) == (event.type, event.key, event.uid)
        assert content(fact) == content(event)
    late = [event for event in watched if "late" in event.stamp.origin.losses]
    in_order = [version_of(event) for event in watched if event not in late]
    assert in_order == sorted(set(in_order)), "watched changes stand in the cluster's order, once"
    gaps = [event for event in recorded if event.type is EventType.GAP_OBSERVED]
    if not gaps:
        last_listed = max((version_of(event) for event in baseline), default=0)
        shown = {version_of(event) for event in objects}
        missing = [
            event for event in happened
            if event.revision > last_listed and event.revision not in shown
        ]  # fmt: skip
        # No change between the first watched change and the list is missing.
        first = min((version_of(event) for event in watched), default=10**9)
        assert not [event for event in missing if event.revision > first]
        assert may_be_late or not late
        assert all(event.stamp.origin.position == LIST for event in baseline)
    times = [event.stamp.time for event in recorded]
    assert times == sorted(times)
    assert [event.revision for event in recorded] == list(range(1, len(recorded) + 1))
    return gaps
