"""Nothing can be left out of what `redra minimise` writes, by a check of its own."""

import json
from itertools import islice
from pathlib import Path

import pytest

from tests import draws
from tests.command_line import redra
from tests.shared_data import shared_path
from tests.simulation import one_minimal, planted_soak

pytestmark = pytest.mark.slow

QUICK = (("j-api-versions", "unschedulable p-e2", "unschedulable", "p-e2"),)

LONG = (
    ("e-taints", "evicted sh-0", "evicted", "sh-0"),
    ("e-taints", "evicted", "evicted", ""),
    ("e-taints", "unschedulable", "unschedulable", ""),
    ("e-taints-rules-ignored", "evicted sh-1", "evicted", "sh-1"),
    (
        "e-taints-rules-ignored",
        "differs profile=1.36.2,1.37 moved",
        "differs",
        "1.36.2,1.37",
    ),
    ("b-mig-partitions", "unschedulable", "unschedulable", ""),
    ("c-multihost-tpu", "unschedulable", "unschedulable", ""),
    ("i-soak-short", "unschedulable", "unschedulable", ""),
)


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("name", "keep", "word", "about"), [*QUICK, *(LONG if draws.WHOLE else ())]
)
def test_nothing_can_be_left_out_of_what_is_left(
    name: str, keep: str, word: str, about: str, tmp_path: Path
) -> None:
    small = tmp_path / "small.zip"
    code, out, error = redra(
        "minimise", shared_path("histories", name), "--keep", keep, "-o", small, "--output", "json"
    )
    assert code == 0, error
    report = json.loads(out)
    assert (report["taken"], report["minimal"]) == ("decided", True)
    pod = report["sighting"].split(":")[0].rpartition("/")[2]
    about = about if word == "differs" else about or pod
    assert list(one_minimal.superfluous(small, one_minimal.FACTS[word](about))) == []


def test_check_finds_what_can_be_left_out(tmp_path: Path) -> None:
    """A soak in which a rule is violated needs few of its objects for that."""
    with planted_soak.planted("unprotected"):
        bundle = tmp_path / "soak.zip"
        planted_soak.write(planted_soak.soak(1, 15), bundle)
        rule = planted_soak.DEFECTS["unprotected"].rule
        more = one_minimal.superfluous(bundle, one_minimal.violation(rule))
        assert list(islice(more, 3))
