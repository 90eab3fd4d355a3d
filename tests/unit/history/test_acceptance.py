"""Writes that a log shows as accepted, and that no server accepts."""

import pytest

from app.adapters.history.opening import open_history
from app.adapters.history.reading import ReadOptions
from app.domain.log.records import Loss
from tests.unit.history.worlds import CLAIMS, PODS, audit, tree, watch, write_lines

BINDING = {"target": {"name": "n1"}}


def read(folder, *lines, beside=()):
    files = [write_lines(folder / "audit.jsonl", lines)]
    if beside:
        files.append(write_lines(folder / "watch.jsonl", beside))
    with open_history(files, ReadOptions()) as recorded:
        records = list(recorded.records())
        marked = [record.name for record in records if Loss.CONTRADICTED in record.losses]
        return marked, [each.path for each in recorded.contradictions]


def claim(verb, rv, second, *, name="c", upon="", type_=CLAIMS):
    state = tree(type_, name=name, uid=f"uid-{name}-{type_[2]}", rv=rv, labels={"at": str(rv)})
    request = {"metadata": {"resourceVersion": str(upon)}} if upon else None
    return audit(verb, state, type_=type_, name=name, request=request, second=second)


def bind(second, uid):
    return audit(
        "create",
        type_=PODS,
        name="p",
        uid=uid,
        subresource="binding",
        request=BINDING,
        second=second,
        code=201,
    )


def pod(rv, second, uid):
    return audit("create", tree(PODS, name="p", uid=uid, rv=rv), type_=PODS, second=second)


@pytest.mark.parametrize(("upon", "is_accepted"), [(5, True), (3, False), ("", True), (4, False)])
def test_update_upon_an_older_version_than_the_stored_one_is_refused(upon, is_accepted, tmp_path):
    marked, paths = read(
        tmp_path, claim("create", 3, 1), claim("update", 5, 2), claim("update", 9, 3, upon=upon)
    )
    assert marked == ([] if is_accepted else ["c"])
    assert [f"{upon} of the request" in path for path in paths] == ([] if is_accepted else [True])


@pytest.mark.parametrize(("upon", "is_accepted"), [(4, True), (3, True), (2, False)])
def test_report_upon_an_older_version_than_that_of_the_last_line_is_refused(
    upon, is_accepted, tmp_path
):
    """A binding has an answer without a version, and comes after the creation of its pod."""
    state = tree(PODS, name="p", uid="u", rv=5)
    request = {"metadata": {"resourceVersion": str(upon)}}
    report = audit(
        "patch", state, type_=PODS, name="p", subresource="status", request=request, second=3
    )
    marked, paths = read(tmp_path, pod(3, 1, "u"), bind(2, "u"), report)
    assert (marked, bool(paths)) == ([] if is_accepted else ["p"], not is_accepted)


@pytest.mark.parametrize("is_ending", [True, False])
@pytest.mark.parametrize(("upon", "is_accepted"), [(5, True), (3, False), ("", True), (4, False)])
def test_deletion_of_an_older_version_than_the_stored_one_is_refused(
    upon, is_accepted, is_ending, tmp_path
):
    marks = {"deletionTimestamp": "2026-01-01T00:00:03Z"} if is_ending else {}
    state = tree(CLAIMS, name="c", uid=f"uid-c-{CLAIMS[2]}", rv=9, metadata=marks)
    asked = {"preconditions": {"resourceVersion": str(upon)}} if upon else None
    deletion = audit("delete", state, type_=CLAIMS, name="c", request=asked, second=3)
    marked, paths = read(tmp_path, claim("create", 3, 1), claim("update", 5, 2), deletion)
    assert marked == ([] if is_accepted else ["c"])
    assert [f"{upon} of the request" in path for path in paths] == ([] if is_accepted else [True])


def test_removal_in_two_writes_is_no_deletion_of_an_older_version(tmp_path):
    """A watch shows the mark for deletion, which the request for the removal made itself."""
    uid = f"uid-c-{CLAIMS[2]}"
    ending = {"deletionTimestamp": "2026-01-01T00:00:03Z"}
    gone = tree(CLAIMS, name="c", uid=uid, rv=9, metadata=ending)
    asked = {"preconditions": {"resourceVersion": "3"}}
    deletion = audit("delete", gone, type_=CLAIMS, name="c", request=asked, second=3)
    marked_at_8 = watch("MODIFIED", tree(CLAIMS, name="c", uid=uid, rv=8, metadata=ending))
    assert read(tmp_path, claim("create", 3, 1), deletion, beside=[marked_at_8]) == ([], [])


@pytest.mark.parametrize(
    ("name", "type_", "is_sound"),
    [("d", CLAIMS, False), ("d", PODS, True), ("c", CLAIMS, True)],
)
def test_one_version_belongs_to_one_write_of_a_kind(name, type_, is_sound, tmp_path):
    verb = "update" if name == "c" else "create"
    second = claim(verb, 5 if name != "c" else 6, 2, name=name, type_=type_)
    marked, _ = read(tmp_path, claim("create", 5, 1), second)
    assert marked == ([] if is_sound else [name])


@pytest.mark.parametrize(("other", "is_sound"), [("u", False), ("v", True)])
def test_pod_is_bound_once(other, is_sound, tmp_path):
    again = () if other == "u" else (pod(7, 3, other),)
    marked, paths = read(tmp_path, pod(3, 1, "u"), bind(2, "u"), *again, bind(4, other))
    assert (marked, bool(paths)) == ([] if is_sound else ["p"], not is_sound)


@pytest.mark.parametrize("verb", ["update", "patch", "delete"])
@pytest.mark.parametrize(
    ("meant", "is_accepted"), [("uid-c-c", True), ("other", False), ("", True)]
)
def test_request_for_another_object_of_the_name_is_refused(verb, meant, is_accepted, tmp_path):
    state = tree(CLAIMS, name="c", uid="uid-c-c", rv=5)
    body = {"preconditions": {"uid": meant}} if verb == "delete" else {"metadata": {"uid": meant}}
    made = audit("create", tree(CLAIMS, name="c", uid="uid-c-c", rv=3), name="c", second=1)
    marked, paths = read(tmp_path, made, audit(verb, state, name="c", request=body, second=2))
    assert marked == ([] if is_accepted else ["c"])
    assert [f"{meant} of the request" in path for path in paths] == ([] if is_accepted else [True])


@pytest.mark.parametrize("verb", ["update", "patch"])
@pytest.mark.parametrize(("version", "is_accepted"), [(9, False), (6, True)])
def test_write_of_a_removed_object_is_refused(verb, version, is_accepted, tmp_path):
    """A line that comes late has a version from before the removal."""
    marked, paths = read(
        tmp_path, claim("create", 3, 1), claim("delete", 7, 2), claim(verb, version, 3)
    )
    assert marked == ([] if is_accepted else ["c"])
    assert ["which was removed" in path for path in paths] == ([] if is_accepted else [True])


@pytest.mark.parametrize(("second", "is_accepted"), [(3, False), (2, True)])
def test_object_is_removed_once(second, is_accepted, tmp_path):
    """A copy of a line is no other request, whatever id a collector gives it."""
    marked, paths = read(
        tmp_path, claim("create", 3, 1), claim("delete", 7, 2), claim("delete", 7, second)
    )
    assert marked == ([] if is_accepted else ["c"])
    assert ["which was removed" in path for path in paths] == ([] if is_accepted else [True])
