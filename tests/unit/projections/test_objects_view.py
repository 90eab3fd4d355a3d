"""The view of objects: what it keeps, and what it lets go."""

import random

import msgspec
import pytest

from app.domain.log import ObjectKey
from app.domain.log.chain import canonical_json
from app.domain.values.identifiers import Uid
from projections import kept_objects
from projections import packed as packed_values
from projections.last_events import PackedEvent
from projections.objects import ObjectsProjection
from projections.tables import OBJECTS
from tests.properties.event_worlds import world
from tests.unit.projections.log_of import LogOf


def churn(view: ObjectsProjection) -> LogOf:
    """One object stays, nine come and go."""
    log = LogOf(view)
    log.put("pod", "ns/stays", metadata={"ownerReferences": [{"uid": "owner"}]})
    for number in range(9):
        log.put("pod", f"ns/gone-{number}", metadata={"ownerReferences": [{"uid": "owner"}]})
        log.delete("pod", f"ns/gone-{number}")
    log.put("pod", "ns/stays", spec={"nodeName": "n"})
    return log


def test_view_from_which_nobody_takes_rows_forgets_what_is_gone() -> None:
    view = ObjectsProjection(1, tells_changes=False)
    churn(view)
    held = repr(vars(view))
    assert "stays" in held
    assert "gone" not in held
    assert view.take_changed() == {}


def test_hash_is_that_of_the_objects_whether_changes_are_told_or_not() -> None:
    told, quiet = ObjectsProjection(), ObjectsProjection(tells_changes=False)
    log = churn(told)
    for event in log.events:
        quiet.fold(event)
    assert quiet.state_hash() == told.state_hash()
    log.put("pod", "ns/late")
    quiet.fold(log.events[-1])
    assert quiet.state_hash() == told.state_hash()


def test_dependents_and_unusual_events_are_those_of_the_objects_that_exist() -> None:
    for seed in range(30):
        pick = random.Random(seed)
        view = ObjectsProjection()
        log = LogOf(view)
        owners: dict[str, set[str]] = {}
        types: dict[str, str] = {}
        for _ in range(60):
            name = f"ns/{pick.randrange(8)}"
            if pick.random() < 0.2:
                for kind, known in (("pod", owners), ("event", types)):
                    if known.pop(name, None) is not None:
                        log.delete(kind, name)
            else:
                owners[name] = set(pick.choices(("u1", "u2", "u3"), k=pick.randrange(4)))
                named = [{"uid": uid} for uid in owners[name]]
                log.put("pod", name, metadata={"ownerReferences": named} if named else {})
                types[name] = pick.choice(("Normal", "Warning", ""))
                log.put("event", name, **({"type": types[name]} if types[name] else {}))
            if pick.random() < 0.3:
                for uid in ("u1", "u2", "u3"):
                    of_owner = [f"{key.namespace}/{key.name}" for key in view.dependents(uid)]
                    assert of_owner == sorted(n for n, uids in owners.items() if uid in uids)
            unusual = [event.key.name for event in view.unusual_events("ns")]
            assert unusual == sorted(n[3:] for n, kind in types.items() if kind != "Normal")
            assert view.unusual_events("other") == []


def test_row_of_a_secret_names_its_values_and_does_not_hold_them() -> None:
    view = ObjectsProjection()
    log = LogOf(view)
    log.put(
        "secret",
        "ns/s",
        metadata={
            "annotations": {
                "note": "kept",
                "kubectl.kubernetes.io/last-applied-configuration": '{"data":{"a":"hunter2"}}',
            }
        },
        data={"a": "hunter2"},
        stringData={"b": "hunter2"},
        type="Opaque",
    )
    log.put("secret", "ns/odd", data="hunter2")
    row = view.row(OBJECTS.name, ("", "secrets", "ns", "s"))
    assert row is not None
    shown = row["object"]
    assert (shown["data"], shown["stringData"], shown["type"]) == (
        {"a": None},
        {"b": None},
        "Opaque",
    )
    assert shown["metadata"]["annotations"] == {"note": "kept"}
    assert b"hunter2" not in canonical_json(view.row(OBJECTS.name, ("", "secrets", "ns", "odd")))
    kept = view.get(log.events[0].key)
    assert kept is not None
    assert kept["data"] == {"a": "hunter2"}, "the view itself is what clients read from"


def packed(view: ObjectsProjection) -> int:
    """The objects of a view that are compressed."""
    kept = (held for place in view.resources() for _, held in view.kept(*place))
    return sum(isinstance(held, PackedEvent) for held in kept)


@pytest.mark.parametrize("seed", range(3))
def test_view_with_compressed_objects_shows_what_a_plain_one_shows(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packed_values, "SAMPLE_USES_MAX", 3)
    monkeypatch.setattr(kept_objects, "AT_ONCE", 1 + seed)
    pick = random.Random(seed)
    small, plain = ObjectsProjection(2, plain_max=3), ObjectsProjection()
    most = 0
    for event in world(seed, 150):
        small.fold(msgspec.structs.replace(event))
        plain.fold(event)
        most = max(most, packed(small))
        place = pick.choice(plain.resources() or [("", "pods")])
        keys = list(plain.keys(*place))
        assert list(small.keys(*place)) == keys
        for key in pick.sample(keys, min(2, len(keys))):
            read = pick.choice(("get", "event", "created", "by_uid"))
            if read == "by_uid":
                uid = plain.event(key).uid
                assert small.by_uid(uid) == plain.by_uid(uid)
                assert list(small.dependents(uid)) == list(plain.dependents(uid))
            elif read == "event":
                assert small.event(key).undecoded() == plain.event(key).undecoded()
            else:
                assert getattr(small, read)(key) == getattr(plain, read)(key)
        if pick.random() < 0.1:
            namespace = event.key.namespace
            assert small.tally(namespace).amounts() == plain.tally(namespace).amounts()
            assert small.dump() == plain.dump()
            assert small.take_changed() == plain.take_changed()
    assert most > 3
    assert small.unusual_events() == [event.undecoded() for event in plain.unusual_events()]
    assert small.state_hash() == plain.state_hash()
    for until in (0, 50, 100, 150):
        left = [event.undecoded() for event in small.left_over(until)]
        assert left == [event.undecoded() for event in plain.left_over(until)]
        held = [plain.event(key) for place in plain.resources() for key in plain.keys(*place)]
        revisions = sorted(event.revision for event in held)
        assert [event.revision for event in left] == [each for each in revisions if each <= until]
    again = ObjectsProjection(2, plain_max=3)
    seen = []
    again.load(small.dump(), lambda event, created: seen.append((event.key, created)))
    assert seen == sorted((event.key, plain.created(event.key)) for event in held)
    assert packed(again) == again.total - 2, "all but those that are plain at any time"
    assert again.dump() == plain.dump() == again.dump()
    for kept in (b"".join(again.dump_parts()), b"".join(again.dump_parts())):
        assert packed(again) == again.total, "what nobody has read is compressed for the state"
        restored, seen = ObjectsProjection(2, plain_max=3), []
        restored.load(kept, lambda event, created: seen.append((event.key, created)))  # noqa: B023  # called at once
        assert sorted(seen) == sorted((event.key, plain.created(event.key)) for event in held)
        assert restored.dump() == plain.dump()
        assert restored.state_hash() == plain.state_hash()
        assert restored.unusual_events() == small.unusual_events()
        for event in held:
            assert restored.by_uid(event.uid) == plain.by_uid(event.uid)
            assert list(restored.dependents(event.uid)) == list(plain.dependents(event.uid))


@pytest.mark.parametrize(
    ("part", "wrong"),
    [("name", "z"), ("namespace", "other"), ("uid", "other"), ("revision", 2), ("marks", None)],
)
def test_compressed_object_that_is_kept_as_another_one_is_no_dump(part: str, wrong: object) -> None:
    """`redra verify` compares dumps: what is known of an object is not believed without a look."""
    view = ObjectsProjection(1, plain_max=1)
    log = LogOf(view)
    for name in "abc":
        log.put("pod", f"ns/{name}", metadata={"ownerReferences": [{"uid": "owner"}]})
    state = b"".join(view.dump_parts())
    revision, count, samples, parts, plain = msgspec.msgpack.decode(state)
    entries = msgspec.msgpack.decode(parts[0])
    place = ("created", "group", "resource", "namespace", "name", "uid", "revision", "marks")
    entries[0][place.index(part)] = [False, False] if wrong is None else wrong
    changed = msgspec.msgpack.encode(
        (revision, count, samples, [msgspec.msgpack.encode(entries), *parts[1:]], plain)
    )
    for given, is_right in ((state, True), (changed, False)):
        loaded = ObjectsProjection(1, plain_max=1)
        loaded.load(given)
        if is_right:
            assert loaded.dump() == view.dump()
            assert packed(loaded) == 2
            assert [key.name for key in loaded.dependents(Uid("owner"))] == ["a", "b", "c"]
        else:
            with pytest.raises(ValueError, match="is kept as another object"):
                loaded.dump()


def test_compressed_object_stays_so_until_its_tree_is_read() -> None:
    view = ObjectsProjection(1, plain_max=1)
    log = LogOf(view)
    for name in "abc":
        log.put("pod", f"ns/{name}", spec={"nodeName": name})
    key = ObjectKey("", "pods", "ns", "a")
    assert packed(view) == 2
    assert view.event(key).object["spec"] == {"nodeName": "a"}
    assert packed(view) == 2
    assert view.get(key) is view.get(key)
    assert packed(view) == 2, "(the last one read took the place of the last one written)"
    log.put("pod", "ns/b", spec={"nodeName": "n"})
    log.delete("pod", "ns/a")
    assert (packed(view), view.total, view.get(key)) == (1, 2, None)


def test_events_of_a_compressed_object_share_its_key_and_uid() -> None:
    """Each controller keeps parts of them for each object."""
    folded, loaded = ObjectsProjection(1, plain_max=1), ObjectsProjection(1, plain_max=1)
    log = LogOf(folded)
    for name in "abc":
        log.put("pod", f"ns/{name}", metadata={"uid": f"uid-of-{name}"})
    loaded.load(b"".join(folded.dump_parts()))
    for view in (folded, loaded):
        key = next(iter(view.keys("", "pods")))
        first, second = view.event(key), view.event(key)
        assert first is not second
        assert first.key is second.key is key
        assert first.uid is second.uid
        assert first == second
