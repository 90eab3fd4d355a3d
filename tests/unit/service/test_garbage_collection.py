"""The collector of cyclic garbage has nothing to find where it hardly ever looks."""

import gc
import subprocess
import sys
from pathlib import Path

import pytest

from app.analysis.verify.invariants import InvariantWatch
from app.analysis.verify.parts import PartVerifier
from app.bootstrap import garbage_collection
from app.bootstrap.deciders import deciders_of
from app.domain.log.pages import Page
from app.service.replays.first_pass import FirstPass
from projections import all_projections
from tests import draws
from tests.unit.analysis.verify.test_parts import ANYWHERE
from tests.unit.service.test_replaying import history_of, story

ROOT = Path(__file__).parents[3]


async def circles_dropped() -> tuple[int, int]:
    """The objects in circles that folds and a verification of some events leave, and the events."""
    events = story().line.events
    _, info = await history_of(events)
    ahead = FirstPass(division=ANYWHERE, invariants=InvariantWatch())
    views, page = all_projections(), Page(events)
    gc.collect()
    gc.disable()
    for view in views:
        view.fold_page(page)
        view.state_hash()
    ahead.invariants.follow_page(page)
    for event, parts in page.splits:
        ahead.take(event, parts)
    verifier = PartVerifier(ahead.parts(1, ends=True)[0], deciders_of(info))
    for event in events:
        verifier.take(event)
    dropped = gc.collect()
    assert not any(verifier.differences())
    return dropped, len(events)


ALONE = f"""
import asyncio
from {__name__} import circles_dropped
print(*asyncio.run(circles_dropped()))
"""


@draws.in_turn("ways")
def test_folds_and_verifications_drop_no_circles() -> None:
    # In a process of its own: what other tests dropped is collected at any time.
    done = subprocess.run(
        [sys.executable, "-c", ALONE], cwd=ROOT, capture_output=True, text=True, check=True
    )
    dropped, events = map(int, done.stdout.split())
    assert events > 50
    assert dropped < events / 10, "objects in circles"


def fail_in_a_pass(seen: list[int]) -> None:
    with garbage_collection.one_pass():
        seen.append(gc.get_threshold()[0])
        raise LookupError


def test_looks_are_as_before_after_a_pass_that_failed() -> None:
    before, seen = gc.get_threshold(), []
    with pytest.raises(LookupError):
        fail_in_a_pass(seen)
    assert seen == [garbage_collection.ONE_PASS_MAX]
    assert gc.get_threshold() == before


ONCE = """
import asyncio, gc, weakref
from app.bootstrap import garbage_collection

class Circle:
    def __init__(self):
        self.itself = self

garbage_collection.expect_large_heap()
garbage_collection.look_once(whole_every=3, left_out=0)
gc.collect()
gc.freeze()

async def main():
    old = Circle()
    gc.collect(0)
    young = Circle()
    seen = weakref.ref(old), weakref.ref(young)
    del old, young
    gc.collect(0)
    await asyncio.sleep(0)
    shown = [each() is None for each in seen]
    gc.collect(0)
    await asyncio.sleep(0)
    print(shown, [each() is None for each in seen])

asyncio.run(main())
"""


def test_a_server_looks_at_new_objects_once_and_at_everything_in_the_end() -> None:
    done = subprocess.run([sys.executable, "-c", ONCE], capture_output=True, text=True, check=True)
    assert done.stdout == "[False, True] [True, True]\n"


RARELY = """
import gc, weakref
from app.bootstrap import garbage_collection

class Circle:
    def __init__(self):
        self.itself = self

garbage_collection.look_once(left_out=2)
gc.collect()
gc.freeze()
CIRCLES

def finds():
    one = weakref.ref(Circle())
    for _ in range(LITTER):
        Circle()
    gc.collect(0)
    return one() is None

print(*[finds() for _ in range(7)])
gc.unfreeze()
gc.collect()
print(not any(isinstance(each, Circle) for each in gc.get_objects()))
"""


@pytest.mark.parametrize(
    ("litter", "missed", "looks"),
    [
        pytest.param(0, 0, [1, 0, 0, 1, 0, 0, 1], id="little is there: two of three are left out"),
        pytest.param(garbage_collection.FEW, 0, [1] * 7, id="much is there: none is left out"),
        pytest.param(0, garbage_collection.MISSED_MAX, [1] * 7, id="much may have been missed"),
    ],
)
def test_a_server_leaves_looks_out_while_they_find_next_to_nothing(
    litter: int, missed: int, looks: list[int]
) -> None:
    missing = f"garbage_collection._Looks.missed = {missed}"
    code = RARELY.replace("LITTER", str(litter)).replace("CIRCLES", missing)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    shown = " ".join(str(bool(each)) for each in looks)
    assert done.stdout == f"{shown}\nTrue\n"
