"""The areas of the code that are mutated together, each with the tests that judge it."""

from dataclasses import dataclass

UNIT = "tests/unit"


@dataclass(frozen=True, slots=True, kw_only=True)
class Area:
    """The modules to mutate, and the tests that must notice."""

    sources: tuple[str, ...]
    """Patterns of files; those with `**` reach into the folders below."""
    tests: tuple[str, ...]


AREAS = {
    "allocation": Area(
        sources=("app/domain/allocation/**/*.py",),
        tests=(
            f"{UNIT}/allocation",
            f"{UNIT}/analysis/explain/test_whole_answers.py",
            "tests/properties/test_allocation_search.py",
            "tests/properties/test_allocation_laws.py",
            "tests/properties/test_allocation_likeness.py",
            "tests/conformance/test_allocator_upstream.py",
            "tests/conformance/test_allocator_oracle.py",
            "tests/conformance/test_allocator_checker.py",
            "tests/conformance/test_allocator_neighbours.py",
            "tests/conformance/test_consumable_capacity.py",
        ),
    ),
    "devices": Area(
        sources=("app/domain/devices/**/*.py",),
        tests=(
            f"{UNIT}/devices",
            f"{UNIT}/allocation",
            f"{UNIT}/controllers/test_slice_patches.py",
            f"{UNIT}/controllers/test_eviction_inventory.py",
            f"{UNIT}/controllers/test_scheduling_inventory.py",
        ),
    ),
    "claims": Area(
        sources=("app/domain/controllers/claims/**/*.py",),
        tests=(
            f"{UNIT}/controllers/test_claims.py",
            f"{UNIT}/controllers/test_claims_inventory.py",
            f"{UNIT}/controllers/test_claim_endings.py",
            f"{UNIT}/controllers/test_claim_looks.py",
            f"{UNIT}/controllers/test_long_names.py",
            f"{UNIT}/controllers/test_refused_events.py",
            f"{UNIT}/controllers/test_releases.py",
            f"{UNIT}/controllers/test_restarts.py",
        ),
    ),
    "eviction": Area(
        sources=("app/domain/controllers/eviction/**/*.py",),
        tests=(
            f"{UNIT}/controllers/test_eviction.py",
            f"{UNIT}/controllers/test_eviction_inventory.py",
            f"{UNIT}/controllers/test_restarts.py",
            f"{UNIT}/controllers/test_refused_events.py",
        ),
    ),
    "scheduling": Area(
        sources=("app/domain/controllers/scheduling/**/*.py",),
        tests=(
            f"{UNIT}/controllers",
            "tests/properties/test_kinds_of_pods.py",
            "tests/truth/preemption",
        ),
    ),
    "writer": Area(
        sources=(
            "app/service/writing.py",
            "app/domain/objects/write/sealing.py",
            "app/domain/objects/write/staging.py",
        ),
        tests=(
            f"{UNIT}/service/test_writing.py",
            f"{UNIT}/service/test_staged_objects.py",
            f"{UNIT}/service/test_write_step.py",
            "tests/properties/test_writer_laws.py",
            "tests/api/test_joined_writes.py",
            "tests/api/test_limits.py",
            "tests/api/test_secrets.py",
            "tests/api/test_writes.py",
        ),
    ),
    "watches": Area(
        sources=(
            "app/service/watches.py",
            "app/api/kubernetes/fanout.py",
            "app/api/kubernetes/first_states.py",
            "app/api/kubernetes/selection.py",
            "app/api/kubernetes/watch_lines.py",
            "app/api/kubernetes/watching.py",
        ),
        tests=(
            f"{UNIT}/service/test_watch_hub.py",
            f"{UNIT}/service/test_recent_events.py",
            f"{UNIT}/service/test_writing.py",
            "tests/api/test_watches.py",
            "tests/api/test_watch_metrics.py",
            "tests/api/test_fanout.py",
            "tests/api/test_first_states.py",
        ),
    ),
    "verify": Area(
        sources=(
            "app/service/replays/verifying.py",
            "app/analysis/verify/*.py",
        ),
        tests=(
            f"{UNIT}/analysis/verify",
            f"{UNIT}/analysis/replay/test_taken_as_recorded.py",
            f"{UNIT}/service/test_end_of_inputs.py",
            f"{UNIT}/service/test_replaying.py",
            f"{UNIT}/service/test_verify_reports.py",
        ),
    ),
    "invariants": Area(
        sources=("app/analysis/verify/invariants/*.py",),
        tests=(f"{UNIT}/analysis/invariants",),
    ),
    "decide": Area(
        sources=("app/service/replays/deciding/*.py", "app/analysis/replay/**/*.py"),
        tests=(
            f"{UNIT}/analysis/replay",
            f"{UNIT}/service/pacing",
            f"{UNIT}/service/test_applied_inputs.py",
            f"{UNIT}/service/test_changed_worlds.py",
            f"{UNIT}/service/test_circumstances.py",
            f"{UNIT}/service/test_claim_work.py",
            f"{UNIT}/service/test_first_runs.py",
            f"{UNIT}/service/test_late_reports.py",
            f"{UNIT}/service/test_past_devices.py",
            f"{UNIT}/service/test_pods_of_workloads.py",
            f"{UNIT}/service/test_recorded_refusals.py",
            f"{UNIT}/service/test_replaced_controllers.py",
            f"{UNIT}/service/test_shared_steps.py",
            f"{UNIT}/service/test_unanswered_writes.py",
            f"{UNIT}/service/test_whole_runs.py",
            "tests/conformance/test_decide_altered.py",
            "tests/conformance/test_decide_nodes.py",
            "tests/conformance/test_decide_ourselves.py",
            "tests/conformance/test_forks_with_recorded_inputs.py",
            "tests/simulation/test_forks_with_inputs.py",
        ),
    ),
    "deciding": Area(
        sources=("app/service/replays/deciding/*.py",),
        tests=(
            f"{UNIT}/analysis/replay/test_lateness.py",
            f"{UNIT}/analysis/replay/test_writers_and_names.py",
            f"{UNIT}/service/pacing",
            f"{UNIT}/service/test_applied_inputs.py",
            f"{UNIT}/service/test_changed_worlds.py",
            f"{UNIT}/service/test_circumstances.py",
            f"{UNIT}/service/test_claim_work.py",
            f"{UNIT}/service/test_first_runs.py",
            f"{UNIT}/service/test_late_reports.py",
            f"{UNIT}/service/test_past_devices.py",
            f"{UNIT}/service/test_pods_of_workloads.py",
            f"{UNIT}/service/test_recorded_refusals.py",
            f"{UNIT}/service/test_replaced_controllers.py",
            f"{UNIT}/service/test_shared_steps.py",
            f"{UNIT}/service/test_unanswered_writes.py",
            f"{UNIT}/service/test_whole_runs.py",
            "tests/acceptance/test_diff_command.py",
            "tests/conformance/test_decide_altered.py",
            "tests/conformance/test_decide_nodes.py",
            "tests/conformance/test_decide_ourselves.py",
            "tests/conformance/test_decide_tolerances.py",
            "tests/conformance/test_forks_with_recorded_inputs.py",
            "tests/simulation/test_forks_with_inputs.py",
        ),
    ),
    "replay": Area(
        sources=("app/analysis/replay/**/*.py",),
        tests=(
            f"{UNIT}/analysis/replay",
            f"{UNIT}/service/pacing",
            f"{UNIT}/service/test_applied_inputs.py",
            f"{UNIT}/service/test_changed_worlds.py",
            f"{UNIT}/service/test_circumstances.py",
            f"{UNIT}/service/test_unanswered_writes.py",
            "tests/conformance/test_decide_altered.py",
            "tests/conformance/test_decide_nodes.py",
            "tests/conformance/test_decide_ourselves.py",
            "tests/simulation/test_forks_with_inputs.py",
        ),
    ),
    "diff": Area(
        sources=("app/analysis/diff/*.py",),
        tests=(
            f"{UNIT}/analysis/test_answers_of_comparisons.py",
            f"{UNIT}/analysis/test_changed_inputs.py",
            f"{UNIT}/analysis/test_changed_words.py",
            f"{UNIT}/analysis/test_compared_facts.py",
            f"{UNIT}/analysis/test_contrasts.py",
            f"{UNIT}/analysis/test_courses.py",
            f"{UNIT}/analysis/test_divergences.py",
            f"{UNIT}/analysis/test_diverging_courses.py",
            f"{UNIT}/analysis/test_ends_of_histories.py",
            f"{UNIT}/analysis/test_first_writes.py",
            f"{UNIT}/analysis/test_named_lists.py",
            f"{UNIT}/analysis/test_pages_of_causes.py",
            f"{UNIT}/analysis/test_parted_courses.py",
            f"{UNIT}/analysis/test_rivals.py",
            f"{UNIT}/analysis/test_turned_attempts.py",
            f"{UNIT}/analysis/test_turned_orders.py",
            f"{UNIT}/analysis/test_whole_comparisons.py",
            "tests/acceptance/test_diff_command.py",
            "tests/api/test_comparisons.py",
            "tests/conformance/test_differences_of_recordings.py",
            "tests/simulation/test_differences.py",
            "tests/simulation/test_evicted_or_deleted.py",
            "tests/simulation/test_roots_of_one_change.py",
            "tests/simulation/test_roots_of_workloads.py",
            "tests/simulation/test_stated_differences.py",
        ),
    ),
    "explain": Area(
        sources=("app/analysis/explain/**/*.py",),
        tests=(
            f"{UNIT}/analysis/explain",
            f"{UNIT}/analysis/findings",
            f"{UNIT}/analysis/test_attempts.py",
            f"{UNIT}/analysis/test_contrasts.py",
            f"{UNIT}/analysis/test_outcomes.py",
            f"{UNIT}/service/test_closed_nodes.py",
            f"{UNIT}/service/test_explaining.py",
            f"{UNIT}/service/test_explaining_elsewhere.py",
            f"{UNIT}/service/test_nothing_to_blame.py",
            f"{UNIT}/service/test_past_devices.py",
            f"{UNIT}/service/test_recorded_refusals.py",
            "tests/truth/quotas/test_why_quotas.py",
            "tests/truth/states/test_why_in_use.py",
            "tests/truth/waiting/test_why_pods_wait.py",
        ),
    ),
    "findings": Area(
        sources=("app/analysis/findings/**/*.py",),
        tests=(
            f"{UNIT}/analysis/findings",
            f"{UNIT}/analysis/explain",
            f"{UNIT}/service/test_nothing_to_blame.py",
            f"{UNIT}/service/test_explaining.py",
        ),
    ),
    "blast": Area(
        sources=("app/analysis/blast/**/*.py",),
        tests=(
            f"{UNIT}/analysis/blast",
            f"{UNIT}/analysis/capacity/test_fitting.py",
            "tests/truth/blasts",
        ),
    ),
    "minimise": Area(
        sources=(
            "app/analysis/minimise/**/*.py",
            "app/analysis/rehearse/**/*.py",
        ),
        tests=(
            f"{UNIT}/analysis/minimise",
            f"{UNIT}/analysis/test_attribution.py",
            f"{UNIT}/analysis/test_rehearsed_contents.py",
            f"{UNIT}/service/test_shared_beginnings.py",
            f"{UNIT}/service/test_sound_candidates.py",
            f"{UNIT}/cli/test_minimised_texts.py",
            "tests/api/test_rehearsals.py",
            "tests/simulation/test_rehearsals.py",
        ),
    ),
    "recording": Area(
        sources=("app/service/recording/*.py",),
        tests=(
            f"{UNIT}/service/test_recording_window.py",
            f"{UNIT}/service/test_audits_of_recordings.py",
            f"{UNIT}/service/test_continued_recordings.py",
            f"{UNIT}/service/test_expired_lists.py",
            f"{UNIT}/service/test_followed_kinds.py",
            f"{UNIT}/service/test_lost_changes.py",
            f"{UNIT}/service/test_patient_lists.py",
            f"{UNIT}/service/test_recorders_in_time.py",
            f"{UNIT}/service/test_resumed_recordings.py",
            f"{UNIT}/service/test_served_kinds.py",
            "tests/recording/test_gaps.py",
            "tests/recording/test_following.py",
        ),
    ),
    "garbage": Area(
        sources=("app/domain/controllers/garbage/*.py",),
        tests=(
            f"{UNIT}/controllers/test_garbage.py",
            f"{UNIT}/controllers/test_namespaces.py",
            f"{UNIT}/controllers/test_pod_gc.py",
            f"{UNIT}/controllers/test_refused_events.py",
            f"{UNIT}/service/test_garbage_collection.py",
        ),
    ),
    "lint": Area(
        sources=("app/analysis/lint/*.py",),
        tests=(
            f"{UNIT}/analysis/lint",
            "tests/acceptance/test_lint_command.py",
            "tests/conformance/test_lint_corpus.py",
        ),
    ),
    "pacing": Area(
        sources=("app/service/pacing/*.py",),
        tests=(
            f"{UNIT}/service/pacing",
            f"{UNIT}/service/test_moments.py",
            "tests/api/test_paced_replays.py",
        ),
    ),
    "quotas": Area(
        sources=("app/domain/controllers/quotas/*.py", "app/domain/objects/quota/*.py"),
        tests=(
            f"{UNIT}/controllers/test_quotas.py",
            f"{UNIT}/objects/test_limit_ranges.py",
            f"{UNIT}/analysis/blast/test_blast_quotas.py",
            "tests/api/test_writes.py",
            "tests/truth/quotas",
        ),
    ),
    "workloads": Area(
        sources=("app/domain/controllers/workloads/*.py",),
        tests=(
            f"{UNIT}/workloads",
            f"{UNIT}/service/test_pods_of_workloads.py",
            "tests/conformance/test_workloads_in_forks.py",
            "tests/simulation/test_roots_of_workloads.py",
        ),
    ),
}
