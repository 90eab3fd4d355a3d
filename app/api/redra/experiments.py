"""The operations of `/redra/v1` on the gallery of incidents, the linter and jobs, for OpenAPI."""

from collections.abc import Iterator
from typing import Any, TypeAlias

from app.api.redra import experiment_models as models
from app.api.redra import models as compared

_Operation: TypeAlias = tuple[str, str, str, tuple[Any, ...], Any, Any]
"""Path, method, summary, query parameters, body, answer (bytes: a file)."""

STARTING = (
    models.MinimiseWish,
    models.RehearsalWish,
    models.ExportWish,
    models.SweepWish,
    models.IncidentsWish,
)
"""The bodies of requests that start a job."""


def _jobs_below(root: str) -> Iterator[_Operation]:
    """The operations on the jobs of a history, or on those of no single history."""
    wait = ("wait", "number", "Wait up to this many seconds for the end of the job.")
    jobs, job = f"{root}/jobs", f"{root}/jobs/{{job}}"
    yield jobs, "get", "The jobs that the user may see", (), None, models.JobList
    yield job, "get", "The state, progress and result of a job", (wait,), None, models.JobStatus
    yield job, "delete", "Cancel a job and forget its result", (), None, models.JobStatus
    yield f"{job}/files/{{file}}", "get", "A file of the result of a job", (), None, bytes


EXPERIMENTS: tuple[_Operation, ...] = (
    ("/incidents", "get", "All known defects and traps", (), None, models.IncidentList),
    (
        "/incidents/{incident}",
        "get",
        "The story of an incident, and what is observed with and without it",
        (),
        None,
        models.IncidentStory,
    ),
    (
        "/histories/{history}/lint",
        "get",
        "What is wrong with the slices, classes, claims, templates and rules of a history",
        (
            ("ignore", "string", "Rules to leave out, separated by commas."),
            ("profile", "string", "The release whose API checks the objects."),
            ("at", "string", "A revision, an instant, or a duration before the end."),
        ),
        None,
        models.LintFindings,
    ),
    (
        "/histories/{history}/again",
        "get",
        "The differences of a history (A) from itself decided again from its inputs (B)",
        (
            ("profile", "string", "The release that decides; default: that of the history."),
            ("gate", "string", "Feature gates to change: NAME=true, separated by commas."),
            ("quirk", "string", "Quirks to change: NAME=on, separated by commas."),
            ("by", "string", "decisions (default), outcomes or objects."),
            ("within", "number", "Seconds by which a decision may differ; default: 1."),
            ("page", "boolean", "In the form that the page shows."),
            ("at", "string", "A revision, an instant, or a duration before the end."),
        ),
        None,
        compared.Diff,
    ),
    (
        "/histories/{history}/minimise",
        "post",
        "Start a job: the smallest history that still shows a fact, as a bundle",
        (),
        models.MinimiseWish,
        models.JobStatus,
    ),
    (
        "/histories/{history}/rehearse",
        "post",
        "Start a job: the recorded inputs of a history under another release, as JSON and page",
        (),
        models.RehearsalWish,
        models.JobStatus,
    ),
    (
        "/histories/{history}/export",
        "post",
        "Start a job: a history as a bundle, test, manifests, case, or in a format of other tools",
        (),
        models.ExportWish,
        models.JobStatus,
    ),
    (
        "/sweep",
        "post",
        "Start a job: a matrix of runs over histories or fleets, as a table and plots",
        (),
        models.SweepWish,
        models.JobStatus,
    ),
    (
        "/incidents/run",
        "post",
        "Start a job: incidents are played with the defect or trap and without it",
        (),
        models.IncidentsWish,
        models.JobStatus,
    ),
    *(operation for root in ("/histories/{history}", "") for operation in _jobs_below(root)),
)
