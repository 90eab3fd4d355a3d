"""Tables of jobs. Parity: api.md 6, "Columns"; printers of batch/v1."""

from app.domain.objects.printing import cells
from app.domain.objects.printing.durations import age_text, duration_text
from app.domain.objects.printing.tables import NONE, Cells
from app.domain.values import condition_types, json_tree, timestamps
from app.domain.values.fields import meta
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant

JOB = "Name, Status, Completions, Duration, Age [Containers, Images, Selector]"
CRON_JOB = (
    "Name, Schedule, Timezone, ?Suspend, #Active, Last Schedule, Age [Containers, Images, Selector]"
)

_OVER = ("Complete", "Failed")
_ON_THE_WAY = ("Suspended", condition_types.FAILURE_TARGET, condition_types.SUCCESS_CRITERIA_MET)


def job(tree: JsonObject, now: Instant) -> Cells:
    """The row of a job."""
    return [
        cells.name(tree),
        _phase(tree),
        _completions(tree),
        _duration(tree, now),
        cells.age(tree, now),
        *cells.template(tree),
        cells.label_selector(tree),
    ]


def cron_job(tree: JsonObject, now: Instant) -> Cells:
    """The row of a job that runs by the clock."""
    spec = json_tree.mapping(tree, "spec")
    last = json_tree.text(tree, "status", "lastScheduleTime")
    inner = ("spec", "jobTemplate", "spec")
    return [
        cells.name(tree),
        json_tree.text(spec, "schedule"),
        json_tree.text(spec, "timeZone") or NONE,
        "True" if spec.get("suspend") is True else "False",
        len(json_tree.objects(tree, "status", "active")),
        age_text(last, now) if last else NONE,
        cells.age(tree, now),
        *cells.template(tree, *inner, "template"),
        cells.label_selector(tree, *inner, "selector"),
    ]


def _phase(tree: JsonObject) -> str:
    held = {
        json_tree.text(condition, "type")
        for condition in meta.condition_trees(tree)
        if json_tree.text(condition, "status") == "True"
    }
    for phase in _OVER:
        if phase in held:
            return phase
    if meta.deletion_timestamp(tree):
        return "Terminating"
    return next((phase for phase in _ON_THE_WAY if phase in held), "Running")


def _completions(tree: JsonObject) -> str:
    done = json_tree.integer(tree, "status", "succeeded") or 0
    wanted = json_tree.integer(tree, "spec", "completions")
    if wanted is not None:
        return f"{done}/{wanted}"
    together = json_tree.integer(tree, "spec", "parallelism") or 0
    return f"{done}/1 of {together}" if together > 1 else f"{done}/1"


def _duration(tree: JsonObject, now: Instant) -> str:
    started = json_tree.text(tree, "status", "startTime")
    ended = json_tree.text(tree, "status", "completionTime")
    if not started:
        return ""
    if not ended:
        return age_text(started, now)
    try:
        return duration_text(timestamps.parse(ended) - timestamps.parse(started))
    except timestamps.TimestampError:
        return "<unknown>"
