"""Lines of a watch stream that show what the stream has shown to be over."""

import pytest

from app.adapters.history.opening import open_history
from app.adapters.history.reading import ReadOptions
from tests.unit.history.worlds import CLAIMS, brief, tree, watch, write_lines

BEGUN = [
    ("ADDED", "a", 10),
    ("ADDED", "b", 11),
    ("MODIFIED", "a", 20),
    ("DELETED", "a", 30),
]
THERE = [("BASELINE", "a"), ("BASELINE", "b"), ("MODIFIED", "a"), ("DELETED", "a")]

GONE = "before its deletion"
AGAIN = "shown before later ones"


def claim(name, rv, **more):
    return tree(CLAIMS, name, rv=rv, **more)


def read(tmp_path, lines):
    path = write_lines(tmp_path / "w.jsonl", lines)
    with open_history([path], ReadOptions()) as recorded:
        return list(recorded.records()), recorded.notes


def lines_of(events):
    return [watch(kind, claim(name, rv)) for kind, name, rv in events]


@pytest.mark.parametrize(
    ("later", "expected", "said"),
    [
        pytest.param([("ADDED", "a", 10)], [], [GONE], id="its first state"),
        pytest.param([("ADDED", "a", 25)], [], [GONE], id="a state that was not shown"),
        pytest.param(
            [("ADDED", "a", 20), ("DELETED", "a", 30), ("MODIFIED", "b", 40)],
            [("MODIFIED", "b")],
            [GONE],
            id="from before its last change, and its deletion again",
        ),
        pytest.param(
            [("ADDED", "a", 10), ("ADDED", "b", 11), ("MODIFIED", "b", 40)],
            [("MODIFIED", "b")],
            [GONE],
            id="a list of a server that is behind",
        ),
        pytest.param(
            [("MODIFIED", "a", 20), ("DELETED", "a", 30), ("MODIFIED", "b", 40)],
            [("MODIFIED", "b")],
            [AGAIN],
            id="a watch from an earlier version",
        ),
    ],
)
def test_deleted_object_is_not_there_again_in_an_earlier_version(later, expected, said, tmp_path):
    records, notes = read(tmp_path, lines_of([*BEGUN, *later]))
    assert brief(records) == [*THERE, *expected]
    assert {record.order_key[0] for record in records} == {0}, "no store was restored"
    for words in said:
        assert any(words in note for note in notes)


def test_changes_that_are_sent_once_more_are_no_restored_store(tmp_path):
    changes = [("MODIFIED", "a", 20), ("MODIFIED", "b", 30)]
    records, notes = read(
        tmp_path, lines_of([*BEGUN[:2], *changes, *changes, ("MODIFIED", "a", 40)])
    )
    assert brief(records) == [
        *THERE[:2],
        ("MODIFIED", "a"),
        ("MODIFIED", "b"),
        ("MODIFIED", "a"),
    ]
    assert {record.order_key[0] for record in records} == {0}
    assert any(AGAIN in note for note in notes)


@pytest.mark.parametrize(
    "fallen",
    [
        pytest.param(("b", 15, {}), id="a version that was not shown"),
        pytest.param(("b", 20, {}), id="the version of another object's change"),
    ],
)
def test_what_a_restored_store_brings_back_is_there(fallen, tmp_path):
    """The versions fall with a change that is new, so the store was restored."""
    name, rv, more = fallen
    lines = [
        *lines_of(BEGUN),
        watch("MODIFIED", claim(name, rv, **more)),
        watch("ADDED", claim("a", 21)),
    ]
    records, notes = read(tmp_path, lines)
    assert brief(records) == [*THERE, ("GAP", ""), ("MODIFIED", "b"), ("ADDED", "a")]
    assert "restored" in records[4].message
    assert not any(GONE in note or AGAIN in note for note in notes)


def test_same_version_with_other_content_is_a_restored_store(tmp_path):
    """A store that was restored gives the versions after its backup a second time."""
    other = claim("b", 25)
    other["metadata"]["labels"] = {"written": "anew"}
    lines = [
        *lines_of([*BEGUN[:2], ("MODIFIED", "b", 25), ("MODIFIED", "a", 30)]),
        watch("MODIFIED", other),
    ]
    records, _ = read(tmp_path, lines)
    last = records[-1]
    assert last.object["metadata"]["labels"] == {"written": "anew"}
    assert last.order_key[0] == 1


@pytest.mark.parametrize("later", [("a", 35, "u-new"), ("a", 25, "u-new")])
def test_object_of_the_same_name_with_another_uid_is_new(later, tmp_path):
    name, rv, uid = later
    lines = [*lines_of(BEGUN), watch("ADDED", claim(name, rv, uid=uid))]
    records, notes = read(tmp_path, lines)
    assert (records[-1].op.name, records[-1].uid) == ("ADDED", uid)
    assert not any(GONE in note for note in notes)


def test_object_that_leaves_a_selector_and_comes_back_is_there(tmp_path):
    """A watch with a selector shows as deleted what no longer matches; it returns with a change."""
    records, _ = read(tmp_path, lines_of([*BEGUN, ("ADDED", "a", 40)]))
    assert brief(records) == [*THERE, ("ADDED", "a")]
