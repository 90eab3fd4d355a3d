"""The metrics that redra exposes: their meaning, labels and buckets.

Names without the prefix `redra_` are those of the real components, so that dashboards and alerts
for a cluster work here. Every family has the label `history` in addition to upstream's, because one
process serves many clusters. Parity: controllers.md 2.5, 3.8 and 11.3.
"""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """One metric with all its series. `buckets` are upper bounds of a histogram, in seconds."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    help: str
    labels: tuple[str, ...]
    buckets: tuple[float, ...] = ()


_REQUEST_BUCKETS = (
    0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0,
    10.0, 15.0, 20.0, 30.0, 45.0, 60.0,
)  # fmt: skip
_EVICTION_BUCKETS = (0.005, 0.025, 0.1, 0.5, 1.0, 2.5, 10.0, 30.0, 60.0, 120.0, 180.0, 240.0)
_BINDING_BUCKETS = tuple(0.1 * 2**power for power in range(14))
_ABOUT = ("group", "version", "resource", "subresource", "scope")


def _family(
    kind: Literal["counter", "gauge", "histogram"],
    name: str,
    help: str,
    labels: tuple[str, ...] = (),
    buckets: tuple[float, ...] = (),
) -> Family:
    return Family(name=name, kind=kind, help=help, labels=("history", *labels), buckets=buckets)


FAMILIES: tuple[Family, ...] = (
    _family(
        "counter", "apiserver_request_total", "Requests answered.", ("verb", *_ABOUT, "code")
    ),
    _family(
        "histogram", "apiserver_request_duration_seconds", "From a request to its answer.",
        ("verb", *_ABOUT), _REQUEST_BUCKETS,
    ),
    _family(
        "gauge", "apiserver_longrunning_requests", "Watches being sent.",
        ("verb", *_ABOUT),
    ),
    _family(
        "gauge", "apiserver_resource_objects", "Objects of a resource.", ("group", "resource")
    ),
    _family(
        "counter", "resourceclaim_controller_creates_total",
        "Claims made from templates, and attempts that failed; up to 1.36.",
        ("status", "admin_access"),
    ),
    _family(
        "counter", "dynamic_resource_allocation_resourceclaim_creates_total",
        "Claims made from templates and for extended resources, and attempts that failed; "
        "since 1.37.", ("status", "admin_access"),
    ),
    _family(
        "gauge", "resourceclaim_controller_resource_claims", "Claims there are.",
        ("allocated", "admin_access", "source"),
    ),
    _family(
        "counter", "device_taint_eviction_controller_pod_deletions_total",
        "Pods deleted because of device taints.",
    ),
    _family(
        "histogram", "device_taint_eviction_controller_pod_deletion_duration_seconds",
        "From the instant at which a pod was due to its deletion.", (), _EVICTION_BUCKETS,
    ),
    _family(
        "gauge", "scheduler_pending_pods", "Pods that wait, by the queue they are in.", ("queue",)
    ),
    _family(
        "counter", "scheduler_schedule_attempts_total", "Attempts to place a pod.",
        ("result", "profile"),
    ),
    _family(
        "counter", "scheduler_resourceclaim_creates_total",
        "Claims made for extended resources; up to 1.36.", ("status",),
    ),
    _family(
        "counter", "scheduler_dra_bindingconditions_allocations_total",
        "Devices with binding conditions that were waited for.", ("profile", "driver", "status"),
    ),
    _family(
        "histogram", "scheduler_dra_bindingconditions_wait_duration_seconds",
        "How long their pods waited.", ("profile", "driver", "status"), _BINDING_BUCKETS,
    ),
    _family("gauge", "workqueue_depth", "Keys that are ready for a controller.", ("name",)),
    _family("counter", "workqueue_adds_total", "Keys put into a queue.", ("name",)),
    _family("counter", "workqueue_retries_total", "Keys put back after a failure.", ("name",)),
    _family("counter", "redra_decisions_total", "Decisions recorded.", ("controller", "outcome")),
    _family("gauge", "redra_revision", "The last revision folded."),
    _family("gauge", "redra_waiting_writes", "Writes that wait for the group writer."),
    _family(
        "gauge", "redra_clock_skew_seconds",
        "How far the time of the history is ahead of the clock of this process, because the last "
        "stored event was.",
    ),
    _family("gauge", "redra_followers", "Watches and workers that follow the log."),
    _family(
        "gauge", "redra_chronicle_revision",
        "The last revision up to which the folded history is kept, from which the first question "
        "after a start goes on; only of histories with at least 20,000 events.",
    ),
    _family(
        "counter", "redra_findings_total",
        "Findings of `redra up --watch-over`; `failure` is false for what is known, unsure, from "
        "outside, or an allowed other choice.", ("judge", "name", "failure"),
    ),
    _family("gauge", "redra_watched_revision", "The last revision that was watched over."),
    _family("gauge", "redra_leads", "1 for a controller that this process leads.", ("controller",)),
)  # fmt: skip
"""Every metric, in the order of the reference page."""
