"""Contradictions of an unfinished run: only differences that its end has, too."""

from hypothesis import given
from hypothesis import strategies as st

from app.analysis.replay.classes import End, contradicts
from app.analysis.replay.differences import Aspect, compare, contradictions
from app.analysis.replay.facts import Nominated
from app.analysis.replay.traces import Step, Trace
from app.domain.log import ObjectKey
from app.domain.values.timestamps import Instant

PODS = ("first", "second")
WRITES = st.lists(st.tuples(st.sampled_from(PODS), st.sampled_from("abc")), max_size=8)


def trace_of(writes, writer="scheduler"):
    trace = Trace()
    for number, (pod, node) in enumerate(writes):
        key = ObjectKey("", "pods", "default", pod)
        step = Step(
            revision=number,
            time=Instant(number),
            writer=writer,
            key=key,
            uid=pod,
            facts=(Nominated(node=node),),
        )
        trace.keys[pod] = key
        for course in (trace.writes, trace.of_pod, trace.said):
            course[pod].append(step)
    return trace


@given(recorded=WRITES, again=WRITES, made=st.integers(0, 8), writer=st.sampled_from(["", "user"]))
def test_contradiction_of_an_unfinished_run_is_a_difference_at_its_end(
    recorded, again, made, writer
):
    theirs = trace_of(recorded, writer)
    found = set(contradictions(theirs, trace_of(again[:made])))
    assert found <= compare(theirs, trace_of(again)).different.keys()
    if made >= len(again) > len(recorded):
        assert found


@given(recorded=WRITES, made=st.integers(0, 8))
def test_beginning_of_the_recorded_writes_is_no_contradiction(recorded, made):
    assert not list(contradictions(trace_of(recorded), trace_of(recorded[:made])))


def test_known_differences_and_writes_that_are_recorded_after_the_end_are_no_contradictions():
    recorded, again = trace_of([("first", "a")]), trace_of([("first", "b")])
    end = End(at=Instant(9), later=Trace())
    keys = {(aspect, "first", "") for aspect in (Aspect.SAID, Aspect.WRITES, Aspect.ORDER)}
    assert contradicts(recorded, again, end, set())
    assert contradicts(recorded, again, end, keys - {(Aspect.SAID, "first", "")})
    assert not contradicts(recorded, again, end, keys)
    for later in (Trace(writes=again.writes), Trace(said=again.said)):
        assert not contradicts(recorded, again, End(at=Instant(9), later=later), set())
