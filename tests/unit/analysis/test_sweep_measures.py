"""What a run of a sweep leaves stranded, counted by hand; the columns and words that show it."""

import csv
import random
from pathlib import Path

import pytest

from app.analysis.sweep import columns, measures
from app.bootstrap.sweeping import tables
from app.domain.log import HistoryId, HistoryInfo
from app.domain.objects.profile import Profile
from app.domain.values.json_tree import JsonObject
from app.service import diffing
from tests.cluster import DRIVER, Cluster, claim_spec

GIB = 2**30


def use(memory: int, slices: int) -> list[JsonObject]:
    counters = {"memory": {"value": f"{memory}Gi"}, "slices": {"value": str(slices)}}
    return [{"counterSet": "gpu", "counters": counters}]


def ran(seed: int) -> tuple[JsonObject, dict[str, tuple[float, float]]]:
    """The row of a cluster with one partitioned device, and what must be stranded there.

    One pod takes a partition. What is left is stranded where no other partition fits into it.
    """
    drawn = random.Random(seed)
    memory, slices = drawn.randrange(20, 60), drawn.randrange(3, 9)
    own = drawn.randrange(1, memory), drawn.randrange(1, slices)
    other = drawn.randrange(1, memory + 1), drawn.randrange(1, slices + 1)
    cluster = Cluster(Profile(version="1.37"))
    cluster.node("n1")
    cluster.device_class("own", f'device.attributes["{DRIVER}"].kind == "own"')
    pool = {"name": "n1", "generation": 1, "resourceSliceCount": 2}
    devices: list[JsonObject] = [
        {"name": kind, "attributes": {"kind": {"string": kind}}, "consumesCounters": use(*amounts)}
        for kind, amounts in (("own", own), ("other", other))
    ]
    sets = [{"name": "gpu", "counters": use(memory, slices)[0]["counters"]}]
    for name, part in (("devices", {"devices": devices}), ("counters", {"sharedCounters": sets})):
        spec = {"driver": DRIVER, "nodeName": "n1", "pool": pool, **part}
        cluster.create("resource.k8s.io/v1", "ResourceSlice", name, spec=spec)
    cluster.create(
        "resource.k8s.io/v1", "ResourceClaimTemplate", "own", spec={"spec": claim_spec("own")}
    )
    cluster.pod("first", template="own")
    cluster.settle()
    left = memory - own[0], slices - own[1]
    fits = other[0] <= left[0] and other[1] <= left[1]
    expected = {
        f"{DRIVER}/memory": (0.0 if fits else left[0] * GIB, 0.0 if fits else left[0] / memory),
        f"{DRIVER}/slices": (0.0 if fits else left[1], 0.0 if fits else left[1] / slices),
    }
    info = HistoryInfo(id=HistoryId(1), name="run", settings=cluster.profile.settings())
    return measures.measured(diffing.side_of(info, cluster.line.events, "run")), expected


@pytest.mark.parametrize("seed", range(20))
def test_each_counter_has_its_own_amount_and_share(seed: int) -> None:
    row, expected = ran(seed)
    assert row["placed"] == 1
    shown = {name: (one["amount"], one["share"]) for name, one in row["stranded"].items()}
    assert shown.keys() == expected.keys()
    for name, (amount, share) in expected.items():
        assert shown[name] == (amount, pytest.approx(share, abs=1e-6))


def test_columns_and_words_are_by_counter(tmp_path: Path) -> None:
    rows = [
        {"cell": 1, **next(row for row, expected in map(ran, range(20)) if is_stranded(expected))},
        {"cell": 2, "problem": "it failed"},
    ]
    tables.write(rows, tmp_path, "Sweep")
    with (tmp_path / "table.csv").open() as file:
        first, second = csv.DictReader(file)
    assert "stranded" not in first
    for name, one in rows[0]["stranded"].items():
        assert float(first[f"stranded {name}"]) == one["amount"]
        assert float(first[f"strandedShare {name}"]) == one["share"]
        assert second[f"stranded {name}"] == ""
    page = (tmp_path / "index.html").read_text()
    assert f"Stranded share of counter {DRIVER}/memory, by run" in page
    # Of the two figures of a counter the share alone has a picture.
    assert page.count('aria-label="Stranded') == len(rows[0]["stranded"])
    words = columns.stranded_text(rows[0])
    assert "memory " in words
    assert "slices " in words
    assert "%" in words
    assert columns.stranded_text(rows[1]) == ""


def test_counters_of_one_name_are_told_apart_by_their_drivers() -> None:
    one = {"amount": 1.0, "of": 4.0, "share": 0.25}
    row = {"stranded": {"a/memory": one, "b/memory": {**one, "share": 0.5}, "a/slices": one}}
    assert columns.stranded_text(row) == "b/memory 50.0%, a/memory 25.0%, slices 25.0%"


def is_stranded(expected: dict[str, tuple[float, float]]) -> bool:
    return all(amount for amount, _ in expected.values())
