"""Streams, dumps and logs of one cluster become one history. Vectors 20.4 and 20.8."""

import json
from itertools import pairwise

import pytest

from app.adapters.history.joining.spool import replace_times
from app.adapters.history.opening import open_history
from app.adapters.history.reading import ReadOptions
from app.domain.errors import InputError
from app.domain.log.records import Loss, Op, Quality, comparable_version
from tests.unit.history.worlds import (
    CLAIMS,
    PODS,
    audit,
    brief,
    read_records,
    tree,
    watch,
    write_lines,
)


def claim(name, rv, **more):
    return tree(CLAIMS, name, rv=rv, **more)


def test_versions_compare_as_integers_of_any_size():
    ordered = ["0", "9", "10", "99", "18446744073709551616"]
    keys = [comparable_version(text) for text in ordered]
    assert all(first < second for first, second in pairwise(keys))
    assert [comparable_version(text) for text in ("007", "", "a1", "-1", "1.0", "１")] == [""] * 6


def test_seam_between_two_files_of_one_type(tmp_path):
    first = write_lines(
        tmp_path / "a.jsonl",
        [
            watch("ADDED", claim("a", 40)),
            watch("ADDED", claim("b", 45)),
            watch("MODIFIED", claim("b", 50)),
        ],
    )
    second = write_lines(
        tmp_path / "b.jsonl", [watch("ADDED", claim("b", 50)), watch("ADDED", claim("c", 70))]
    )
    records = read_records(first, second)
    assert brief(records) == [
        ("BASELINE", "a"),
        ("BASELINE", "b"),
        ("MODIFIED", "b"),
        ("GAP", ""),
        ("DELETED", "a"),
        ("ADDED", "c"),
    ]
    gap, deleted, added = records[3:]
    assert "between resource versions 50 and 70" in gap.message
    assert Loss.SYNTHETIC_DELETE in deleted.losses
    assert deleted.object["metadata"]["name"] == "a"
    assert Loss.COLLAPSED in added.losses


def test_overlapping_files_have_no_gap(tmp_path):
    first = write_lines(
        tmp_path / "a.jsonl", [watch("ADDED", claim("a", 40)), watch("MODIFIED", claim("a", 50))]
    )
    second = write_lines(
        tmp_path / "b.jsonl", [watch("ADDED", claim("a", 40)), watch("MODIFIED", claim("a", 50))]
    )
    assert brief(read_records(first, second)) == [("BASELINE", "a"), ("MODIFIED", "a")]


TIMELESS = {"creationTimestamp": None}
"""What servers before 1.35 send as the time of a bookmark, which is no object."""


def test_marked_end_of_the_list_is_no_guess(tmp_path):
    bookmark = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"resourceVersion": "9", "annotations": {"k8s.io/initial-events-end": "true"}},
    }
    path = write_lines(
        tmp_path / "w.jsonl",
        [
            watch("ADDED", claim("a", 4)),
            watch("BOOKMARK", bookmark | {"metadata": bookmark["metadata"] | TIMELESS}),
            watch("ADDED", claim("b", 10)),
        ],
    )
    with open_history([path], ReadOptions()) as recorded:
        assert brief(recorded.records()) == [("BASELINE", "a"), ("ADDED", "b")]
        assert not any("no mark" in note for note in recorded.notes)


def test_unmarked_list_ends_where_keys_stop_rising(tmp_path):
    lines = [watch("ADDED", claim(name, rv)) for name, rv in (("a", 9), ("c", 4), ("b", 10))]
    path = write_lines(tmp_path / "w.jsonl", lines)
    with open_history([path], ReadOptions()) as recorded:
        assert brief(recorded.records()) == [
            ("BASELINE", "c"),
            ("BASELINE", "a"),
            ("ADDED", "b"),
        ]
        assert any("the first events are taken as the list" in note for note in recorded.notes)
        assert any(note.endswith(": 2 events") for note in recorded.notes)


def ended(code, message="too old"):
    return watch("ERROR", {"kind": "Status", "apiVersion": "v1", "code": code, "message": message})


def test_error_ends_the_stream_with_a_gap(tmp_path):
    path = write_lines(tmp_path / "w.jsonl", [watch("ADDED", claim("a", 4)), ended(410)])
    records = read_records(path)
    assert brief(records) == [("BASELINE", "a"), ("GAP", "")]
    assert records[1].code == 410
    assert records[1].message == "too old"


@pytest.mark.parametrize(
    ("code", "appended", "expected"),
    [
        pytest.param(
            410,
            [("ADDED", "a", 4), ("ADDED", "b", 9), ("MODIFIED", "a", 12)],
            [("GAP", ""), ("ADDED", "b"), ("MODIFIED", "a")],
            id="its version is gone, and a list of known and new ones follows",
        ),
        pytest.param(
            410,
            [("ADDED", "b", 9)],
            [("GAP", ""), ("DELETED", "a"), ("ADDED", "b")],
            id="a list of new ones alone",
        ),
        pytest.param(
            410,
            [("MODIFIED", "a", 9), ("ADDED", "b", 12)],
            [("MODIFIED", "a"), ("ADDED", "b")],
            id="the client went on without a list",
        ),
        pytest.param(500, [("ADDED", "b", 9)], [("ADDED", "b")], id="another error"),
        pytest.param(
            500,
            [("ADDED", "a", 7), ("ADDED", "b", 9)],
            [("GAP", ""), ("MODIFIED", "a"), ("ADDED", "b")],
            id="another error, and a list of known ones",
        ),
        pytest.param("x", [("ADDED", "b", 9)], [("ADDED", "b")], id="no code"),
    ],
)
def test_what_follows_an_error_in_a_stream_is_read(code, appended, expected, tmp_path):
    after = [watch(kind, claim(name, rv)) for kind, name, rv in appended]
    path = write_lines(tmp_path / "w.jsonl", [watch("ADDED", claim("a", 4)), ended(code), *after])
    records = read_records(path)
    assert brief(records) == [("BASELINE", "a"), ("GAP", ""), *expected]
    assert {record.order_key[0] for record in records} == {0}, "no store was restored"


BEGUN = [("ADDED", "b", 40), ("ADDED", "d", 45), ("MODIFIED", "d", 50)]
"""What a stream shows before another watch was appended to its file."""

THERE = [("BASELINE", "b"), ("BASELINE", "d"), ("MODIFIED", "d")]


@pytest.mark.parametrize(
    ("appended", "expected"),
    [
        pytest.param([("ADDED", "b", 40), ("ADDED", "d", 50)], [], id="nothing was missed"),
        pytest.param(
            [("ADDED", "b", 40), ("ADDED", "d", 50), ("MODIFIED", "b", 60)],
            [("MODIFIED", "b")],
            id="it goes on",
        ),
        pytest.param([("ADDED", "d", 50)], [("GAP", ""), ("DELETED", "b")], id="a removal"),
        pytest.param(
            [("ADDED", "b", 55), ("ADDED", "d", 50)],
            [("GAP", ""), ("MODIFIED", "b")],
            id="a change",
        ),
        pytest.param(
            [("ADDED", "a", 60), ("ADDED", "b", 40), ("ADDED", "c", 55), ("ADDED", "d", 50)],
            [("GAP", ""), ("ADDED", "c"), ("ADDED", "a")],
            id="new ones before and after those that are known",
        ),
        pytest.param(
            [("DELETED", "b", 60), ("ADDED", "a", 61), ("ADDED", "d", 50), ("ADDED", "e", 70)],
            [("DELETED", "b"), ("GAP", ""), ("ADDED", "a"), ("ADDED", "e")],
            id="after a removal that was seen",
        ),
    ],
)
def test_second_watch_in_a_file_begins_with_a_list_of_what_is_known(appended, expected, tmp_path):
    lines = [watch(kind, claim(name, rv)) for kind, name, rv in [*BEGUN, *appended]]
    records = read_records(write_lines(tmp_path / "w.jsonl", lines))
    assert brief(records) == [*THERE, *expected]
    assert {record.order_key[0] for record in records} == {0}, "no store was restored"


@pytest.mark.parametrize("left", ["bc", "ac", "ab", "abc"])
def test_second_list_directly_after_the_first_shows_what_is_gone(left, tmp_path):
    """Nothing stands between the lists, and a removed object may be the first of them.

    A list of `c` alone would look as a doubled line does.
    """
    versions = {"a": 40, "b": 41, "c": 45}
    lines = [watch("ADDED", claim(name, versions[name])) for name in "abc" + left]
    records = read_records(write_lines(tmp_path / "w.jsonl", lines))
    gone = [("DELETED", name) for name in "abc" if name not in left]
    assert brief(records) == [
        *(("BASELINE", name) for name in "abc"),
        *([("GAP", ""), *gone] if gone else []),
    ]


def test_versions_that_fall_inside_a_stream_start_a_new_epoch(tmp_path):
    path = write_lines(
        tmp_path / "w.jsonl",
        [
            watch("ADDED", claim("a", 100)),
            watch("MODIFIED", claim("a", 110)),
            watch("MODIFIED", claim("a", 60)),
        ],
    )
    records = read_records(path)
    assert brief(records) == [
        ("BASELINE", "a"),
        ("MODIFIED", "a"),
        ("GAP", ""),
        ("MODIFIED", "a"),
    ]
    assert "restored" in records[2].message


def test_streams_are_merged_by_version(tmp_path):
    claims = write_lines(
        tmp_path / "claims.jsonl",
        [watch("ADDED", claim("a", 1)), watch("MODIFIED", claim("a", 12))],
    )
    pods = write_lines(
        tmp_path / "pods.jsonl",
        [watch("ADDED", tree(PODS, "p", rv=2)), watch("MODIFIED", tree(PODS, "p", rv=11))],
    )
    assert [record.resource_version for record in read_records(claims, pods)] == [
        "1",
        "2",
        "11",
        "12",
    ]


def test_tables_and_other_lines_are_refused(tmp_path):
    table = write_lines(tmp_path / "t.jsonl", [watch("ADDED", {"kind": "Table"})])
    with pytest.raises(InputError, match=r"tables|no apiVersion"):
        read_records(table)


def test_new_uid_under_a_name_is_a_deletion_and_a_creation(tmp_path):
    path = write_lines(
        tmp_path / "w.jsonl",
        [watch("ADDED", claim("a", 1, uid="u1")), watch("MODIFIED", claim("a", 5, uid="u2"))],
    )
    records = read_records(path)
    assert [record.op for record in records] == [
        Op.BASELINE,
        Op.DELETED,
        Op.BASELINE,
        Op.MODIFIED,
    ]
    assert records[1].uid == "u1"
    assert Loss.SYNTHETIC_DELETE in records[1].losses


def test_log_and_stream_tell_one_change_once(tmp_path):
    log = write_lines(
        tmp_path / "audit.log",
        [
            audit("create", claim("a", 5), second=1),
            audit("update", claim("a", 9), name="a", second=2),
        ],
    )
    stream = write_lines(
        tmp_path / "w.jsonl",
        [
            watch("ADDED", claim("a", 5)),
            watch("MODIFIED", claim("a", 7)),
            watch("MODIFIED", claim("a", 9)),
        ],
    )
    records = read_records(log, stream)
    assert [(record.op, record.resource_version) for record in records] == [
        (Op.ADDED, "5"),
        (Op.MODIFIED, "7"),
        (Op.MODIFIED, "9"),
    ]
    assert [record.actor.user if record.actor else "" for record in records] == [
        "alice",
        "",
        "alice",
    ]
    assert records[2].verb == "update"


def test_stream_gives_a_binding_its_version_and_object(tmp_path):
    pod = tree(PODS, "p", rv=5, spec={})
    bound = tree(PODS, "p", rv=8, spec={"nodeName": "n"}, status={"seen": "exactly"})
    log = write_lines(
        tmp_path / "audit.log",
        [
            audit("create", pod, type_=PODS, second=1),
            audit(
                "create",
                {"kind": "Status", "apiVersion": "v1"},
                type_=PODS,
                name="p",
                subresource="binding",
                request={"target": {"name": "n"}},
                second=3,
                user="scheduler",
            ),
        ],
    )
    stream = write_lines(tmp_path / "w.jsonl", [watch("ADDED", pod), watch("MODIFIED", bound)])
    records = read_records(log, stream)
    assert [record.resource_version for record in records] == ["5", "8"]
    assert records[1].object["status"] == {"seen": "exactly"}
    assert records[1].object_quality is Quality.FULL
    assert records[1].actor.user == "scheduler"
    assert records[1].losses == ()


def test_binding_that_is_answered_after_later_writes_keeps_its_place(tmp_path):
    pod = tree(PODS, "p", rv=5, spec={})
    bound = tree(PODS, "p", rv=8, spec={"nodeName": "n"})
    evicted = tree(PODS, "p", rv=9, spec={"nodeName": "n"}, status={"evicted": True})
    told = tree(PODS, "p", rv=90, spec={"nodeName": "n"}, status={"evicted": True, "at": "end"})
    log = write_lines(
        tmp_path / "audit.log",
        [
            audit("create", pod, type_=PODS, second=1),
            audit("patch", evicted, type_=PODS, subresource="status", second=3, user="eviction"),
            audit(
                "create",
                {"kind": "Status", "apiVersion": "v1"},
                type_=PODS,
                name="p",
                subresource="binding",
                request={"target": {"name": "n"}},
                second=4,
                user="scheduler",
            ),
        ],
    )
    seen = [watch("ADDED", pod), *(watch("MODIFIED", each) for each in (bound, evicted, told))]
    records = read_records(log, write_lines(tmp_path / "w.jsonl", seen))
    users = [record.actor.user if record.actor else "" for record in records]
    assert users[1:] == ["scheduler", "eviction", ""]
    assert [record.resource_version for record in records] == ["5", "8", "9", "90"]


def test_dump_of_a_moment_inside_the_log_adds_nothing(tmp_path):
    log = write_lines(
        tmp_path / "audit.log",
        [
            audit("create", claim("a", 5), second=1),
            audit("update", claim("a", 9), name="a", second=2),
        ],
    )
    dump = tmp_path / "dump.json"
    listed = {"apiVersion": "v1", "kind": "List", "items": [claim("a", 5), claim("old", 2)]}
    dump.write_text(json.dumps(listed))
    assert brief(read_records(log, dump)) == [
        ("BASELINE", "old"),
        ("ADDED", "a"),
        ("MODIFIED", "a"),
    ]


def test_manifests_are_added_with_a_stable_uid(tmp_path):
    manifest = tmp_path / "m.yaml"
    manifest.write_text(
        "apiVersion: resource.k8s.io/v1beta1\nkind: ResourceClaim\nmetadata: {name: c}\n"
        "spec: {devices: {requests: [{name: r, deviceClassName: gpu}]}}\n"
    )
    (first,) = read_records(manifest)
    (second,) = read_records(manifest)
    assert first.op is Op.ADDED
    assert first.object_quality is Quality.PARTIAL
    assert first.uid == second.uid
    assert first.version == "v1beta1"
    assert first.object["apiVersion"] == "resource.k8s.io/v1"
    assert first.object["spec"]["devices"]["requests"][0]["exactly"]["deviceClassName"] == "gpu"
    assert {Loss.NO_UID, Loss.NO_RV, Loss.NO_STATUS, Loss.NO_TIME} <= set(first.losses)


def test_typed_lists_give_their_items_kind_and_version(tmp_path):
    listed = {"apiVersion": "v1", "kind": "PodList", "items": [tree(PODS, "p", rv=3)]}
    del listed["items"][0]["kind"], listed["items"][0]["apiVersion"]
    path = tmp_path / "pods.json"
    path.write_text(json.dumps(listed, indent=2))
    (record,) = read_records(path)
    assert (record.kind, record.op) == ("Pod", Op.BASELINE)
    assert record.object["apiVersion"] == "v1"


def test_watch_without_event_types_has_no_deletes(tmp_path):
    path = tmp_path / "pods.json"
    objects = [tree(PODS, "p", rv=3), tree(PODS, "p", rv=6)]
    path.write_text("\n".join(json.dumps(item, indent=2) for item in objects))
    records = read_records(path)
    assert brief(records) == [("BASELINE", "p"), ("MODIFIED", "p")]
    assert Loss.NO_DELETES in records[1].losses


def test_versions_that_are_no_numbers_leave_the_order_to_time(tmp_path):
    late = claim("a", "007", metadata={"creationTimestamp": "2026-01-01T00:00:09Z"})
    early = claim("b", "x1", metadata={"creationTimestamp": "2026-01-01T00:00:01Z"})
    path = write_lines(tmp_path / "w.jsonl", [watch("ADDED", late), watch("ADDED", early)])
    with open_history([path], ReadOptions()) as recorded:
        assert [record.name for record in recorded.records()] == ["b", "a"]
        assert "2 resource versions are not numbers: ordered by time" in recorded.notes


def test_secrets_are_left_out_unless_asked_for(tmp_path):
    secrets = ("", "v1", "secrets", "Secret")
    maps = ("", "v1", "configmaps", "ConfigMap")
    lines = [
        watch("ADDED", tree(secrets, "s", rv=1, data={"k": "djEK"})),
        watch("ADDED", tree(maps, "m", rv=2, data={"k": "v"})),
    ]
    path = write_lines(tmp_path / "w.jsonl", lines)
    (kept,) = read_records(path)
    assert "data" not in kept.object
    assert Loss.REDACTED in kept.losses
    both = read_records(path, with_secrets=True)
    assert [record.object["data"]["k"] for record in both] == ["djEK", "v"]


def test_events_of_both_groups_are_one_object(tmp_path):
    shared = {"metadata": {"name": "e", "namespace": "d", "uid": "u", "resourceVersion": "7"}}
    new = {
        **shared,
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "note": "text",
        "regarding": {"kind": "Pod"},
    }
    old = {
        **shared,
        "apiVersion": "v1",
        "kind": "Event",
        "message": "text",
        "involvedObject": {"kind": "Pod"},
    }
    first = write_lines(tmp_path / "a.jsonl", [watch("ADDED", new)])
    second = write_lines(tmp_path / "b.jsonl", [watch("ADDED", old)])
    (record,) = read_records(first, second)
    assert record.group == ""
    assert record.object["message"] == "text"
    assert record.object["involvedObject"] == {"kind": "Pod"}


def test_unreleased_versions_are_refused_in_words(tmp_path):
    path = write_lines(
        tmp_path / "w.jsonl",
        [watch("ADDED", tree(("resource.k8s.io", "v1alpha4", "", "ResourceClaim"), rv=1))],
    )
    with pytest.raises(InputError, match=r"w.jsonl:1: .*was never released"):
        read_records(path)


def test_settled_times_never_fall_and_stay_near():
    rows = [(5, True), (3, True), (1, False), (None, False), (9, False), (8, True)]
    assert replace_times(rows) == [3, 3, 3, 3, 8, 8]


def test_nothing_is_left_behind_when_reading_fails(tmp_path, monkeypatch):
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr("tempfile.tempdir", None)
    path = tmp_path / "w.jsonl"
    path.write_text('{"type": "ADDED", "object": {"kind": "Pod"}}\n')
    with pytest.raises(InputError):
        open_history([path], ReadOptions())
    assert list(folder.iterdir()) == []


def dump(path, *objects):
    listed = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
    path.write_text(json.dumps(listed))
    return path


def test_two_dumps_become_a_baseline_and_collapsed_differences(tmp_path):
    first = dump(tmp_path / "b.json", claim("kept", 3), claim("gone", 4), claim("changed", 5))
    second = dump(tmp_path / "a.json", claim("kept", 3), claim("changed", 9), claim("new", 8))
    records = read_records(second, first)
    assert [(record.op, record.name) for record in records] == [
        (Op.BASELINE, "kept"),
        (Op.BASELINE, "gone"),
        (Op.BASELINE, "changed"),
        (Op.BASELINE, "new"),
        (Op.MODIFIED, "changed"),
        (Op.DELETED, "gone"),
    ]
    assert Loss.COLLAPSED in records[4].losses
    assert {Loss.COLLAPSED, Loss.SYNTHETIC_DELETE} <= set(records[5].losses)
    assert records[5].object["metadata"]["name"] == "gone"


def test_clocks_of_two_servers_that_are_apart_are_reported(tmp_path):
    first = [audit("create", claim(f"a{n}", 2 * n + 1), second=n) for n in range(1, 9)]
    second = [audit("create", claim(f"b{n}", 2 * n + 2), second=n + 7) for n in range(1, 9)]
    paths = [write_lines(tmp_path / "a.log", first), write_lines(tmp_path / "b.log", second)]
    with open_history(paths, ReadOptions()) as recorded:
        versions = [int(record.resource_version) for record in recorded.records()]
        assert versions == sorted(versions)
        assert any("the clock of log 2 is +" in note for note in recorded.notes)


@pytest.mark.parametrize("has_end", [True, False])
def test_deletion_answered_with_a_version_that_a_watch_shows_is_after_it(tmp_path, has_end):
    """The watch has the change that the answer of the deletion repeats, and its own version."""
    log = [
        audit("create", claim("a", 5), second=1, code=201),
        audit("delete", claim("a", 7), name="a", second=9),
    ]
    seen = [
        watch("ADDED", claim("a", 5)),
        watch("MODIFIED", claim("a", 7)),
        *([watch("DELETED", claim("a", 8))] if has_end else []),
    ]
    records = read_records(
        write_lines(tmp_path / "a.log", log), write_lines(tmp_path / "w.jsonl", seen)
    )
    assert [(record.op, record.resource_version) for record in records] == [
        (Op.ADDED, "5"),
        (Op.MODIFIED, "7"),
        (Op.DELETED, "8" if has_end else ""),
    ]
    assert records[2].actor.user == "alice"
    assert (Loss.NO_RV in records[2].losses) is not has_end


@pytest.mark.parametrize("doubled", ["a", "b", "c"])
def test_line_that_stands_twice_is_no_list_of_its_object_alone(doubled, tmp_path):
    """Whatever is not in such a list would be gone."""
    lines = [watch("ADDED", claim(name, rv)) for name, rv in (("a", 40), ("b", 45), ("c", 50))]
    place = "abc".index(doubled)
    changed = watch("MODIFIED", claim("a", 60))
    records = read_records(
        write_lines(tmp_path / "a.jsonl", [*lines[: place + 1], *lines[place:], changed])
    )
    baseline = [("BASELINE", name) for name in "abc"]
    assert brief(records) == [*baseline, ("MODIFIED", "a")]


def test_list_that_begins_with_the_object_of_the_line_before_shows_what_is_gone(tmp_path):
    first = [watch("ADDED", claim(name, rv)) for name, rv in (("b", 45), ("c", 50))]
    lines = [first[1], first[0], watch("ADDED", claim("d", 60))]
    stream = write_lines(
        tmp_path / "a.jsonl",
        [*first, watch("ADDED", claim("a", 55)), watch("ADDED", claim("a", 55)), *lines[1:]],
    )
    assert ("DELETED", "c") in brief(read_records(stream))
