"""The table of a sweep as files: CSV, Parquet where pyarrow is installed, a page with plots."""

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
    "stranded",
    "differing",
    "notDone",
)


def columns_of(rows: Sequence[JsonObject]) -> list[str]:
    """The columns: those of every sweep, one for the largest claim of each class, the problem."""
    classes = sorted({name for row in rows for name in row.get("largest", ())})
    return [*HEADINGS, *(f"largest {name}" for name in classes), "problem"]


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
    largest = row.get("largest", {})
    return {
        name: largest.get(name.removeprefix("largest "))
        if name.startswith("largest ")
        else row.get(name)
        for name in columns
    }
