"""Figures of measurements: noted by measurements, kept in a file, compared between runs.

A measurement notes a figure under a name of `anchors.json`, which has its unit, its target and the
figures of other systems. Noting has no effect unless a run collects figures; processes that a
measurement starts write to the same file.
"""

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

FILE = "REDRA_BENCH_FIGURES"
"""Variable with the file that noted figures are appended to."""

FOLDER = Path(__file__).parent
RESULTS = FOLDER / "results"

RUNS_MIN = 4
"""Runs of each side from which on their order says more than `noise`: that all values of one side
lie above all of the other happens by chance in 2 of 70 cases."""

CHANGE_MIN = 0.03
"""Smaller changes are of no interest, however sure."""

Values = dict[str, list[float]]
"""Figures by name, one value for each time that they were taken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Anchor:
    """The meaning of a figure, its target and the figures of other systems.

    `noise` is the fraction by which single runs of the same code differ on a shared machine.
    `reach` and the figures of others are None where there are none.
    """

    work: str
    unit: str
    is_less_better: bool
    noise: float
    reach: float | None
    go: float | None
    control_plane: float | None


class Unreadable(Exception):
    """An error for an unusable file of figures, with its name and the reason."""


def note(name: str, value: float) -> None:
    """Keeps a figure when a run collects them. Raises KeyError for a name without an anchor."""
    if name not in anchors():
        raise KeyError(f"the figure {name!r} has no entry in anchors.json")
    if path := os.environ.get(FILE):
        with Path(path).open("a", encoding="utf-8") as lines:
            lines.write(json.dumps({"figure": name, "value": value}) + "\n")


def noted(path: Path) -> Values:
    """The figures that were noted in a file, in the order of the anchors."""
    values: Values = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        entry = json.loads(line)
        values.setdefault(entry["figure"], []).append(entry["value"])
    return {name: values[name] for name in anchors() if name in values}


def anchors() -> Mapping[str, Anchor]:
    """All anchors by name."""
    kept = json.loads((FOLDER / "anchors.json").read_text(encoding="utf-8"))
    return {
        name: Anchor(
            work=entry["work"],
            unit=entry["unit"],
            is_less_better=entry["better"] == "less",
            noise=entry["noise"],
            reach=entry.get("reach"),
            go=entry.get("go"),
            control_plane=entry.get("controlPlane"),
        )
        for name, entry in kept["figures"].items()
    }


def commit() -> str:
    """The commit of this checkout, with `-changed` when files differ from it."""
    command = ["git", "describe", "--always", "--dirty=-changed", "--exclude=*"]
    done = subprocess.run(command, cwd=FOLDER, capture_output=True, text=True)
    return done.stdout.strip() or "unknown"


def save(values: Values, machine: str) -> Path:
    """Adds figures to those of this commit; returns the file."""
    path = RESULTS / f"{commit()}.json"
    before = load(path)[0] if path.exists() else {}
    together = {
        name: before.get(name, []) + values.get(name, [])
        for name in anchors()
        if name in before or name in values
    }
    RESULTS.mkdir(exist_ok=True)
    written = {"commit": path.stem, "machine": machine, "figures": together}
    path.write_text(json.dumps(written, indent=2) + "\n", encoding="utf-8")
    return path


def load(path: Path) -> tuple[Values, str]:
    """The figures of a file, and the machine on which they were measured. Raises Unreadable."""
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
        values = {
            str(name): [float(value) for value in listed]
            for name, listed in kept["figures"].items()
        }
        return values, str(kept["machine"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as problem:
        raise Unreadable(f"{path}: no file of figures ({problem})") from None


def file_of(name: str) -> Path:
    """The file that a path or the beginning of a commit stands for. Raises Unreadable."""
    if (path := Path(name)).is_file():
        return path
    listed = sorted(RESULTS.glob(f"{name}*.json"))
    if len(listed) != 1:
        there = ", ".join(path.stem for path in sorted(RESULTS.glob("*.json"))) or "none"
        what = "several results begin" if listed else "no result begins"
        raise Unreadable(f"{what} with {name!r}; there are: {there}")
    return listed[0]


def table(values: Values) -> list[str]:
    """The table of figures with their targets and the figures of other systems."""
    rows = [("figure", "unit", "now", "reach", "now / reach", "Go", "control plane", "")]
    for name, anchor in anchors().items():
        if name not in values:
            continue
        now = median(values[name])
        ratio, verdict = "", ""
        if anchor.reach is not None:
            ratio = f"{now / anchor.reach:.2f}"
            there = now <= anchor.reach if anchor.is_less_better else now >= anchor.reach
            verdict = "reached" if there else "not reached"
        others = (shown(anchor.go), shown(anchor.control_plane))
        rows.append(
            (anchor.work, anchor.unit, shown(now), shown(anchor.reach), ratio, *others, verdict)
        )
    return aligned(rows)


def compared(before: Values, after: Values) -> list[str]:
    """The figures that got better or worse between two results.

    Where both sides were taken RUNS_MIN times, each value of one side lies beyond all of the other;
    with fewer runs the medians must differ by more than single runs of one code do.
    """
    rows = [("figure", "unit", "before", "after", "after / before", "")]
    for name, anchor in anchors().items():
        if name in before and name in after:
            old, new = median(before[name]), median(after[name])
            ratio = new / old if old else float("inf")
            verdict = _verdict(anchor, before[name], after[name])
            rows.append((anchor.work, anchor.unit, shown(old), shown(new), f"{ratio:.2f}", verdict))
    return aligned(rows)


def _verdict(anchor: Anchor, before: Sequence[float], after: Sequence[float]) -> str:
    old, new = median(before), median(after)
    many = min(len(before), len(after)) >= RUNS_MIN
    is_apart = max(before) < min(after) or max(after) < min(before)
    least = CHANGE_MIN if many else anchor.noise
    if max(old, new) <= min(old, new) * (1 + least) or not is_apart:
        return "within noise"
    return "better" if (new < old) is anchor.is_less_better else "WORSE"


def shown(value: float | None) -> str:
    """Three digits, no exponent; empty for None."""
    if value is None:
        return ""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def aligned(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Lines with columns under each other."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
