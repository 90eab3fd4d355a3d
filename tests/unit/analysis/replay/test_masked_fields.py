"""What a comparison of two runs leaves out of objects."""

from app.analysis.replay.facts import changes, masked


def result(**more):
    return {"device": "gpu-0", **more}


def test_share_counts_and_its_random_id_does_not():
    one, other = masked(result(shareID="a")), masked(result(shareID="b"))
    assert list(changes(one, other)) == []
    assert [path for path, *_ in changes(masked(result()), one)] == ["shareID"]
    for absent in ("", None):
        assert masked(result(shareID=absent)) == masked(result())
