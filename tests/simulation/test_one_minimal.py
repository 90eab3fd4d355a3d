"""Nothing can be left out of what `redra minimise` writes, by a check of its own."""

import json
import random
import sys
from itertools import islice
from pathlib import Path

import pytest

from tests import draws
from tests.command_line import redra
from tests.conformance import tampering
from tests.conformance.test_tampered_recordings import WRONG
from tests.shared_data import shared_path
from tests.simulation import one_minimal, planted_soak

pytestmark = [pytest.mark.slow, draws.modules_in_turn("worlds")]

NAMES_A_CLASS = (
    f"{sys.executable} -c 'import sys, zipfile; "
    'sys.exit(b"deviceClassName" not in zipfile.ZipFile(sys.argv[1]).read("events.jsonl"))\' {}'
)
"""A command that exits with 0 for a bundle in which something names a DeviceClass."""

TOLERATION = 'spec.tolerations.="node.kubernetes.io/not-ready" of {}'

QUICK = (
    ("j-api-versions", "unschedulable p-e2", "unschedulable", "p-e2"),
    ("j-api-versions", f"command {NAMES_A_CLASS}", "command", NAMES_A_CLASS),
)

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
    ("e-taints-rules-ignored", "differs quirk=c24 evicted", "differs", "quirk=c24 evicted"),
    ("e-taints-rules-ignored", "differs quirk=c24 spared", "differs", "quirk=c24 spared"),
    (
        "b-mig-partitions",
        "differs gate=DRAPartitionableDevices",
        "differs",
        "gate=DRAPartitionableDevices",
    ),
    ("i-soak-short", "difference race", "difference", "race"),
    ("e-taints", "difference 'quirk c24=off'", "difference", "quirk c24=off"),
    ("b-mig-partitions", "difference race", "difference", "race"),
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
    is_recorded = word == "difference"
    assert (report["decisions"], report["minimal"]) == (
        "recorded" if is_recorded else "made here",
        True,
    )
    pod = report["sighting"].split(":")[0].rpartition("/")[2]
    fact = one_minimal.FACTS[word](about if word == "differs" else about or pod)
    assert list(one_minimal.superfluous(small, fact, is_recorded=is_recorded)) == []


def test_check_finds_what_can_be_left_out(tmp_path: Path) -> None:
    """A soak in which a rule is violated needs few of its objects for that."""
    with planted_soak.planted("unprotected"):
        bundle = tmp_path / "soak.zip"
        planted_soak.write(planted_soak.soak(1, 15), bundle)
        rule = planted_soak.DEFECTS["unprotected"].rule
        more = one_minimal.superfluous(bundle, one_minimal.violation(rule))
        assert list(islice(more, 3))
        more = one_minimal.superfluous(bundle, one_minimal.violation(rule), is_recorded=True)
        assert list(islice(more, 3))


def test_check_finds_controllers_fields_and_items_that_can_be_left_out(tmp_path: Path) -> None:
    bundle = tmp_path / "soak.zip"
    cluster = planted_soak.soak(1, 2)
    cluster.pod("stray", template="one", nodeSelector={"no": "where"})
    cluster.settle()
    planted_soak.write(cluster, bundle)
    fact = one_minimal.unschedulable("stray")
    pieces = dict(one_minimal.pieces(one_minimal.Deciding(bundle), is_recorded=False))
    shows = {
        words: bool(fact(pieces[words.format("pods/default/stray")]))
        for words in (
            "controller eviction",
            "controller scheduling",
            TOLERATION,
            "spec.nodeSelector of {}",
        )
    }
    assert [*shows.values()] == [True, False, True, False], shows


@draws.BY_DAY
@pytest.mark.parametrize(("alter", "rule"), WRONG, ids=[alter.__name__ for alter, _ in WRONG])
def test_each_rule_that_a_recording_breaks_comes_down_to_what_breaks_it(
    alter: tampering.Alter, rule: str, tmp_path: Path
) -> None:
    """The rule was broken by machine, at a drawn place of the log."""
    lines = tampering.read(shared_path("histories", "a-quickstart") / "audit.jsonl.gz")
    alter(lines, random.Random(alter.__name__))
    log, small = tampering.write(lines, tmp_path / "audit.jsonl"), tmp_path / "small.zip"
    keep = f"violation {rule}"
    code, out, error = redra("minimise", log, "--keep", keep, "-o", small, "--output", "json")
    assert code == 0, error
    report = json.loads(out)
    assert (report["decisions"], report["minimal"]) == ("recorded", True)
    assert report["events"] <= 30
    assert list(one_minimal.superfluous(small, one_minimal.violation(rule), is_recorded=True)) == []
