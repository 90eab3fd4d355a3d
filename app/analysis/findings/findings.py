"""The question: what is wrong in this history, up to this revision?"""

from collections.abc import Callable, Sequence

from app.analysis.chronicle import Chronicle
from app.analysis.findings import claims, cluster, pods, taints
from app.analysis.findings.report import Findings, ranked
from app.analysis.views import LiveViews
from app.domain.controllers.quirks import ControllerQuirks
from app.domain.log import Revision
from app.domain.log.doubts import Doubt
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant

ITEMS_MAX = 100
"""Findings in one answer."""


def of(
    history: str,
    views: LiveViews,
    chronicle: Chronicle,
    recorded: Sequence[Doubt],
    unasked: Callable[[JsonObject], str],
    *,
    quirks: ControllerQuirks,
    now: Instant,
    items_max: int = ITEMS_MAX,
) -> Findings:
    """All findings as of the views; `unasked` says why no node is asked about a pod.

    `now` is the time of the views' revision, `quirks` are those of the eviction controller. Before
    the first event nothing is known, which is the only finding.
    """
    until = views.revision
    if not until:
        only = (cluster.NOTHING_KNOWN,)
        return Findings(history=history, revision=until, examined=until, items=only)
    everything = ranked(
        (
            *cluster.invariants(chronicle, until),
            *pods.waiting(chronicle, views, until, unasked),
            *claims.stuck(views),
            *pods.evicted(chronicle, views, until),
            *cluster.pools(views),
            *taints.in_use(views, quirks, now),
            *cluster.patches(views),
            *claims.settled_for_less(views),
            *claims.unused(views),
            *cluster.unreadable(views),
            *cluster.losses(recorded, until),
        )
    )
    return Findings(
        history=history,
        revision=until,
        examined=Revision(min(chronicle.revision, until)),
        items=tuple(everything[:items_max]),
        omitted=max(0, len(everything) - items_max),
    )
