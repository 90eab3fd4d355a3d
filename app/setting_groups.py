"""Declarations of settings, and the groups of settings that `app.settings` takes in whole.

A group belongs to one kind of work and has a dataclass of bounds that is filled from it. No group
is made alone, so methods are generated for `app.settings.Settings` only: each command would wait
for those of the groups.
"""

from dataclasses import dataclass, field
from typing import Any


def setting(
    default: object,
    *,
    description: str,
    ge: float | None = None,
    gt: float | None = None,
    le: float | None = None,
) -> Any:
    """A setting with its default and the bounds of a number: at least, above, at most."""
    bounds = {"ge": ge, "gt": gt, "le": le}
    return field(default=default, metadata={"description": description, **bounds})


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class CauseSettings:
    """The bounds of the search for what caused the state of one object."""

    cause_changes_max: int = setting(
        200, ge=1, description="Decisions and changes of one object that are examined, newest first"
    )
    cause_nodes_max: int = setting(
        20, ge=0, description="Nodes whose names are searched for in those of deleted slices"
    )
    cause_pods_events_max: int = setting(
        100,
        ge=1,
        description="Events before the loss of a node's slice that are searched for deleted pods",
    )
    cause_workload_pods_max: int = setting(
        200, ge=0, description="Names of pods among which the deleted pods of a workload are found"
    )
    cause_waiting_pods_max: int = setting(
        20, ge=0, description="Waiting pods of which it is examined whether a cordon keeps them out"
    )
    cause_slice_writes_max: int = setting(
        20, ge=0, description="Writes of one ResourceSlice that are compared, newest first"
    )
    cause_pool_slices_max: int = setting(
        200, ge=0, description="Slices up to which it is examined since when a pool is incomplete"
    )
    refusal_nodes_max: int = setting(
        200,
        ge=0,
        description="Nodes up to which a recorded refusal of a pod is tried again, and that are "
        "asked about waiting pods for one answer with findings",
    )
    refusal_events_max: int = setting(
        200,
        ge=1,
        description="Events after such a refusal that are searched for allocations in flight",
    )
    refusal_choices_max: int = setting(
        1_000,
        ge=0,
        description="Choices of nodes that a scheduler may not have known, up to which all are "
        "tried; of more, none is",
    )
    refusal_allocations_max: int = setting(
        4, ge=0, description="Allocations after which the nodes are tried again, one by one"
    )


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class ClusterSettings:
    """The bounds of the recording of a cluster, and of the requests to it."""

    record_connect_seconds: float = setting(
        10.0, gt=0, description="Longest wait for a connection to a cluster"
    )
    record_answer_seconds: float = setting(
        60.0, gt=0, description="Longest silence in an answer of a cluster"
    )
    record_silence_seconds: float = setting(
        120.0, gt=0, description="Longest silence of a watch; servers send a bookmark each minute"
    )
    record_page_bytes_max: int = setting(
        256 * 1024 * 1024, ge=1024, description="Largest answer of a cluster"
    )
    record_line_bytes_max: int = setting(
        16 * 1024 * 1024, ge=1024, description="Longest line of a watch"
    )
    record_retry_seconds_max: float = setting(
        30.0, ge=0, description="Time for which a request that a cluster puts off is repeated"
    )
    record_login_seconds: float = setting(
        300.0, gt=0, description="Longest wait for the exec plug-in of a kubeconfig"
    )
    record_page_max: int = setting(500, ge=1, description="Objects of a cluster listed at once")
    record_watch_seconds_max: int = setting(
        300, ge=1, description="Longest watch of a cluster's kind before it is requested again"
    )
    record_window_seconds: float = setting(
        0.25,
        ge=0,
        description="Time that a change waits for earlier ones of other kinds, so that the log "
        "has the order of the cluster",
    )
    record_window_max: int = setting(
        10_000,
        ge=1,
        description="Changes that may wait to be recorded; beyond, watches are not read",
    )
    record_batch_max: int = setting(1_000, ge=1, description="Changes that are appended at once")
    record_pause_seconds_max: float = setting(
        10.0, gt=0, description="Longest pause before a failed request to a cluster is repeated"
    )
    record_denied_seconds: float = setting(
        60.0, gt=0, description="Pause before a kind that is denied or not served is tried again"
    )
    record_audit_seconds: float = setting(
        60.0, gt=0, description="Shortest time between comparisons of a kind with the cluster"
    )
    record_audit_pages_per_minute: float = setting(
        60.0, gt=0, description="Pages listed for these comparisons; more objects, fewer of them"
    )
    record_stop_seconds: float = setting(10.0, gt=0, description="Longest shutdown of a recorder")
    record_report_seconds: float = setting(
        300.0, gt=0, description="Longest time without a fidelity report while a cluster changes"
    )
    record_clock_seconds: float = setting(
        2.0, gt=0, description="Difference to the cluster's clock from which on it is a gap"
    )


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class LintSettings:
    """The bounds of `redra lint`, and of a server that lints histories."""

    lint_attempts_max: int = setting(
        5_000, ge=0, description="Attempts of `redra lint` to allocate claims, each on one node"
    )
    lint_steps_max: int = setting(
        20_000, ge=1, description="Steps of the search in one such attempt"
    )
    lint_events_max: int = setting(200_000, ge=1, description="Events that a server lints at most")
    lints_at_once_max: int = setting(1, ge=1, description="Histories that a server lints at a time")


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class PageSettings:
    """The bounds of pages that take longer than a request waits."""

    page_wait_seconds: float = setting(
        0.08,
        ge=0,
        description="Time after which a page that is not ready says what is worked out; it goes on",
    )
    opening_seconds: float = setting(
        1.0,
        ge=0,
        description="Time after which answers say that a history is still being opened",
    )
    findings_wait_seconds: float = setting(
        60.0,
        ge=0,
        description="Time after which findings of a log that is not read to its end are answered "
        "with what has been read, and say so",
    )
    pages_kept_max: int = setting(
        64, ge=1, description="Pages that are made without a request, and those that wait for that"
    )
    page_kept_seconds: float = setting(
        30.0, ge=1, description="Time for which such a page is kept for the next request"
    )
    errands_max: int = setting(
        16, ge=0, description="Answers about one history that are worked out without a request"
    )


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class WorkerSettings:
    """The bounds of processes that work beside this one."""

    worker_silence_seconds: float = setting(
        120.0,
        ge=1,
        description="Time after which a fork that sends nothing and uses no processor is replaced",
    )
    worker_step_seconds: float = setting(
        1_800.0,
        ge=1,
        description="Processor time of a fork between two messages; with more it counts as looping",
    )


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class MemorySettings:
    """The bounds of what a process remembers of one history, to show it."""

    observations_max: int = setting(
        1_000, ge=1, description="Latest findings of a history that is watched over, for display"
    )
    replay_turns_max: int = setting(
        100_000,
        ge=1,
        description="Changes of pace that a paced replay remembers; then the last one stays",
    )


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class JobSettings:
    """The bounds of jobs, which a server runs for its clients in processes of their own."""

    jobs_at_once_max: int = setting(1, ge=1, description="Jobs that a server runs at a time")
    jobs_unfinished_max: int = setting(
        8, ge=1, description="Jobs that run or wait; another one is refused with 429"
    )
    jobs_kept_max: int = setting(16, ge=1, description="Jobs that have ended and are kept")
    job_kept_seconds: float = setting(
        3_600.0, ge=1, description="Time for which the result of a job is kept"
    )
    job_wait_seconds_max: float = setting(
        30.0, ge=0, description="Longest wait of one request for the end of a job"
    )
    job_seconds_max: float = setting(3_600.0, gt=0, description="Longest time of a job")
    job_bytes_max: int = setting(
        2 * 1024**3, ge=512 * 1024**2, description="Memory of the process of a job"
    )
    job_result_bytes_max: int = setting(
        32 * 1024**2, ge=1, description="Size of the result of a job, kept in memory"
    )
    job_events_max: int = setting(
        500_000, ge=1, description="Events that a job reads in all its histories"
    )
    job_cells_max: int = setting(10_000, ge=1, description="Runs of one sweep that is a job")


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class VerifySettings:
    """The bounds of a verification in several processes."""

    verify_processes: int = setting(
        0, ge=0, le=64, description="Processes that verify a long history; 0: one per processor"
    )
    verify_scheduler: str = setting(
        "", description="Dask scheduler (tcp://HOST:PORT) of verifying workers; empty: none"
    )
    verify_events_bytes_max: int = setting(
        1024**3, ge=1, description="Packed events for these workers; beyond, one process does all"
    )
    verify_kept_bytes_max: int = setting(
        256 * 1024**2,
        ge=0,
        description="Objects kept from the first pass; later events are read twice",
    )
    verify_ahead_events_min: int = setting(
        5_000,
        ge=1,
        description="Events of a history from which on forks fold while its log is checked",
    )
    verify_ahead_forks_max: int = setting(
        3, ge=0, le=63, description="Forks that fold while a log is checked; 0: none"
    )


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class WriterSettings:
    """The bounds of the writer of a history."""

    batch_max: int = setting(256, ge=1, description="Commands decided and committed together")
    batch_halved_min: int = setting(
        64, ge=2, description="Commands that arrive at once from which on they are stored in halves"
    )
    write_queue_max: int = setting(10_000, ge=1, description="Writes that may wait in one process")
    write_forms_max: int = setting(512, ge=0, description="Forms kept of created pods and claims")
    write_retries_max: int = setting(20, ge=1, description="Times a batch is decided again")
    write_stop_seconds: float = setting(
        2.0,
        gt=0,
        description="Longest time in which a writer that is stopped looks whether its last batch "
        "was stored",
    )
    object_bytes_max: int = setting(
        3 * 1024 * 1024, ge=1024, description="Largest object that clients may store"
    )


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class HelpSettings:
    """The bounds of the search for changes with which a waiting pod gets a node."""

    help_nodes_max: int = setting(20, ge=1, description="Nodes on which helpful changes are tried")
    help_changes_max: int = setting(2, ge=1, le=4, description="Changes that are tried together")
    help_tries_max: int = setting(300, ge=1, description="Changes tried on one node")


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class GroupedSettings(
    CauseSettings,
    ClusterSettings,
    HelpSettings,
    JobSettings,
    LintSettings,
    MemorySettings,
    PageSettings,
    VerifySettings,
    WorkerSettings,
    WriterSettings,
):
    """The settings of all groups."""
