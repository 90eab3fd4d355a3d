"""Mutants of the core, by area: `python -m tests.mutants eviction --mutants 200 --seed 1`.

mutmut mutates a copy of the checkout; the tests of an area that reach a mutant judge it. The seed
draws the mutants, so that a run fits the available time; without `--mutants` all of them run. The
score is the share of killed mutants (a timeout kills); survivors are printed as differences, for
review one by one.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tests.shared_data import REPOSITORY, shared_root

UNIT = "tests/unit"


@dataclass(frozen=True, slots=True, kw_only=True)
class Area:
    """The modules to mutate, and the tests that must notice."""

    sources: tuple[str, ...]
    tests: tuple[str, ...]


AREAS = {
    "allocation": Area(
        sources=("app/domain/allocation/*.py",),
        tests=(
            f"{UNIT}/allocation",
            "tests/properties/test_allocation_search.py",
            "tests/properties/test_allocation_laws.py",
            "tests/conformance/test_allocator_upstream.py",
            "tests/conformance/test_allocator_oracle.py",
            "tests/conformance/test_consumable_capacity.py",
        ),
    ),
    "devices": Area(
        sources=("app/domain/devices/*.py",),
        tests=(
            f"{UNIT}/devices",
            f"{UNIT}/allocation",
            f"{UNIT}/controllers/test_slice_patches.py",
            f"{UNIT}/controllers/test_eviction_inventory.py",
            f"{UNIT}/controllers/test_scheduling_inventory.py",
        ),
    ),
    "claims": Area(
        sources=("app/domain/controllers/claims/*.py",),
        tests=(
            f"{UNIT}/controllers/test_claims.py",
            f"{UNIT}/controllers/test_claims_inventory.py",
            f"{UNIT}/controllers/test_claim_endings.py",
        ),
    ),
    "eviction": Area(
        sources=("app/domain/controllers/eviction/*.py",),
        tests=(
            f"{UNIT}/controllers/test_eviction.py",
            f"{UNIT}/controllers/test_eviction_inventory.py",
            f"{UNIT}/controllers/test_restarts.py",
            f"{UNIT}/controllers/test_refused_events.py",
        ),
    ),
    "scheduling": Area(
        sources=("app/domain/controllers/scheduling/*.py",),
        tests=(f"{UNIT}/controllers",),
    ),
    "writer": Area(
        sources=(
            "app/service/writing.py",
            "app/domain/objects/write/sealing.py",
            "app/domain/objects/write/staging.py",
        ),
        tests=(
            f"{UNIT}/service/test_writing.py",
            f"{UNIT}/service/test_write_step.py",
            "tests/properties/test_writer_laws.py",
            "tests/api/test_joined_writes.py",
            "tests/api/test_limits.py",
            "tests/api/test_secrets.py",
            "tests/api/test_writes.py",
        ),
    ),
    "watches": Area(
        sources=("app/service/watches.py",),
        tests=(
            f"{UNIT}/service/test_watch_hub.py",
            f"{UNIT}/service/test_recent_events.py",
            f"{UNIT}/service/test_writing.py",
            "tests/api/test_watches.py",
            "tests/api/test_fanout.py",
        ),
    ),
    "verify": Area(
        sources=(
            "app/service/replays/verifying.py",
            "app/analysis/verify/parts.py",
            "app/analysis/verify/compare.py",
            "app/analysis/verify/redecide.py",
        ),
        tests=(f"{UNIT}/analysis/verify/test_parts.py", f"{UNIT}/service/test_replaying.py"),
    ),
    "decide": Area(
        sources=("app/service/replays/deciding/*.py", "app/analysis/replay/*.py"),
        tests=(
            f"{UNIT}/analysis/replay",
            f"{UNIT}/service/test_changed_worlds.py",
            "tests/conformance/test_decide_altered.py",
            "tests/conformance/test_decide_nodes.py",
            "tests/conformance/test_decide_ourselves.py",
            "tests/conformance/test_forks_with_recorded_inputs.py",
            "tests/simulation/test_forks_with_inputs.py",
        ),
    ),
}
"""What is mutated together, and judged by which tests."""

COPIED = ("migrations", "docs", "bench", "examples", "Makefile", "README.md", "CHANGELOG.md")

ATTEMPTS = 3
"""How often the tool is asked for mutants that it left untried: it ends with a test that fails
without any change, which a busy machine may bring about."""

TAIL = 15
"""Lines of what the tool printed last."""

SURVIVED = 0
UNREACHED = frozenset({5, 33})
TIMED_OUT = frozenset({36, 24, 152, 255, -24})
"""Exit codes of the tests of a mutant, as the tool keeps them; None: not tried."""


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants")
    parser.add_argument("area", choices=sorted(AREAS))
    parser.add_argument("--mutants", type=int, default=0, help="how many; 0: all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--at-once", type=int, default=2, help="processes")
    parser.add_argument("--shown", type=int, default=200, help="survivors that are printed")
    chosen = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="redra-mutants-") as name:
        folder = Path(name) / "checkout"
        _copy(folder, AREAS[chosen.area])
        made = _run(folder, ["run", "--max-children", "1", "nothing-has-this-name"])
        names = sorted(_results(folder))
        if not names:
            print(made)
            print("no mutant was made: the tests fail without any, or no source was found")
            return 2
        drawn = names
        if 0 < chosen.mutants < len(names):
            drawn = random.Random(chosen.seed).sample(names, chosen.mutants)
        untried = drawn
        for _ in range(ATTEMPTS):
            made = _run(folder, ["run", "--max-children", str(chosen.at_once), *untried])
            untried = [name for name in drawn if _results(folder)[name] is None]
            if not untried:
                break
            print(f"{len(untried)} mutants were not tried; the tool ended with")
            print("\n".join(f"    {line}" for line in made.splitlines()[-TAIL:]))
        return _report(folder, drawn, len(names), chosen.shown)


def _copy(folder: Path, area: Area) -> None:
    """Copies the tracked files of the checkout, with the tool's settings for the area."""
    folder.mkdir()
    tracked = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=REPOSITORY,
        check=True,
        capture_output=True,
    ).stdout.decode()
    for name in filter(None, tracked.split("\0")):
        source, target = REPOSITORY / name, folder / name
        if source.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(source.read_bytes())
    missing = [name for name in area.tests if not (REPOSITORY / name).exists()]
    if missing:
        raise SystemExit(f"these tests are not there: {', '.join(missing)}")
    settings = {
        "source_paths": ["app", "projections"],
        "only_mutate": list(area.sources),
        "also_copy": list(COPIED),
        "pytest_add_cli_args_test_selection": list(area.tests),
        # How long a mutant may take is the tool's own matter, a multiple of what the tests took.
        "pytest_add_cli_args": [
            "-p",
            "no:cacheprovider",
            "--import-mode=importlib",
            "--timeout=0",
        ],
    }
    lines = [f"{name} = {json.dumps(value)}" for name, value in settings.items()]
    with (folder / "pyproject.toml").open("a", encoding="utf-8") as file:
        file.write("\n[tool.mutmut]\ntrack_dependencies = false\n" + "\n".join(lines) + "\n")


def _run(folder: Path, arguments: list[str]) -> str:
    """Runs the tool; returns its output, including errors."""
    tool = Path(sys.executable).with_name("mutmut")
    environment = {**os.environ, "REDRA_SHARED": str(shared_root().resolve())}
    ended = subprocess.run(
        [str(tool), *arguments],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    return ended.stdout.decode(errors="replace")


def _results(folder: Path) -> dict[str, int | None]:
    """The exit code of the tests for each mutant; None for a mutant that was not tried."""
    results: dict[str, int | None] = {}
    for path in sorted((folder / "mutants").rglob("*.py.meta")):
        results.update(json.loads(path.read_text(encoding="utf-8"))["exit_code_by_key"])
    return results


def _report(folder: Path, drawn: list[str], made: int, shown: int) -> int:
    results = _results(folder)
    survived = [name for name in drawn if results[name] == SURVIVED]
    unreached = [name for name in drawn if results[name] in UNREACHED]
    untried = [name for name in drawn if results[name] is None]
    timed_out = sum(results[name] in TIMED_OUT for name in drawn)
    tried = len(drawn) - len(untried)
    killed = tried - len(survived) - len(unreached)
    for name in (*survived, *unreached)[:shown]:
        difference = _run(folder, ["show", name]).splitlines()
        changed = [
            line for line in difference if line[:1] in "+-" and line[:3] not in ("+++", "---")
        ]
        print(f"{'no test reaches it' if name in unreached else 'survived'}: {name}")
        print("\n".join(f"    {line}" for line in changed))
    print(
        f"{killed} of {tried} killed ({100 * killed // max(tried, 1)} %), {timed_out} of them by a "
        f"timeout; {len(survived)} survived, {len(unreached)} reached by no test, "
        f"{len(untried)} not tried; {made} mutants in all"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
