"""The table of a sweep as files: CSV, a page with plots, and Parquet if pyarrow is installed."""

import csv
import io
from collections.abc import Sequence
from pathlib import Path

from app.adapters import whole_files
from app.domain.errors import InputError
from app.domain.values.json_tree import JsonObject
from app.web import sweeps

FILES = ("table.csv", "index.html", "table.parquet")

HEADINGS = (
    "cell",
    "history",
    "profile",
    "gates",
    "quirks",
    "change",
    "seed",
    "pods",
    "placed",
    "waiting",
    "evicted",
    "boundMean",
    "boundP50",
    "boundP99",
    "boundMax",
    "differing",
    "notDone",
)


LARGEST = "largest"
STRANDED = {"stranded": "amount", "strandedShare": "share"}
"""The columns of each counter, with the keys of their values in a run."""


def columns_of(rows: Sequence[JsonObject]) -> list[str]:
    """The columns: those of every sweep, those of each class and counter, the problem."""
    classes = sorted({name for row in rows for name in row.get("largest", ())})
    counters = sorted({name for row in rows for name in row.get("stranded", ())})
    return [
        *HEADINGS,
        *(f"{LARGEST} {name}" for name in classes),
        *(f"{column} {name}" for name in counters for column in STRANDED),
        "problem",
    ]


def stranded_text(row: JsonObject) -> str:
    """The stranded share of each counter as a short text, the largest share first."""
    counters: JsonObject = row.get("stranded", {})
    ranked = sorted(counters.items(), key=lambda item: (-item[1]["share"], item[0]))
    names = [name.rpartition("/")[2] for name in counters]
    return ", ".join(
        f"{short if names.count(short) == 1 else name} {one['share']:.1%}"
        for name, one in ranked
        if one["amount"] and (short := name.rpartition("/")[2])
    )


def write(rows: Sequence[JsonObject], folder: Path, title: str) -> list[str]:
    """Write the files; returns their names. Raises InputError."""
    columns = columns_of(rows)
    flat = [_flat(row, columns) for row in rows]
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(flat)
    try:
        whole_files.write(folder / "table.csv", text.getvalue().encode())
        whole_files.write(folder / "index.html", sweeps.page(flat, columns, title).encode())
        names = ["table.csv", "index.html"]
        return [*names, *_parquet(flat, columns, folder)]
    except OSError as problem:
        raise InputError(
            f"it cannot be written: {problem.strerror}", place=str(folder)
        ) from problem


def _parquet(rows: Sequence[JsonObject], columns: Sequence[str], folder: Path) -> list[str]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        return []
    table = pyarrow.table({name: [row[name] for row in rows] for name in columns})
    content = io.BytesIO()
    parquet.write_table(table, content)
    whole_files.write(folder / "table.parquet", content.getvalue())
    return ["table.parquet"]


def _flat(row: JsonObject, columns: Sequence[str]) -> JsonObject:
    return {name: _value(row, *name.partition(" ")[::2]) for name in columns}


def _value(row: JsonObject, column: str, about: str) -> object:
    """The value of a column, which may be about a class or a counter."""
    if column == LARGEST:
        return row.get("largest", {}).get(about)
    if column in STRANDED:
        return row.get("stranded", {}).get(about, {}).get(STRANDED[column])
    return row.get(column)
