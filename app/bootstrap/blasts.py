"""Questions about proposed changes, for the command line: files in, one answer out."""

import sys
from collections.abc import Sequence
from pathlib import Path

import anyio.to_thread

from app.adapters.history import documents
from app.adapters.history.limits import ImportLimits
from app.bootstrap.explanations import blast_bounds, views_at
from app.bootstrap.rules import rules_of
from app.bootstrap.stores import Store, find_history
from app.domain.errors import InputError, Rejected
from app.service import blasting, blasting_world, moments
from app.service.blast_radius import BlastRadius
from app.service.blasting import Change
from app.settings import Settings

STANDARD_INPUT = "-"


def read_changes(
    settings: Settings, files: Sequence[Path], deletions: Sequence[str]
) -> list[Change]:
    """The changes in files (`-`: standard input) and in `KIND/NAME` texts. Raises InputError."""
    limits = ImportLimits(
        document_bytes_max=settings.blast_bytes_max,
        depth_max=settings.yaml_depth_max,
        yaml_expanded_nodes_max=settings.yaml_nodes_max,
    )
    trees: list[tuple[str, object]] = []
    for file in files:
        name = "standard input" if str(file) == STANDARD_INPUT else str(file)
        content = _content(file, name, settings.blast_bytes_max)
        found = [
            (f"{name}:{line}", tree)
            for line, tree in documents.parse(content, name, limits)
            if tree is not None
        ]
        if not found:
            raise InputError("it holds no object", place=name)
        trees += found
    return blasting.read_changes(trees, deletions)


async def blast(
    store: Store, settings: Settings, name: str, moment: str, changes: Sequence[Change]
) -> BlastRadius:
    """What the changes would do as of `moment` (empty: now). Raises InputError for a refusal."""
    info = await find_history(store, name)
    views = await views_at(store, settings, name, moment)
    now = await moments.find_time(store.log, info, moment or str(views.revision), views.revision)
    frozen = blasting_world.freeze(views, info, rules_of(info), now)
    try:
        return await anyio.to_thread.run_sync(
            blasting.blast, frozen, changes, blast_bounds(settings)
        )
    except Rejected as problem:
        raise InputError(problem.message) from problem


def _content(file: Path, name: str, bytes_max: int) -> bytes:
    try:
        if str(file) == STANDARD_INPUT:
            content = sys.stdin.buffer.read(bytes_max + 1)
        else:
            with file.open("rb") as opened:
                content = opened.read(bytes_max + 1)
    except OSError as problem:
        raise InputError(str(problem.strerror), place=name) from problem
    if len(content) > bytes_max:
        raise InputError(
            f"more than {bytes_max} bytes", place=name, cure="raise REDRA_BLAST_BYTES_MAX"
        )
    return content
