"""The bounds of the API come from the settings."""

from dataclasses import fields

from app.adapters.postgres.queries import QueryBounds
from app.api.server.limits import ApiLimits
from app.bootstrap import questions
from app.bootstrap.answers import limits
from app.bootstrap.control_planes import replay_bounds
from app.bootstrap.histories import runtime_bounds
from app.bootstrap.verifying import folding_ahead
from app.bootstrap.verifying.folding_ahead import AheadBounds
from app.service.replays.replaying import ReplayBounds
from app.service.writing import WriterBounds
from app.settings import Settings

CHANGED = {
    "body_bytes_max": 2048,
    "body_seconds_max": 1.5,
    "yaml_depth_max": 7,
    "yaml_nodes_max": 77,
    "patch_operations_max": 8,
    "watchers_max": 9,
    "watch_seconds_min": 10,
    "watch_seconds_max": 11,
    "bookmark_seconds": 12.5,
    "list_snapshots_max": 13,
    "list_page_max": 14,
    "watch_frames_max": 15,
    "watch_first_pages_max": 65,
    "revision_wait_seconds": 16.5,
    "compact_like_etcd": True,
    "retained_revisions": 17,
    "compress_from_bytes": 18,
    "log_page_max": 19,
    "send_seconds_max": 20.5,
    "blasts_at_once_max": 3,
    "blast_listed_max": 4,
    "fit_copies_max": 39,
    "fit_subjects_max": 41,
    "fit_attempts_max": 42,
    "fit_puts_max": 43,
    "capacity_moments_max": 40,
    "explain_steps_max": 5,
    "explanations_at_once_max": 6,
    "chronicles_max": 7,
    "chronicle_events_max": 21,
    "findings_max": 22,
    "findings_pods_max": 47,
    "findings_former_pods_max": 71,
    "findings_former_objects_max": 72,
    "findings_wait_seconds": 51.5,
    "object_versions_max": 23,
    "lanes_max": 24,
    "lanes_shapes_max": 25,
    "map_devices_max": 26,
    "report_scan_seconds": 61.5,
    "report_objects_max": 31,
    "trace_entries_max": 32,
    "attempts_max": 33,
    "scan_events_max": 36,
    "scan_at_once_events_max": 52,
    "scan_attempts_max": 46,
    "report_events_max": 37,
    "reports_at_once_max": 38,
    "live_streams_max": 35,
    "pace_pods_max": 34,
    "timeline_rows_max": 27,
    "timeline_scanned_max": 28,
    "diffs_at_once_max": 2,
    "diff_explained_max": 29,
    "diff_events_max": 30,
    "diff_at_once_events_max": 51,
    "timelines_at_once_max": 45,
    "rehearse_runs_max": 44,
    "rehearse_events_max": 47,
    "rehearse_at_once_events_max": 48,
    "lint_events_max": 48,
    "lints_at_once_max": 49,
    "jobs_at_once_max": 50,
}


CHANGED_OF_REPLAYS = {
    "projector_batch_max": 7,
    "decide_events_max": 8,
    "decide_shared_events_max": 9,
    "verify_kept_bytes_max": 10,
}


def unchanged(made: object, usual: object) -> list[str]:
    names = [field.name for field in fields(usual)]
    return [name for name in names if getattr(made, name) == getattr(usual, name)]


CHANGED_OF_QUERIES = {
    "sql_rows_max": 16,
    "sql_bytes_max": 17,
    "sql_memory_bytes_max": 64_000_018,
}


CHANGED_OF_WRITERS = {
    "batch_max": 11,
    "batch_halved_min": 12,
    "write_queue_max": 13,
    "write_retries_max": 14,
    "write_stop_seconds": 3.5,
    "object_bytes_max": 1_500,
}


def test_every_bound_of_the_api_can_be_set():
    assert unchanged(limits.api_limits(Settings(**CHANGED)), ApiLimits()) == []


def test_every_bound_of_replays_can_be_set():
    assert unchanged(replay_bounds(Settings(**CHANGED_OF_REPLAYS)), ReplayBounds()) == []


def test_every_bound_of_a_writer_can_be_set():
    writer = runtime_bounds(Settings(**CHANGED_OF_WRITERS)).writer
    assert unchanged(writer, WriterBounds()) == []


def test_every_bound_of_a_query_can_be_set():
    assert unchanged(questions.query_bounds(Settings(**CHANGED_OF_QUERIES)), QueryBounds()) == []


def test_every_bound_of_folding_ahead_can_be_set():
    chosen = Settings(verify_ahead_events_min=15, verify_ahead_forks_max=0)
    assert unchanged(folding_ahead.bounds_of(chosen), AheadBounds()) == []


def test_nothing_is_compacted_unless_asked_for():
    assert limits.api_limits(Settings(retained_revisions=17)).retained_revisions == 0
