"""Imports an altered audit log and asks `why` at its end."""

from dataclasses import dataclass
from pathlib import Path

from app.adapters.history.opening import open_history
from app.adapters.history.reading import ReadOptions
from app.adapters.memory import MemoryLog, MemoryStore
from app.analysis.explain.pages import page
from app.analysis.explain.questions import ObjectExplanation, Question
from app.analysis.views import LiveViews, compiler_of
from app.bootstrap.rules import rules_for
from app.domain.log import Event, HistoryInfo, Revision
from app.domain.objects.profile import Profile
from app.service import importing
from app.service.explaining import Explainer
from app.service.explaining.evidence import PastMoments
from app.service.importing import ImportResult
from tests.adversary.log import Log

PROFILE = Profile(version="1.36", gates={"DRADeviceTaintRules": True})
LINES = 1_000
"""More lines than any page of a recording has, so that nothing is cut."""


@dataclass(frozen=True)
class Asked:
    """An imported log."""

    log: MemoryLog
    info: HistoryInfo
    events: list[Event]
    views: LiveViews

    def views_at(self, revision: Revision) -> LiveViews:
        """The views of a revision."""
        views = LiveViews(PROFILE)
        for event in self.events[:revision]:
            views.fold(event)
        return views

    async def why(self, kind: str, namespace: str, name: str) -> ObjectExplanation:
        """The answer at the end of the log. Raises NotFound."""

        async def views_at(revision: Revision) -> LiveViews:
            return self.views_at(revision)

        explainer = Explainer(
            self.log,
            self.info,
            self.views,
            compiler_of(PROFILE),
            PROFILE,
            past=PastMoments(views_at, views_at),
        )
        return await explainer.why(Question(kind=kind, namespace=namespace, name=name))


async def import_log(log: Log, folder: Path, store: MemoryStore, *, name: str) -> ImportResult:
    """Imports a log by way of a file in the folder."""
    path = folder / "audit.jsonl"
    path.write_text(log.text())
    options = importing.ImportOptions(settings=PROFILE.settings())
    with open_history([path], ReadOptions(rules=rules_for(PROFILE))) as source:
        return await importing.import_records(MemoryLog(store), source, name=name, options=options)


async def imported(log: Log, folder: Path) -> Asked:
    """A log that is imported into a store of its own."""
    store = MemoryStore()
    made = MemoryLog(store)
    result = await import_log(log, folder, store, name="altered")
    events = list(await made.read(result.history.id, after=Revision(0), limit=100_000))
    views = LiveViews(PROFILE)
    for event in events:
        views.fold(event)
    return Asked(made, result.history, events, views)


def page_of(answer: ObjectExplanation) -> str:
    """The answer as text."""
    head = f"{answer.subject}: {answer.outcome}, {answer.text}"
    return "\n".join(page(head, answer.reason.children, lines_max=LINES))
