"""What a comparison of two runs leaves out of objects."""

from app.analysis.masks import changes, masked


def result(**more):
    return {"device": "gpu-0", **more}


def test_share_counts_and_its_random_id_does_not():
    one, other = masked(result(shareID="a")), masked(result(shareID="b"))
    assert list(changes(one, other)) == []
    assert [path for path, *_ in changes(masked(result()), one)] == ["shareID"]
    for absent in ("", None):
        assert masked(result(shareID=absent)) == masked(result())


def test_generation_of_an_object_counts_writes_and_others_are_content():
    tree = {"metadata": {"name": "a", "generation": 3}, "pool": {"generation": 3}}
    assert masked(tree) == {"metadata": {"name": "a"}, "pool": {"generation": 3}}


def test_that_a_condition_has_a_time_counts_and_which_one_does_not():
    one = masked({"type": "Ready", "lastTransitionTime": "2026-01-01T00:00:00Z"})
    other = masked({"type": "Ready", "lastTransitionTime": "2026-01-01T00:00:09Z"})
    assert list(changes(one, other)) == []
    assert [path for path, *_ in changes(masked({"type": "Ready"}), one)] == ["lastTransitionTime"]
