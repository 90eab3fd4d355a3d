"""A pool of which the creation of a slice is lost is not surely unusable. Rows come by day."""

import pytest

from tests import draws
from tests.adversary.catalogue import MIG, TPU
from tests.adversary.log import Json, Log
from tests.adversary.running import recording
from tests.truth.altered.lines import is_write
from tests.truth.altered.recorded import until
from tests.truth.altered.served import served

LAST = 240


def creations(name: str) -> list[Json]:
    """The lines that create slices; of pools of several, one is the last of its generation."""
    return [
        line
        for line in recording(name).lines[:LAST]
        if line["objectRef"]["resource"] == "resourceslices"
        and line["verb"] == "create"
        and is_write(line)
        and line["responseObject"]["spec"]["pool"]["resourceSliceCount"] > 1
    ]


CASES = [(TPU, 2), (TPU, 3), (MIG, 0), (MIG, 1), (MIG, 2), (MIG, 8)]


@draws.BY_DAY
@pytest.mark.parametrize(("name", "number"), CASES)
async def test_pool_without_the_line_of_a_slice_is_unsure(name, number, tmp_path):
    lost = creations(name)[number]
    spec = lost["responseObject"]["spec"]
    pool = f"{spec['driver']}/{spec['pool']['name']}"
    log = Log([line for line in until(name, LAST).lines if line is not lost])
    async with served(log, tmp_path) as history:
        answers = [await history.ask("why", kind="pool", name=pool)]
        assert answers[0]["outcome"] == "Incomplete"
        left = next(one for one in creations(name) if one is not lost and _pool(one) == _pool(lost))
        name = left["responseObject"]["metadata"]["name"]
        answers.append(await history.ask("why", kind="resourceslice", name=name))
        devices = left["responseObject"]["spec"].get("devices") or ()
        for device in devices[:1]:
            place = f"{pool}/{device['name']}"
            answers.append(await history.ask("why", kind="device", name=place))
        answers += [await history.ask(one) for one in ("map", "capacity", "findings")]
    for answer in answers:
        assert answer["certainty"] == "unsure"
        kinds = {one["kind"] for one in answer["doubts"] if one["affects"] == "content"}
        assert "resourceslices.resource.k8s.io" in kinds


def _pool(line: Json) -> tuple[str, int]:
    pool = line["responseObject"]["spec"]["pool"]
    return pool["name"], pool["generation"]


@draws.BY_DAY
@pytest.mark.parametrize("name", [TPU, MIG])
async def test_pool_with_all_its_slices_is_sure(name, tmp_path):
    spec = creations(name)[-1]["responseObject"]["spec"]
    async with served(until(name, LAST), tmp_path) as history:
        pool = f"{spec['driver']}/{spec['pool']['name']}"
        answer = await history.ask("why", kind="pool", name=pool)
    assert (answer["outcome"], answer["certainty"]) == ("Usable", "sure")
