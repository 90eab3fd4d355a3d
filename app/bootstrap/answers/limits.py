"""The bounds of answers over HTTP, from the settings."""

from app.analysis.capacity.fitting import FitBounds
from app.analysis.capacity.sampling import CapacityBounds
from app.analysis.device_map import MapBounds
from app.analysis.lanes import LaneBounds
from app.analysis.starts import PaceBounds
from app.analysis.timeline_pages import PageBounds
from app.analysis.traces.trace_events import TraceBounds
from app.api.server.limits import ApiLimits, LiveBounds, WaitBounds
from app.bootstrap.answers.bounds import blast_bounds, diff_bounds, explain_bounds
from app.service.answering.jobs import JobBounds
from app.settings import Settings
from app.web.pages.report import ReportBounds


def api_limits(settings: Settings) -> ApiLimits:
    """The bounds of the HTTP edge, from the settings."""
    return ApiLimits(
        body_bytes_max=settings.body_bytes_max,
        body_seconds_max=settings.body_seconds_max,
        depth_max=settings.yaml_depth_max,
        patch_operations_max=settings.patch_operations_max,
        watchers_max=settings.watchers_max,
        values_max=settings.yaml_nodes_max,
        list_page_max=settings.list_page_max,
        snapshots_max=settings.list_snapshots_max,
        watch_seconds_min=min(settings.watch_seconds_min, settings.watch_seconds_max),
        watch_seconds_max=settings.watch_seconds_max,
        bookmark_seconds=settings.bookmark_seconds,
        frames_max=settings.watch_frames_max,
        first_pages_max=settings.watch_first_pages_max,
        revision_wait_seconds=settings.revision_wait_seconds,
        retained_revisions=settings.retained_revisions if settings.compact_like_etcd else 0,
        compress_from_bytes=settings.compress_from_bytes,
        log_page_max=settings.log_page_max,
        send_seconds_max=settings.send_seconds_max,
        blasts_at_once_max=settings.blasts_at_once_max,
        blast=blast_bounds(settings),
        fit=_fit_bounds(settings),
        capacity=CapacityBounds(
            moments_max=settings.capacity_moments_max,
            at_once_max=settings.capacity_at_once_max,
            steps_max=settings.capacity_steps_max,
        ),
        explanations_at_once_max=settings.explanations_at_once_max,
        explain=explain_bounds(settings),
        chronicles_max=settings.chronicles_max,
        chronicle_events_max=settings.chronicle_events_max,
        findings_max=settings.findings_max,
        findings_pods_max=settings.findings_pods_max,
        findings_former_pods_max=settings.findings_former_pods_max,
        findings_former_objects_max=settings.findings_former_objects_max,
        findings_wait_seconds=settings.findings_wait_seconds,
        object_versions_max=settings.object_versions_max,
        lanes=_lane_bounds(settings),
        map=MapBounds(devices_max=settings.map_devices_max),
        scan_events_max=settings.scan_events_max,
        scan_at_once_events_max=settings.scan_at_once_events_max,
        scan_attempts_max=settings.scan_attempts_max,
        lint_events_max=settings.lint_events_max,
        lints_at_once_max=settings.lints_at_once_max,
        jobs=_job_bounds(settings),
        attempts_max=settings.attempts_max,
        pace=PaceBounds(pods_max=settings.pace_pods_max, scanned_max=settings.pace_scanned_max),
        live=LiveBounds(
            streams_max=settings.live_streams_max, pace_seconds=settings.live_pace_seconds
        ),
        waits=_wait_bounds(settings),
        trace=TraceBounds(entries_max=settings.trace_entries_max),
        report_events_max=settings.report_events_max,
        reports_at_once_max=settings.reports_at_once_max,
        report=_report_bounds(settings),
        timeline=PageBounds(
            rows_max=settings.timeline_rows_max, scanned_max=settings.timeline_scanned_max
        ),
        diffs_at_once_max=settings.diffs_at_once_max,
        timelines_at_once_max=settings.timelines_at_once_max,
        diff=diff_bounds(settings),
        diff_events_max=settings.diff_events_max,
        rehearse_runs_max=settings.rehearse_runs_max,
        rehearse_events_max=settings.rehearse_events_max,
        diff_at_once_events_max=settings.diff_at_once_events_max,
        rehearse_at_once_events_max=settings.rehearse_at_once_events_max,
    )


def _fit_bounds(settings: Settings) -> FitBounds:
    return FitBounds(
        copies_max=settings.fit_copies_max,
        subjects_max=settings.fit_subjects_max,
        attempts_max=settings.fit_attempts_max,
        puts_max=settings.fit_puts_max,
    )


def _wait_bounds(settings: Settings) -> WaitBounds:
    return WaitBounds(
        seconds=settings.page_wait_seconds,
        opening_seconds=settings.opening_seconds,
        kept_max=settings.pages_kept_max,
        kept_seconds=settings.page_kept_seconds,
    )


def _job_bounds(settings: Settings) -> JobBounds:
    return JobBounds(
        at_once_max=settings.jobs_at_once_max,
        unfinished_max=settings.jobs_unfinished_max,
        kept_max=settings.jobs_kept_max,
        kept_seconds=settings.job_kept_seconds,
        wait_seconds_max=settings.job_wait_seconds_max,
        seconds_max=settings.job_seconds_max,
        events_max=settings.job_events_max,
        cells_max=settings.job_cells_max,
    )


def _report_bounds(settings: Settings) -> ReportBounds:
    return ReportBounds(
        scan_seconds=settings.report_scan_seconds,
        objects_max=settings.report_objects_max,
        rows_max=settings.report_rows_max,
        bytes_max=settings.report_bytes_max,
    )


def _lane_bounds(settings: Settings) -> LaneBounds:
    """The bounds of one picture of lanes."""
    return LaneBounds(
        lanes_max=settings.lanes_max,
        shapes_max=settings.lanes_shapes_max,
        states_max=settings.lane_states_max,
        marks_max=settings.lane_marks_max,
    )
