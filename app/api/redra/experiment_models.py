"""Shapes of `/redra/v1` for the gallery of incidents, the linter, and jobs."""

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field, model_validator

from app.api.kubernetes import status
from app.api.redra.models import Model
from app.domain.log import HistoryInfo
from app.domain.values.json_tree import JsonObject
from app.service.answering.jobs import Job

ROOT = "/redra/v1"

ExportForm: TypeAlias = Literal[
    "bundle", "pytest", "manifests", "go-allocator-case", "audit", "watch", "objects", "k8shark"
]
"""The format of an exported history."""


class IncidentSummary(Model):
    """A known defect or trap."""

    name: str
    kind: str = Field(description="defect or trap")
    number: str = Field(description="Its number on the page of behaviours")
    title: str
    upstream: str = Field(description="Where it is documented")
    fixed: str = Field(description="The release that repairs it")
    repair: str = Field(description="What a user can do about it")


class IncidentList(Model):
    """All incidents that come with the program."""

    items: list[IncidentSummary]


class IncidentStory(IncidentSummary):
    """An incident with its story, and what is observed with and without it."""

    story: str = Field(description="Markdown")
    finding: list[str] = Field(description="The facts with the defect or trap")
    instead: list[str] = Field(description="The facts without it")


class LintFindings(Model):
    """The findings of the linter about the objects of a history, the gravest first."""

    objects: int = Field(description="Number of objects that were checked")
    counts: dict[str, int] = Field(description="Findings by severity: error, warning, note")
    findings: list[dict[str, Any]] = Field(
        description="Rule, severity, place, message, cure and related places"
    )
    notChecked: list[str] = Field(  # noqa: N815 - the JSON field
        description="Parts of the sources that were left out; empty for a history"
    )


class MinimiseWish(Model):
    """Body of `POST /redra/v1/histories/{history}/minimise`."""

    keep: str = Field(
        max_length=10_000,
        description="The fact that the history must still show, as for `redra minimise --keep`, "
        "but not a command",
    )
    at: str = Field("", description="Only the history up to this moment; empty: all of it")
    profile: str = Field("", description="Kubernetes release that decides; empty: the history's")
    gates: dict[str, bool] = Field(default_factory=dict, description="Feature gates to switch")
    quirks: dict[str, bool] = Field(default_factory=dict, description="Quirks to switch")
    seconds: float | None = Field(
        None, ge=1, description="Stop after this time with the smallest history so far"
    )
    name: str = Field(
        "small",
        pattern=r"^[A-Za-z0-9][-A-Za-z0-9._]{0,99}$",
        description="Name of the history in the bundle, and of its file",
    )


class RehearsalWish(Model):
    """Body of `POST /redra/v1/histories/{history}/rehearse`."""

    to: str = Field(max_length=64, min_length=1, description="The release, such as 1.37")
    at: str = Field("", description="Only the history up to this moment; empty: all of it")
    gates: dict[str, bool] = Field(default_factory=dict, description="Feature gates to change")
    quirks: dict[str, bool] = Field(default_factory=dict, description="Quirks to change")


class ExportWish(Model):
    """Body of `POST /redra/v1/histories/{history}/export`. No export holds keys of Secrets."""

    form: ExportForm = Field("bundle", description="The format, as for `redra export --as`")
    at: str = Field("", description="Only the history up to this moment; empty: all of it")
    redact: bool = Field(False, description="Replace names, keeping their order")
    never: list[Annotated[str, Field(max_length=10_000)]] = Field(
        default_factory=list,
        max_length=100,
        description="Predicates that a test asserts not to be shown; pytest only",
    )
    expect: Literal["recorded", "repaired"] = Field(
        "recorded", description="The decisions that a test asserts; pytest only"
    )
    pod: str = Field(
        "", max_length=600, description="The pod of an allocator's case; empty: the last one"
    )
    name: str = Field(
        "",
        pattern=r"^([A-Za-z0-9][-A-Za-z0-9._]{0,99})?$",
        description="Name of the file; a folder is a zip archive of this name and .zip",
    )

    @model_validator(mode="after")
    def _fits(self) -> "ExportWish":
        """Refuse parameters that do not apply to the format."""
        wrong = {
            "never": bool(self.never) and self.form != "pytest",
            "expect": self.expect != "recorded" and self.form != "pytest",
            "pod": bool(self.pod) and self.form != "go-allocator-case",
        }
        for name, is_wrong in wrong.items():
            if is_wrong:
                raise ValueError(f"{name} cannot be combined with the form {self.form}")
        return self


class SweepWish(Model):
    """Body of `POST /redra/v1/sweep`. A plan names histories, and no files."""

    plan: dict[str, Any] = Field(description="The plan, as in a file for `redra sweep`")
    manifests: dict[str, list[dict[str, Any]]] = Field(
        default_factory=dict, description="The objects behind each name in `apply` of a fleet"
    )
    name: str = Field("", max_length=200, description="Name for the title of the page")


class IncidentsWish(Model):
    """Body of `POST /redra/v1/incidents/run`."""

    names: list[str] = Field(
        default_factory=list, max_length=1_000, description="Incidents; empty: all"
    )


class JobFile(Model):
    """A file of a result."""

    name: str
    bytes: int
    path: str = Field(description="The path from which it can be fetched")


class JobProblem(Model):
    """The reason why a job failed; `place` is a field of its request, or a part of its source."""

    message: str
    place: str
    cure: str


class JobStatus(Model):
    """A job: work that goes on without a request."""

    id: str
    kind: str = Field(description="minimise, rehearse, export, diff, again, sweep or incidents")
    state: str = Field(description="waiting, running, done, failed or cancelled")
    path: str = Field(description="GET looks at the job, DELETE cancels and forgets it")
    seconds: float = Field(description="Time since it was started, or from then to its end")
    progress: dict[str, Any] = Field(
        description="What is left (minimise), or what is done, how much, and the total"
    )
    problem: JobProblem | None = None
    result: Any = Field(None, description="The result of a job that is done")
    files: list[JobFile] = Field(default_factory=list)


class JobList(Model):
    """The jobs that a user may see, the oldest first, without results."""

    items: list[JobStatus]


def job_status(job: Job, place: HistoryInfo | None) -> JobStatus:
    """A job as it is shown, which belongs to a history or to none."""
    path = job_path(job.id, place)
    outcome = job.outcome
    return JobStatus(
        id=job.id,
        kind=job.wish.kind.value,
        state=job.state.value,
        path=path,
        seconds=round(job.seconds, 3),
        progress=job.progress,
        problem=_problem(job.problem) if job.problem else None,
        result=None if outcome is None else outcome.result,
        files=[]
        if outcome is None
        else [
            JobFile(name=name, bytes=len(content), path=f"{path}/files/{name}")
            for name, content in outcome.files.items()
        ],
    )


def job_path(name: str, place: HistoryInfo | None) -> str:
    """The path of a job, which belongs to a history or to none."""
    root = ROOT if place is None else f"{ROOT}/histories/{place.name}"
    return f"{root}/jobs/{name}"


def _problem(tree: JsonObject) -> JobProblem:
    """The reason of a failure, about a field of the request."""
    return JobProblem(**{**tree, "place": status.field_of(tree.get("place", ""))})
