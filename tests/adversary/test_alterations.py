"""Altered recordings whose verdicts were fixed before any run, from the specification alone.

A normal run takes a few cheap rows; `make draws` takes all rows of `verify`, and of `decide` those
of the families in `DECIDED`, and some of `both`. `python -m tests.adversary` runs any.

The few rows come by day; those that once were answered wrong come twice as often.
"""

from pathlib import Path

import pytest

from tests import draws
from tests.adversary import all_alterations
from tests.adversary.opened import OPEN
from tests.adversary.running import run, satisfied, summary

DECIDED = (
    "ends",
    "clocks",
    "lossy",
    "mapped",
    "renewed",
    "joined",
    "edges",
    "unlucky",
    "moments",
    "mixed",
    "shapes",
)

DECIDED_TOO = (
    "_without_claim_controller",
    "_without_collector",
    "_without_kubelets",
    "_without_deployments",
    "_without_replicasets",
    "_without_devicetaintrules",
    "_without_templates",
    "_and_namespaces_named_only",
    "_a_third_lost",
    "_lost_elsewhere",
    "_next_report_lost",
    "_next_reports_lost",
    "made_before_its_pod",
    "made_before_its_template",
    "collected_before_its_owner_ended",
    "released_before_its_pod_finished",
    "emptied_before_its_namespace_was_to_end",
    "loses_creations_of_pods_with_claims",
    "bindings_through_a_server_whose_clock_is_behind",
    "every_second_line_from_a_server_ahead",
    "times_to_seconds",
    "generated_name_without_that_of_its_pod",
    "bound_while_its_claim_has_no_device",
    "_an_allocation_lost",
    "_a_removal_lost",
    "_a_reservation_lost",
    "bound_without_a_reservation",
    "bound_without_devices",
    "_and_one_version_left",
    "_never_made",
    "_a_slice_lost",
    "_a_repair_lost",
    "given_and_reserved_for_nobody",
    "allocation_was_a_trial",
    "allocation_was_refused",
    "device_applied_by_another_manager",
    "bound_without_a_reservation_and_a_server_ahead",
)
"""How the names of the alterations of other families end that are decided again as well."""

Row = tuple[str, str, str]

FEW: list[Row] = [
    ("a-quickstart", "device_in_two_claims", "verify"),
    ("a-quickstart", "finalizer_goes_first", "verify"),
    ("b-mig-partitions", "counters_overdrawn", "verify"),
    ("e-taints", "rule_of_another_pool_evicts", "verify"),
    ("j-api-versions", "one_device_twice_in_a_claim", "verify"),
    ("j-api-versions", "shuffled", "verify"),
    ("j-api-versions", "all_at_level_request", "verify"),
    ("a-quickstart", "bindings_through_a_server_whose_clock_is_behind", "verify"),
    ("c-multihost-tpu", "admin_access_where_it_is_forbidden", "verify"),
    ("c-multihost-tpu", "admin_access_where_it_is_allowed", "verify"),
    ("c-multihost-tpu", "received_stages_between", "verify"),
    ("a-quickstart", "loses_resourceslices", "verify"),
    ("e-taints", "eviction_missing", "decide"),
    ("e-taints", "eviction_after_its_time", "decide"),
    ("e-taints", "eviction_alone_two_seconds_early", "decide"),
    ("e-taints", "no_eviction_at_all", "decide"),
    ("j-api-versions", "loses_events", "decide"),
    ("j-api-versions", "more_devices_than_asked_without_events", "decide"),
    ("e-taints", "pending_eviction_never_followed_by_one", "decide"),
    ("a-quickstart", "ends_after_35_percent", "decide"),
    ("j-api-versions", "ends_after_35_percent", "decide"),
    ("e-taints", "ends_after_55_percent", "decide"),
    ("a-quickstart", "pods_at_level_request", "verify"),
    ("b-mig-partitions", "loses_kubelets", "verify"),
    ("e-taints", "loses_devicetaintrules", "verify"),
    ("b-mig-partitions", "ends_after_25_percent", "decide"),
    ("b-mig-partitions", "ends_after_45_percent", "verify"),
    ("a-quickstart", "other_device_in_the_last_line", "verify"),
    ("a-quickstart", "other_device_in_the_last_line", "decide"),
    ("a-quickstart", "binding_that_never_comes", "decide"),
    ("a-quickstart", "release_before_the_answer_to_the_removal_of_its_pod", "verify"),
    ("a-quickstart", "release_before_the_answer_to_the_removal_of_its_pod", "decide"),
    ("e-taints", "release_in_the_last_line_though_nothing_was_removed", "verify"),
    ("e-taints", "release_in_the_last_line_though_nothing_was_removed", "decide"),
    ("a-quickstart", "release_of_a_pod_that_its_kubelet_writes_afterwards", "verify"),
    ("e-taints", "release_of_a_pod_that_its_kubelet_writes_afterwards", "decide"),
    ("e-taints", "tolerations_not_copied", "decide"),
    ("e-taints", "rule_never_reported", "decide"),
    ("e-taints", "eviction_without_taint", "verify"),
    ("e-taints", "class_had_long_changed_without_nodes", "verify"),
    ("e-taints", "class_changes_a_moment_before_without_nodes", "verify"),
    ("b-mig-partitions", "class_does_not_match_without_nodes", "verify"),
    ("e-taints", "condition_without_cause_and_no_rule_follows", "verify"),
    ("e-taints", "ends_before_the_rule_is_reported", "verify"),
    ("e-taints", "first_lines_of_a_rule_lost", "verify"),
    ("e-taints", "rules_recorded_late", "verify"),
    ("e-taints", "loses_resourceclaimtemplates", "decide"),
    ("j-api-versions", "loses_namespaces", "decide"),
    ("e-taints", "eviction_missing_without_templates", "decide"),
    ("j-api-versions", "bindings_through_a_server_whose_clock_is_behind", "decide"),
    ("j-api-versions", "every_second_line_from_a_server_ahead", "decide"),
    ("a-quickstart", "three_servers_20_milliseconds_apart", "decide"),
    ("c-multihost-tpu", "three_servers_20_milliseconds_apart", "decide"),
    ("a-quickstart", "bound_two_seconds_before_its_reservation", "verify"),
    ("a-quickstart", "later_device_than_the_first_through_two_servers", "decide"),
    ("a-quickstart", "claim_made_before_its_template_through_two_servers", "decide"),
    ("a-quickstart", "claim_made_before_its_pod", "decide"),
    ("a-quickstart", "collected_before_its_owner_ended", "decide"),
    ("a-quickstart", "released_before_its_pod_finished", "decide"),
    ("a-quickstart", "emptied_before_its_namespace_was_to_end", "decide"),
    ("a-quickstart", "loses_creations_of_pods_with_claims", "decide"),
    ("e-taints", "loses_collector", "decide"),
    ("e-taints", "loses_devicetaintrules", "decide"),
    ("e-taints", "loses_replicasets", "decide"),
    ("e-taints", "loses_1_percent_2", "decide"),
    ("e-taints", "eviction_missing_without_collector", "decide"),
    ("a-quickstart", "device_in_two_claims_without_kubelets", "decide"),
    ("c-multihost-tpu", "loses_1_percent_1", "decide"),
    ("a-quickstart", "hole_0_50", "decide"),
    ("c-multihost-tpu", "loses_verb_patch", "decide"),
    ("a-quickstart", "released_while_the_pod_runs_on_a_simulated_node", "verify"),
    ("a-quickstart", "claim_made_before_its_pod_and_lines_lost_elsewhere", "decide"),
    ("a-quickstart", "generated_name_without_that_of_its_pod", "decide"),
    ("a-quickstart", "update_upon_an_old_version_accepted", "verify"),
    ("a-quickstart", "report_upon_an_old_version_accepted", "verify"),
    ("a-quickstart", "one_version_for_two_writes", "verify"),
    ("a-quickstart", "binding_accepted_twice", "verify"),
    ("a-quickstart", "namespace_stays_active_in_its_deletion", "verify"),
    ("e-taints", "binding_dated_an_hour_before_its_pod", "verify"),
    ("a-quickstart", "claim_gets_another_uid", "verify"),
    ("a-quickstart", "exchanged_in_the_next_version_and_a_third_lost", "verify"),
    ("a-quickstart", "exchanged_with_a_version_between_and_a_third_lost", "verify"),
    ("j-api-versions", "claim_gets_another_uid_and_versions_are_free", "verify"),
    ("a-quickstart", "namespace_terminates_before_its_deletion", "decide"),
    ("e-taints", "namespace_with_the_label_of_another_one", "verify"),
    ("j-api-versions", "slice_made_with_a_later_generation", "verify"),
    ("e-taints", "pods_with_the_class_of_others", "verify"),
    ("a-quickstart", "slices_for_one_node_and_for_all", "decide"),
    ("a-quickstart", "claims_deleted_without_a_grace_period", "verify"),
    ("a-quickstart", "namespace_deleted_before_it_is_made", "verify"),
    ("e-taints", "times_to_seconds", "decide"),
    ("a-quickstart", "times_to_seconds", "decide"),
    ("e-taints", "eviction_after_its_time_in_whole_seconds", "decide"),
    ("c-multihost-tpu", "claim_made_before_its_pod_in_whole_seconds", "decide"),
    ("b-mig-partitions", "bound_while_its_claim_has_no_device", "decide"),
    ("a-quickstart", "free_device_skipped_on_another_node_and_an_allocation_lost", "decide"),
    ("a-quickstart", "spec_changes_before_an_allocation_lost", "decide"),
    ("a-quickstart", "honest_and_an_allocation_lost", "decide"),
    ("a-quickstart", "honest_and_an_allocation_lost", "verify"),
    ("a-quickstart", "honest_and_a_reservation_lost", "verify"),
    ("a-quickstart", "bound_without_a_reservation", "decide"),
    ("j-api-versions", "bound_without_devices", "verify"),
    ("j-api-versions", "devices_of_a_template_given_and_reserved_for_nobody", "verify"),
    ("j-api-versions", "devices_of_a_template_given_and_reserved_for_nobody", "decide"),
    ("a-quickstart", "bound_without_a_reservation_and_a_server_ahead", "verify"),
    ("j-api-versions", "allocation_was_a_trial", "verify"),
    ("a-quickstart", "bound_beyond_the_cpu_of_the_node_and_both_next_reports_lost", "decide"),
    ("a-quickstart", "binding_to_a_worse_node", "decide"),
    ("a-quickstart", "allocated_by_the_uid_of_the_earlier_claim", "verify"),
    ("a-quickstart", "removed_by_the_uid_of_the_earlier_pod", "verify"),
    ("a-quickstart", "collected_by_the_uid_of_the_earlier_claim", "decide"),
    ("a-quickstart", "reserved_for_the_earlier_pod", "verify"),
    ("a-quickstart", "status_names_the_claim_of_the_earlier_pod", "decide"),
    ("e-taints", "pods_made_again_under_one_name", "decide"),
    ("a-quickstart", "devices_renamed_against_the_order", "decide"),
    ("a-quickstart", "devices_published_in_the_reverse_order", "verify"),
    ("b-mig-partitions", "slices_of_a_pool_renamed_against_the_order", "verify"),
    ("j-api-versions", "four_tenths_of_a_second_later", "decide"),
    ("c-multihost-tpu", "generated_names_drawn_again", "decide"),
    ("a-quickstart", "creation_of_a_slice_never_made", "verify"),
    ("a-quickstart", "device_of_another_claim_taken_and_a_slice_lost", "verify"),
    ("j-api-versions", "creation_of_a_class_never_made", "decide"),
    ("e-taints", "end_of_a_rule_never_made", "verify"),
    ("e-taints", "tolerations_invented_and_a_repair_lost", "verify"),
    ("c-multihost-tpu", "condition_never_made", "decide"),
    ("j-api-versions", "honest_and_two_allocations_lost", "verify"),
    ("j-api-versions", "two_bound_without_devices_and_one_version_left", "decide"),
    ("j-api-versions", "flushed_in_turn", "verify"),
    ("a-quickstart", "overlapping_700_microseconds_apart", "decide"),
    ("a-quickstart", "device_in_two_claims_and_one_after_the_other", "verify"),
    ("a-quickstart", "binding_to_a_worse_node_and_flushed_in_turn", "decide"),
    ("a-quickstart", "result_of_unknown_request_and_a_hole_just_before", "verify"),
    ("a-quickstart", "later_device_than_the_first_and_a_hole_around", "decide"),
    ("a-quickstart", "tainted_device_taken_and_a_hole_afterwards", "verify"),
    ("e-taints", "tolerations_not_copied_and_a_hole_around", "verify"),
    ("a-quickstart", "report_about_a_removed_pod_accepted", "verify"),
    ("a-quickstart", "deletion_of_what_is_gone_accepted", "decide"),
    ("j-api-versions", "profile_of_another_name", "decide"),
    ("a-quickstart", "later_device_than_the_first_and_profile_of_another_name", "decide"),
    ("a-quickstart", "loses_all_about_one_node", "decide"),
    ("j-api-versions", "everybody_is_impersonated", "decide"),
    ("j-api-versions", "one_of_two_servers_drifts", "decide"),
    ("j-api-versions", "level_request_from_the_middle", "decide"),
    ("j-api-versions", "lines_again_an_hour_later", "verify"),
    ("j-api-versions", "and_all_lines_of_quickstart", "verify"),
    ("a-quickstart", "and_all_lines_of_an_older_store", "verify"),
    ("c-multihost-tpu", "unknown_fields_of_metadata_and_status", "decide"),
    ("c-multihost-tpu", "creation_of_a_claim_changes_midway", "verify"),
    ("a-quickstart", "pod_ends_three_hours_after_its_time", "verify"),
    ("j-api-versions", "pod_created_three_hours_before_its_creation", "verify"),
    ("j-api-versions", "equal_seconds_in_another_order", "decide"),
    ("a-quickstart", "device_in_two_claims_and_equal_seconds", "decide"),
    ("a-quickstart", "binding_again_to_another_node", "verify"),
    ("j-api-versions", "device_is_a_number", "verify"),
    ("a-quickstart", "condition_of_one_pod_three_hours_late", "decide"),
    ("a-quickstart", "and_the_same_cluster_of_another_day", "decide"),
    ("j-api-versions", "unknown_field_of_a_request", "decide"),
    ("e-taints", "eviction_missing_and_one_report_dated_late", "decide"),
    ("e-taints", "rule_counts_more_devices_and_one_report_dated_early", "decide"),
    ("a-quickstart", "status_names_another_claim_and_one_report_dated_late", "decide"),
    ("c-multihost-tpu", "one_report_dated_forty_seconds_early", "decide"),
    ("j-api-versions", "allocation_without_its_time", "decide"),
    ("j-api-versions", "report_that_names_another_pod", "decide"),
    ("a-quickstart", "namespaces_at_level_metadata", "decide"),
    ("e-taints", "replicasets_at_level_request", "decide"),
    ("a-quickstart", "later_device_than_the_first_and_namespaces_named_only", "decide"),
    ("a-quickstart", "kubelet_asks_for_another_phase", "decide"),
    ("a-quickstart", "claim_of_a_pod_asked_by_another_name", "verify"),
    ("e-taints", "pod_asked_with_another_template", "verify"),
    ("j-api-versions", "patches_of_newer_clients", "decide"),
    ("a-quickstart", "webhook_labels_pods", "verify"),
    ("e-taints", "loses_verb_update", "decide"),
    ("e-taints", "event_of_a_placement_lost", "decide"),
    ("e-taints", "event_of_a_refusal_lost", "decide"),
    ("e-taints", "event_of_an_eviction_lost", "decide"),
    ("e-taints", "no_placement_is_reported", "decide"),
    ("e-taints", "no_eviction_is_reported", "decide"),
]
"""Some rows of each family that together take a few seconds."""

FEW_OPEN: list[Row] = [
    ("b-mig-partitions", "hole_60_95", "verify"),
]
"""Some of the rows that are answered wrong."""


def rows() -> list[Row]:
    """The rows of this run, without those that are open."""
    if not draws.WHOLE:
        return FEW
    return [
        (name, one.name, mode)
        for one in all_alterations().values()
        for name in one.recordings
        for mode in ("verify", "decide")
        if getattr(one, mode)
        and (mode == "verify" or one.family in DECIDED or one.name.endswith(DECIDED_TOO))
        and (name, one.name, mode) not in OPEN
    ]


@draws.BY_DAY
@pytest.mark.parametrize(("recording", "alteration", "mode"), rows())
def test_an_altered_recording_gets_its_verdict(
    recording: str, alteration: str, mode: str, tmp_path: Path
) -> None:
    one = all_alterations()[alteration]
    answer = run(recording, one, mode, tmp_path)
    expected = getattr(one, mode)
    said = f"{one.why}\nexpected: {expected}\nsaid: {summary(answer, mode)}"
    assert satisfied(expected, answer.verdict, recording, mode, tmp_path), said


@pytest.mark.parametrize(
    ("recording", "alteration", "mode"), sorted(OPEN) if draws.WHOLE else FEW_OPEN
)
def test_an_open_row_is_still_answered_wrong(
    recording: str, alteration: str, mode: str, tmp_path: Path
) -> None:
    """Fails when a row is repaired: then it is no longer open."""
    one = all_alterations()[alteration]
    answer = run(recording, one, mode, tmp_path)
    assert answer.verdict == OPEN[recording, alteration, mode], summary(answer, mode)
    assert not satisfied(getattr(one, mode), answer.verdict, recording, mode, tmp_path)


def test_every_alteration_says_why() -> None:
    for one in all_alterations().values():
        assert len(one.why) > 30, one.name
        assert one.verify, one.name
