"""Runs of incidents, each on its own cluster with the rules and controllers of its settings."""

from app.adapters.uids import DerivedUids
from app.analysis.incidents import facts
from app.analysis.incidents.facts import FactCheck, Played
from app.analysis.incidents.incident import Exhibit, Incident, IncidentVariant
from app.analysis.views import compiler_of, features_of
from app.bootstrap.rules import rules_for
from app.domain.controllers import reconcilers, registry
from app.domain.objects import profile as profiles
from app.domain.values import timestamps
from app.domain.values.json_tree import JsonObject
from app.service.replays import incidents
from app.service.replays.reconciling import ReplayTimeline

SEED = 1
START = timestamps.parse("2026-01-02T03:00:00Z")


def play(incident: Incident, variant: IncidentVariant) -> Played:
    """The history of a variant; the same each time."""
    return incidents.play(incident, variant, _timeline(incident, variant))


def judge(incident: Incident, variant: IncidentVariant) -> list[FactCheck]:
    """Run a variant and check its facts."""
    return facts.judge(incident.facts_of(variant), play(incident, variant))


def rows(exhibit: Exhibit) -> list[JsonObject]:
    """The facts of an incident in both variants, and whether each is observed, as JSON."""
    return [
        {
            "incident": exhibit.name,
            "variant": variant.value,
            "fact": verdict.fact.text,
            "holds": verdict.holds,
            "seen": verdict.seen,
        }
        for variant in IncidentVariant
        for verdict in judge(exhibit.incident, variant)
    ]


def _timeline(incident: Incident, variant: IncidentVariant) -> ReplayTimeline:
    settings = incident.cluster_of(variant).settings()
    profile = profiles.from_settings(settings)
    return ReplayTimeline(
        rules=rules_for(profile),
        uids=DerivedUids(SEED),
        controllers=reconcilers.controllers(
            profile,
            features_of(profile),
            compiler_of(profile),
            registry.options_from(settings),
        ),
        start=START,
    )
