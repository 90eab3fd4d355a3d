"""The bounds of explanations, comparisons and answers about a change, from the settings."""

from app.analysis.blast.bounds import BlastBounds
from app.analysis.diff.sides import DiffBounds
from app.analysis.explain.pods import ExplainBounds
from app.settings import Settings


def explain_bounds(settings: Settings) -> ExplainBounds:
    """The bounds of an answer to one question."""
    return ExplainBounds(
        steps_max=settings.explain_steps_max,
        followed_nodes_max=settings.explain_followed_nodes_max,
        opened_nodes_max=settings.explain_opened_nodes_max,
        quirk_nodes_max=settings.explain_quirk_nodes_max,
        help_nodes_max=settings.help_nodes_max,
        help_changes_max=settings.help_changes_max,
        help_tries_max=settings.help_tries_max,
        names_max=settings.explain_names_max,
        names_compared_max=settings.explain_names_compared_max,
        places_max=settings.explain_places_max,
        histories_max=settings.explain_histories_max,
        cause_changes_max=settings.cause_changes_max,
        cause_nodes_max=settings.cause_nodes_max,
        cause_pods_events_max=settings.cause_pods_events_max,
        cause_workload_pods_max=settings.cause_workload_pods_max,
        cause_waiting_pods_max=settings.cause_waiting_pods_max,
        cause_slice_writes_max=settings.cause_slice_writes_max,
        cause_pool_slices_max=settings.cause_pool_slices_max,
        refusal_nodes_max=settings.refusal_nodes_max,
        refusal_events_max=settings.refusal_events_max,
        refusal_choices_max=settings.refusal_choices_max,
        refusal_allocations_max=settings.refusal_allocations_max,
    )


def blast_bounds(settings: Settings) -> BlastBounds:
    """The bounds of an answer about a change."""
    return BlastBounds(
        changes_max=settings.blast_changes_max,
        listed_max=settings.blast_listed_max,
        waiting_max=settings.blast_waiting_max,
    )


def diff_bounds(settings: Settings) -> DiffBounds:
    """The bounds of a comparison."""
    return DiffBounds(
        explained_max=settings.diff_explained_max,
        nodes_max=settings.diff_nodes_max,
        listed_max=settings.diff_listed_max,
    )
