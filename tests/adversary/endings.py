"""ENDS: beginnings of recordings, and what is wrong in one however it goes on."""

from tests.adversary.catalogue import AGREES, FAILS, QUICKSTART, TAINTS, alteration
from tests.adversary.devices import device, given
from tests.adversary.evictions import forget
from tests.adversary.log import Log, NotFound, results_of


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
