"""Laws of writing and reading histories: each format returns what it can express, in any order."""

import json
import random
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from app.adapters.history.captures import CaptureWriter
from app.adapters.history.formats.bundle import BundleReader, BundleWriter
from app.adapters.history.joining.spool import replace_times
from app.adapters.history.limits import DEFAULT_LIMITS
from app.adapters.history.opening import open_history
from app.adapters.history.reading import ReadOptions
from app.adapters.history.writers import AuditWriter, DumpWriter, WatchWriter
from app.domain.log import Draft, Event, EventType, ObjectKey, Revision, Stamp, chain
from app.domain.log.event import GENESIS, Actor
from app.domain.log.records import Op, comparable_version
from app.domain.values.timestamps import Instant
from tests import draws

GROUP = "resource.k8s.io"
FINALIZER = "example.com/hold"
START = 1_767_225_600_000_000

steps = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", "c"]),
        st.sampled_from(["write", "write", "terminate", "remove"]),
        st.booleans(),
        st.integers(0, 3_000_000),
    ),
    min_size=1,
    max_size=40,
)
"""What to do to which object, whether it has a finalizer, and microseconds since the last step."""


def history(plan) -> list[Event]:
    """Sealed events of a small cluster: creations, updates, terminations, removals."""
    state: dict[str, dict] = {}
    events: list[Event] = []
    previous, time = GENESIS, START
    for number, (name, what, has_finalizer, passed) in enumerate(plan, start=1):
        time += passed
        tree = state.get(name)
        if tree is None:
            type_ = EventType.OBJECT_CREATED
            metadata = {"name": name, "namespace": "d", "uid": f"uid-{name}-{number}"}
            if has_finalizer:
                metadata["finalizers"] = [FINALIZER]
            tree = {
                "apiVersion": f"{GROUP}/v1",
                "kind": "ResourceClaim",
                "metadata": metadata,
                "spec": {"n": number},
            }
        elif what == "remove":
            type_ = EventType.OBJECT_DELETED
        elif what == "terminate" and "finalizers" in tree["metadata"]:
            type_ = EventType.OBJECT_UPDATED
            metadata = {**tree["metadata"], "deletionTimestamp": "2026-01-01T00:00:09Z"}
            tree = {**tree, "metadata": metadata}
        else:
            type_ = EventType.OBJECT_UPDATED
            tree = {**tree, "spec": {"n": number}}
        tree = {**tree, "metadata": dict(tree["metadata"])}
        draft = Draft(
            type=type_,
            key=ObjectKey(GROUP, "resourceclaims", "d", name),
            uid=tree["metadata"]["uid"],
            tree=tree,
            stamp=Stamp(
                time=Instant(time),
                actor=Actor(user=f"user-{number % 3}", groups=("g",), agent="test"),
                verb="write",
                request_id=f"request-{number}",
            ),
        )
        event = chain.seal(draft, Revision(number), previous)
        previous = event.hash
        events.append(event)
        if type_ is EventType.OBJECT_DELETED:
            del state[name]
        else:
            state[name] = tree
    return events


def written(writer, events) -> None:
    writer.write(events)
    writer.finish({})


def read(*paths: Path):
    with open_history(list(paths), ReadOptions()) as recorded:
        return list(recorded.records())


OPS = {
    EventType.OBJECT_CREATED: Op.ADDED,
    EventType.OBJECT_UPDATED: Op.MODIFIED,
    EventType.OBJECT_DELETED: Op.DELETED,
}


def told(events):
    return [(OPS[event.type], event.key, event.uid, event.object) for event in events]


def heard(records):
    return [(record.op, record.key, record.uid, record.object) for record in records]


def without_versions(changes):
    """Clears the resourceVersion of changes: a deletion answered by a Status has none."""
    return [
        (op, key, uid, {**tree, "metadata": {**tree["metadata"], "resourceVersion": ""}})
        for op, key, uid, tree in changes
    ]


@given(steps)
@settings(max_examples=draws.examples(60), deadline=None)
def test_bundle_gives_back_every_event_and_equal_bytes(plan):
    events = history(plan)
    with tempfile.TemporaryDirectory() as folder:
        first, second = Path(folder, "a"), Path(folder, "b")
        written(BundleWriter(first), events)
        written(BundleWriter(second), events)
        assert first.read_bytes() == second.read_bytes()
        reader = BundleReader(first, DEFAULT_LIMITS)
        reader.check()
        again = [event for batch in reader.batches() for event in batch]
    assert [(e.hash, e.stamp, e.body) for e in again] == [(e.hash, e.stamp, e.body) for e in events]


@given(steps)
@settings(max_examples=draws.examples(60), deadline=None)
def test_watch_stream_gives_back_every_change(plan):
    events = history(plan)
    if not events:
        return
    with tempfile.TemporaryDirectory() as folder:
        written(WatchWriter(Path(folder, "w")), events)
        records = read(Path(folder, "w"))
    assert heard(records) == told(events)


@given(steps)
@settings(max_examples=draws.examples(60), deadline=None)
def test_capture_gives_back_every_change_and_equal_bytes(plan):
    events = history(plan)
    with tempfile.TemporaryDirectory() as folder:
        first, second = Path(folder, "a.kshrk"), Path(folder, "b.kshrk")
        written(CaptureWriter(first), events)
        written(CaptureWriter(second), events)
        assert first.read_bytes() == second.read_bytes()
        records = read(first)
    assert heard(records) == told(events)
    assert [r.observed_at for r in records] == [e.stamp.time for e in events]


@given(steps, st.randoms(use_true_random=False))
@settings(max_examples=draws.examples(60), deadline=None)
def test_audit_log_gives_back_every_change_with_its_actor_in_any_order_of_lines(plan, shuffle):
    events = history(plan)
    if not events:
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "audit.log")
        written(AuditWriter(path), events)
        lines = path.read_text().splitlines(keepends=True)
        records = read(path)
        # Lines are late by a few places, as servers write them; removals keep their place.
        for index in range(len(lines) - 1):
            own = [json.loads(line)["responseObject"]["kind"] for line in lines[index : index + 2]]
            if "Status" not in own and shuffle.random() < 0.3:
                lines[index], lines[index + 1] = lines[index + 1], lines[index]
        path.write_text("".join(lines))
        late = read(path)
    assert without_versions(heard(records)) == without_versions(told(events))
    assert [r.actor.user for r in records] == [e.stamp.actor.user for e in events]
    assert [r.request_id for r in records] == [e.stamp.request_id for e in events]
    assert [r.observed_at for r in records] == [e.stamp.time for e in events]

    def final(found):
        state = {}
        for op, key, _, tree in without_versions(heard(found)):
            state[key] = None if op is Op.DELETED else tree
        return state

    assert final(late) == final(records)


@given(steps, st.permutations([0, 1, 2]))
@settings(max_examples=draws.examples(40), deadline=None)
def test_joined_sources_tell_each_change_once_in_any_order_of_files(plan, order):
    events = history(plan)
    if not events:
        return
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder, name) for name in ("audit.log", "w", "dump.json")]
        for writer, path in zip((AuditWriter, WatchWriter, DumpWriter), paths, strict=True):
            written(writer(path), events)
        records = read(*(paths[index] for index in order))
    assert heard(records) == told(events)
    assert [r.actor.user for r in records] == [e.stamp.actor.user for e in events]


@given(steps)
@settings(max_examples=draws.examples(40), deadline=None)
def test_dump_holds_the_objects_that_are_left(plan):
    events = history(plan)
    left = {}
    for event in events:
        left.pop(event.key, None)
        if event.type is not EventType.OBJECT_DELETED:
            left[event.key] = event.object
    if not left:
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "dump.json")
        written(DumpWriter(path), events)
        records = read(path)
    assert {record.op for record in records} == {Op.BASELINE}
    assert {record.key: record.object for record in records} == left


@given(steps)
@settings(max_examples=draws.examples(30), deadline=None)
def test_reading_one_file_twice_adds_nothing(plan):
    events = history(plan)
    if not events:
        return
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder, "w"), Path(folder, "again")]
        for path in paths:
            written(WatchWriter(path), events)
        assert heard(read(*paths)) == heard(read(paths[0]))


@given(st.lists(st.tuples(st.none() | st.integers(0, 99), st.booleans()), max_size=30))
def test_settled_times_rise_and_exact_ones_are_never_raised_by_later_exact_ones(rows):
    settled = replace_times(rows)
    known = [time for time in settled if time is not None]
    assert known == sorted(known)
    assert len(settled) == len(rows)
    exact = [time for time, is_exact in rows if is_exact and time is not None]
    if exact and all(is_exact for _, is_exact in rows):
        assert max(known) <= max(exact)


@given(st.lists(st.integers(0, 10**30), max_size=20))
def test_versions_sort_as_the_integers_they_are(numbers):
    shuffled = list(numbers)
    random.Random(0).shuffle(shuffled)
    assert sorted(shuffled, key=lambda number: comparable_version(str(number))) == sorted(numbers)
