"""Wrong decisions of a control plane, put into recordings of fleet worlds by machine.

An alteration is a function of the lines, which it changes in place, and of a draw. It returns what
was changed; empty if the recording has no occasion for it. Each is consistent in all lines, so only
what the control plane may decide speaks against it.
"""

import random
from collections.abc import Iterator, Sequence

from tests.conformance.tampering import Allocated, Lines, allocations, bodies, results_in

EVICTION = "device-taint-eviction-controller"
_CLAIMS = "resource-claim-controller"


def give_held_device(lines: Lines, draw: random.Random) -> str:
    """A claim gets a device that another claim holds alone at that time."""
    for one, other in _beside(lines, draw):
        mine, theirs = one.results[0], other.results[0]
        is_alike = (mine["driver"], mine["pool"]) == (theirs["driver"], theirs["pool"])
        if is_alike and _is_alone(one) and _is_alone(other) and mine != theirs:
            return _exchange(one, 0, theirs["device"])
    return ""


def give_held_device_elsewhere(lines: Lines, draw: random.Random) -> str:
    """A claim gets a device that another claim holds alone on another node; its pod stays."""
    for one, other in _beside(lines, draw):
        mine, theirs = one.results[0], other.results[0]
        is_elsewhere = mine["driver"] == theirs["driver"] and mine["pool"] != theirs["pool"]
        if is_elsewhere and _is_alone(one) and _is_alone(other):
            return _exchange(one, 0, theirs["device"], theirs["pool"])
    return ""


def give_next_device(lines: Lines, draw: random.Random) -> str:
    """A claim gets another device of its pool and class than the first one that fits."""
    published = _published(lines)
    for one in _drawn(allocations(lines), draw):
        for number, result in enumerate(one.results):
            place = result["driver"], result["pool"], _sort(result["device"])
            held = {each["device"] for each in one.results}
            others = sorted(published.get(place, set()) - held)
            # A line of a deletion may come after that of a release and show the claim before it.
            is_made = one.lines[0]["verb"] != "delete"
            if is_made and others and not result.get("adminAccess") and len(one.results) == 1:
                return _exchange(one, number, draw.choice(others))
    return ""


def give_larger_partition(lines: Lines, draw: random.Random) -> str:
    """A claim that asks for a part of a device gets the whole device, with all its counters."""
    for one in _drawn(allocations(lines), draw):
        unit, is_part, _ = one.results[0]["device"].partition("-quarter-")
        if is_part and len(one.results) == 1:
            return _exchange(one, 0, f"{unit}-full-0")
    return ""


def give_less_capacity(lines: Lines, draw: random.Random) -> str:
    """A claim gets another share of a device than it asks for."""
    for one in _drawn(allocations(lines), draw):
        share = one.results[0].get("consumedCapacity")
        if not share or set(share.values()) == {"1Gi"}:
            continue
        for tree in one.trees:
            for result in results_in(tree):
                for name in result.get("consumedCapacity", {}):
                    result["consumedCapacity"][name] = "1Gi"
        return f"{one.claim} has 1Gi"
    return ""


def bind_elsewhere(lines: Lines, draw: random.Random) -> str:
    """A pod is bound to another node than that of its devices, in all that is said of it."""
    nodes = sorted({line["objectRef"]["name"] for line in lines if _about(line) == "nodes"})
    bindings = [line for line in lines if line["objectRef"]["subresource"] == "binding"]
    local = {
        consumer["name"]: result["pool"]
        for one in allocations(lines)
        for tree in one.trees
        for consumer in tree["status"].get("reservedFor", ())
        for result in one.results
        if result["pool"] in nodes
    }
    for binding in _drawn(bindings, draw):
        pod, target = binding["objectRef"]["name"], binding["requestObject"]["target"]
        before = target["name"]
        if local.get(pod) != before:
            continue
        target["name"] = after = draw.choice([node for node in nodes if node != before])
        for line in lines:
            if (_about(line), line["objectRef"]["name"]) != ("pods", pod):
                continue
            for tree in bodies(line):
                if tree.get("kind") == "Status":
                    continue
                if tree.get("spec", {}).get("nodeName") == before:
                    tree["spec"]["nodeName"] = after
                if tree.get("status", {}).get("nominatedNodeName") == before:
                    tree["status"]["nominatedNodeName"] = after
        return f"{pod} is bound to {after}"
    return ""


def evict_despite_toleration(lines: Lines, draw: random.Random) -> str:
    """A pod is evicted although all claims and templates tolerate evictions for ever."""
    evicted = [line["objectRef"]["name"] for line in _evictions(lines)]
    users = {
        consumer["name"]
        for one in allocations(lines)
        for tree in one.trees
        for consumer in tree["status"].get("reservedFor", ())
    }
    for line in lines:
        for tree in bodies(line):
            if _about(line) == "resourceclaims":
                _tolerate(tree)
            elif _about(line) == "resourceclaimtemplates":
                _tolerate(tree.get("spec", {}))
    for pod in _drawn(evicted, draw):
        if pod in users:
            return f"{pod} is evicted, but its claims tolerate"
    return ""


def leave_eviction_out(lines: Lines, draw: random.Random) -> str:
    """A pod is not evicted: nothing is said any more of it, nor of its claims."""
    for first in _drawn(list(_evictions(lines)), draw):
        start = next(number for number, line in enumerate(lines) if line is first)
        namespace, pod = first["objectRef"]["namespace"], first["objectRef"]["name"]
        if start > len(lines) * 3 // 4:
            continue  # The taint may end with the recording.

        def is_of_it(line: dict, namespace: str = namespace, pod: str = pod) -> bool:
            about = line["objectRef"]
            if about["namespace"] != namespace:
                return False
            subject = (line.get("responseObject") or {}).get("involvedObject", {}).get("name")
            is_claim = about["resource"] == "resourceclaims" and about["name"].startswith(f"{pod}-")
            return (about["resource"], about["name"]) == ("pods", pod) or is_claim or subject == pod

        lines[:] = [line for n, line in enumerate(lines) if n < start or not is_of_it(line)]
        return f"{pod} is not evicted"
    return ""


def bind_to_cordoned_node(lines: Lines, draw: random.Random) -> str:
    """A node is cordoned all the time, and pods are bound to it nevertheless."""
    bindings = [line for line in lines if line["objectRef"]["subresource"] == "binding"]
    for binding in _drawn(bindings, draw):
        node = binding["requestObject"]["target"]["name"]
        for line in lines:
            for tree in bodies(line) if _is_about(line, "nodes", node) else ():
                tree["spec"]["unschedulable"] = True
        return f"{node} is cordoned"
    return ""


def allocate_tainted_device(lines: Lines, draw: random.Random) -> str:
    """A device has a taint all the time, and a claim that does not tolerate it gets the device."""
    for one in _drawn(allocations(lines), draw):
        result = one.results[0]
        if result.get("tolerations") or result.get("adminAccess"):
            continue
        for line in lines:
            for tree in bodies(line) if _about(line) == "resourceslices" else ():
                spec = tree.get("spec", {})
                if spec.get("driver") != result["driver"]:
                    continue
                for device in spec.get("devices", ()):
                    if (spec["pool"]["name"], device["name"]) == (result["pool"], result["device"]):
                        device["taints"] = [{"key": "example.com/worn", "effect": "NoSchedule"}]
        return f"{result['pool']}/{result['device']} is tainted"
    return ""


def bind_before_conditions(lines: Lines, draw: random.Random) -> str:
    """A pod is bound to a node whose devices never reported the conditions for it."""
    bound = {
        (line["objectRef"]["namespace"], line["objectRef"]["name"])
        for line in lines
        if line["objectRef"]["subresource"] == "binding"
    }
    for one in _drawn(allocations(lines), draw):
        users = {
            (one.claim[0], consumer["name"])
            for tree in one.trees
            for consumer in tree["status"].get("reservedFor", ())
        }
        if not one.results[0].get("bindingConditions") or bound.isdisjoint(users):
            continue
        is_met = False
        for tree in one.trees:
            for device in tree["status"].get("devices", ()):
                for condition in device.get("conditions", ()):
                    is_met |= condition["status"] == "True"
                    condition["status"] = "False"
        if is_met:
            return f"no condition of {one.claim} is met"
    return ""


def evict_too_early(lines: Lines, draw: random.Random) -> str:
    """A pod is evicted although its claim tolerates each taint for a month."""
    evicted = {line["objectRef"]["name"] for line in _evictions(lines)}
    patient = {
        one.claim
        for one in allocations(lines)
        if any(each.get("tolerationSeconds") for each in one.results[0].get("tolerations", ()))
        and any(
            consumer["name"] in evicted
            for tree in one.trees
            for consumer in tree["status"].get("reservedFor", ())
        )
    }
    for line in lines:
        for tree in bodies(line):
            _wait_longer(tree)
    return f"{sorted(patient)} wait longer" if patient else ""


def exceed_quota(lines: Lines, draw: random.Random) -> str:
    """A quota admits one device, and more are claimed."""
    name, most = "gpu.deviceclass.resource.k8s.io/devices", 0
    for line in lines:
        for tree in bodies(line) if _about(line) == "resourcequotas" else ():
            used = tree.get("status", {}).get("used", {}).get(name, "0")
            most = max(most, int(used))
            for part in ("spec", "status"):
                if name in tree.get(part, {}).get("hard", {}):
                    tree[part]["hard"][name] = "1"
    return f"{most} devices of 1 are used" if most > 1 else ""


def keep_claim(lines: Lines, draw: random.Random) -> str:
    """A claim keeps its devices: nothing is said of their release, nor of the claim's end."""
    claims = {
        (line["objectRef"]["namespace"], line["objectRef"]["name"])
        for line in lines[: len(lines) // 2]
        if _about(line) == "resourceclaims" and line["user"]["username"].endswith(_CLAIMS)
        if line["verb"] == "update" and not results_in(line["responseObject"])
    }
    for namespace, name in _drawn(sorted(claims), draw):
        mine = [
            number
            for number, line in enumerate(lines)
            if _is_about(line, "resourceclaims", name)
            and line["objectRef"]["namespace"] == namespace
        ]
        released = next(
            number
            for number in mine
            if lines[number]["user"]["username"].endswith(_CLAIMS)
            and lines[number]["verb"] == "update"
            and not results_in(lines[number]["responseObject"])
        )
        gone = {number for number in mine if number >= released}
        lines[:] = [line for number, line in enumerate(lines) if number not in gone]
        return f"{namespace}/{name} stays"
    return ""


def collect_living_pod(lines: Lines, draw: random.Random) -> str:
    """The pod garbage collector removes a pod that runs on a node of the cluster.

    A user had removed it there. It is the last one that is removed, so that least follows from it.
    """
    gone = {
        line["objectRef"]["name"]
        for line in lines
        if _about(line) == "nodes" and line["verb"] == "delete"
    }
    removals = [
        line
        for line in lines
        if _about(line) == "pods" and line["verb"] == "delete"
        if not line["user"]["username"].startswith("system:")
    ]
    for line in reversed(removals):
        tree = line["responseObject"]
        if tree["status"].get("phase") == "Running" and tree["spec"]["nodeName"] not in gone:
            line["user"]["username"] = "system:serviceaccount:kube-system:pod-garbage-collector"
            return f"{line['objectRef']['name']} is removed"
    return ""


def end_nomination(lines: Lines, draw: random.Random) -> str:
    """A later write of the scheduler takes the nominated node from a pod that is to be bound."""
    for line, was in _drawn(_of_waiting(lines), draw):
        if was == (node := _nominated(line["responseObject"])) and node:
            for tree in _waiting_from(lines, line):
                if _nominated(tree) != node:
                    break
                del tree["status"]["nominatedNodeName"]
            return f"{line['objectRef']['name']} loses {node}"
    return ""


def keep_nomination(lines: Lines, draw: random.Random) -> str:
    """A pod keeps the nominated node that the scheduler took from it, until it has another one."""
    for line, was in _drawn(_of_waiting(lines), draw):
        if was and not _nominated(line["responseObject"]):
            for tree in _waiting_from(lines, line):
                if _nominated(tree):
                    break
                tree["status"]["nominatedNodeName"] = was
            return f"{line['objectRef']['name']} keeps {was}"
    return ""


def _of_waiting(lines: Lines) -> list[tuple[dict, str]]:
    """Writes of the scheduler to pods without a node, with the nominated node before each."""
    nominated: dict[str, str] = {}
    found = []
    for line in _pod_lines(lines):
        tree = line["responseObject"]
        was = nominated.get(tree["metadata"]["uid"], "")
        nominated[tree["metadata"]["uid"]] = _nominated(tree)
        if line["user"]["username"] == "system:kube-scheduler" and "nodeName" not in tree["spec"]:
            found.append((line, was))
    return found


def _waiting_from(lines: Lines, first: dict) -> Iterator[dict]:
    """The states of the pod of a line, from this line until the pod has a node."""
    uid = first["responseObject"]["metadata"]["uid"]
    ordered = _pod_lines(lines)
    for line in ordered[next(at for at, line in enumerate(ordered) if line is first) :]:
        tree = line["responseObject"]
        if tree["metadata"]["uid"] == uid:
            if "nodeName" in tree["spec"]:
                return
            yield tree


def _pod_lines(lines: Lines) -> list[dict]:
    """The lines that show a pod, in the order of its versions."""
    shown = [
        line
        for line in lines
        if _about(line) == "pods" and (line.get("responseObject") or {}).get("kind") == "Pod"
    ]
    return sorted(
        shown, key=lambda line: int(line["responseObject"]["metadata"]["resourceVersion"])
    )


def _nominated(pod: dict) -> str:
    return str(pod.get("status", {}).get("nominatedNodeName", ""))


def _wait_longer(tree: object) -> None:
    """Multiplies each time for which a toleration holds."""
    if isinstance(tree, dict):
        if "tolerationSeconds" in tree:
            tree["tolerationSeconds"] = 30 * 86_400
        for value in tree.values():
            _wait_longer(value)
    elif isinstance(tree, list):
        for value in tree:
            _wait_longer(value)


def _is_about(line: dict, resource: str, name: str) -> bool:
    return (_about(line), line["objectRef"]["name"]) == (resource, name)


def _tolerate(tree: dict) -> None:
    """Lets each request of a claim, and what it got, tolerate every eviction."""
    toleration = {"operator": "Exists", "effect": "NoExecute"}
    for request in tree.get("spec", {}).get("devices", {}).get("requests", ()):
        for part in (request.get("exactly"), *request.get("firstAvailable", ())):
            if part is not None:
                part["tolerations"] = [*part.get("tolerations", ()), toleration]
    for result in results_in(tree):
        result["tolerations"] = [*result.get("tolerations", ()), toleration]


def _evictions(lines: Lines) -> Iterator[dict]:
    return (
        line
        for line in lines
        if line["user"]["username"].endswith(EVICTION) and _about(line) == "pods"
        if line["verb"] == "patch"
    )


def _beside(lines: Lines, draw: random.Random) -> Iterator[tuple[Allocated, Allocated]]:
    """Allocations with another one that was there when they were made and longer than they."""
    numbers = {id(line): number for number, line in enumerate(lines)}
    found = [one for one in allocations(lines) if one.lines[0]["responseObject"]]
    spans = [(numbers[id(one.lines[0])], numbers[id(one.lines[-1])], one) for one in found]
    pairs = [
        (one, other)
        for begin, end, one in spans
        for earlier, until, other in spans
        if earlier < begin and end < until and one is not other
    ]
    yield from _drawn(pairs, draw)


def _is_alone(one: Allocated) -> bool:
    result = one.results[0]
    is_shared = result.get("consumedCapacity") or result.get("adminAccess")
    return len(one.results) == 1 and not is_shared


def _exchange(one: Allocated, number: int, device: str, pool: str = "") -> str:
    for tree in one.trees:
        result = results_in(tree)[number]
        result["device"] = device
        result["pool"] = pool or result["pool"]
    return f"{one.claim} has {pool or one.results[number]['pool']}/{device}"


def _published(lines: Lines) -> dict[tuple[str, str, str], set[str]]:
    """The names of devices by driver, pool and sort, as slices ever published them."""
    found: dict[tuple[str, str, str], set[str]] = {}
    for line in lines:
        for tree in bodies(line) if _about(line) == "resourceslices" else ():
            spec = tree.get("spec", {})
            for device in spec.get("devices", ()):
                place = spec["driver"], spec["pool"]["name"], _sort(device["name"])
                found.setdefault(place, set()).add(device["name"])
    return found


def _sort(device: str) -> str:
    return device.rpartition("-")[0].removeprefix("unit-0").removeprefix("unit-1")


def _about(line: dict) -> str:
    return line["objectRef"]["resource"]


def _drawn(found: Sequence, draw: random.Random) -> list:
    return draw.sample(list(found), len(found))
