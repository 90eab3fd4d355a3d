"""BOTH and LOSSY: the line of one last write is lost, with and without a wrong allocation.

No later line is about the object, and what a controller did afterwards shows that it was written:
the scheduler bound a pod to the devices of its claim, or the collector ended what a pod owned. The
wrong allocation is of another claim, and no state of that object makes it right.
"""

from collections.abc import Callable

from tests.adversary.catalogue import (
    FAILS,
    NOT_BLAMED,
    QUICKSTART,
    TAINTS,
    TPU,
    VERSIONS,
    alteration,
)
from tests.adversary.devices import SHARED, device, end_after, given
from tests.adversary.evictions import mentions
from tests.adversary.log import Json, Log, results_of, uid_of

_Change = Callable[[Log], None]

_BOUND = "the line in which the claim of pod0 gets a device on worker-1, the last one about it"
_REMOVED = "the line in which the first pod is removed, whose claims others then release or end"


def _lose_allocation(log: Log) -> None:
    end_after(log, "pod5")
    log.lines.pop(log.allocation("pod0"))


def _lose_removal(log: Log) -> None:
    log.lines.pop(log.first("delete", "pods", by="system:node:", code=200))


def _give(claim: str, change: Callable[[Json], None]) -> _Change:
    def alter(log: Log) -> None:
        given(log, claim, change)

    return alter


def _register(
    name: str, recording: str, lose: _Change, text: str, wrong: _Change | None, why: str
) -> None:
    def change(log: Log) -> None:
        if wrong is not None:
            wrong(log)
        lose(log)

    change.__name__ = name
    change.__doc__ = f"{why} Lost is {text}."
    family, verdict = ("lossy", NOT_BLAMED) if wrong is None else ("both", FAILS)
    alteration(family, recording, verify=verdict, decide=verdict)(change)


_WRONG = {
    "free_device_skipped_on_another_node": (
        {
            "and_an_allocation_lost": ("pod2", "gpu-3"),
            "and_a_removal_lost": ("early-template", "gpu-3"),
        },
        "A claim gets a device, and an earlier one of its node is free (section 4).",
    ),
    "device_of_another_claim_taken": (
        {
            "and_an_allocation_lost": ("pod5", "gpu-1"),
            "and_a_removal_lost": ("late-claim", "gpu-0"),
        },
        "A claim gets an exclusive device that a claim holds whose lines are all recorded (5.2).",
    ),
}
_LOSSES: dict[str, tuple[_Change, str]] = {
    "and_an_allocation_lost": (_lose_allocation, _BOUND),
    "and_a_removal_lost": (_lose_removal, _REMOVED),
}

for _loss, (_lose, _text) in _LOSSES.items():
    for _name, (_places, _why) in _WRONG.items():
        _claim, _device = _places[_loss]
        _alter = _give(_claim, device(0, device=_device))
        _register(f"{_name}_{_loss}", QUICKSTART, _lose, _text, _alter, _why)
    _claim = _WRONG["free_device_skipped_on_another_node"][0][_loss][0]
    for _field, _value, _why in (
        ("pool", "rack-99", "A claim gets a device of a pool that no slice has."),
        ("driver", "nic.example.com", "A claim gets a device of a driver that publishes none."),
    ):
        _alter = _give(_claim, device(0, **{_field: _value}))
        _register(f"{_field}_is_none_{_loss}", QUICKSTART, _lose, _text, _alter, _why)
    _register(
        f"honest_{_loss}", QUICKSTART, _lose, _text, None, "Nothing is wrong, and one line is lost."
    )


def _lose_selective_allocation(log: Log) -> None:
    end_after(log, "any-0")
    log.drop(lambda line: mentions(line, "tolerate-0", "tol12-0"))
    log.lines.pop(log.allocation("ns-0"))


_register(
    "two_free_devices_skipped_and_an_allocation_lost",
    QUICKSTART,
    _lose_allocation,
    _BOUND,
    _give("pod5", device(0, device="gpu-3")),
    "pod5 gets gpu-3 on worker-1, where gpu-0 and gpu-2 are free but for one device (section 4).",
)
_register(
    "device_skipped_that_ns_0_does_not_select_and_an_allocation_lost",
    TAINTS,
    _lose_selective_allocation,
    "the line in which ns-0 gets a device, whose request selects index 0; two pods are left out",
    _give("plain-1", device(0, device="gpu-2")),
    "A claim on the node of ns-0 gets a device, and the one with index 1 is free (section 4).",
)
_register(
    "honest_with_selectors_and_an_allocation_lost",
    TAINTS,
    _lose_selective_allocation,
    "the line in which ns-0 gets a device, whose request selects index 0; two pods are left out",
    None,
    "Nothing is wrong, and one line is lost.",
)


@alteration("both", QUICKSTART, verify=FAILS, decide=FAILS)
def spec_changes_before_an_allocation_lost(log: Log) -> None:
    """The spec of a claim is another one with its finalizer (6.2); its allocation is lost."""
    number = log.first("update", "resourceclaims", where=_is_of_pod0)

    def change(body: Json) -> None:
        body["spec"]["devices"]["requests"][0]["exactly"]["deviceClassName"] = "other"

    log.alter(uid_of(log.lines[number]), change, start=number)
    _lose_allocation(log)


def _is_of_pod0(line: Json) -> bool:
    return str(line["objectRef"]["name"]).startswith("pod0-")


@alteration("both", TPU, verify=FAILS, decide=FAILS)
def pool_is_none_for_the_last_claim_and_a_removal_lost(log: Log) -> None:
    """The last claim gets a device of a pool that no slice has; the removal of a pod is lost."""
    name = log.lines[log.allocations()[-1]]["objectRef"]["name"]
    given(log, name, device(0, pool="rack-99"))
    log.lines.pop(log.first("delete", "pods", "small-1", by="system:node:", code=200))


@alteration("lossy", TPU, verify=NOT_BLAMED, decide=NOT_BLAMED)
def removal_of_a_pod_lost(log: Log) -> None:
    """The line is lost in which the first of two small pods is removed; nothing is wrong."""
    log.lines.pop(log.first("delete", "pods", "small-1", by="system:node:", code=200))


def _reservation(log: Log) -> int:
    """Where a shared claim is reserved for its second pod."""
    return log.first(
        "update",
        "resourceclaims/status",
        "single-gpu",
        where=lambda line: (
            line["objectRef"]["namespace"] == SHARED
            and len(line["responseObject"]["status"]["reservedFor"]) > 1
        ),
    )


def _lose_reservation(log: Log) -> None:
    """The line that reserves a shared claim for its second pod; the log ends when both pods run."""
    number = _reservation(log)
    log.cut(log.first("delete", "resourceclaims", "single-gpu", after=number))
    log.lines.pop(number)


_RESERVED = "the line in which a shared claim is reserved for its second pod, the last one about it"

_register(
    "honest_and_a_reservation_lost",
    QUICKSTART,
    _lose_reservation,
    _RESERVED,
    None,
    "Nothing is wrong, and one line is lost.",
)
_register(
    "device_of_another_claim_taken_and_a_reservation_lost",
    QUICKSTART,
    _lose_reservation,
    _RESERVED,
    _give("pod5", device(0, device="gpu-1")),
    "A claim gets an exclusive device that a claim holds whose lines are all recorded (5.2).",
)
_register(
    "free_device_skipped_and_a_reservation_lost",
    QUICKSTART,
    _lose_reservation,
    _RESERVED,
    _give("single-gpu", device(0, device="gpu-1")),
    "The claim of the lost line gets gpu-1, and gpu-0 is free: that is in a recorded line.",
)


@alteration("wrong", QUICKSTART, verify=FAILS, decide=FAILS)
def bound_without_a_reservation(log: Log) -> None:
    """A second pod of a shared claim is bound, and the claim is not reserved for it (3.7).

    No version of the store is without a line there, so the scheduler never wrote it.
    """
    number = _reservation(log)
    version = int(log.lines[number]["responseObject"]["metadata"]["resourceVersion"])
    _lose_reservation(log)
    log.close(version)


@alteration("wrong", VERSIONS, verify=FAILS, decide=FAILS)
def bound_without_devices(log: Log) -> None:
    """A pod is bound, and its claim, which got the finalizer, gets no devices (3.7).

    Each version of the store has its line, so the scheduler never wrote them.
    """
    number = log.allocation("")
    log.close(int(log.lines.pop(number)["responseObject"]["metadata"]["resourceVersion"]))


@alteration("wrong", (QUICKSTART, VERSIONS, TPU), verify=FAILS, decide=FAILS)
def devices_given_and_reserved_for_nobody(log: Log) -> None:
    """The scheduler gives a claim its devices, and never reserves it for the pod that it binds.

    Both are one write (3.7). What the policy leaves out is written at that time, too, and leaves
    versions without a line, in which the reservation is no write.
    """
    uid = uid_of(log.lines[log.allocation("")])
    log.alter(uid, lambda claim: (claim.get("status") or {}).pop("reservedFor", None))


@alteration("wrong", VERSIONS, verify=FAILS, decide=FAILS)
def devices_of_a_template_given_and_reserved_for_nobody(log: Log) -> None:
    """The scheduler does the same where a version is left over while the pod is bound (3.7)."""
    uid = uid_of(log.lines[log.allocation("p-b1")])
    log.alter(uid, lambda claim: (claim.get("status") or {}).pop("reservedFor", None))


def _lose_slice(log: Log) -> None:
    log.lines.pop(log.first("create", "resourceslices", "worker-1-gpu.example.com-00001"))


def _lose_class(log: Log) -> None:
    log.lines.pop(log.first("create", "deviceclasses", "beta1"))


def _lose_repair(log: Log) -> None:
    updates = list(log.find("update", "resourceslices", "worker-1-gpu", code=200))
    log.lines.pop(updates[-1])


def _lose_end_of_rule(log: Log) -> None:
    log.lines.pop(log.first("delete", "devicetaintrules", "pool-ns", code=200))


def _lose_condition(log: Log) -> None:
    conditions = log.find("patch", "pods/status", by="kube-scheduler", where=_tells_of_claims)
    log.lines.pop(next(conditions))


def _tells_of_claims(line: Json) -> bool:
    return "5 cannot allocate all claims" in str(line["requestObject"])


def _lose_labels(log: Log) -> None:
    patches = log.find("patch", "nodes", by="node-controller")
    log.lines.pop(next(each for each in patches if "labels" in str(log.lines[each])))


def _lost(name: str, recording: str, lose: _Change, text: str, why: str) -> None:
    """Registers an honest log without a line, and one in which that write was never made."""
    _register(f"honest_and_{name}_lost", recording, lose, text, None, "Nothing is wrong.")

    def change(log: Log) -> None:
        lose(log)
        log.close_all()

    change.__name__ = f"{name}_never_made"
    change.__doc__ = f"{why} Each version of the store has its line: no line is lost."
    verify = FAILS if "device" in why else NOT_BLAMED
    alteration("wrong", recording, verify=verify, decide=FAILS)(change)


_lost(
    "creation_of_a_slice",
    QUICKSTART,
    _lose_slice,
    "the only line about a slice, whose devices claims get",
    "Claims get devices of a pool that no slice has (2.3).",
)
_lost(
    "creation_of_a_class",
    VERSIONS,
    _lose_class,
    "the only line about a class, for which claims get devices",
    "Claims get devices for a class that does not exist (3.3).",
)
_lost(
    "repair_of_devices",
    TAINTS,
    _lose_repair,
    "the last line about a slice, in which its devices have no taints any more",
    "Claims get devices that the slice taints, and tolerate no taint (9).",
)
_lost(
    "end_of_a_rule",
    TAINTS,
    _lose_end_of_rule,
    "the deletion of a rule, whose devices claims get afterwards",
    "Claims get devices that a rule taints, and tolerate no taint (13).",
)
_lost(
    "condition",
    TPU,
    _lose_condition,
    "a condition of a pod, which the next one overwrites",
    "An attempt fails, and the scheduler does not say so in the condition of the pod (4.3).",
)
_register(
    "device_of_another_claim_taken_and_a_slice_lost",
    QUICKSTART,
    _lose_slice,
    "the only line about a slice",
    _give("pod5", device(0, device="gpu-1")),
    "A claim gets an exclusive device that a claim holds whose lines are all recorded (5.2).",
)
_register(
    "honest_and_labels_of_the_only_node_lost",
    VERSIONS,
    _lose_labels,
    "the patch that sets labels of the only node, which the next line about it shows",
    None,
    "Nothing is wrong.",
)
_register(
    "tolerations_invented_and_a_repair_lost",
    TAINTS,
    _lose_repair,
    "the last line about a slice, in which its devices have no taints any more",
    _give(
        "late-plain",
        lambda claim: results_of(claim)[0].update(
            tolerations=[{"operator": "Exists", "effect": "NoExecute"}]
        ),
    ),
    "A result has a toleration that its request does not have (10.1).",
)


def _two_allocations(log: Log) -> tuple[int, int]:
    """The lines in which two claims get their devices, which no later line shows."""
    first = log.allocation("flat")
    return first, log.allocation("flat-first", after=first)


@alteration("wrong", VERSIONS, verify=FAILS, decide=FAILS)
def two_bound_without_devices_and_one_version_left(log: Log) -> None:
    """Two pods are bound, and their claims get no devices; one version of the store has no line.

    One write has that version, so one of the two claims never got any (3.7).
    """
    first, second = sorted(_two_allocations(log))
    log.close(int(log.lines.pop(second)["responseObject"]["metadata"]["resourceVersion"]))
    log.lines.pop(first)


@alteration("lossy", VERSIONS, verify=NOT_BLAMED, decide=NOT_BLAMED)
def honest_and_two_allocations_lost(log: Log) -> None:
    """Two lines are lost in which claims get their devices, and each leaves a version."""
    for number in sorted(_two_allocations(log), reverse=True):
        log.lines.pop(number)
