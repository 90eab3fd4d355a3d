"""All bounds of the HTTP server, by name; bootstrap fills them from the settings."""

from dataclasses import dataclass

from app.analysis.blast.bounds import BlastBounds
from app.analysis.capacity.fitting import FitBounds
from app.analysis.capacity.sampling import CapacityBounds
from app.analysis.device_map import MapBounds
from app.analysis.diff.sides import DiffBounds
from app.analysis.explain.pods import ExplainBounds
from app.analysis.lanes import LaneBounds
from app.analysis.starts import PaceBounds
from app.analysis.timeline_pages import PageBounds
from app.analysis.traces.trace_events import TraceBounds
from app.domain.objects.schema.decode import DecodeBounds
from app.service.answering.jobs import JobBounds
from app.web.pages.report import ReportBounds


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveBounds:
    """The bounds of pages that follow a history.

    At most `streams_max` pages follow at once. Each gets an update at most every `pace_seconds`,
    and a comment every `beat_seconds` without one; after `seconds_max` its browser must reconnect.
    """

    streams_max: int = 200
    pace_seconds: float = 1.0
    beat_seconds: float = 15.0
    seconds_max: float = 1_800.0


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitBounds:
    """The bounds of pages that take longer than a request waits.

    A request waits `seconds` for its page. A page that is not ready then is made on, and kept for
    `kept_seconds` after it is ready, for the next request; at most `kept_max` pages are. It waits
    `opening_seconds` for its history to be opened.
    """

    seconds: float = 10.0
    opening_seconds: float = 10.0
    kept_max: int = 32
    kept_seconds: float = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiLimits:
    """The bounds of one server. Sizes are in bytes, times in seconds.

    `body_bytes_max`, `body_seconds_max` and `depth_max` bound the body of a request, `values_max`
    its values after the expansion of YAML aliases, `patch_operations_max` a JSON patch.
    A page of a list has at most `list_page_max` objects.
    At most `watchers_max` watches run at once. Each ends after a random time between
    `watch_seconds_min` and `watch_seconds_max` unless it requests less, and gets a bookmark every
    `bookmark_seconds`. A continued list finds its snapshot among the `snapshots_max` newest ones in
    memory, otherwise in the log. `frames_max` encoded watch events are shared between watchers,
    and `first_pages_max` pages of existing objects between watches that begin at once.
    A list at a later revision waits `revision_wait_seconds`. A list at a revision more than
    `retained_revisions` back gets an error that it is gone, as from etcd after compaction (0: every
    revision is available, forever). Responses from `compress_from_bytes` on are compressed for
    clients that accept it (0: never).
    `blasts_at_once_max` questions about changes are answered at a time, each within `blast`, and as
    many questions about what fits, within `fit` and `capacity`.
    `explanations_at_once_max` why questions are answered at a time, each within `explain`.
    The chronicles of `chronicles_max` histories are kept in memory for pages; one question reads
    `chronicle_events_max` more events of a log. An answer has at most `findings_max` findings,
    and tells why at most `findings_pods_max` waiting pods do not get devices, and why at most
    `findings_former_pods_max` did not that wait no more, for which it rebuilds former states of
    at most `findings_former_objects_max` objects in all; a request waits `findings_wait_seconds`
    for the reading of the log.
    `timeline` bounds pages of the timeline, `object_versions_max` the versions of an object,
    `lanes` and `map` pictures, `attempts_max` attempts for a pod, `pace` starts, `trace` and
    `report` downloads, `live` pages that follow a history.
    Reports and traces are made of histories with at most `report_events_max` events, and
    `reports_at_once_max` reports at a time.
    `timelines_at_once_max` whole timelines are read at a time.
    Histories with at most `scan_events_max` events are scanned for known defects; for that the
    first `scan_attempts_max` attempts of the scheduler are made again. A page of findings has at
    most `scan_at_once_events_max` more events scanned.
    Histories with at most `lint_events_max` events are linted, `lints_at_once_max` at a time.
    `jobs` bounds the work that is done in processes of its own.
    `waits` bounds the time that a page is waited for.
    `diffs_at_once_max` comparisons are made at a time (and pages with one, or with a rehearsal),
    each within `diff` and of at most
    `diff_events_max` events of each history; more than `diff_at_once_events_max` events of both are
    compared in a process of its own. `rehearse_runs_max` runs with `rehearse_events_max`
    events in all determine which setting of another release causes which change. A history of more
    than `rehearse_at_once_events_max` events is rehearsed in a process of its own.
    """

    body_bytes_max: int = 3 * 1024 * 1024
    body_seconds_max: float = 60.0
    depth_max: int = 100
    values_max: int = 2_000_000
    patch_operations_max: int = 10_000
    watchers_max: int = 5_000
    watch_seconds_min: float = 1_800.0
    watch_seconds_max: float = 3_600.0
    bookmark_seconds: float = 60.0
    snapshots_max: int = 32
    list_page_max: int = 10_000
    frames_max: int = 8_192
    first_pages_max: int = 64
    revision_wait_seconds: float = 3.0
    retained_revisions: int = 0
    compress_from_bytes: int = 128 * 1024
    log_page_max: int = 5_000
    send_seconds_max: float = 30.0
    blasts_at_once_max: int = 1
    blast: BlastBounds = BlastBounds()
    fit: FitBounds = FitBounds()
    capacity: CapacityBounds = CapacityBounds()
    explanations_at_once_max: int = 4
    explain: ExplainBounds = ExplainBounds()
    chronicles_max: int = 8
    chronicle_events_max: int = 2_000
    findings_max: int = 100
    findings_pods_max: int = 8
    findings_former_pods_max: int = 6
    findings_former_objects_max: int = 30_000
    findings_wait_seconds: float = 60.0
    timeline: PageBounds = PageBounds()
    object_versions_max: int = 50
    diffs_at_once_max: int = 1
    diff: DiffBounds = DiffBounds()
    diff_events_max: int = 500_000
    diff_at_once_events_max: int = 2_000
    rehearse_runs_max: int = 64
    rehearse_events_max: int = 200_000
    rehearse_at_once_events_max: int = 200
    lanes: LaneBounds = LaneBounds()
    map: MapBounds = MapBounds()
    attempts_max: int = 100
    scan_events_max: int = 200_000
    scan_at_once_events_max: int = 2_000
    scan_attempts_max: int = 2_000
    lint_events_max: int = 200_000
    lints_at_once_max: int = 1
    jobs: JobBounds = JobBounds()
    pace: PaceBounds = PaceBounds()
    trace: TraceBounds = TraceBounds()
    report: ReportBounds = ReportBounds()
    report_events_max: int = 500_000
    reports_at_once_max: int = 1
    timelines_at_once_max: int = 4
    live: LiveBounds = LiveBounds()
    waits: WaitBounds = WaitBounds()

    @property
    def body(self) -> DecodeBounds:
        """The bounds of decoding one body."""
        return DecodeBounds(
            bytes_max=self.body_bytes_max, depth_max=self.depth_max, values_max=self.values_max
        )
