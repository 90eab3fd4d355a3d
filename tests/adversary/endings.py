"""ENDS: beginnings of recordings, and what is wrong in one however it goes on."""

from tests.adversary.catalogue import AGREES, FAILS, NOT_BLAMED, QUICKSTART, TAINTS, alteration
from tests.adversary.devices import device, given
from tests.adversary.evictions import forget
from tests.adversary.log import Json, Log, NotFound, later, results_of


def lone_allocation(log: Log, *, after: int = -1) -> int:
    """The first allocation at which no other pod waits for a claim, with a free device beside it.

    So no other write can have been under way, whatever came after it.
    """
    allocated: set[str] = set()
    waiting: set[str] = set()
    for number, line in enumerate(log.lines):
        about = line["objectRef"]
        answer = line.get("responseObject") or {}
        name = str(about.get("name") or answer.get("metadata", {}).get("name"))
        if about["resource"] == "pods" and about.get("subresource") == "binding":
            waiting.discard(name)
        elif about["resource"] == "pods" and line["verb"] == "create":
            waiting |= {name} if answer.get("spec", {}).get("resourceClaims") else set()
        if about["resource"] == "resourceclaims" and results_of(answer) and name not in allocated:
            allocated.add(name)
            if len(waiting) == 1 and number > after:
                return number
    raise NotFound("no allocation of a pod that waits alone")


@alteration("ends", (QUICKSTART, TAINTS), verify=FAILS, decide=FAILS)
def other_device_in_the_last_line(log: Log) -> None:
    """The last line gives the last device of a pool; nobody has or awaits the right one (5.1)."""
    number = lone_allocation(log)
    name = log.lines[number]["objectRef"]["name"]
    log.cut(number + 1)
    given(log, name, device(0, device="gpu-3"))


@alteration("ends", (QUICKSTART,), verify=AGREES, decide=FAILS)
def binding_that_never_comes(log: Log) -> None:
    """A pod is nominated, and neither its claim nor its binding is written for five seconds (4.6).

    The bindings of the other pods took less than a tenth of a second, and no request failed.
    """
    number = lone_allocation(log)
    pod = log.lines[number]["objectRef"]["name"].partition("-")[0]
    log.cut(log.first("create", "namespaces", after=number))
    forget(log, pod, start=number - 1)


def is_released(line: Json) -> bool:
    """Whether a pod's claim has no devices any more."""
    tree = line["responseObject"]
    owners = tree["metadata"].get("ownerReferences", ())
    return not results_of(tree) and [owner["kind"] for owner in owners] == ["Pod"]


def ends_with_a_release(log: Log, *, is_unprotected: bool = False) -> str:
    """The log ends with the line that takes the devices from the claim of a pod.

    Of the pod, nothing shows any more that it is to end. With `is_unprotected` the line that takes
    the finalizer from the claim comes last. Returns the uid of the pod.
    """
    number = log.first("update", "resourceclaims/status", by="resource-claim", where=is_released)
    released = log.lines[number]
    (owner,) = released["responseObject"]["metadata"]["ownerReferences"]
    if is_unprotected:
        name = released["objectRef"]["name"]
        number = log.first("update", "resourceclaims", name=name, after=number)
    log.cut(number + 1)

    def is_of_the_end(line: Json) -> bool:
        tree = line.get("responseObject") or {}
        metadata = tree.get("metadata", {})
        status = tree.get("status")
        phase = status.get("phase") if isinstance(status, dict) else ""
        is_asked = line["verb"] == "delete" and line["objectRef"].get("name") == owner["name"]
        is_marked = phase in ("Failed", "Succeeded") or bool(metadata.get("deletionTimestamp"))
        return is_asked or (metadata.get("uid") == owner["uid"] and is_marked)

    log.drop(is_of_the_end)
    return str(owner["uid"])


@alteration("ends", (QUICKSTART, TAINTS), verify=NOT_BLAMED, decide=NOT_BLAMED)
def release_before_the_answer_to_the_removal_of_its_pod(log: Log) -> None:
    """A pod is removed without a grace period; the log ends before the answer to that (2.3)."""
    ends_with_a_release(log)


@alteration("ends", (QUICKSTART, TAINTS), verify=NOT_BLAMED, decide=NOT_BLAMED)
def end_of_a_claim_before_the_answer_to_the_end_of_its_pod(log: Log) -> None:
    """The same, and the finalizer was taken from the claim, too, before the log ends (2.3)."""
    ends_with_a_release(log, is_unprotected=True)


@alteration("ends", (QUICKSTART, TAINTS), verify=FAILS, decide=FAILS)
def release_in_the_last_line_though_nothing_was_removed(log: Log) -> None:
    """The same, and no version is left that the removal of the pod could have (2.3)."""
    ends_with_a_release(log)
    log.close_all()


@alteration("ends", (QUICKSTART, TAINTS), verify=FAILS, decide=FAILS)
def release_of_a_pod_that_its_kubelet_writes_afterwards(log: Log) -> None:
    """The same, and a later version shows the pod: it was not removed before the release (2.3)."""
    uid = ends_with_a_release(log)
    log.widen()
    end = len(log.lines) - 1

    def is_about_the_pod(line: Json) -> bool:
        tree = line.get("responseObject") or {}
        return tree.get("metadata", {}).get("uid") == uid

    *_, last = log.find("patch", "pods/status", by="system:node", where=is_about_the_pod)
    new = log.again(last, to=end + 1)
    new["responseObject"]["metadata"]["resourceVersion"] = str(log.version_before(end + 1))
    for field in ("requestReceivedTimestamp", "stageTimestamp"):
        new[field] = later(log.lines[end][field], 0.05)


def uid_of(line: Json) -> str:
    """The uid of the object that a line shows."""
    uid: str = (line.get("responseObject") or {}).get("metadata", {}).get("uid", "")
    return uid


def ends_with_a_claim(log: Log) -> None:
    """The log ends with the line in which the last claim is made for a pod; none shows the pod."""
    *_, number = log.find("create", "resourceclaims", by="resource-claim", code=201)
    (owner,) = log.lines[number]["responseObject"]["metadata"]["ownerReferences"]
    log.cut(number + 1)
    log.drop(lambda line: uid_of(line) == owner["uid"])


@alteration("ends", (QUICKSTART, TAINTS), verify=NOT_BLAMED, decide=NOT_BLAMED)
def claim_before_the_answer_to_the_creation_of_its_pod(log: Log) -> None:
    """A pod is made, then its claim; the log ends before the answer to the first (2.2)."""
    ends_with_a_claim(log)


@alteration("ends", (QUICKSTART, TAINTS), verify=AGREES, decide=FAILS)
def claim_in_the_last_line_for_a_pod_that_never_was(log: Log) -> None:
    """The same, and no version is left that the creation of the pod could have (2.2)."""
    ends_with_a_claim(log)
    log.close_all()
