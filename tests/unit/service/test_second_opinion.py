"""Which pairs a second opinion is asked about, and what is counted of its answers."""

import msgspec
import pytest

from app.domain.devices.cel_selectors import CelCompiler
from app.domain.log import Actor, Event, EventType, ObjectKey, Revision, Stamp
from app.domain.values.timestamps import Instant
from app.ports import Match, Opinion
from app.service.replays import second_opinion
from app.service.replays.second_opinion import REFUSED, TOO_DEAR, OpinionBounds, SelectorHistory


class Scripted:
    """Answers by the value of attribute `x`; None is no answer."""

    name = "scripted"

    def __init__(self, answers=None):
        self.answers = answers or {}
        self.questions = []

    def ask(self, expression, *, driver, attributes, capacity, allow_multiple_allocations):
        x = attributes["x"]["int"]
        self.questions.append((expression, x))
        answer = self.answers.get(x, Match.MATCH)
        return Opinion(answer=answer, reason="" if answer else "no idea")


def event(revision, resource, spec, *, name="a", deleted=False):
    body = {"metadata": {"name": name}, "spec": spec}
    return Event(
        revision=Revision(revision),
        type=EventType.OBJECT_DELETED if deleted else EventType.OBJECT_CREATED,
        key=ObjectKey("resource.k8s.io", resource, "", name),
        uid="",
        stamp=Stamp(time=Instant(revision), actor=Actor(user="x"), verb="create"),
        body=msgspec.json.encode(body),
    )


def slice_of(*numbers, padding=0):
    return {
        "driver": "d",
        "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
        "nodeName": "n",
        "devices": [
            {
                "name": f"dev-{number}-{place}",
                "attributes": {"x": {"int": number}, "uuid": {"string": f"{place}-{padding}"}},
            }
            for place, number in enumerate(numbers)
        ],
    }


def selecting(*expressions):
    return {"selectors": [{"cel": {"expression": expression}} for expression in expressions]}


def history(*events, kept_max=100):
    selectors = SelectorHistory(
        compiler=CelCompiler(detailed_errors=True), with_patches=True, kept_max=kept_max
    )
    for each in events:
        selectors.take(each)
    return selectors


async def compare(selectors, second, **bounds):
    return await second_opinion.compare(
        selectors,
        second,
        compiler=CelCompiler(detailed_errors=True),
        bounds=OpinionBounds(**bounds),
        progress=lambda _done, _total: None,
    )


X = 'device.attributes["d"].x'


@pytest.mark.parametrize(
    ("resource", "spec"),
    [
        ("deviceclasses", selecting("one", "two")),
        (
            "resourceclaims",
            {
                "devices": {
                    "requests": [
                        {"name": "a", "exactly": selecting("one")},
                        {"name": "b", "firstAvailable": [{"name": "c"}, selecting("two")]},
                    ]
                }
            },
        ),
        (
            "resourceclaimtemplates",
            {"spec": {"devices": {"requests": [{"exactly": selecting("one", "two")}]}}},
        ),
        ("resourceslicepatches", {"devices": {"filter": selecting("one", "two")}}),
    ],
)
def test_selectors_of_every_kind_are_collected(resource, spec):
    assert history(event(1, resource, spec)).expressions == ["one", "two"]


def test_device_is_collected_for_each_set_of_values_that_it_had():
    selectors = history(
        event(1, "resourceslices", slice_of(1, 2)),
        event(2, "resourceslices", slice_of(1, 3)),
        event(3, "resourceslices", slice_of(1, 3), deleted=True),
        event(4, "resourceslices", {**slice_of(1, 3), "driver": "e"}),
        event(5, "resourceslices", {"driver": "d"}, name="odd"),
    )
    shown = [(device.id[0], device.attributes["x"]["int"]) for device in selectors.devices]
    assert shown == [("d", 1), ("d", 2), ("d", 3), ("e", 1), ("e", 3)]


def test_patched_device_is_collected_as_published_and_as_patched():
    patch = {
        "devices": {
            "filter": selecting(f"{X} == 1"),
            "attributes": {"d/x": {"int": 5}},
            "priority": 1,
        }
    }
    selectors = history(
        event(1, "resourceslicepatches", patch), event(2, "resourceslices", slice_of(1, 2))
    )
    assert [device.attributes["x"]["int"] for device in selectors.devices] == [1, 5, 2]


async def test_answers_are_compared_and_what_is_missing_is_counted():
    selectors = history(
        event(1, "deviceclasses", selecting(f"{X} > 1", X, f"{X}.missing == 1")),
        event(2, "resourceslices", slice_of(1, 2, 3, 4)),
    )
    second = Scripted({3: None, 4: Match.ERROR})
    report = await compare(selectors, second)
    # `x` alone compiles, because it may be anything: here it is an error.
    assert (report.agreed, report.disagreed, report.unsaid) == (3, 6, {"no idea": 3})
    assert [
        (each.expression, each.device, each.ours, each.theirs) for each in report.disagreements[:2]
    ] == [
        (f"{X} > 1", "d/p/dev-1-0", Match.NO_MATCH, Match.MATCH),
        (f"{X} > 1", "d/p/dev-4-3", Match.MATCH, Match.ERROR),
    ]
    assert not report.is_complete


async def test_full_agreement_is_complete():
    selectors = history(
        event(1, "deviceclasses", selecting(f"{X} > 0")),
        event(2, "resourceslices", slice_of(1, 2)),
    )
    report = await compare(selectors, Scripted())
    assert (report.agreed, report.is_complete) == (2, True)


async def test_refused_and_dear_expressions_are_not_taken_for_agreement():
    dear = "[1,2,3,4,5,6,7,8,9].all(a, a > 0)"
    selectors = history(
        event(1, "deviceclasses", selecting("device.unknown", dear)),
        event(2, "resourceslices", slice_of(1)),
    )
    second = Scripted()
    report = await compare(selectors, second, cost_max=10)
    assert report.unsaid == {REFUSED: 1, TOO_DEAR: 1}
    assert second.questions == []


async def test_bound_is_counted_and_what_tells_most_is_asked_first():
    selectors = history(
        event(1, "deviceclasses", selecting(f"{X} > 0", f"{X} > -1")),
        event(2, "resourceslices", slice_of(1, 1, 1, 1, 2)),
    )
    second = Scripted()
    report = await compare(selectors, second, evaluations_max=5)
    assert second.questions[:4] == [
        (f"{X} > 0", 1),
        (f"{X} > 0", 2),
        (f"{X} > -1", 1),
        (f"{X} > -1", 2),
    ]
    assert (report.agreed, report.unasked, report.is_complete) == (5, 5, False)


async def test_what_is_not_even_kept_is_counted():
    selectors = history(
        event(1, "deviceclasses", selecting(f"{X} > 0", f"{X} > -1", f"{X} > -2")),
        event(2, "resourceslices", slice_of(1, 2, 3)),
        kept_max=2,
    )
    report = await compare(selectors, Scripted())
    assert (report.agreed, report.unasked) == (4, 5)
