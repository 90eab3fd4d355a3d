"""Rehearsals of upgrades, for the command line and for jobs."""

from collections.abc import Mapping

from app.analysis.rehearse import text
from app.analysis.rehearse.defects import titles
from app.analysis.rehearse.report import Rehearsal
from app.bootstrap.answers.bounds import diff_bounds
from app.bootstrap.control_planes import ForkPlanes
from app.bootstrap.gallery import incident_files
from app.bootstrap.history_settings import switches
from app.bootstrap.stores import Store, find_history, find_inside
from app.domain.values.json_tree import JsonObject
from app.service.rehearsing import worlds
from app.service.rehearsing.worlds import RehearsalRequest
from app.service.replays.replaying import Progress, silent
from app.settings import Settings


async def rehearse(
    store: Store,
    settings: Settings,
    name: str,
    release: str,
    moment: str = "",
    progress: Progress = silent,
) -> Rehearsal:
    """Rehearse a history under another release, with the settings' switches. Raises InputError."""
    history = await find_history(store, name)
    wanted = RehearsalRequest(
        release=release,
        until=await find_inside(store, history, moment, option=f"{name}@{moment}"),
        gates=switches(settings.gates, place="--gate"),
        quirks=switches(settings.quirks.lower(), place="--quirk"),
        exhibits=titles(map(incident_files.read, incident_files.names())),
        bounds=diff_bounds(settings),
        events_max=settings.diff_events_max,
        runs_max=settings.rehearse_runs_max,
        trial_events_max=settings.rehearse_events_max,
    )
    return await worlds.rehearse(
        store.log, history, wanted, ForkPlanes(settings), progress=progress
    )


def shown(report: Rehearsal, as_of: Mapping[str, str]) -> JsonObject:
    """A rehearsal as JSON, its page, and the values that determine the command's exit code.

    `as_of` is the field that says which instant a relative moment names.
    """
    return {
        "report": {**as_of, **report.to_json()},
        "page": text.page_json(report),
        "isQuiet": report.is_quiet,
        "isBlind": report.is_blind,
    }
