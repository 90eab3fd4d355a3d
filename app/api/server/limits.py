"""Every bound of the HTTP edge, by name; bootstrap fills them from the settings."""

from dataclasses import dataclass

from app.analysis.blast.compare import BlastBounds
from app.analysis.capacity.fitting import FitBounds
from app.analysis.capacity.moments import CapacityBounds
from app.analysis.device_map import MapBounds
from app.analysis.diff.sides import DiffBounds
from app.analysis.explain.pods import ExplainBounds
from app.analysis.lanes import LaneBounds
from app.analysis.starts import PaceBounds
from app.analysis.timeline_pages import PageBounds
from app.analysis.trace_events import TraceBounds
from app.domain.objects.schema.decode import DecodeBounds
from app.web.pages.report import ReportBounds


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveBounds:
    """At most `streams_max` pages follow at once.

    Each is told at most every `pace_seconds`, and every `beat_seconds` that nothing happened; after
    `seconds_max` its browser has to ask anew.
    """

    streams_max: int = 200
    pace_seconds: float = 1.0
    beat_seconds: float = 15.0
    seconds_max: float = 1_800.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiLimits:
    """Bounds of one server. Sizes in bytes, times in seconds.

    `body_bytes_max`, `body_seconds_max` and `depth_max` bound what a client sends,
    `values_max` its values after YAML aliases were expanded, `patch_operations_max` a JSON patch.
    Pages of lists have `list_page_max` objects at most.
    `watchers_max` watches run at once; each ends after a random time between
    `watch_seconds_min` and `watch_seconds_max` unless it asks for less, and gets a bookmark every
    `bookmark_seconds`. A continued list finds its snapshot among the `snapshots_max` newest ones in
    memory, else in the log. `frames_max` encoded watch events are shared between watchers.
    A list that asks for a later revision waits `revision_wait_seconds`; one that asks for a
    revision more than `retained_revisions` back is told that it is gone, as etcd would after
    compaction (0: everything is offered, for ever). Answers from
    `compress_from_bytes` on are compressed for clients that accept it (0: never).
    `blasts_at_once_max` questions about changes are answered at a time, each within `blast`, and as
    many about what fits, within `fit` and `capacity`.
    `explanations_at_once_max` questions why are answered at a time, each within `explain`.
    What happened in `chronicles_max` histories is kept in memory for pages; one question reads
    `chronicle_events_max` events of a log further. An answer has `findings_max` findings. Pages of
    the timeline are bounded by `timeline`, the versions of an object by `object_versions_max`,
    pictures by `lanes` and `map`, attempts for a pod by `attempts_max`, starts by `pace`, what is
    taken away by `trace` and `report`, pages that follow a history by `live`.
    Reports and traces are made of histories of up to `report_events_max` events, and
    `reports_at_once_max` reports at a time.
    `timelines_at_once_max` whole timelines are read at a time.
    Histories of up to `scan_events_max` events are looked at for known defects; the first
    `scan_attempts_max` attempts of the scheduler are made again for that.
    `diffs_at_once_max` comparisons are made at a time, each within `diff` and of at most
    `diff_events_max` events of each history; `rehearse_runs_max` runs say which setting of another
    release changes what.
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
    chronicle_events_max: int = 10_000
    findings_max: int = 100
    timeline: PageBounds = PageBounds()
    object_versions_max: int = 50
    diffs_at_once_max: int = 1
    diff: DiffBounds = DiffBounds()
    diff_events_max: int = 500_000
    rehearse_runs_max: int = 64
    lanes: LaneBounds = LaneBounds()
    map: MapBounds = MapBounds()
    attempts_max: int = 100
    scan_events_max: int = 200_000
    scan_attempts_max: int = 2_000
    pace: PaceBounds = PaceBounds()
    trace: TraceBounds = TraceBounds()
    report: ReportBounds = ReportBounds()
    report_events_max: int = 500_000
    reports_at_once_max: int = 1
    timelines_at_once_max: int = 4
    live: LiveBounds = LiveBounds()

    @property
    def body(self) -> DecodeBounds:
        """What decoding one body may cost."""
        return DecodeBounds(
            bytes_max=self.body_bytes_max, depth_max=self.depth_max, values_max=self.values_max
        )
