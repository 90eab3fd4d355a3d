"""`redra sweep`: matrices of runs here and on real worker processes, one of which dies."""

import csv
import json
import os
import random
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import anyio
import pytest
import yaml

from app.analysis.sweep import measures, plans
from app.bootstrap.engines import Engines
from app.bootstrap.executors import DaskExecutor, InlineExecutor, Task
from app.bootstrap.minimising import sources
from app.bootstrap.sweeping import cells, histories
from app.service.replays.trials import Runner
from app.settings import Settings
from tests import draws
from tests.acceptance import killed_sweep, sweep_model
from tests.command_line import EXAMPLES, redra
from tests.redra_process import RedraProcess, forked_dask_workers
from tests.redra_program import shared_program
from tests.shared_data import shared_path
from tests.simulation import planted_soak

pytestmark = [pytest.mark.slow]

PODS = """\
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: small, namespace: default}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: CLASS}}]}}}
"""

POD = """\
---
apiVersion: v1
kind: Pod
metadata: {name: pod-%d, namespace: default}
spec:
  containers: [{name: main, image: busybox}]
  resourceClaims: [{name: gpu, resourceClaimTemplateName: small}]
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a soak as a bundle."""
    folder = tmp_path_factory.mktemp("sweep")
    planted_soak.write(planted_soak.soak(1, 12), folder / "soak.zip")
    return folder


def write_plan(folder: Path, **plan: object) -> Path:
    path = folder / f"plan-{len(list(folder.iterdir()))}.yaml"
    path.write_text(yaml.safe_dump(plan))
    return path


def sweep(plan: Path, out: Path, *more: object) -> dict:
    code, text, error = redra("sweep", plan, "-o", out, "--output", "json", *more)
    assert code in (0, 1), error
    return json.loads(text)


MATRIX = {
    "histories": ["soak.zip"],
    "profiles": ["1.36", "1.37"],
    "quirks": [{}, {"q6": False}],
    "changes": [
        {"name": "one node less", "delete": ["Node/node-3"]},
        {
            "name": "nothing matches",
            "patch": {
                "DeviceClass/gpu": {"spec": {"selectors": [{"cel": {"expression": "false"}}]}}
            },
        },
    ],
    "seeds": 2,
}


@draws.in_turn("ways")
def test_example_places_every_pod_in_each_of_its_two_hundred_runs(tmp_path: Path) -> None:
    """The plan that shows what more workers are worth; its first run stands for the others."""
    example = EXAMPLES.parent / "sweeps"
    tree = yaml.safe_load((example / "placed.yaml").read_text())
    assert len(list(plans.cells(plans.parse(tree, "placed.yaml")))) == 200
    shutil.copy(example / "pods.yaml", tmp_path)
    first = tree | {"profiles": tree["profiles"][:1], "quirks": [{}], "seeds": [1]}
    (row,) = sweep(write_plan(tmp_path, **first), tmp_path / "out")["rows"]
    pods = [
        each
        for each in yaml.safe_load_all((example / "pods.yaml").read_text())
        if each["kind"] == "Pod"
    ]
    assert (row["placed"], row["waiting"], row["problem"]) == (len(pods), 0, "")


@draws.in_turn("ways")
def test_table_has_a_row_for_each_run_and_says_what_differs(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    report = sweep(write_plan(folder, **MATRIX), out)
    rows = report["rows"]
    assert (len(rows), report["ran"], report["failed"]) == (24, 24, 0)
    assert rows[0]["differing"] == 0
    assert {row["pods"] for row in rows} == {12}
    assert all(row["placed"] + row["waiting"] <= 12 for row in rows)
    broken = [row for row in rows if row["change"] == "nothing matches"]
    assert all(row["largest"]["gpu"] == 0 and row["differing"] > 0 for row in broken)
    assert all(row["waiting"] > 0 for row in broken)
    with (out / "table.csv").open() as file:
        table = list(csv.DictReader(file))
    assert [int(row["placed"]) for row in table] == [row["placed"] for row in rows]
    from pyarrow import parquet

    assert parquet.read_table(out / "table.parquet").num_rows == 24
    page = (out / "index.html").read_text()
    assert page.count("<svg") >= 6
    assert "<script" not in page
    assert "http" not in page.replace("http://www.w3.org", "")


@draws.in_turn("ways")
@pytest.mark.parametrize("name", draws.by_turns([["e-taints-rules-ignored", "e-taints"]]))
def test_base_of_a_recording_is_what_was_recorded(name: str, tmp_path: Path) -> None:
    path = shared_path("histories", name, "audit.jsonl.gz")
    source = anyio.run(sources.read_files, Settings(), (path,), None)
    recorded = Runner(source.recorded, source.info, Engines()).run(source.whole(source.recorded))
    truth = measures.measured(recorded.side)
    (row,) = sweep(write_plan(tmp_path, histories=[str(path)]), tmp_path / "out")["rows"]
    for measure in ("pods", "placed", "waiting", "evicted"):
        assert row[measure] == truth[measure], measure
    assert row["boundP50"] == pytest.approx(truth["boundP50"], rel=0.2)


@draws.in_turn("ways")
def test_finished_run_is_not_run_again(folder: Path, tmp_path: Path) -> None:
    plan = write_plan(folder, histories=["soak.zip"], seeds=3)
    first = sweep(plan, tmp_path / "out")
    again = sweep(plan, tmp_path / "out")
    assert (first["ran"], again["ran"]) == (3, 0)
    assert first["rows"] == again["rows"]
    more = sweep(write_plan(folder, histories=["soak.zip"], seeds=5), tmp_path / "out")
    assert (more["ran"], more["rows"][:3]) == (2, first["rows"])


RUNS = 3
"""The number of runs of a sweep that is killed."""


def written(folder: Path) -> dict[str, object]:
    """The rows of the three tables of a sweep, as text; those of the page are in its markup."""
    from pyarrow import parquet

    with (folder / "table.csv").open() as file:
        rows = list(csv.DictReader(file))
    table = parquet.read_table(folder / "table.parquet").to_pylist()
    assert [
        {name: "" if value is None else str(value) for name, value in row.items()} for row in table
    ] == rows
    return {"rows": rows, "page": (folder / "index.html").read_text()}


@draws.in_turn("ends")
@pytest.mark.parametrize("seed", draws.seeds(1))
def test_killed_sweep_goes_on_where_it_was(folder: Path, tmp_path: Path, seed: int) -> None:
    """Killed at two drawn writes, it runs no finished run again and ends as one never killed."""
    drawn, out = random.Random(f"killed {seed}"), tmp_path / "out"
    plan = write_plan(folder, histories=["soak.zip"], seeds=RUNS)
    words = ("sweep", plan, "-o", out, "--output", "json")
    kept: dict[str, tuple[int, int]] = {}
    for when in drawn.sample(killed_sweep.WHEN, 2):
        # What is left: a run for each write, the names of the runs, and three tables.
        last = drawn.randint(1, RUNS - len(kept) + 3)
        mortal = ("-m", killed_sweep.__name__, last, when)
        process = RedraProcess([*mortal, *words])
        process.communicate()
        assert process.returncode == -signal.SIGKILL
        there = {
            path.name: (path.stat().st_ino, path.stat().st_mtime_ns)
            for path in (out / "cells").glob("[!.]*.json")
            if path.name != "tables.json"
        }
        assert kept.items() <= there.items(), "a finished run was run again"
        assert len(there) == min(RUNS, len(kept) + last - (when != "after"))
        kept = there
    whole = sweep(plan, tmp_path / "whole")
    resumed = sweep(plan, out)
    assert resumed["ran"] == RUNS - len(kept)
    assert list(out.rglob(".*")) == []
    assert resumed["rows"] == whole["rows"]
    assert written(out) == written(tmp_path / "whole")
    assert [int(row["placed"]) for row in written(out)["rows"]] == [
        row["placed"] for row in whole["rows"]
    ]


@draws.in_turn("ways")
def test_result_that_is_damaged_is_run_again(folder: Path, tmp_path: Path) -> None:
    plan, out = write_plan(folder, histories=["soak.zip"], seeds=2), tmp_path / "out"
    first = sweep(plan, out)
    result = next(path for path in (out / "cells").iterdir() if path.name != "tables.json")
    for content in (b"", b'{"pods": 1', b"[]", result.read_bytes()[:-9]):
        result.write_bytes(content)
        again = sweep(plan, out)
        assert (again["ran"], again["rows"]) == (1, first["rows"])


def test_failing_run_stops_no_other_and_is_tried_again(folder: Path, tmp_path: Path) -> None:
    change = {"name": "less", "delete": ["Node/nowhere"]}
    plan = write_plan(folder, histories=["soak.zip"], profiles=["1.37"], changes=[change])
    for _ in range(2):
        code, text, error = redra("sweep", plan, "-o", tmp_path / "out")
        assert code == 1
        assert "1 run failed" in error
        assert "is called 'Node/nowhere' in this history" in text
    report = sweep(plan, tmp_path / "out")
    assert [bool(row["problem"]) for row in report["rows"]] == [False, True]


PARTS = """\
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: small, namespace: default}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: mig.nvidia.com}}]}}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: whole, namespace: default}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.nvidia.com}}]}}}
"""


@draws.in_turn("ways")
def test_each_column_is_what_the_objects_of_the_run_say(tmp_path: Path) -> None:
    pods = [POD % number for number in range(8)]
    pods[::3] = [each.replace("Name: small", "Name: whole") for each in pods[::3]]
    (tmp_path / "pods.yaml").write_text(PARTS + "".join(pods))
    selector = {"spec": {"selectors": [{"cel": {"expression": "false"}}]}}
    changes = [
        {"name": "no parts", "patch": {"DeviceClass/mig.nvidia.com": selector}},
        {"name": "no such node", "delete": ["Node/nowhere"]},
    ]
    fleet = {"name": "one node", "profile": "a100-mig", "nodes": 1, "apply": ["pods.yaml"]}
    tree = {"fleets": [fleet], "profiles": ["1.37"], "changes": changes, "seeds": 2, "jitter": 2.0}
    rows = sweep(write_plan(tmp_path, **tree), tmp_path / "out")["rows"]
    plan = plans.parse(tree, "plan")
    bundles = anyio.run(histories.bundles, plan, Settings(), tmp_path)
    counted: dict[int, dict[str, object]] = {}
    for cell, row in zip(plans.cells(plan), rows, strict=True):
        fails = cell.change is not None and cell.change.name == "no such node"
        assert bool(row["problem"]) == fails
        if fails:
            continue
        with mock.patch.object(measures, "measured", wraps=measures.measured) as measured:
            cells.run(bundles[cell.history], cell.to_json())
        (side, _), _ = measured.call_args
        own = counted[cell.number] = sweep_model.row(side.events)
        fates, base = own.pop("fates"), counted[cell.base].get("base", {})
        stranded = {name: (one["amount"], one["share"]) for name, one in row["stranded"].items()}
        assert {name: row[name] for name in own} | {"stranded": stranded} == own, cell
        own["base"] = fates
        if cell.number != cell.base:
            assert row["differing"] == sum(fates[name] != base[name] for name in fates), cell
    assert len(counted) == 4
    assert {row["placed"] for row in rows if not row["problem"]} == {3, 8}


def test_run_beyond_its_bound_fails_and_stops_no_other(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    large = planted_soak.write(planted_soak.soak(1, 12), tmp_path / "large.zip")
    small = planted_soak.write(planted_soak.soak(1, 2), tmp_path / "small.zip")
    bound = (small + large) // 2
    monkeypatch.setenv("REDRA_TRIAL_EVENTS_MAX", str(bound))
    plan = write_plan(tmp_path, histories=["large.zip", "small.zip"])
    beyond, within = sweep(plan, tmp_path / "out")["rows"]
    assert f"the run has more than {bound} events" in beyond["problem"]
    assert "REDRA_TRIAL_EVENTS_MAX" in beyond["problem"]
    assert "pods" not in beyond
    assert (within["problem"], within["pods"]) == ("", 2)
    words = ("minimise", tmp_path / "large.zip", "--keep", "unschedulable", "-o")
    code, out, error = redra(*words, tmp_path / "least.zip")
    assert (code, out, (tmp_path / "least.zip").exists()) == (2, "", False)
    assert error.splitlines()[-1].startswith("redra: by ")
    assert f"the run has more than {bound} events" in error


def test_fleet_is_a_history_too(tmp_path: Path) -> None:
    (tmp_path / "pods.yaml").write_text(
        PODS.replace("CLASS", "nic") + "".join(POD % number for number in range(6))
    )
    fleet = {"name": "two nodes", "profile": "nic", "nodes": 2, "apply": ["pods.yaml"]}
    plan = write_plan(
        tmp_path, fleets=[fleet, {**fleet, "name": "four nodes", "nodes": 4}], seeds=2
    )
    rows = sweep(plan, tmp_path / "out")["rows"]
    assert [row["pods"] for row in rows] == [6, 6, 6, 6]
    assert sum(sum(row["largest"].values()) for row in rows) > 0


REPLICA_SET = """\
---
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: web, namespace: default}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: main, image: busybox}]}
"""


def test_workload_in_a_fleet_is_refused_because_it_makes_no_pods(tmp_path: Path) -> None:
    (tmp_path / "pods.yaml").write_text(PODS.replace("CLASS", "nic") + REPLICA_SET)
    fleet = {"name": "two nodes", "profile": "nic", "nodes": 2, "apply": ["pods.yaml"]}
    code, out, error = redra("sweep", write_plan(tmp_path, fleets=[fleet]), "-o", tmp_path / "out")
    assert (code, out) == (2, "")
    assert "ReplicaSet web makes no pods here" in error
    assert len(error.splitlines()) == 1
    assert not (tmp_path / "out").exists()


@pytest.fixture(scope="module")
def local_cluster() -> Iterator[object]:
    """Two worker processes on the loopback interface."""
    from distributed import Client, LocalCluster

    with (
        forked_dask_workers(),
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
            silence_logs=50,
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


@draws.in_turn("ends")
def test_workers_give_what_this_process_gives_though_one_is_killed(
    folder: Path, local_cluster
) -> None:
    content = (folder / "soak.zip").read_bytes()
    data = {"profile": "", "gates": {}, "quirks": {}, "change": None, "jitter": 2.0}
    tasks = [Task(digest=f"cell-{n}", bundle="soak", data={**data, "seed": n}) for n in range(12)]
    pids = local_cluster.run(os.getpid)
    results: dict[str, object] = {}
    is_killed = False
    for done in DaskExecutor(local_cluster).map(cells.run, {"soak": content}, tasks):
        assert not done.problem
        results[done.task.digest] = done.result
        if not is_killed:
            os.kill(next(iter(pids.values())), signal.SIGKILL)
            is_killed = True
    here = InlineExecutor().map(cells.run, {"soak": content}, tasks)
    assert results == {done.task.digest: done.result for done in here}


@draws.in_turn("ways")
def test_sweep_runs_on_an_existing_scheduler(folder: Path, tmp_path: Path, local_cluster) -> None:
    plan = write_plan(folder, histories=["soak.zip"], seeds=4)
    address = local_cluster.scheduler.address
    there = sweep(plan, tmp_path / "there", "--scheduler", address)
    assert there["ran"] == 4
    assert there["rows"] == sweep(plan, tmp_path / "here")["rows"]


@draws.in_turn("rows of refusals")
@pytest.mark.parametrize(
    ("plan", "said"),
    [
        (
            {"histories": ["soak.zip"], "wrong": 1},
            "there is no 'wrong'; it may have histories, fleets",
        ),
        ({"histories": []}, "names no histories and no fleets"),
        ({"histories": ["soak.zip"], "profiles": []}, "it is empty"),
        ({"histories": ["soak.zip", "soak.zip"]}, "named twice"),
        ({"histories": ["soak@"]}, "histories: there is no moment behind the @ of 'soak@'"),
        ({"histories": ["soak.zip"], "seeds": 0}, ": seeds: it must be 1 or more"),
        ({"histories": ["soak.zip"], "seeds": -1}, ": seeds: it must be 1 or more"),
        ({"histories": ["soak.zip"], "seeds": 1_000_000}, "more than 100000 cells"),
        ({"histories": ["soak.zip"], "seeds": 2**63}, "more than 100000 cells"),
        ({"histories": ["soak.zip"], "seeds": [*range(60_000)], "gates": [{}, {}]}, "100000 cells"),
        ({"histories": ["soak.zip"], "jitter": -1}, ": jitter: it must be a number of seconds"),
        ({"histories": ["soak.zip"], "profiles": ["1.2"]}, "there is no profile '1.2'"),
        ({"histories": ["soak.zip"], "gates": [{}, {"DRAX": True}]}, "no feature gate 'DRAX'"),
        ({"histories": ["soak.zip"], "quirks": [{"q999": True}]}, "there is no quirk 'q999'"),
        ({"fleets": [{"name": "f", "profile": "nothing"}]}, "there is no profile 'nothing'"),
    ],
)
def test_bad_plan_is_refused_in_one_sentence(
    folder: Path, tmp_path: Path, plan: dict, said: str
) -> None:
    code, out, error = redra("sweep", write_plan(folder, **plan), "-o", tmp_path / "out")
    assert (code, out) == (2, "")
    assert said in error
    assert len(error.splitlines()) == 1
    assert not (tmp_path / "out").exists()


def test_cluster_that_cannot_be_reached_is_refused(folder: Path, tmp_path: Path) -> None:
    plan = write_plan(folder, histories=["soak.zip"])
    for address in ("tcp://127.0.0.1:1", "tcp://127.0.0.1:x", "tcp://", "tls://nosuch.invalid:1"):
        code, _, error = redra("sweep", plan, "-o", tmp_path / "out", "--scheduler", address)
        assert code == 2
        assert "no scheduler answers" in error.splitlines()[-1]
        assert not (tmp_path / "out").exists()


def test_cluster_that_cannot_be_reached_is_refused_before_a_history_is_read(
    folder: Path, tmp_path: Path
) -> None:
    """Reading a long history takes minutes."""
    unreadable = tmp_path / "unreadable.zip"
    unreadable.write_bytes(b"PK")
    plan = write_plan(folder, histories=[str(unreadable)])
    cluster = ("--scheduler", "tcp://127.0.0.1:1")
    for command in (
        ("sweep", plan, "-o", tmp_path / "out"),
        ("minimise", unreadable, "--keep", "evicted", "-o", tmp_path / "small.zip"),
        ("replay", unreadable, "--mode", "verify"),
        ("verify", unreadable),
    ):
        assert "unreadable.zip" in redra(*command)[2]
        code, _, error = redra(*command, *cluster)
        assert (code, len(error.splitlines())) == (2, 1)
        assert "no scheduler answers at 'tcp://127.0.0.1:1'" in error
    assert [each.name for each in tmp_path.iterdir()] == ["unreadable.zip"]


def test_address_of_no_scheduler_is_refused_in_one_line(folder: Path, tmp_path: Path) -> None:
    """Also at the end of the process, when what is left half-made is collected."""
    plan = write_plan(folder, histories=["soak.zip"])
    command = (shared_program(), "sweep", plan, "-o", tmp_path / "out")
    done = subprocess.run(
        [*map(str, command), "--scheduler", "nonsense"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert "no scheduler answers at 'nonsense'" in line
    assert not (tmp_path / "out").exists()


def test_cluster_is_made_or_used(folder: Path, tmp_path: Path) -> None:
    plan = write_plan(folder, histories=["soak.zip"])
    code, _, error = redra(
        "sweep", plan, "-o", tmp_path / "out", "--workers", 2, "--scheduler", "tcp://127.0.0.1:1"
    )
    assert (code, "cannot be combined" in error) == (2, True)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("historys: [a]", "there is no 'historys'; do you mean histories?"),
        ("histories: a", "histories: it must be a list, and is text"),
        ("histories: [a]\ngates: {X: true}", "gates: it must be a list, and is a mapping"),
        ("histories: [a]\ngates: [{X: maybe}]", "gates[0]: it must be true or false, and is text"),
        ("histories: [a]\nprofiles: [1.36]", 'is a number; write it in quotes: "1.36"'),
        ("histories: [a]\nchanges: [{nam: x}]", "changes[0]: there is no 'nam'; do you mean name?"),
        ("histories: [a]\nchanges: [{delete: []}]", "changes[0]: name is missing"),
        (
            "histories: [a]\nchanges: [{name: x}, {name: x, delete: [Node/a]}]",
            ": changes: a change is named twice",
        ),
        ("histories: [a]\nchanges: [{name: ''}]", ": changes: a change has an empty name"),
        ("histories: [a]\njitter: 1.0e+999", "jitter: it must be a number of seconds from 0 on"),
        ("fleets: [{name: a}]", "fleets[0]: profile is missing"),
        ("- a", "it must be a mapping, and is a list"),
    ],
)
def test_plan_is_refused_in_the_words_of_plans(tmp_path: Path, text: str, said: str) -> None:
    plan = tmp_path / "plan.yaml"
    plan.write_text(text)
    code, out, error = redra("sweep", plan, "-o", tmp_path / "out")
    assert (code, out, error.count("\n")) == (2, "", 1)
    assert error.startswith(f"redra: {plan}: ")
    assert said in error
    assert "`" not in error
    assert "$" not in error
