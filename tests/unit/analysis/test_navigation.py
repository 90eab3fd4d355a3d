"""The strip over a history and the steps to its next changes, which every page has."""

from itertools import pairwise

import pytest

from app.analysis import navigation
from app.analysis.chronicle import Chronicle
from app.domain.log import Revision
from tests.cluster import Cluster


def test_strip_and_steps_are_those_of_the_entries_and_decompress_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = Cluster()
    cluster.node()
    cluster.slice()
    cluster.device_class()
    cluster.template()
    for number in range(4):
        cluster.pod(f"p{number}", template="gpu")
        cluster.settle()
        cluster.wait(7)
    chronicle = Chronicle()
    chronicle.fold(cluster.line.events)
    revisions = [entry.revision for entry in chronicle.entries]
    times = list(chronicle.times)
    end = len(cluster.line.events) + 1

    def read(_: Chronicle) -> None:
        raise AssertionError("entries are read")

    monkeypatch.setattr(Chronicle, "entries", property(read))
    strip = navigation.density(chronicle, 5)
    marks = [times[0] + (times[-1] - times[0]) * number // 5 for number in range(1, 6)]
    counts = [sum(time <= mark for time in times) for mark in marks]
    assert [one.revision for one in strip.stretches] == [revisions[count - 1] for count in counts]
    assert [one.entries for one in strip.stretches] == [b - a for a, b in pairwise([0, *counts])]
    for revision in range(end + 1):
        before = max((one for one in revisions if one < revision), default=0)
        after = min((one for one in revisions if one > revision), default=0)
        assert navigation.nearest(chronicle, Revision(revision)) == (before, after)
