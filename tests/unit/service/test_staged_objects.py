"""Objects as a batch has left them so far, and what that means for the next command."""

import random

import pytest
from msgspec.structs import replace

from app.domain.errors import StaleLease, TooLarge
from app.domain.log import Draft, EventType, LeaseToken, ObjectKey, Stamp
from app.domain.log.chain import seal
from app.domain.objects.write.commands import PatchObject, PatchType
from app.domain.objects.write.sealing import decide_and_seal
from app.domain.objects.write.staging import StagedObjects
from app.domain.values.timestamps import Instant
from app.service import writing
from app.service.writing import WriteRequest
from tests.cluster import Cluster
from tests.unit.service.builders import ALICE, config_map, rules

FIRST, SECOND = (ObjectKey("", "configmaps", "default", name) for name in ("a", "b"))


def staged(*names, data="1"):
    """A cluster with these ConfigMaps, and nothing staged."""
    cluster = Cluster(namespaces=("default", "other"))
    cluster.line.submit(config_map("stored", "other"), actor=ALICE)
    for name in names:
        made = config_map(name)
        made.tree["data"]["a"] = data
        cluster.line.submit(made, actor=ALICE)
    return StagedObjects(cluster.line.views.objects)


def copied(objects, key, uid):
    """The first ConfigMap under another key and uid, as an event."""
    event = objects.event(FIRST)
    return replace(event, type=EventType.OBJECT_CREATED, key=key, uid=uid)


def test_keys_of_a_namespace_leave_out_those_of_others():
    objects = staged("a")
    elsewhere = ObjectKey("", "configmaps", "other", "x")
    before = list(objects.keys("", "configmaps", "default"))
    objects.stage([copied(objects, SECOND, "u")])
    assert list(objects.keys("", "configmaps", "default")) == sorted([*before, SECOND])
    objects.stage([copied(objects, elsewhere, "v")])
    assert list(objects.keys("", "configmaps", "default")) == sorted([*before, SECOND])
    assert elsewhere in list(objects.keys("", "configmaps"))


def test_uid_finds_what_is_staged_and_what_is_stored():
    objects = staged("a")
    stored = objects.event(FIRST).uid
    objects.stage([copied(objects, SECOND, "fresh")])
    assert objects.by_uid(stored) == FIRST
    assert objects.by_uid("fresh") == SECOND
    assert objects.by_uid("nobody's") is None
    objects.stage([replace(objects.event(SECOND), type=EventType.OBJECT_DELETED)])
    assert objects.by_uid("fresh") is None


def test_what_is_restored_is_as_it_was():
    objects = staged("a")
    mark = objects.mark()
    revision, hash_ = objects.revision, objects.hash
    stored = objects.get(FIRST)
    objects.stage([replace(objects.event(FIRST), type=EventType.OBJECT_DELETED)])
    assert objects.get(FIRST) is None
    objects.restore(mark)
    assert objects.get(FIRST) == stored
    assert (objects.revision, objects.hash) == (revision, hash_)


def patched(objects, value, bytes_max):
    """The events of a patch of the first ConfigMap's only value."""
    command = PatchObject(
        key=FIRST, version="v1", type=PatchType.MERGE, body={"data": {"a": value}}
    )
    stamp = Stamp(time=objects.event(FIRST).stamp.time, actor=ALICE, verb="patch")
    _, events = decide_and_seal(
        command, objects, stamp, rules(), new_uid=lambda: "u", object_bytes_max=bytes_max
    )
    return events


def test_object_over_the_bound_may_change_while_it_does_not_grow():
    """It was stored under another bound, or by an import."""
    objects = staged("a", data="x" * 1_000)
    assert len(patched(objects, "y" * 1_000, 10_000)) == 1
    size = len(objects.event(FIRST).body)
    assert len(patched(objects, "z" * 1_000, 500)) == 1
    assert len(objects.event(FIRST).body) == size
    assert len(patched(objects, "z" * 900, 500)) == 1
    with pytest.raises(TooLarge, match="at most 500 are stored"):
        patched(objects, "z" * 901, 500)


def test_only_requests_of_the_stale_lease_fail():
    requests = [
        WriteRequest(
            commands=(config_map("x"),),
            actor=ALICE,
            verb="create",
            request_id="",
            cause=0,
            observed=0,
            lease=lease,
        )
        for lease in (
            None,
            LeaseToken(name="claims", epoch=1),
            LeaseToken(name="claims", epoch=2),
            LeaseToken(name="scheduling", epoch=1),
        )
    ]
    stale = StaleLease(name="claims", epoch=1)
    kept = writing._drop_stale(requests, stale)
    assert kept == [requests[0], requests[2], requests[3]]
    assert requests[1].problem is stale


class Held:
    """A reader that goes through all its objects for each answer: the model of every other one."""

    def __init__(self, events, revision):
        self.events, self.revision = dict(events), revision

    def get(self, key):
        return self.events[key].object if key in self.events else None

    def event(self, key):
        return self.events.get(key)

    def keys(self, group, resource, namespace=None):
        return sorted(
            key
            for key in self.events
            if key[:2] == (group, resource) and namespace in (None, key.namespace)
        )

    def dependents(self, owner_uid):
        return sorted(
            key
            for key, event in self.events.items()
            for owner in event.object["metadata"].get("ownerReferences", ())
            if owner["uid"] == owner_uid
        )

    def by_uid(self, uid):
        return next((key for key, event in self.events.items() if event.uid == uid), None)


KEYS = [
    ObjectKey("", resource, namespace, name)
    for resource in ("configmaps", "pods")
    for namespace in ("default", "other")
    for name in ("a", "b")
]
OWNERS = ("owner", "other-owner")


def written(chance, key, before, revision):
    """An event about a key: it is made, changed, made anew under another uid, or deleted."""
    is_new = before is None or chance.random() < 0.2
    uid = f"{key.resource}-{key.namespace}-{key.name}-{revision}" if is_new else before.uid
    owners = [{"uid": owner} for owner in OWNERS if chance.random() < 0.4]
    metadata = {"name": key.name, "namespace": key.namespace, "uid": uid}
    if owners or chance.random() < 0.5:
        metadata["ownerReferences"] = owners
    types = [EventType.OBJECT_CREATED if is_new else EventType.OBJECT_UPDATED]
    if not is_new:
        types.append(EventType.OBJECT_DELETED)
    stamp = Stamp(time=Instant(revision), actor=ALICE, verb="test")
    draft = Draft(
        type=chance.choice(types), key=key, uid=uid, tree={"metadata": metadata}, stamp=stamp
    )
    return seal(draft, revision, b"before")


def applied(model, event):
    events = {**model.events, event.key: event}
    if event.type is EventType.OBJECT_DELETED:
        del events[event.key]
    return Held(events, event.revision)


def write_some(chance, model, count):
    """Random events after a model, and the models after each."""
    events, models = [], [model]
    for _ in range(count):
        key = chance.choice(KEYS)
        event = written(chance, key, models[-1].event(key), models[-1].revision + 1)
        events.append(event)
        models.append(applied(models[-1], event))
    return events, models


@pytest.mark.parametrize("seed", range(25))
def test_staged_objects_are_those_that_a_reader_of_the_whole_log_has(seed):
    chance = random.Random(f"staged {seed}")
    _, models = write_some(chance, Held({}, 0), 8)
    base = models[-1]
    objects, model, marks, uids = StagedObjects(base), base, [], set()
    for _ in range(12):
        if marks and chance.random() < 0.3:
            number = chance.randrange(len(marks))
            mark, model = marks[number]
            del marks[number:]
            objects.restore(mark)
        else:
            marks.append((objects.mark(), model))
            events, after = write_some(chance, model, chance.randint(1, 3))
            objects.stage(events)
            model = after[-1]
            uids.update(event.uid for event in events)
        check_same(objects, model, uids)


def check_same(objects, model, uids):
    assert objects.revision == model.revision
    for key in KEYS:
        assert objects.event(key) is model.event(key)
        assert objects.get(key) == model.get(key)
    for resource in ("configmaps", "pods", "services"):
        for namespace in (None, "default", "other", "nowhere"):
            places = ("", resource, namespace)
            assert list(objects.keys(*places)) == model.keys(*places)
    for uid in (*uids, "nobody's"):
        assert objects.by_uid(uid) == model.by_uid(uid)
    for owner in (*OWNERS, "nobody's"):
        assert list(objects.dependents(owner)) == model.dependents(owner)
