"""Judges share no code with what they judge: each may import only what is named here."""

import ast
from pathlib import Path
from typing import Any

import msgspec
import pytest

from app.domain.log import raw_parts
from app.domain.log.pages import Page

ROOT = Path(__file__).parents[2]

LITERAL = ("capacity", "claims", "cluster", "constraints", "results", "scenarios", "search")

JUDGES = {
    # Whether an allocation is right; asked by `redra allocate --check` and by tests.
    "app/domain/allocation/checking": (
        "app.domain.allocation.checking",
        "app.domain.values.json_tree",
    ),
    # What must hold of claims, devices and pods at any revision; asked by verification and import.
    "app/analysis/verify/invariants": (
        "app.analysis.verify.invariants",
        "app.domain.log",
        "app.domain.values.json_tree",
        "app.domain.values.timestamps",
    ),
    # The second allocator, written from the specification. It shares the two languages that have
    # oracles of their own, quantities and CEL, and what switches are called.
    "tests/worlds/literal_*.py": (
        *(f"tests.worlds.literal_{part}" for part in LITERAL),
        "app.domain.cel",
        "app.domain.values.quantity",
        "app.domain.allocation.Features",
        "app.domain.allocation.Quirks",
        "app.domain.allocation.AllocatorVariant",
    ),
    # Whether a history is sound after each event, and at rest; of simulated worlds and of crashes.
    "tests/simulation/plain_state.py": (
        "app.domain.log.Event",
        "app.domain.log.EventType",
        "app.domain.log.ObjectKey",
        "app.domain.allocation.checking.amounts",
    ),
    "tests/simulation/soundness.py": (
        "app.domain.log.Event",
        "app.domain.log.EventType",
        "app.domain.log.ObjectKey",
        "tests.simulation.plain_state",
    ),
    # Whether a piece can be left out of a minimised history. They use the engine, not the search.
    "tests/simulation/own_runs.py": (
        "app.adapters.history.formats.bundle",
        "app.analysis.replay",
        "app.analysis.verify.invariants",
        "app.analysis.views",
        "app.bootstrap.engines",
        "app.bootstrap.replays",
        "app.bootstrap.stores",
        "app.domain",
        "app.service.exporting",
        "app.service.replays.deciding",
        "app.service.replays.replaying",
        "app.service.replays.verifying",
        "app.settings",
        "projections.objects",
    ),
    "tests/simulation/one_minimal.py": (
        "app.analysis.replay.variants",
        "app.analysis.verify.invariants",
        "app.domain",
        "tests.simulation.own_runs",
    ),
    # Whether `why` names what a generator planted.
    "tests/worlds/planted": (
        "tests.worlds.planted",
        "tests.cluster",
        "app.domain.values.timestamps",
    ),
    # What a known change does to a scripted cluster, pod by pod, and which change is the root.
    "tests/simulation/expected_differences.py": (),
    # Whether answers have the numbers and names that the raw objects have.
    "tests/truth/raw.py": (),
    "tests/truth/facts.py": ("tests.truth.raw",),
    "tests/truth/answers.py": ("tests.truth.facts",),
    # Whether `why` says in what state pods and claims in use are.
    "tests/truth/states/model.py": ("tests.truth.facts", "tests.truth.raw"),
    "tests/truth/states/comparing.py": ("tests.truth.facts", "tests.truth.states.model"),
    # Whether `why` names what keeps a pod waiting.
    "tests/truth/waiting/extended.py": ("tests.truth.facts",),
    "tests/truth/waiting/model.py": ("tests.truth.facts", "tests.truth.waiting.extended"),
    "tests/truth/waiting/extended_answers.py": (
        "tests.truth.waiting.extended",
        "tests.truth.waiting.model",
    ),
    "tests/truth/waiting/amounts.py": ("tests.truth.facts", "tests.truth.waiting.model"),
    "tests/truth/waiting/comparing.py": (
        "tests.truth.facts",
        "tests.truth.waiting.amounts",
        "tests.truth.waiting.extended_answers",
        "tests.truth.waiting.model",
    ),
    # Whether attempts are those of the raw events.
    "tests/truth/attempts.py": ("tests.truth.answers", "tests.truth.courses"),
    # Whether `why` says truly which quota refuses a claim.
    "tests/truth/quotas/model.py": ("tests.truth.facts",),
    # Whether logs of a control plane that is not ours are accused only where it did wrong.
    "tests/plane": ("tests.plane", "tests.command_line", "tests.draws"),
    # Whether the log of a story with kills is whole, and nothing in it was done twice.
    "tests/crash/judging.py": ("app.domain.log.Event", "tests.simulation.soundness"),
}
"""Folder or modules of each judge, and the only modules of ours that it may import."""

OURS = ("app", "projections", "tests", "bench")


def modules(place: str) -> list[Path]:
    return sorted(
        module
        for path in ROOT.glob(place)
        for module in (path.rglob("*.py") if path.is_dir() else [path])
    )


def imported(path: Path) -> set[str]:
    """The modules that a file imports, `from package import module` as `package.module`."""
    imports: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            imports.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path}: relative imports hide where they lead"
            imports.update(f"{node.module}.{alias.name}" for alias in node.names)
    return {name for name in imports if name.partition(".")[0] in OURS}


@pytest.mark.parametrize("place", JUDGES)
def test_judge_imports_nothing_of_what_it_judges(place: str) -> None:
    allowed = JUDGES[place]
    files = modules(place)
    assert files
    for path in files:
        shared = {
            name
            for name in imported(path)
            if not any(name == one or name.startswith(f"{one}.") for one in allowed)
        }
        assert not shared, f"{path.relative_to(ROOT)} shares {sorted(shared)}"


SPLIT = "app/domain/log/raw_parts.py"
"""What the judge of invariants shares with the folds."""


def parts_of(form: type, seen: set[type]) -> set[Any]:
    """The types of everything that is handed out of an object."""
    handed: set[Any] = set()
    for field in msgspec.structs.fields(form):
        if isinstance(field.type, type) and issubclass(field.type, msgspec.Struct):
            seen.add(field.type)
            handed |= parts_of(field.type, seen)
        else:
            handed.add(field.type)
    return handed


def test_the_shared_split_hands_out_bytes_and_texts() -> None:
    """Lists, numbers and mappings are read by each side on its own."""
    seen: set[type] = {raw_parts.RawPod, raw_parts.RawClaim}
    handed = parts_of(raw_parts.RawPod, seen) | parts_of(raw_parts.RawClaim, seen)
    assert handed == {str, msgspec.Raw}
    declared = {
        form
        for form in vars(raw_parts).values()
        if isinstance(form, type) and issubclass(form, msgspec.Struct) and form.__name__[0] != "_"
    }
    assert declared - {msgspec.Raw} == seen


def test_the_shared_split_imports_no_reader() -> None:
    assert imported(ROOT / SPLIT) == {"app.domain.values.api_resources"}


def test_the_judge_of_invariants_takes_no_readings_of_folds() -> None:
    """A page keeps what folds read; the judge takes raw parts alone."""
    attributes = {
        node.attr
        for path in modules("app/analysis/verify/invariants")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "page"
    }
    assert attributes == {"splits"}
    private = {name for name in dir(Page) if name.startswith("_") and not name.startswith("__")}
    everything = {
        node.attr
        for path in modules("app/analysis/verify/invariants")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute)
    }
    assert not everything & private
    assert "read" not in everything
