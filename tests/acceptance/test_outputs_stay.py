"""Outputs that are there stay as they are, unless --force is given; wrong options are named."""

import os
import subprocess
from pathlib import Path

import msgspec
import pytest
import yaml

from app.bootstrap.sweeping import running
from tests import draws
from tests.cluster import Cluster
from tests.command_line import ROOT, redra
from tests.redra_program import shared_program
from tests.simulation import planted_soak


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    """A history in which a pod waits for a device."""
    cluster = Cluster()
    cluster.device_class()
    cluster.node()
    cluster.claim()
    cluster.pod(claim="claim")
    cluster.settle()
    path = tmp_path / "waits.zip"
    planted_soak.write(cluster, path)
    return path


@draws.in_turn("ways")
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("small.zip", ("minimise", "--keep", "unschedulable")),
        ("test_it.py", ("export", "--as", "pytest")),
        ("case.json", ("export", "--as", "go-allocator-case")),
    ],
)
def test_file_that_is_there_is_overwritten_only_by_force(
    bundle: Path, name: str, words: tuple[str, ...]
) -> None:
    file = bundle.parent / name
    file.write_text("mine")
    command, *options = words
    code, out, error = redra(command, bundle, *options, "-o", file)
    assert (code, out) == (2, "")
    assert error == (f"redra: {file}: it already exists; name another, or overwrite it: --force\n")
    assert file.read_text() == "mine"
    code, _, error = redra(command, bundle, *options, "-o", file, "--force")
    assert code == 0, error
    assert file.read_bytes() != b"mine"
    assert redra(command, bundle, *options, "-o", bundle.parent, "--force")[0] == 2


def test_report_and_bundle_are_refused_before_any_history_is_opened(tmp_path: Path) -> None:
    file = tmp_path / "out"
    file.write_text("mine")
    for command in ("report", "export", "head"):
        code, _, error = redra(command, "default", "-o", file)
        assert (code, "overwrite it: --force" in error) == (2, True)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@draws.in_turn("ways")
@pytest.mark.parametrize("closed", ["stdout", "stderr"])
def test_file_is_written_though_nobody_reads_what_is_said(bundle: Path, closed: str) -> None:
    file = bundle.parent / "small.zip"
    reading, writing = os.pipe()
    os.close(reading)
    streams = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, closed: writing}
    words = ["minimise", bundle, "--keep", "unschedulable", "-o", file]
    done = subprocess.run(
        [shared_program(), *words],
        cwd=ROOT, timeout=120, check=False, **streams,
    )  # fmt: skip
    os.close(writing)
    assert (done.returncode, file.exists()) == (0, True)


def test_sweeps_of_one_folder_do_not_take_each_others_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, write = tmp_path / "cell.json", Path.write_bytes

    def write_twice(path: Path, content: bytes) -> int:
        monkeypatch.setattr(Path, "write_bytes", write)
        size = write(path, content)
        running._keep(file, {"of": "another sweep"})
        return size

    monkeypatch.setattr(Path, "write_bytes", write_twice)
    running._keep(file, {"of": "this sweep"})
    assert msgspec.json.decode(file.read_bytes()) == {"of": "this sweep"}
    assert list(tmp_path.iterdir()) == [file]


def test_tables_of_other_runs_are_overwritten_only_by_force(bundle: Path) -> None:
    folder, plan = bundle.parent / "out", bundle.parent / "plan.yaml"

    def sweep(seeds: int, *more: str) -> tuple[int, str, str]:
        plan.write_text(yaml.safe_dump({"histories": [bundle.name], "seeds": seeds}))
        return redra("sweep", plan, "-o", folder, *more)

    assert sweep(2)[0] == 0
    assert sweep(3)[0] == 0, "more of the same runs"
    table = (folder / "table.csv").read_bytes()
    code, out, error = sweep(1)
    assert (code, out) == (2, "")
    assert "table.csv: it already exists, with other runs" in error
    assert (folder / "table.csv").read_bytes() == table
    assert sweep(1, "--force")[0] == 0
    assert (folder / "table.csv").read_bytes() != table
    for path in (folder / "cells").iterdir():
        path.unlink()
    assert sweep(1)[0] == 2, "whose tables they are is not known"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--as", "pytest", "--never", "nonsense"), "--never: 'nonsense' is not a predicate"),
        (("--never", "violation"), "--never: it does not apply to bundles; add --as pytest"),
        (("--as", "manifests", "--pod", "web"), "--pod: it cannot be combined with --as manifests"),
    ],
)
def test_option_that_is_wrong_is_the_one_that_is_named(
    bundle: Path, words: tuple[str, ...], said: str
) -> None:
    code, out, error = redra("export", bundle, *words, "-o", bundle.parent / "out")
    assert (code, out) == (2, "")
    assert said in error


def test_history_is_named_as_its_user_does(bundle: Path) -> None:
    words = ("minimise", bundle, "--keep", "violation", "-o", bundle.parent / "small.zip")
    code, _, error = redra(*words)
    assert code == 2
    assert "history 'waits.zip' does not show it: violation" in error
    assert "`redra verify HISTORY` lists violations with their rules" in error
    assert "replayed" not in error
