"""Questions about proposed changes, for the command line: files in, one answer out."""

from collections.abc import Sequence
from pathlib import Path

import anyio.to_thread

from app.analysis.blast import compare, world
from app.analysis.blast.compare import Change
from app.analysis.blast.radius import BlastRadius
from app.bootstrap import manifests
from app.bootstrap.answers.explanations import blast_bounds, views_at
from app.bootstrap.rules import rules_of
from app.bootstrap.stores import Store, find_history
from app.domain.errors import InputError, Rejected
from app.service import moments, recorded_doubts
from app.settings import Settings


def read_changes(
    settings: Settings,
    files: Sequence[Path],
    deletions: Sequence[str],
    cordons: Sequence[str] = (),
) -> list[Change]:
    """The changes in files (`-`: standard input), in `KIND/NAME` texts and of nodes to cordon.

    Raises InputError.
    """
    limits = manifests.limits_of(settings)
    trees: list[tuple[str, object]] = []
    for file in files:
        documents = manifests.read_documents(file, limits, cure="raise REDRA_BLAST_BYTES_MAX")
        if not documents:
            raise InputError("it holds no object", place=str(file))
        trees += documents
    return compare.read_changes(trees, deletions, cordons)


async def blast(
    store: Store, settings: Settings, name: str, moment: str, changes: Sequence[Change]
) -> BlastRadius:
    """What the changes would do as of `moment` (empty: now). Raises InputError for a refusal."""
    info = await find_history(store, name)
    views = await views_at(store, settings, name, moment)
    now = await moments.find_time(store.log, info, moment or str(views.revision), views.revision)
    frozen = world.freeze(views, info, rules_of(info), now)
    try:
        radius = await anyio.to_thread.run_sync(
            compare.blast, frozen, changes, blast_bounds(settings)
        )
    except Rejected as problem:
        raise InputError(problem.message) from problem
    return await recorded_doubts.with_doubts(radius, store.log, info)
