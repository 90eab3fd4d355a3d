"""`watch-over` beside a scheduler that does wrong: it names each wrong soon, and nothing else."""

import random

import anyio
import pytest

from app.bootstrap.pacing.overseeing import oversight_of
from app.domain.objects import profile as profiles
from app.domain.values.timestamps import SECOND
from tests import draws
from tests.simulation.evil_scheduler import WRONGS, play

SOON = 30 * SECOND
"""A decision of somebody else is made again when nothing that it depends on can be in flight."""


@pytest.fixture(scope="module", params=["1.37", draws.repeated("1.36")])
def watched(request):
    """The release, and by namespace what was said: seconds after it, and the observation."""
    names = [*WRONGS]
    random.Random(draws.DAY).shuffle(names)
    run = anyio.run(play, profiles.from_settings({"profile": request.param}), names)
    times = {event.revision: event.stamp.time for event in run.events}
    oversight = oversight_of(run.info, ())
    said = {name: [] for name in names}
    for event in run.events:
        for each in oversight.take([event]):
            (name,) = {text.split("/")[1] for text in each.objects if text.count("/") == 2}
            said[name].append((times[each.seen] - run.done[name], each))
    return request.param, said


@pytest.mark.parametrize("name", WRONGS)
def test_wrong_of_a_scheduler_is_named_soon_and_nothing_else_is(watched, name):
    release, said = watched
    wrong = WRONGS[name]
    if not wrong.name or release < wrong.since:
        assert not said[name]
        return
    fitting = [
        late
        for late, each in said[name]
        if wrong.name in (each.name, each.kind)
        and each.is_failure == wrong.is_failure
        and set(wrong.objects) <= {text.rpartition("/")[2] for text in each.objects}
    ]
    assert fitting, said[name]
    assert min(fitting) <= SOON
    assert wrong.is_failure or not any(each.is_failure for _, each in said[name])
