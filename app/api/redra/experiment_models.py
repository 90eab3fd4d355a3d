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
