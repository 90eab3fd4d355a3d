"""Annotations that control the emulated kubelet.

On pods: `redra.dev/start-seconds` is the time from binding to running, `redra.dev/run-seconds` the
time until the containers exit (never without it), `redra.dev/exit-code` their exit code, and
`redra.dev/stop-seconds` the time that they take to end when the pod is deleted. On nodes:
`redra.dev/kubelet: "off"` leaves everything to a real kubelet, and `redra.dev/lost-drivers` names
lost drivers, separated by commas.
"""

from app.domain.log import ObjectKey
from app.domain.objects.reader import ObjectsReader
from app.domain.values import api_resources, decimals, well_known
from app.domain.values.fields import meta
from app.domain.values.json_tree import JsonView
from app.domain.values.timestamps import SECOND

KUBELET = "redra.dev/kubelet"

START_SECONDS = "redra.dev/start-seconds"
RUN_SECONDS = ("redra.dev/run-seconds", "sim.example.com/run-seconds")
STOP_SECONDS = "redra.dev/stop-seconds"
EXIT_CODE = "redra.dev/exit-code"

SECONDS_MAX = 10 * 365 * 24 * 3600
"""The longest time; longer ones are cut to it."""


LEASE_NAMESPACE = "kube-node-lease"


def is_emulated(objects: ObjectsReader, node: JsonView) -> bool:
    """False for a node that is switched off or has a kubelet of its own, which renews a lease."""
    if meta.annotation(node, KUBELET) == "off":
        return False
    name = meta.name(node)
    return objects.event(ObjectKey(*api_resources.LEASES, LEASE_NAMESPACE, name)) is None


def lost_drivers(node: JsonView) -> list[str]:
    """The lost drivers of a node."""
    text = meta.annotation(node, well_known.LOST_DRIVERS)
    return [part.strip() for part in text.split(",") if part.strip()]


def start_delay(pod: JsonView) -> int:
    """The microseconds from binding to running."""
    return _micros(pod, START_SECONDS) or 0


def run_time(pod: JsonView) -> int | None:
    """The microseconds that the containers run; None when they never exit."""
    for name in RUN_SECONDS:
        seconds = _micros(pod, name)
        if seconds is not None:
            return seconds
    return None


def stop_delay(pod: JsonView) -> int:
    """The microseconds that a deleted pod takes to end."""
    return _micros(pod, STOP_SECONDS) or 0


def exit_code(pod: JsonView) -> int | None:
    """The exit code of the containers; None without the annotation."""
    code = decimals.natural(meta.annotation(pod, EXIT_CODE))
    return None if code is None else code % 256


def _micros(pod: JsonView, name: str) -> int | None:
    text = meta.annotation(pod, name)
    if not text:
        return None
    try:
        seconds = float(text)
    except ValueError:
        return None
    if not seconds >= 0:
        return None
    return int(min(seconds, SECONDS_MAX) * SECOND)
