"""The operations of `/redra/v1` on the gallery of incidents, the linter and jobs, for OpenAPI."""

from typing import Any

from app.api.redra import experiment_models as models

# path, method, summary, query parameters, body, answer
EXPERIMENTS: tuple[tuple[str, str, str, tuple[Any, ...], Any, Any], ...] = (
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
            ("at", "string", "A revision, an instant, or a duration before the end; default: end."),
        ),
        None,
        models.LintFindings,
    ),
)
