"""The kinds that a cluster serves, asked for again while it is recorded.

A cluster may be upgraded amid a recording: a version of a kind goes away, and others come. Somebody
may install a definition of a kind that is to be recorded. Resource versions of objects are the same
in each version of the API, so a watch in one version goes on where that in another one has ended.
"""

from app.domain.errors import ClusterUnreachable, InputError, Rejected
from app.domain.log.recorded_cluster import ServedKind
from app.ports import ClusterSource


async def in_other_version(source: ClusterSource, kind: ServedKind) -> ServedKind | None:
    """The kind as the cluster serves it by now, if that is in another version; else None."""
    kinds, _ = await ask(source) or ([], [])
    others = (each for each in kinds if each.name == kind.name and each.version != kind.version)
    return next(others, None)


async def ask(source: ClusterSource) -> tuple[list[ServedKind], list[str]] | None:
    """The chosen kinds that are served and the names of the others; None without an answer."""
    try:
        return await source.kinds()
    except (Rejected, ClusterUnreachable, InputError):
        return None
