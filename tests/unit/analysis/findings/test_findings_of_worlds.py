"""All findings of small clusters, in their order: each with its counts, revisions and causes.

`REDRA_REWRITE=1 pytest` of this module writes them anew; then read the difference.
"""

from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import pytest

from app.analysis import scheduling_rules
from app.analysis.chronicle import Chronicle
from app.analysis.explain import untried
from app.analysis.findings.findings import collect_in_steps
from app.analysis.findings.pods import PodCauses
from app.analysis.findings.report import Finding, Findings
from app.analysis.findings.workloads import KINDS
from app.analysis.views import LiveViews
from app.domain.devices.cel_selectors import CelCompiler
from app.domain.log import Revision
from app.domain.values.json_tree import JsonObject
from app.service.explaining import former_findings, selections, waiting
from app.service.explaining.evidence import ExplainedMoment, PastMoments
from app.service.explaining.former_findings import FormerRefusals
from tests.cluster import Cluster
from tests.unit.analysis import kept_texts
from tests.unit.analysis.explain.answered_worlds import STATES
from tests.unit.analysis.explain.seldom_worlds import LARGE, SELDOM, SETTINGS
from tests.unit.analysis.findings.seldom_findings import CLUSTERS
from tests.unit.service.test_explaining import views_up_to
from tests.unit.service.test_replaying import history_of

FILE = Path(__file__).with_name("findings_of_worlds.txt")
PODS_MAX = 8
FORMER = FormerRefusals(pods_max=6, objects_max=10_000)

WORLDS: dict[str, Callable[[], Cluster]] = {
    name: lambda made=made: made()[0]
    for name, made in (STATES | SELDOM).items()
    if name not in LARGE
} | CLUSTERS


async def findings_of(cluster: Cluster, settings: JsonObject) -> Findings:
    """The findings at the end of what happened, with the causes of pods that wait."""
    events = cluster.line.events
    log, info = await history_of(events, cluster.profile.settings() | settings)

    async def views_at(revision: Revision) -> LiveViews:
        return views_up_to(events, revision, cluster.profile)

    views, chronicle = await views_at(Revision(len(events))), Chronicle()
    chronicle.fold(events)
    rules = scheduling_rules.of(info, cluster.profile, CelCompiler(detailed_errors=True))
    evidence = ExplainedMoment(
        log=log, info=info, views=views, past=PastMoments(views_at, views_at), rules=rules
    )
    now = cluster.line.now
    causes = PodCauses(
        unasked=untried.shared_causes(views, rules, now, reads_events=True),
        workloads=KINDS,
        former=await selections.former_states(evidence, chronicle),
    )
    steps = collect_in_steps("h", views, chronicle, (), causes, rules=rules, now=now)
    answer = await waiting.with_causes(evidence, drained(steps), PODS_MAX)
    answer = await former_findings.with_former_causes(evidence, answer, FORMER, None)
    return await former_findings.with_authors(evidence, answer)


def drained(steps: Generator[None, None, Findings]) -> Findings:
    made: list[Findings] = []

    def drain() -> Generator[None, None, None]:
        made.append((yield from steps))

    for _ in drain():
        pass
    return made[0]


def lines_of(finding: Finding) -> Iterator[str]:
    yield f"{finding.severity} {finding.kind}: {finding.text}"
    numbers = f"{finding.count}, {finding.present} now, revisions {finding.first} to {finding.last}"
    begins = f", begun at {', '.join(map(str, finding.begins))}" if finding.begins else ""
    yield f"  {numbers}{begins}"
    for one in finding.objects:
        alike = "" if one.alike == 0 else ", alike" if one.alike is None else f" and {one.alike}"
        yield f"  {one.resource}/{one.name} at {one.revision}{alike}"
    for cause in finding.causes:
        yield f"  cause: {cause}"


@pytest.mark.parametrize("name", WORLDS)
async def test_findings_read_the_same(name: str) -> None:
    answer = await findings_of(WORLDS[name]().settle(), SETTINGS.get(name, {}))
    lines = [line for one in answer.items for line in lines_of(one)] or [answer.unseen or "none"]
    kept_texts.check(FILE, name, "\n".join(lines), WORLDS)
