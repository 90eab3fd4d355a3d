"""Shapes of `/redra/v1` for the gallery of incidents, the linter, and jobs."""

from typing import Any

from pydantic import Field

from app.api.redra.models import Model


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
    """What is wrong with the objects of a history, the gravest first."""

    objects: int = Field(description="Number of objects that were checked")
    counts: dict[str, int] = Field(description="Findings by severity: error, warning, note")
    findings: list[dict[str, Any]] = Field(
        description="Rule, severity, place, message, cure and related places"
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
    """The reason why a job failed, in the words of the command line."""

    message: str
    place: str
    cure: str


class JobStatus(Model):
    """A job: work that goes on without a request."""

    id: str
    kind: str = Field(description="minimise, sweep or incidents")
    state: str = Field(description="waiting, running, done, failed or cancelled")
    path: str = Field(description="GET looks at the job, DELETE cancels and forgets it")
    seconds: float = Field(description="Time since it was started, or from then to its end")
    progress: dict[str, Any] = Field(
        description="What is left (minimise), or how much is done and the total"
    )
    problem: JobProblem | None = None
    result: Any = Field(None, description="The result of a job that is done")
    files: list[JobFile] = Field(default_factory=list)


class JobList(Model):
    """The jobs that a user may see, the oldest first, without results."""

    items: list[JobStatus]
