"""The collection of all findings of a history up to a revision."""

from collections.abc import Generator, Iterable, Iterator, Sequence

from app.analysis import scope
from app.analysis.chronicle import Chronicle
from app.analysis.findings import (
    accounts,
    claims,
    cluster,
    containers,
    failures,
    nodes,
    outgrown,
    pods,
    refused_writes,
    taints,
    volumes,
    workloads,
)
from app.analysis.findings.pods import PodCauses
from app.analysis.findings.report import Finding, Findings, ranked
from app.analysis.views import LiveViews
from app.domain.controllers.scheduling.scheduling_cycle.attempt import SchedulerRules
from app.domain.errors import NotFound
from app.domain.log import Revision
from app.domain.log.doubts import Doubt
from app.domain.values import api_resources
from app.domain.values.timestamps import Instant

ITEMS_MAX = 100
"""The number of findings in one answer."""


def collect_in_steps(
    history: str,
    views: LiveViews,
    chronicle: Chronicle,
    recorded: Sequence[Doubt],
    causes: PodCauses,
    *,
    rules: SchedulerRules,
    now: Instant,
    items_max: int = ITEMS_MAX,
    namespace: str = "",
) -> Generator[None, None, Findings]:
    """Collects all findings as of the views; `causes` says why pods wait or do not start.

    It yields after each kind of finding, so that a server can answer other requests. The views must
    not change meanwhile; the chronicle may, and an answer claims no more than it had at the start.
    `now` is the time of the views' revision, `rules` are those of its controllers. Before the first
    event nothing is known, which is the only finding. With a namespace, findings are about its
    objects, and about lacks. Raises NotFound for one that does not occur in a log read as a whole.
    """
    until = views.revision
    if not until:
        only = (cluster.NOTHING_KNOWN,)
        return Findings(history=history, revision=until, examined=until, items=only)
    examined = Revision(min(chronicle.revision, until))
    if namespace and examined == until:
        _check_known(namespace, views, chronicle)
    note = chronicle.unread(until)
    # A state that was ended by events not read yet does not last until now.
    judged = now if examined == until else Instant(0)
    reads_events = causes.reads_events
    has_pods = chronicle.count_of_kind(pods.POD_CREATED, until=until) > 0
    kinds: tuple[Iterable[Finding], ...] = (
        cluster.invariants(chronicle, views, until, judged, namespace, sees=causes.sees),
        pods.waiting(chronicle, views, until, causes.unasked, namespace, reads_events=reads_events),
        pods.unstarted(views, causes, now, namespace),
        pods.unrecorded(chronicle, views, until, namespace, reads_events=reads_events),
        workloads.refused(views, causes.workloads, namespace, reads_events=reads_events),
        refused_writes.writes(chronicle, until, namespace, sees=causes.sees),
        workloads.jobs(views, causes.workloads, namespace),
        claims.stuck(views, namespace, has_pods=has_pods),
        pods.overdue(views, causes, now, namespace),
        pods.evicted(chronicle, views, until, namespace),
        nodes.troubled(views, namespace),
        (_of_cluster(views) if not namespace else ()),
        cluster.exceeded_quotas(views, namespace),
        taints.in_use(views, rules.quirks, now, namespace),
        outgrown.claims(views, rules.compiler, namespace, causes.former),
        (*containers.of_devices(views, namespace), *failures.pods(views, namespace)),
        claims.settled_for_less(views, namespace),
        (accounts.missing(views, namespace) if causes.reads_accounts else ()),
        (volumes.unjudged(views, namespace) if causes.judges_volumes else ()),
        claims.unused(views, namespace),
        cluster.unreadable(views, namespace),
        cluster.losses(recorded, until),
    )
    everything: list[Finding] = []
    for of_kind in kinds:
        everything += (one for one in of_kind if all(causes.sees(each.key) for each in one.objects))
        yield
    is_quiet = not everything and examined == until
    return Findings(
        history=history,
        revision=until,
        examined=examined,
        items=tuple(ranked(everything)[:items_max]),
        omitted=max(0, len(everything) - items_max),
        note=note,
        unseen=refused_writes.unseen(chronicle) if is_quiet else "",
    )


def _of_cluster(views: LiveViews) -> Iterator[Finding]:
    """The findings about objects without a namespace."""
    yield from cluster.pools(views)
    yield from cluster.patches(views)
    yield from cluster.rules(views)
    yield from cluster.announcing(views)
    yield from cluster.kept_objects(views)


def _check_known(namespace: str, views: LiveViews, chronicle: Chronicle) -> None:
    """Raises NotFound for a namespace in which nothing ever existed, with the nearest names."""
    known = {key.name for key in views.objects.keys(*api_resources.NAMESPACES)}
    if namespace in known:
        return
    known |= {entry.subject.namespace for entry in chronicle.entries} - {""}
    if namespace not in known:
        raise NotFound(
            f"namespace {namespace!r} does not occur in the history"
            + (f"; {near}" if (near := scope.nearest(namespace, sorted(known))) else "")
        )
