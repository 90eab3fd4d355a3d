"""The doubts about a violated invariant, in live histories and recordings."""

from app.analysis.chronicle import Chronicle
from app.analysis.findings import cluster
from app.analysis.verify.invariants.violations import ViolationKind
from app.analysis.views import LiveViews
from app.domain.log import Revision
from app.domain.objects.profile import Profile
from tests.unit.analysis.invariants.test_rules import Story, result


def test_doubt_about_a_violation_is_its_own_and_speaks_of_no_recording():
    story = Story()
    story.allocate("x", result("p", "a"))
    chronicle = Chronicle()
    chronicle.fold(story.events)
    last = story.events[-1]
    (violation,) = chronicle.violations(until=last.revision, now=last.stamp.time)
    assert violation.kind is ViolationKind.UNSURE
    (shown,) = cluster.invariants(chronicle, LiveViews(Profile()), last.revision, last.stamp.time)
    assert f"(unsure: {violation.doubt})" in shown.text


def test_only_a_recording_is_doubted_for_a_violation_that_is_unsure():
    """redra misses none of its own events, though a rule may need one that is yet to come."""
    story = Story()
    story.allocate("x", result("p", "a"))
    for is_recorded in (False, True):
        chronicle = Chronicle(is_recorded=is_recorded)
        chronicle.fold(story.events)
        doubts = chronicle.doubts((), until=story.events[-1].revision)
        assert [one.kind for one in doubts] == [""] * is_recorded
        assert all("do not fit each other" in one.text for one in doubts)
        assert chronicle.doubts((), until=Revision(0)) == ()
