"""Job: runs pods until enough have succeeded or too many have failed.

One step counts ended pods, another creates or deletes pods, the last one writes the rest of the
status. Success policies, and limits for the failures of single indexes, are not supported: their
author gets a warning. A Job whose `managedBy` names another controller is left to that one.

The podFailurePolicy of a Job says whether a failed pod counts, and whether it ends the Job. The
first matching rule decides; without one the pod counts. An evicted pod has the condition
DisruptionTarget, so that a Job can ignore evictions. Parity: controllers.md 5.5; upstream's job
controller, texts included; FailIndex counts like Count, as without a limit for each index.
"""

from dataclasses import dataclass

from app.domain.controllers import failure_policies
from app.domain.controllers.event_objects import MANAGER
from app.domain.controllers.workloads import job_pods, pods_of
from app.domain.controllers.workloads.answer import Report, Situation, Step, WorkloadSteps
from app.domain.controllers.workloads.job_pods import JobPods
from app.domain.objects.write.commands import Command, DeleteObject, Propagation
from app.domain.values import condition_types, json_tree, timestamps
from app.domain.values.fields import core, meta, records
from app.domain.values.fields.records import FieldRecord
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.timestamps import SECOND, Instant

_REACHED = ("CompletionsReached", "Reached expected number of succeeded pods")
_BACKOFF = ("BackoffLimitExceeded", "Job has reached the specified backoff limit")
_DEADLINE = ("DeadlineExceeded", "Job was active longer than specified deadline")

_CONTROLLER = "kubernetes.io/job-controller"

INDEXES_MAX = 100_000
"""The most indexes of an indexed Job; upstream allows no more completions either."""
_INDEX_DIGITS_MAX = 10

_POLICY_REASON = "PodFailurePolicy"


class _JobSpec(FieldRecord, frozen=True):
    """The numbers of a Job's spec."""

    completion_mode: str = ""
    parallelism: int | None = None
    completions: int | None = None
    backoff_limit: int | None = None
    active_deadline_seconds: int | None = None
    ttl_seconds_after_finished: int | None = None
    managed_by: str = ""


_read_spec = records.of_tree(_JobSpec)


@dataclass(slots=True, kw_only=True)
class _Job:
    """A Job in processing; `status` is the status to be written."""

    situation: Situation
    spec: JsonView
    wanted: _JobSpec
    pods: JobPods
    status: JsonObject
    done: set[int]

    def number(self, field: str) -> int:
        return json_tree.integer(self.status, field) or 0

    def condition(self, kind: str) -> JsonView:
        for condition_tree in meta.conditions_of(self.status):
            if condition_tree.get("type") == kind and condition_tree.get("status") == "True":
                return condition_tree
        return json_tree.EMPTY

    @property
    def is_over(self) -> bool:
        return bool(self.condition("Complete") or self.condition("Failed"))

    @property
    def is_indexed(self) -> bool:
        return self.wanted.completion_mode == "Indexed"


def sync(situation: Situation) -> WorkloadSteps:
    """The next steps for a Job; of another controller's only its end after its time to live."""
    job = _read(situation)
    if job.wanted.managed_by not in ("", _CONTROLLER):
        return _after_end(job) if job.is_over else WorkloadSteps()
    counting = _count_ended(job)
    if counting:
        _refresh(job)
        return WorkloadSteps(steps=(pods_of.with_status(situation, job.status), *counting))
    if job.is_over:
        return _after_end(job)
    due: Instant | None = None
    if not situation.is_ending:
        steps, due = _decide(job)
        if steps:
            return WorkloadSteps(steps=tuple(steps), due=due)
    _refresh(job)
    if job.status == situation.tree.get("status"):
        return WorkloadSteps(due=due)
    return WorkloadSteps(steps=(pods_of.with_status(situation, job.status),), due=due)


def release(pod: JsonObject) -> Command | None:
    """Removes the finalizer from a pod whose Job is gone."""
    return job_pods.freed(pod)


def _read(situation: Situation) -> _Job:
    status = json_tree.copy(dict(meta.status(situation.tree)))
    return _Job(
        situation=situation,
        spec=meta.spec(situation.tree),
        wanted=_read_spec(meta.spec(situation.tree)),
        pods=job_pods.of_job(situation),
        status=status,
        done=set(_indexes(json_tree.text(status, "completedIndexes"))),
    )


def _count_ended(job: _Job) -> list[Step]:
    """Adds ended pods to the counts; returns the commands that remove their finalizers."""
    steps: list[Step] = []
    for pod in job.pods.ended[: job.situation.pods_max]:
        command = job_pods.freed(pod)
        if command is None:
            continue
        steps.append(command)
        field = "succeeded" if job_pods.has_succeeded(pod) else "failed"
        if field == "failed":
            rule = failure_policies.deciding_rule(job.spec, pod)
            ends = rule is not None and rule.action == failure_policies.FAIL_JOB
            if rule is not None and ends and not job.condition(condition_types.FAILURE_TARGET):
                _put(
                    job,
                    condition_types.FAILURE_TARGET,
                    "True",
                    _POLICY_REASON,
                    f"{rule.matched} matching {rule.action} rule at index {rule.number}",
                )
            if rule is not None and rule.action == failure_policies.IGNORE:
                continue
        index = job_pods.index_of(pod)
        if field == "succeeded" and job.is_indexed and index is not None:
            job.done.add(index)
            job.status["completedIndexes"] = _ranges(job.done)
            job.status["succeeded"] = len(job.done)
        else:
            job.status[field] = job.number(field) + 1
    return steps


def _decide(job: _Job) -> tuple[list[Step], Instant | None]:
    """The steps that create or delete pods or end the Job, and the instant of the next check."""
    verdict, due = _failure(job)
    if verdict is not None:
        return _end(job, condition_types.FAILURE_TARGET, "Failed", verdict), None
    if job.spec.get("suspend") is True:
        return _suspend(job), None
    if report := _resume(job):
        _refresh(job)
        return [pods_of.with_status(job.situation, job.status), report], None
    if _is_complete(job):
        return _end(job, condition_types.SUCCESS_CRITERIA_MET, "Complete", _REACHED), None
    missing = _missing(job)
    if not missing:
        surplus = len(job.pods.active) - (job.wanted.parallelism or 0)
        victims = job.pods.active[: max(0, surplus)]
        return job_pods.deletes(victims[: job.situation.pods_max]), due
    until = job_pods.backoff_until(job.pods)
    if until is not None and until > job.situation.now:
        return [], until if due is None else min(due, until)
    return job_pods.creates(job.situation, missing[: job.situation.pods_max]), due


def _failure(job: _Job) -> tuple[tuple[str, str] | None, Instant | None]:
    """The reason and message of the Job's failure, if it has failed, and its deadline."""
    target = job.condition(condition_types.FAILURE_TARGET)
    if target:
        return (target["reason"], target["message"]), None
    limit = job.wanted.backoff_limit
    limit = 6 if limit is None else limit
    is_restarting = json_tree.text(job.spec, "template", "spec", "restartPolicy") == "OnFailure"
    restarts = job.pods.restarts if is_restarting else 0
    if job.number("failed") > limit or (restarts and restarts >= limit):
        return _BACKOFF, None
    seconds = job.wanted.active_deadline_seconds
    started = timestamps.instant_of(json_tree.text(job.status, "startTime"))
    if seconds is None or started is None or job.spec.get("suspend") is True:
        return None, None
    due = Instant(started + seconds * SECOND)
    return (_DEADLINE, None) if due <= job.situation.now else (None, due)


def _end(job: _Job, interim: str, final: str, why: tuple[str, str]) -> list[Step]:
    """Ends a Job: first the interim condition and the deletion of pods, then the final one."""
    now = job.situation.now
    steps: list[Step] = []
    if not job.condition(interim):
        _put(job, interim, "True", *why)
        _refresh(job)
        steps.append(pods_of.with_status(job.situation, job.status))
        return steps + job_pods.deletes(job.pods.active)
    if job.pods.active:
        return job_pods.deletes(job.pods.active[: job.situation.pods_max])
    if job.pods.leaving:
        return []
    _put(job, final, "True", *why)
    _refresh(job)
    if final == "Complete":
        job.status["completionTime"] = timestamps.seconds_text(now)
        steps.append(Report(reason="Completed", message="Job completed"))
    else:
        steps.append(Report(kind="Warning", reason=why[0], message=why[1]))
    return [pods_of.with_status(job.situation, job.status), *steps]


def _suspend(job: _Job) -> list[Step]:
    if job.pods.active:
        return job_pods.deletes(job.pods.active[: job.situation.pods_max])
    if job.condition("Suspended"):
        return []
    job.status.pop("startTime", None)
    _put(job, "Suspended", "True", "JobSuspended", "Job suspended")
    _refresh(job)
    report = Report(reason="Suspended", message="Job suspended")
    return [pods_of.with_status(job.situation, job.status), report]


def _resume(job: _Job) -> Step | None:
    """Sets the fields of a running Job for the next status; returns the report, if any."""
    report: Step | None = None
    if job.condition("Suspended"):
        report = Report(reason="Resumed", message="Job resumed")
        _put(job, "Suspended", "False", "JobResumed", "Job resumed")
    if "startTime" not in job.status:
        job.status["startTime"] = timestamps.seconds_text(job.situation.now)
    return report


def _is_complete(job: _Job) -> bool:
    if job.condition(condition_types.SUCCESS_CRITERIA_MET):
        return True
    completions = job.wanted.completions
    if completions is None:
        return job.number("succeeded") > 0 and not job.pods.active
    return job.number("succeeded") >= completions


def _missing(job: _Job) -> list[int | None]:
    """The pods that may be created: their indexes, or None for each pod without an index."""
    parallel = job.wanted.parallelism
    completions = job.wanted.completions
    wanted = 1 if parallel is None else parallel
    if completions is None:
        if job.number("succeeded"):
            return []
    else:
        wanted = min(wanted, completions - job.number("succeeded"))
    occupied = list(job.pods.active)
    if job_pods.replaces_failed_only(job.spec):
        occupied = [pod for pod in job.pods.all if not core.is_finished(pod)]
    room = min(wanted - len(occupied), job.situation.pods_max)
    if room <= 0:
        return []
    if not job.is_indexed:
        return [None] * room
    occupied_indexes = job.done | {
        index for pod in occupied if (index := job_pods.index_of(pod)) is not None
    }
    missing: list[int | None] = []
    for index in range(min(completions or 0, INDEXES_MAX)):
        if len(missing) >= room:
            break
        if index not in occupied_indexes:
            missing.append(index)
    return missing


def _after_end(job: _Job) -> WorkloadSteps:
    """Deletes a finished Job when its time to live is over."""
    seconds = job.wanted.ttl_seconds_after_finished
    if seconds is None or job.situation.is_ending:
        return WorkloadSteps()
    ended = job.condition("Complete") or job.condition("Failed")
    since = timestamps.instant_of(json_tree.text(ended, "lastTransitionTime"))
    due = Instant((since or 0) + seconds * SECOND)
    if due > job.situation.now:
        return WorkloadSteps(due=due)
    removal = DeleteObject(
        key=job.situation.key,
        uid=job.situation.uid,
        propagation=Propagation.FOREGROUND,
        options=MANAGER,
    )
    return WorkloadSteps(steps=(removal,))


def _refresh(job: _Job) -> None:
    """Updates the numbers of pods in the status to be written."""
    counts = pods_of.count(job.pods.active, 0, job.situation.now)
    for field, value in (("active", counts.all), ("succeeded", None), ("failed", None)):
        number = job.number(field) if value is None else value
        if number:
            job.status[field] = number
        else:
            job.status.pop(field, None)
    job.status["ready"] = counts.ready
    job.status["terminating"] = job.pods.leaving
    job.status["uncountedTerminatedPods"] = {}


def _put(job: _Job, kind: str, status: str, reason: str, message: str) -> None:
    text = timestamps.seconds_text(job.situation.now)
    kept = [c for c in meta.conditions_of(job.status) if c.get("type") != kind]
    kept.append(
        {
            "type": kind,
            "status": status,
            "lastProbeTime": text,
            "lastTransitionTime": text,
            "reason": reason,
            "message": message,
        }
    )
    job.status["conditions"] = kept


def _indexes(text: str) -> list[int]:
    """The indexes in a text such as `0-2,5`; invalid ones and those beyond INDEXES_MAX are skipped.

    A text that names more than INDEXES_MAX numbers, repeated ones included, is not read to its end.
    """
    indexes: list[int] = []
    for part in text.split(",", INDEXES_MAX):
        if len(indexes) >= INDEXES_MAX:
            break
        first, _, last = part.partition("-")
        last = last or first
        if _is_index(first) and _is_index(last):
            indexes.extend(range(int(first), min(int(last) + 1, INDEXES_MAX)))
    return indexes[:INDEXES_MAX]


def _is_index(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= _INDEX_DIGITS_MAX


def _ranges(indexes: set[int]) -> str:
    """The text of a set of indexes: the inverse of `_indexes`."""
    runs: list[list[int]] = []
    for index in sorted(indexes):
        if runs and runs[-1][1] == index - 1:
            runs[-1][1] = index
        else:
            runs.append([index, index])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)
