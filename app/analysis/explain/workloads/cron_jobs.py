"""The state of a CronJob: its schedule, the jobs of it that have not ended, and its last one."""

from collections.abc import Iterator

from app.analysis.explain.reasons import Reason, listed
from app.analysis.views import LiveViews
from app.domain.log import ObjectKey
from app.domain.values import api_resources, counts
from app.domain.values.fields import meta, paths
from app.domain.values.json_tree import JsonView

_schedule = paths.text("spec", "schedule")
_last_scheduled = paths.text("status", "lastScheduleTime")
_policy = paths.text("spec", "concurrencyPolicy")

_EFFECTS = {
    "Forbid": "no further job begins until then",
    "Replace": "the next job replaces what has not ended",
}
"""What a job that has not ended means for the next one, by concurrencyPolicy."""


def state(
    views: LiveViews, key: ObjectKey, tree: JsonView, *, is_made_elsewhere: bool
) -> Iterator[Reason]:
    """The reasons why a CronJob has a job or has none.

    `is_made_elsewhere` is whether the controllers of another cluster make its jobs; those here do
    not.
    """
    if key[:2] != api_resources.CRON_JOBS:
        return
    if not is_made_elsewhere:
        text = f"no controller here makes its jobs, which are due at {_schedule(tree)} (A18)"
        yield Reason(text=text, is_kept=True)
    active = sorted(
        job
        for job in views.objects.keys(*api_resources.JOBS, key.namespace)
        if _is_active(views.objects.get(job) or {}, tree)
    )
    if active:
        names = [f"{job.namespace}/{job.name}" for job in active]
        text = f"{counts.plural(len(names), 'job')} {listed(names, len(names))} "
        text += f"{counts.verb(len(names), 'has')} not ended"
        effect = _EFFECTS.get(_policy(tree), "")
        text += f"; concurrencyPolicy is {_policy(tree)}: {effect}" if effect else ""
        rests_on = tuple(active)
        yield Reason(text=text, about=active[-1], rests_on=rests_on, is_kept=True)
    if last := _last_scheduled(tree):
        yield Reason(text=f"its last job was due at {last} ({_schedule(tree)})", is_kept=True)
    elif is_made_elsewhere:
        text = f"no job of it was made yet; they are due at {_schedule(tree)}"
        yield Reason(text=text, is_kept=True)


def _is_active(job: JsonView, owner: JsonView) -> bool:
    """Whether a job is of the CronJob and has not ended."""
    controller = meta.controller(job)
    if controller is None or controller.uid != meta.uid(owner):
        return False
    return not any(meta.is_true(job, end) for end in ("Complete", "Failed"))
