"""A data folder that lives as long as a measurement."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def temporary_data() -> Iterator[Path]:
    """An empty folder, removed on leaving."""
    with tempfile.TemporaryDirectory(prefix="redra-bench-") as folder:
        yield Path(folder) / "data"
