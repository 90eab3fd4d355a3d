"""Tables of jobs. Parity: api.md 6, "Columns"; printers of batch/v1."""

from app.domain.objects.printing import cells
from app.domain.objects.printing.cells import Row
from app.domain.objects.printing.durations import age_text, duration_text
from app.domain.objects.printing.tables import NONE, UNKNOWN, Cell
from app.domain.values import api_groups, condition_types, json_tree, timestamps
from app.domain.values.fields import core, meta
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant

_OVER = ("Complete", "Failed")
_ON_THE_WAY = ("Suspended", condition_types.FAILURE_TARGET, condition_types.SUCCESS_CRITERIA_MET)


def _phase(tree: JsonObject, _: Instant) -> Cell:
    held = {condition.type for condition in meta.conditions(tree) if condition.status == "True"}
    for phase in _OVER:
        if phase in held:
            return phase
    if meta.deletion_timestamp(tree):
        return "Terminating"
    return next((phase for phase in _ON_THE_WAY if phase in held), "Running")


def _completions(tree: JsonObject, _: Instant) -> Cell:
    done = json_tree.integer(tree, "status", "succeeded") or 0
    wanted = json_tree.integer(tree, "spec", "completions")
    if wanted is not None:
        return f"{done}/{wanted}"
    together = json_tree.integer(tree, "spec", "parallelism") or 0
    return f"{done}/1 of {together}" if together > 1 else f"{done}/1"


def _duration(tree: JsonObject, now: Instant) -> Cell:
    started = core.start_time(tree)
    ended = json_tree.text(tree, "status", "completionTime")
    if not started:
        return ""
    if not ended:
        return age_text(started, now)
    try:
        return duration_text(timestamps.parse(ended) - timestamps.parse(started))
    except timestamps.TimestampError:
        return UNKNOWN


def _last_schedule(tree: JsonObject, now: Instant) -> Cell:
    last = json_tree.text(tree, "status", "lastScheduleTime")
    return age_text(last, now) if last else NONE


_OF_JOBS = ("spec", "jobTemplate", "spec")

ROWS: tuple[Row, ...] = (
    (
        api_groups.BATCH,
        "jobs",
        cells.table(
            "Name, Status, Completions, Duration, Age [Containers, Images, Selector]",
            {"Status": _phase, "Completions": _completions, "Duration": _duration},
        ),
    ),
    (
        api_groups.BATCH,
        "cronjobs",
        cells.table(
            "Name, Schedule=.spec.schedule, Timezone=.spec.timeZone|<none>, ?Suspend, "
            "#Active=+status.active, Last Schedule, Age [Containers, Images, Selector]",
            {
                "Suspend": lambda tree, _: str(json_tree.flag(tree, "spec", "suspend")),
                "Last Schedule": _last_schedule,
                "Selector": cells.labels(*_OF_JOBS, "selector", "matchLabels"),
                **cells.template(*_OF_JOBS, "template"),
            },
        ),
    ),
)
