"""The table of a sweep as files: CSV, a page with plots, and Parquet if pyarrow is installed."""

import csv
import io
from collections.abc import Sequence
from pathlib import Path

from app.adapters import whole_files
from app.analysis.sweep import columns
from app.domain.errors import InputError
from app.domain.values.json_tree import JsonObject
from app.web import sweeps

FILES = ("table.csv", "index.html", "table.parquet")


def write(rows: Sequence[JsonObject], folder: Path, title: str) -> list[str]:
    """Write the files; returns their names. Raises InputError."""
    names = columns.columns_of(rows)
    flat = [columns.flat(row, names) for row in rows]
    text = io.StringIO()
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(flat)
    try:
        whole_files.write(folder / "table.csv", text.getvalue().encode())
        whole_files.write(folder / "index.html", sweeps.page(flat, names, title).encode())
        return ["table.csv", "index.html", *_parquet(flat, names, folder)]
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
