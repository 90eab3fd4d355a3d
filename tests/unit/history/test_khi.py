"""Files of Kubernetes History Inspector: what it concluded is told from what was stored."""

import gzip
import struct
from datetime import datetime

import pytest

from app.adapters.history.opening import open_history
from app.adapters.history.reading import ReadOptions
from app.domain.errors import InputError
from app.domain.log.records import Loss, Op, Quality, TimeQuality
from app.domain.values import timestamps
from tests.unit.history.khi_files import (
    DELETED,
    PARTIAL,
    TYPES,
    KhiFile,
    chunk,
    message,
    number,
    text,
)
from tests.unit.history.worlds import NAMESPACES, PODS, tree


def read(folder, content, **options):
    path = folder / "inspection.khi"
    path.write_bytes(content)
    with open_history([path], ReadOptions(**options)) as history:
        records = list(history.records())
        lost = [(each.place, each.problem) for each in history.refusals]
        return records, lost, history.left_out


def pod(rv="", metadata=None, **parts):
    metadata = {"creationTimestamp": "2026-01-02T03:04:05Z", **(metadata or {})}
    return tree(PODS, "web", "shop", rv=rv, metadata=metadata, **parts)


def brief(records):
    return [(record.op, record.name, record.resource_version) for record in records]


def test_revisions_of_an_object_are_its_states_with_who_made_them(tmp_path):
    file = KhiFile()
    labels = {"labels": {"a.b/c": "", "n": "1"}, "finalizers": []}
    spec = {"containers": [{"name": "main", "args": ["-v", None], "tty": True}], "weight": 0.5}
    first = pod(rv=7, metadata=labels, spec=spec, status={})
    file.revision(first, principal="kubectl")
    file.revision(pod(rv=9, spec=spec), verb="patch", at="2026-01-02T03:04:06Z")
    file.revision(pod(rv=9), verb="delete", state=DELETED, at="2026-01-02T03:04:07Z")
    records, lost, _ = read(tmp_path, file.content())
    assert brief(records) == [
        (Op.ADDED, "web", "7"),
        (Op.MODIFIED, "web", "9"),
        (Op.DELETED, "web", ""),
    ]
    assert records[0].object == first
    assert records[0].object_quality is Quality.FULL
    assert [record.actor.user for record in records] == ["kubectl", "alice", "alice"]
    assert records[0].observed_at % 1_000_000 == 123_456
    assert lost == []


def test_state_that_was_worked_out_from_a_patch_has_no_version_of_its_own(tmp_path):
    file = KhiFile()
    file.revision(pod(rv=7, spec={}))
    file.revision(pod(rv=7, spec={"nodeName": "n1"}), verb="patch", at="2026-01-02T03:04:06Z")
    file.revision(pod(rv=8, spec={"nodeName": "n1"}), verb="update", at="2026-01-02T03:04:07Z")
    records, _, _ = read(tmp_path, file.content())
    assert brief(records)[1] == (Op.MODIFIED, "web", "")
    assert records[1].object_quality is Quality.RECONSTRUCTED
    assert records[1].object["spec"] == {"nodeName": "n1"}
    assert [record.op for record in records] == [Op.ADDED, Op.MODIFIED, Op.MODIFIED]


def test_change_without_a_body_is_a_gap_and_a_conclusion_is_left_out(tmp_path):
    file = KhiFile()
    file.revision(pod(), body=False, state=PARTIAL)
    file.revision(pod(), body=False, verb="update", at="2026-01-02T03:04:06Z")
    file.revision(pod(), body=False, verb="delete", state=DELETED, at="2026-01-02T03:04:07Z")
    file.revision(pod(rv=3), verb="patch", subresource="status")
    records, _, left_out = read(tmp_path, file.content())
    assert [(record.op, record.namespace, record.object) for record in records] == [
        (Op.GAP, "shop", None),
        (Op.DELETED, "shop", None),
    ]
    assert Loss.METADATA_ONLY in records[0].losses
    assert left_out == [
        ("inspection.khi", "revisions of subresources, conditions and containers"),
        ("inspection.khi", "revisions that KHI concluded without a body"),
    ]


@pytest.mark.parametrize("principal", ["N/A", ""])
def test_creation_that_khi_takes_from_a_later_body_is_no_record(tmp_path, principal):
    """Its state is an ordinary one, and its principal no user."""
    file = KhiFile()
    file.revision(pod(), body=False, at="2025-01-02T03:04:05Z", principal=principal)
    file.revision(pod(rv=3), verb="patch")
    records, _, left_out = read(tmp_path, file.content())
    assert brief(records)[-1] == (Op.MODIFIED, "web", "3")
    assert {record.observed_at for record in records} == {records[-1].observed_at}
    assert left_out == [("inspection.khi", "revisions that KHI concluded without a body")]


def test_principal_that_is_not_known_is_no_user(tmp_path):
    file = KhiFile()
    file.revision(pod(rv=3), principal="N/A")
    ((record,), _, _) = read(tmp_path, file.content())
    assert record.actor is None
    assert Loss.NO_ACTOR in record.losses


@pytest.mark.parametrize("grace", [None, 30])
def test_state_without_a_time_of_deletion_is_not_what_a_deletion_left(tmp_path, grace):
    """A server sets the time or removes the object: a body without it is the one before."""
    file = KhiFile()
    file.revision(pod(rv=3))
    ending = {"deletionTimestamp": "2026-01-02T03:04:40Z", "deletionGracePeriodSeconds": grace}
    body = pod(rv=3, metadata={} if grace is None else ending)
    file.revision(body, verb="delete", at="2026-01-02T03:04:08Z")
    records, lost, _ = read(tmp_path, file.content())
    assert [record.op for record in records] == [Op.ADDED, Op.GAP if grace is None else Op.MODIFIED]
    assert lost == []


@pytest.mark.parametrize("subresource", ["binding", "eviction"])
def test_binding_and_eviction_are_gaps_of_the_pod_until_its_next_state(tmp_path, subresource):
    file = KhiFile()
    file.revision(pod(rv=3))
    at = "2026-01-02T03:04:06Z"
    file.revision(pod(), subresource=subresource, at=at, principal="scheduler")
    file.revision(pod(rv=5), verb="patch", at="2026-01-02T03:04:07Z")
    file.revision(pod(rv=5), verb="delete", subresource=subresource, at="2026-01-02T03:04:08Z")
    records, lost, left_out = read(tmp_path, file.content())
    assert [(record.op, record.name) for record in records] == [
        (Op.ADDED, "web"),
        (Op.GAP, "web"),
        (Op.MODIFIED, "web"),
    ]
    gap = records[1]
    assert (gap.actor.user, gap.subresource, gap.object) == ("scheduler", subresource, None)
    assert gap.message == f"create {subresource}: the body was not recorded"
    assert lost == []
    assert left_out == [("inspection.khi", "revisions of subresources, conditions and containers")]


@pytest.mark.parametrize("kind", ["Status", "DeleteOptions"])
def test_answer_in_the_place_of_a_body_is_no_object(tmp_path, kind):
    file = KhiFile()
    file.revision(pod(rv=3))
    answer = {"apiVersion": "v1", "kind": kind, "metadata": {}}
    file.revision(KeyedBody(answer, pod()), verb="delete", state=DELETED)
    records, _, _ = read(tmp_path, file.content())
    assert [(record.op, record.kind, record.name) for record in records] == [
        (Op.ADDED, "Pod", "web"),
        (Op.DELETED, "Pod", "web"),
    ]


@pytest.mark.parametrize("empty", ["", None])
def test_namespace_that_is_empty_in_a_body_is_that_of_its_timeline(tmp_path, empty):
    file = KhiFile()
    body = {**pod(), "metadata": {"name": "web", "namespace": empty}}
    file.revision(KeyedBody(body, pod()))
    ((record,), _, _) = read(tmp_path, file.content())
    assert record.namespace == "shop"


@pytest.mark.parametrize("missing", ["uid", "creationTimestamp"])
def test_patch_of_an_object_that_was_not_known_is_a_part_of_it(tmp_path, missing):
    file = KhiFile()
    patch = pod(spec={"nodeName": "n1"})
    del patch["metadata"][missing]
    file.revision(patch, verb="patch")
    records, _, _ = read(tmp_path, file.content())
    assert {record.object_quality for record in records} == {Quality.PARTIAL}


def test_revision_without_a_time_has_none(tmp_path):
    file = KhiFile()
    file.revision(pod(rv=3), at="")
    ((record,), _, _) = read(tmp_path, file.content())
    assert record.time_quality is TimeQuality.DERIVED
    assert record.observed_at == timestamps.parse("2026-01-02T03:04:05Z")


def test_times_in_a_body_are_texts_as_a_server_writes_them(tmp_path):
    texts = ["2026-01-02T03:04:05Z", "2026-01-02T03:04:05.000006Z", "0001-01-01T00:00:00Z"]
    file = KhiFile()
    file.revision(pod(rv=3, status={"times": [datetime.fromisoformat(each) for each in texts]}))
    ((record,), _, _) = read(tmp_path, file.content())
    assert record.object["status"] == {"times": texts}


def test_kind_and_names_that_a_body_lacks_are_those_of_its_timelines(tmp_path):
    file = KhiFile()
    whole = {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "agent"}}
    bare = {"@type": "apps.k8s.io/v1.DaemonSet", "spec": {"minReadySeconds": 5}}
    file.revision(KeyedBody(bare, whole))
    file.revision(tree(NAMESPACES, "shop", rv=2))
    records, lost, _ = read(tmp_path, file.content())
    agent = next(record for record in records if record.name == "agent")
    assert (agent.group, agent.kind, agent.object["spec"]) == (
        "apps",
        "DaemonSet",
        {"minReadySeconds": 5},
    )
    assert "@type" not in agent.object
    assert agent.object_quality is Quality.PARTIAL
    assert next(record for record in records if record.kind == "Namespace").namespace == ""
    assert lost == []


class KeyedBody(dict):
    """A body whose timelines are named after another object."""

    def __init__(self, body, named):
        super().__init__(body)
        self._named = named

    def __getitem__(self, name):
        return self._named[name]


def test_kind_that_only_a_timeline_names_and_nobody_knows_is_lost_with_its_place(tmp_path):
    file = KhiFile()
    named = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}}
    file.revision(KeyedBody({"spec": {"size": 1}}, named))
    file.revision(pod(rv=3))
    records, lost, _ = read(tmp_path, file.content())
    assert [record.name for record in records] == ["web"]
    ((place, problem),) = lost
    assert place.startswith("inspection.khi:")
    assert problem == (
        "the kind 'widget' of example.com/v1 is not known by its name in small letters"
    )


def bomb():
    packed = gzip.compress(b"\0" * (64 * 1024 * 1024 + 1))
    return b"KHI\x06" + struct.pack("<II", len(packed), 2) + packed


def of_two_clusters():
    file = KhiFile()
    file.revision(pod(rv=1), cluster="a")
    file.revision(pod(rv=1), cluster="b")
    return file.content()


def of_one_pod(**options):
    file = KhiFile()
    file.revision(pod(rv=1))
    return file.content(**options)


def of_one_change(**options):
    file = KhiFile()
    file.revision(pod(rv=1), **options)
    return file.content()


def of_two_members():
    pool = gzip.compress(b"") + gzip.compress(text(1, "lost"))
    return b"KHI\x06" + struct.pack("<II", len(pool), 2) + pool


def of_small_chunks():
    """Each is small enough by itself, and all of them unpack to more than the bounds allow."""
    return b"KHI\x06" + chunk(2, message(9, bytes(9 * 1024 * 1024))) * 2


def of_a_field_twice():
    def timeline(at, kind, name, above):
        items = number(4, 1) if kind == 5 else b""
        return message(1, number(1, at), number(2, kind), number(3, name), items, number(5, above))

    names = ("c", "core/v1", "pod", "shop", "web", "spec")
    texts = [message(1, number(1, at), text(2, name)) for at, name in enumerate(names, 1)]
    paths = message(2, number(1, 1), number(2, 6), number(2, 6))
    types = [message(5, number(1, at), text(2, name)) for at, name in enumerate(TYPES, 1)]
    body = message(3, number(1, 1), message(2, number(5, 1)), message(2, number(5, 0)))
    lines = [timeline(at, at, at, at - 1) for at in range(1, 6)]
    items = message(2, number(1, 1), message(2, message(2, number(1, 5)), body))
    chunks = ((2, [*texts, paths]), (4, types), (5, [*lines, items]))
    return b"KHI\x06" + b"".join(chunk(kind, b"".join(parts)) for kind, parts in chunks)


def of_other_values():
    """A whole number where the specification has one with eight bytes."""
    value = message(2, number(3, 1))
    revision = message(2, message(2, number(1, 5)), message(3, number(1, 1), value))
    return b"KHI\x06" + chunk(5, message(2, number(1, 1), revision))


REFUSED = {
    "has version 5, 6 is read": of_one_pod(first=b"KHI\x05"),
    "ends in the middle of a chunk": of_one_pod()[:-3],
    "a chunk cannot be unpacked": b"KHI\x06" + struct.pack("<II", 4, 2) + b"none",
    "a chunk is longer than the format allows": bomb,
    "tells of several clusters, 'a' and 'b'": of_two_clusters(),
    "of version 6: field double has another type": of_other_values(),
    "has another form than that of version 6": b"KHI\x06" + chunk(2, text(1, "\xff")),
    "a chunk was cut": b"KHI\x06" + struct.pack("<II", 20, 2) + gzip.compress(b"\0" * 99)[:20],
    "a chunk has bytes after its end": of_two_members(),
    "it unpacks to more than 100 times its size": of_small_chunks(),
    "and 1000000000 nanoseconds is out of range": of_one_change(nanos=1_000_000_000),
    "the field 'spec' has two values": of_a_field_twice(),
    "there is no object": b"KHI\x06" + chunk(2, b""),
}


@pytest.mark.parametrize("reason", REFUSED)
def test_file_in_which_nothing_can_be_read_is_refused_in_a_sentence(tmp_path, reason):
    content = REFUSED[reason]
    with pytest.raises(InputError) as caught:
        read(tmp_path, content() if callable(content) else content)
    assert reason in str(caught.value)
    assert "inspection.khi" in str(caught.value)


def test_of_two_clusters_nothing_is_read(tmp_path):
    with pytest.raises(InputError, match="no record could be read"):
        read(tmp_path, of_two_clusters(), keep_going=True)


def test_revisions_in_a_chunk_that_is_missing_are_lost_and_named(tmp_path):
    file = KhiFile()
    file.revision(pod(rv=1))
    file.revision(tree(PODS, "other", "shop", rv=2))
    content = file.content(items_max=1)
    with pytest.raises(InputError, match="are in no chunk"):
        read(tmp_path, content)
    records, lost, _ = read(tmp_path, content, keep_going=True)
    assert [record.name for record in records] == ["web"]
    assert lost == [("inspection.khi:6", "the revisions 1006 are in no chunk")]


def test_value_in_no_pool_loses_its_object_alone(tmp_path):
    file = KhiFile()
    file.revision(pod(rv=1, spec={"nodeName": "n1"}))
    other = tree(PODS, "other", "shop", rv=2, spec={"nodeName": "gone"})
    file.revision(other)
    file.forget("gone")
    with pytest.raises(InputError, match="is in no pool"):
        read(tmp_path, file.content())
    records, lost, _ = read(tmp_path, file.content(), keep_going=True)
    assert [record.name for record in records] == ["web"]
    assert [problem.startswith("the text ") for _, problem in lost] == [True]
