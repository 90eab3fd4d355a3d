"""More wrong decisions, put into recordings of fleet worlds by machine.

As in `fleet_tampering`, an alteration changes the lines in place and returns what it changed; empty
if the recording has no occasion for it. All lines of an object stay consistent.
"""

import copy
import random
import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta
from itertools import pairwise

from tests.conformance.crossed_tampering import lease_line
from tests.conformance.tampering import Allocated, Lines, allocations, bodies, results_in

MANAGER = "system:serviceaccount:kube-system:"
_CLAIMS = f"{MANAGER}resource-claim-controller"
_SCHEDULER = "system:kube-scheduler"
_KUBELETS = "redra"


def overdraw_counters(lines: Lines, draw: random.Random) -> str:
    """A counter set holds less than what devices that are allocated at one time draw from it."""
    for one in _drawn(allocations(lines), draw):
        result = one.results[0]
        unit, is_part, _ = result["device"].partition("-quarter-")
        if not is_part or result.get("adminAccess"):
            continue
        is_changed = False
        for line in _of(lines, "resourceslices"):
            for tree in bodies(line):
                spec = tree.get("spec", {})
                if spec.get("pool", {}).get("name") != result["pool"]:
                    continue
                for counters in spec.get("sharedCounters", ()):
                    if counters["name"].startswith(unit):
                        for each in counters["counters"].values():
                            each["value"] = "1"
                            is_changed = True
        if is_changed:
            return f"{result['pool']}/{unit} has less than {one.claim} draws"
    return ""


def overfill_share(lines: Lines, draw: random.Random) -> str:
    """A device has less capacity than the share that a claim has of it."""
    for one in _drawn(allocations(lines), draw):
        result = one.results[0]
        if not result.get("consumedCapacity"):
            continue
        is_changed = False
        for line in _of(lines, "resourceslices"):
            for tree in bodies(line):
                for device in tree.get("spec", {}).get("devices", ()):
                    here = tree["spec"]["pool"]["name"], device["name"]
                    if here != (result["pool"], result["device"]):
                        continue
                    for name in result["consumedCapacity"]:
                        device["capacity"][name]["value"] = "1Ki"
                        device["capacity"][name].pop("requestPolicy", None)
                        is_changed = True
        if is_changed:
            return f"{result['pool']}/{result['device']} is smaller than the share of {one.claim}"
    return ""


def map_extended_resource_wrongly(lines: Lines, draw: random.Random) -> str:
    """The status of a pod says that another request of its claim serves its extended resource."""
    pods = {
        _place(line)
        for line in _of(lines, "pods")
        for tree in bodies(line)
        if _status(tree).get("extendedResourceClaimStatus")
    }
    for place in _drawn(sorted(pods), draw):
        for line in _of(lines, "pods"):
            for tree in bodies(line) if _place(line) == place else ():
                status = _status(tree).get("extendedResourceClaimStatus", {})
                for each in status.get("requestMappings", ()):
                    each["requestName"] = "container-7-request-7"
        return f"{place[1]} has another request"
    return ""


def take_later_alternative(lines: Lines, draw: random.Random) -> str:
    """The first alternative fits from the beginning of the recording on, and a later one is taken.

    The claim of a pod that got the first alternative is said to have the last one, by a device that
    the class of that one allows and nobody has.
    """
    held = {
        (each["pool"], each["device"])
        for one in allocations(lines)
        for tree in one.trees
        for each in results_in(tree)
    }
    for one in _drawn(allocations(lines), draw):
        request, _, alternative = one.results[0]["request"].partition("/")
        if not alternative or len(one.results) > 1:
            continue
        spec = one.trees[0]["spec"]["devices"]["requests"]
        asked = next(each for each in spec if each["name"] == request)["firstAvailable"]
        others = [
            each
            for each in asked[1:]
            if asked[0]["name"] == alternative
            and each.get("count", 1) == 1
            and each["deviceClassName"] != asked[0]["deviceClassName"]
        ]
        for other in others:
            for pool, device in sorted(_published(lines, one.results[0]["driver"])):
                kind = f"-{other['deviceClassName']}-"
                if pool == one.results[0]["pool"] and kind in device and (pool, device) not in held:
                    for tree in one.trees:
                        for each in results_in(tree):
                            each["request"] = f"{request}/{other['name']}"
                            each["device"] = device
                    return f"{one.claim} has {other['name']} with {device}"
    return ""


def administer_without_label(lines: Lines, draw: random.Random) -> str:
    """A claim gets administrative access in a namespace that never had the label for it."""
    for one in _drawn(allocations(lines), draw):
        if not any(each.get("adminAccess") for each in one.results):
            continue
        for line in _of(lines, "namespaces"):
            for tree in bodies(line) if line["objectRef"]["name"] == one.claim[0] else ():
                tree["metadata"].get("labels", {}).pop("resource.kubernetes.io/admin-access", None)
        return f"{one.claim} has administrative access"
    return ""


def bind_before_allocation(lines: Lines, draw: random.Random) -> str:
    """A pod is nominated and bound two seconds before its claim is allocated."""
    bindings = [line for line in lines if line["objectRef"]["subresource"] == "binding"]
    for binding in _drawn(bindings, draw):
        place = _place(binding)
        mine = [
            one
            for one in allocations(lines)
            if one.claim[0] == place[0] and place[1] in _users(one)
        ]
        theirs = [
            line
            for line in _of(lines, "pods")
            if _place(line) == place and line["user"]["username"] == _SCHEDULER
        ]
        if len(mine) != 1 or len(_users(mine[0])) > 1 or theirs[-1] is not binding:
            continue
        allocated = mine[0].lines[0]
        since = _time(allocated) - timedelta(seconds=2)
        number = max((n for n, line in enumerate(lines) if _time(line) < since), default=0)
        made = {_about(line) for line in lines[:number] if _place(line) in (place, mine[0].claim)}
        if not {"pods", "resourceclaims"} <= made:
            continue
        version = 10 * int(lines[number]["auditID"].rpartition("-")[2])
        _make_room(lines)
        for each, line in enumerate(theirs):
            lines.remove(line)
            line["auditID"] = f"more-{version + 4 + each}"
            if _about(line) == "pods" and line["objectRef"]["subresource"] != "binding":
                line["responseObject"]["metadata"]["resourceVersion"] = str(version + 4 + each)
            _move(line, since + timedelta(milliseconds=10 * each) - _time(line))
            lines.insert(number + 1 + each, line)
        return f"{place[1]} is bound at {binding['stageTimestamp']}"
    return ""


def reserve_for_too_many(lines: Lines, draw: random.Random) -> str:
    """A claim is reserved for 257 pods."""
    shared = [one for one in allocations(lines) if one.claim[1].startswith("shared")]
    for one in _drawn(shared, draw):
        for tree in one.trees:
            reserved = tree["status"].get("reservedFor", [])
            for number in range(257 - len(reserved)) if reserved else ():
                uid = f"00000000-0000-4000-8000-{number:012}"
                reserved.append({"name": f"more-{number}", "resource": "pods", "uid": uid})
        return f"{one.claim} is reserved for 257 pods"
    return ""


def allocate_from_older_generation(lines: Lines, draw: random.Random) -> str:
    """A device is allocated that only an older generation of its pool has."""
    for one in _drawn(allocations(lines), draw):
        result = one.results[0]
        begun = lines.index(one.lines[0])
        mine = [
            (number, tree)
            for number, line in enumerate(lines)
            for tree in (bodies(line) if _about(line) == "resourceslices" else ())
            if tree.get("spec", {}).get("driver") == result["driver"]
            and tree["spec"]["pool"]["name"] == result["pool"]
        ]
        generations = {tree["spec"]["pool"]["generation"] for n, tree in mine if n < begun}
        newest = max(generations, default=0)
        since = min(
            (n for n, tree in mine if tree["spec"]["pool"]["generation"] == newest), default=0
        )
        if len(generations) < 2 or _time(one.lines[0]) - _time(lines[since]) < timedelta(minutes=1):
            continue
        for _, tree in mine:
            if tree["spec"]["pool"]["generation"] >= newest:
                for device in tree["spec"].get("devices", ()):
                    if device["name"] == result["device"]:
                        device["name"] = f"{device['name']}-new"
        return f"{one.claim} has {result['pool']}/{result['device']} of generation before {newest}"
    return ""


def configure_otherwise(lines: Lines, draw: random.Random) -> str:
    """The result of a claim has opaque parameters that neither its request nor its class has."""
    for one in _drawn(allocations(lines), draw):
        if one.lines[0]["verb"] == "delete":
            continue  # The answer to a deletion alone decides nothing.
        driver = one.results[0]["driver"]
        config = {
            "source": "FromClaim",
            "requests": [],
            "opaque": {"driver": driver, "parameters": {"mode": "exclusive"}},
        }
        for tree in one.trees:
            devices = tree["status"]["allocation"]["devices"]
            devices["config"] = [*devices.get("config", ()), config]
        return f"{one.claim} has parameters of nobody"
    return ""


def take_devices_from_running_pod(lines: Lines, draw: random.Random) -> str:
    """The claim controller takes the devices of a pod that runs for an hour more."""
    for one in _drawn(allocations(lines), draw):
        users = _users(one)
        if len(users) != 1 or one.lines[-1]["verb"] == "create":
            continue
        pod = (one.claim[0], min(users))
        running = [
            number
            for number, line in enumerate(lines)
            if _about(line) == "pods"
            and _place(line) == pod
            and _status(line["responseObject"]).get("phase") == "Running"
            and "deletionTimestamp" not in line["responseObject"]["metadata"]
        ]
        later = [n for n, line in enumerate(lines) if _place(line) == pod and n not in running]
        if not running:
            continue
        number = running[0]
        ends = [n for n in later if n > number and _about(lines[n]) == "pods"]
        if not ends or _time(lines[ends[0]]) - _time(lines[number]) < timedelta(minutes=1):
            continue
        seen = [
            n
            for n, line in enumerate(lines)
            if n <= number and _about(line) == "resourceclaims" and _place(line) == one.claim
        ]
        tree = copy.deepcopy(lines[seen[-1]]["responseObject"])
        if not _status(tree).get("reservedFor"):
            continue
        after = {
            n
            for n, line in enumerate(lines)
            if n > number and _place(line) == one.claim and _about(line) == "resourceclaims"
        }
        tree["status"] = {}
        tree["metadata"].pop("finalizers", None)
        line = _line_after(lines, number, lines[seen[-1]], tree, _CLAIMS, "update")
        lines[:] = [each for n, each in enumerate(lines) if n not in after]
        lines.insert(number + 1, line)
        return f"{one.claim} has nothing from {line['stageTimestamp']} on"
    return ""


def count_wrongly(lines: Lines, draw: random.Random) -> str:
    """The status of a DeviceTaintRule counts more evicted pods than there are."""
    rules = set()
    for line in _of(lines, "devicetaintrules"):
        for tree in bodies(line):
            for condition in _status(tree).get("conditions", ()):
                before = condition.get("message", "")
                condition["message"] = re.sub(
                    r"^(\d+) pods? evicted", lambda m: f"{int(m[1]) + 7} pods evicted", before
                )
                if condition["message"] != before:
                    rules.add(line["objectRef"]["name"])
    return f"{sorted(rules)} count more" if rules else ""


def generate_claim_twice(lines: Lines, draw: random.Random) -> str:
    """The claim controller makes two claims for one entry of a pod."""
    made = [
        line
        for line in _of(lines, "resourceclaims")
        if line["verb"] == "create" and line["user"]["username"] == _CLAIMS
    ]
    for line in _drawn(made, draw):
        number = lines.index(line)
        tree = copy.deepcopy(line["responseObject"])
        name = f"{tree['metadata']['name'][:-5]}22222"
        tree["metadata"].update(name=name, uid="00000000-0000-4000-8000-000000000022")
        lines.insert(number + 1, _line_after(lines, number, line, tree, _CLAIMS, "create"))
        return f"{name} is made, too"
    return ""


def make_no_claim(lines: Lines, draw: random.Random) -> str:
    """No claim is made for a pod that waits for minutes until a user deletes it."""
    for place in _drawn(sorted(_pods(lines)), draw):
        mine = [line for line in _of(lines, "pods") if _place(line) == place]
        mine.sort(key=lambda line: line["verb"] != "create")  # answers may overtake each other
        first = mine[0]
        if mine[-1]["verb"] != "delete" or mine[-1]["user"]["username"] != "alice":
            continue
        if _time(mine[-1]) - _time(first) < timedelta(minutes=5):
            continue
        claims = {
            _place(line)
            for line in _of(lines, "resourceclaims")
            for owner in line["responseObject"].get("metadata", {}).get("ownerReferences", ())
            if owner["name"] == place[1] and line["objectRef"]["namespace"] == place[0]
        }
        if not claims or len(mine) < 2:
            continue
        fresh = first["responseObject"]
        last = mine[-1]["responseObject"]
        if last.get("kind") == "Status":
            continue
        for part in ("spec", "status"):
            last[part] = copy.deepcopy(fresh[part])
        last["metadata"].pop("deletionTimestamp", None)
        last["metadata"].pop("deletionGracePeriodSeconds", None)
        gone = {id(line) for line in mine[1:-1]}
        lines[:] = [
            line
            for line in lines
            if id(line) not in gone
            and not (_about(line) == "resourceclaims" and _place(line) in claims)
            and _subject(line) != place
        ]
        return f"{place[1]} has no claims"
    return ""


def leave_untried_at_the_end(lines: Lines, draw: random.Random) -> str:
    """A pod that fitted was never tried when the log ends, though the scheduler was there.

    The log ends less than a minute after the pod was due, which a scheduler that is away would
    explain. But this one was at work a quarter of a minute after that, and again seconds later.
    """
    is_by_scheduler = [line["user"]["username"] == _SCHEDULER for line in lines]
    acts = [number for number, is_one in enumerate(is_by_scheduler) if is_one]
    bound = {
        _place(lines[number]): number
        for number in acts
        if lines[number]["objectRef"].get("subresource") == "binding"
    }
    for place, number in _drawn(sorted(bound.items()), draw):
        due = _time(lines[number])
        claims = {
            _place(line)
            for line in _of(lines, "resourceclaims")
            for owner in line["responseObject"].get("metadata", {}).get("ownerReferences", ())
            if owner["name"] == place[1] and line["objectRef"]["namespace"] == place[0]
        }
        ours = {
            each
            for each, line in enumerate(lines)
            if line["user"]["username"] in (_SCHEDULER, _KUBELETS)
            and (place in (_place(line), _subject(line)) or _place(line) in claims)
        }
        rest = [each for each in acts if each not in ours and _time(lines[each]) > due]
        back = [each for each in rest if _time(lines[each]) - due >= timedelta(seconds=15)]
        ends = [
            each + 1
            for each in back
            if _time(lines[each]) - _time(lines[back[0]]) >= timedelta(seconds=3)
            and _time(lines[each]) - due <= timedelta(seconds=55)
        ]
        made = [
            line
            for line in _of(lines, "pods")
            if _place(line) == place and line["verb"] == "create"
        ]
        if not ends or not made or due - _time(made[0]) > timedelta(seconds=1):
            continue
        others = [
            line
            for each, line in enumerate(lines[: ends[0]])
            if each not in ours and _about(line) == "pods" and _place(line) == place
        ]
        if any(_shows_more(line) for line in others):
            continue
        left_out = [lines[each] for each in sorted(ours) if each < ends[0]]
        lines[:] = [line for each, line in enumerate(lines[: ends[0]]) if each not in ours]
        _close_gaps(lines, left_out)
        return f"{place[1]} is not tried"
    return ""


def leave_refusal_out(lines: Lines, draw: random.Random) -> str:
    """That a quota refuses the claim of a pod is not said, and the pod is deleted within a minute.

    Seconds before that, the claim controller worked for younger pods.
    """
    said = (line for line in _of(lines, "events") if _reason(line) == "FailedResourceClaimCreation")
    for place in _drawn(sorted({_subject(line) for line in said}), draw):
        mine = [line for line in _of(lines, "pods") if _place(line) == place]
        end = copy.deepcopy(mine[-1]) if mine else {}
        if end.get("verb") != "delete" or _claims(lines, place):
            continue
        younger = [
            line
            for line in _of(lines, "resourceclaims")
            if line["user"]["username"] == _CLAIMS
            and line["verb"] == "create"
            and timedelta(seconds=3) < _time(line) - _time(mine[0]) < timedelta(seconds=52)
        ]
        if not younger or end["responseObject"]["kind"] == "Status":
            continue
        about = (line for line in _of(lines, "events") if _subject(line) == place)
        left_out = [*mine[1:], *about]
        at = _time(younger[-1]) + timedelta(seconds=2.5)
        tree = end["responseObject"]
        if "deletionTimestamp" in tree["metadata"]:
            marked = at - timedelta(seconds=1)
            tree["metadata"]["deletionTimestamp"] = marked.strftime("%Y-%m-%dT%H:%M:%SZ")
        before = [number for number, line in enumerate(lines) if _time(line) < at]
        newest = max(before, key=lambda number: _version(lines[number]))
        line = _line_after(lines, newest, end, tree, end["user"]["username"], "delete")
        line["user"] = end["user"]
        line["requestReceivedTimestamp"] = line["stageTimestamp"]
        _move(line, at - _time(line))
        lines.insert(before[-1] + 1, line)
        lines[:] = [line for line in lines if not any(line is each for each in left_out)]
        _close_gaps(lines, left_out, step=10)
        return f"{place[1]} is not refused"
    return ""


def place_again_otherwise(lines: Lines, draw: random.Random) -> str:
    """A claim that is allocated again gets a later device than a free one that is as good."""
    placed: dict[tuple[str, str], list[tuple[int, list[dict]]]] = {}
    for number, line in enumerate(lines):
        is_one = _about(line) == "resourceclaims" and line["user"]["username"] == _SCHEDULER
        if is_one and (results := _results(line["responseObject"])):
            placed.setdefault(_place(line), []).append((number, results))
    again = [(place, time) for place, times in placed.items() for time in range(1, len(times))]
    for place, time in _drawn(sorted(again), draw):
        number, results = placed[place][time]
        if len(results) != 1:
            continue
        driver, pool, device = (results[0][name] for name in ("driver", "pool", "device"))
        held = _held(lines[:number])
        later = sorted(
            each
            for of_pool, each in _published(lines, driver)
            if of_pool == pool
            and each > device
            and each.rpartition("-")[0] == device.rpartition("-")[0]
            and (pool, each) not in held
        )
        if not later:
            continue
        following = placed[place][time + 1 :]
        until = following[0][0] if following else len(lines)
        for line in lines[max(0, number - 6) : until]:
            if _about(line) == "resourceclaims" and _place(line) == place:
                for tree in bodies(line):
                    for each in (*_results(tree), *_status(tree).get("devices", ())):
                        if (each["pool"], each["device"]) == (pool, device):
                            each["device"] = later[0]
        return f"{place[1]} gets {later[0]}"
    return ""


def _results(tree: dict) -> list[dict]:
    allocation = _status(tree).get("allocation") or {}
    return (allocation.get("devices") or {}).get("results") or []


def _held(lines: Lines) -> set[tuple[str, str]]:
    """The pools and devices that claims have after the last of the lines."""
    held: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for line in _of(lines, "resourceclaims"):
        tree = line["responseObject"] or {}
        if line["verb"] == "delete" and not tree.get("metadata", {}).get("finalizers"):
            held.pop(_place(line), None)
        elif isinstance(tree.get("status"), dict):
            held[_place(line)] = [(each["pool"], each["device"]) for each in _results(tree)]
    return {each for devices in held.values() for each in devices}


def leave_untried_under_a_lease(lines: Lines, draw: random.Random) -> str:
    """A pod that fitted is not tried when the log ends three seconds later.

    All the time one process has the Lease of the scheduler.
    """
    bound: dict[tuple[str, str], dict] = {}
    for line in lines:
        if line["objectRef"].get("subresource") == "binding":
            bound.setdefault(_place(line), line)
    for place, binding in _drawn(sorted(bound.items(), key=lambda each: each[0]), draw):
        mine = [line for line in _of(lines, "pods") if _place(line) == place]
        if _time(binding) - _time(mine[0]) > timedelta(seconds=1):
            continue
        claims = _claims(lines, place)
        log = [line for line in lines if _time(line) - _time(binding) <= timedelta(seconds=3)]
        ours = [
            line
            for line in log
            if line["user"]["username"] in (_SCHEDULER, _KUBELETS)
            and (place in (_place(line), _subject(line)) or _place(line) in claims)
        ]
        rest = [line for line in log if not any(line is each for each in ours)]
        others = (line for line in _of(rest, "pods") if _place(line) == place)
        users = (
            consumer["name"]
            for line in _of(rest, "resourceclaims")
            for tree in bodies(line)
            for consumer in _status(tree).get("reservedFor") or ()
        )
        if any(map(_shows_more, others)) or place[1] in users:
            continue
        near = [copy.deepcopy(binding) for _ in range(2)]
        _move(near[1], timedelta(seconds=2.5))
        near += [rest[0], *(line for line in rest if line["user"]["username"] == _SCHEDULER)]
        _close_gaps(rest, ours)
        rest += [lease_line(line, 0) for line in near]
        lines[:] = sorted(rest, key=lambda line: line["stageTimestamp"])
        return f"{place[1]} is not tried"
    return ""


def leave_attempts_out(lines: Lines, draw: random.Random) -> str:
    """A pod is not tried for nine minutes in which its next attempt says something new."""
    tries: dict[tuple[str, str], list[dict]] = {}
    for line in _of(lines, "pods"):
        if line["user"]["username"] == _SCHEDULER and _refusal(line["responseObject"]):
            tries.setdefault(_place(line), []).append(line)
    for place, made in _drawn(sorted(tries.items(), key=lambda each: each[0]), draw):
        for before, first in pairwise(made):
            old, new = (_refusal(line["responseObject"]) for line in (before, first))
            number = next(number for number, line in enumerate(lines) if line is first)
            end = next(
                (
                    line
                    for line in lines[number:]
                    if _about(line) == "pods"
                    and _place(line) == place
                    and (line["verb"] == "delete" or _is_other_try(line, new))
                ),
                lines[-1],
            )
            if old == new or _time(end) - _time(first) < timedelta(minutes=9):
                continue
            left_out = [
                line
                for line in lines
                if line["user"]["username"] == _SCHEDULER
                and place in (_place(line), _subject(line))
                and line is not end
                and timedelta(seconds=-1) < _time(line) - _time(first)
                and _time(end) - _time(line) > timedelta(seconds=1)
                and not (_about(line) == "pods" and _is_other_try(line, new))
            ]
            for line in lines[number : lines.index(end)]:
                if _about(line) == "pods" and _place(line) == place:
                    for tree in bodies(line):
                        for condition in _status(tree).get("conditions", ()):
                            if condition.get("message") == new:
                                condition["message"] = old
            lines[:] = [line for line in lines if not any(line is each for each in left_out)]
            _close_gaps(lines, left_out)
            return f"{place[1]} is not tried again"
    return ""


def _refusal(tree: dict) -> str:
    """The message of the condition of a pod that was not placed."""
    return next(
        (
            condition["message"]
            for condition in _status(tree or {}).get("conditions", ())
            if condition["type"] == "PodScheduled" and condition["status"] == "False"
        ),
        "",
    )


def _is_other_try(line: dict, message: str) -> bool:
    """Whether the scheduler's line is about an attempt that came to something else."""
    is_theirs = line["user"]["username"] == _SCHEDULER
    is_binding = line["objectRef"].get("subresource") == "binding"
    return is_theirs and (is_binding or _refusal(line["responseObject"]) not in ("", message))


def _shows_more(line: dict) -> bool:
    """Whether a line shows a pod that was tried."""
    return any(
        tree.get("spec", {}).get("nodeName") or _status(tree).get("conditions")
        for tree in bodies(line)
    )


def leave_deletion_out(lines: Lines, draw: random.Random) -> str:
    """A claim is released, and nobody deletes it although its pod is gone.

    Not a claim that another line shows marked, nor one of a namespace that ends: it has an end.
    """
    ended = {line["objectRef"]["name"] for line in _of(lines, "namespaces") if _is_end(line)}
    for line in _drawn(list(_of(lines, "resourceclaims")), draw):
        by = line["user"]["username"]
        if (
            line["verb"] != "delete"
            or not by.startswith(MANAGER)
            or lines.index(line) > len(lines) * 2 / 3
            or _place(line)[0] in ended
        ):
            continue
        number = lines.index(line)
        mine = [each for each in _of(lines, "resourceclaims") if _place(each) == _place(line)]
        gone = [each for each in mine if lines.index(each) >= number]
        if any(_is_marked(tree) for each in mine if each not in gone for tree in bodies(each)):
            continue
        lines[:] = [each for each in lines if each not in gone]
        _close_gaps(lines, gone)
        return f"{line['objectRef']['name']} stays"
    return ""


def _is_end(line: dict) -> bool:
    return line["verb"] == "delete" or any(_is_marked(tree) for tree in bodies(line))


def _is_marked(tree: dict) -> bool:
    return "deletionTimestamp" in tree.get("metadata", {})


def _of(lines: Lines, resource: str) -> Iterator[dict]:
    return (line for line in lines if _about(line) == resource)


def _about(line: dict) -> str:
    return line["objectRef"]["resource"]


def _place(line: dict) -> tuple[str, str]:
    return line["objectRef"]["namespace"], line["objectRef"]["name"]


def _status(tree: dict) -> dict:
    """The status of an object; that of an answer without an object is a word."""
    status = tree.get("status", {})
    return status if isinstance(status, dict) else {}


def _subject(line: dict) -> tuple[str, str]:
    """The object that an Event is about."""
    subject = (line.get("responseObject") or {}).get("involvedObject", {})
    return subject.get("namespace", ""), subject.get("name", "")


def _pods(lines: Lines) -> set[tuple[str, str]]:
    return {_place(line) for line in _of(lines, "pods") if line["verb"] == "create"}


def _claims(lines: Lines, place: tuple[str, str]) -> set[tuple[str, str]]:
    """The claims that a pod owns."""
    return {
        _place(line)
        for line in _of(lines, "resourceclaims")
        for owner in (line["responseObject"] or {}).get("metadata", {}).get("ownerReferences", ())
        if owner["name"] == place[1] and line["objectRef"]["namespace"] == place[0]
    }


def _version(line: dict) -> int:
    return int(line["auditID"].rpartition("-")[2])


def _reason(line: dict) -> str:
    """The reason that an Event gives."""
    reason: str = (line["responseObject"] or {}).get("reason", "")
    return reason


def _users(one: Allocated) -> set[str]:
    return {
        consumer["name"] for tree in one.trees for consumer in tree["status"].get("reservedFor", ())
    }


def _published(lines: Lines, driver: str) -> set[tuple[str, str]]:
    return {
        (tree["spec"]["pool"]["name"], device["name"])
        for line in _of(lines, "resourceslices")
        for tree in bodies(line)
        if tree.get("spec", {}).get("driver") == driver
        for device in tree["spec"].get("devices", ())
    }


def _time(line: dict) -> datetime:
    return datetime.fromisoformat(line["stageTimestamp"].replace("Z", "+00:00"))


def _move(line: dict, by: timedelta) -> None:
    for name in ("requestReceivedTimestamp", "stageTimestamp"):
        instant = datetime.fromisoformat(line[name].replace("Z", "+00:00")) + by
        line[name] = instant.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _line_after(lines: Lines, number: int, like: dict, tree: dict, user: str, verb: str) -> dict:
    """A line about an object right after another line, with a version of its own."""
    before = lines[number]
    _make_room(lines)
    line = copy.deepcopy(like)
    name = tree["metadata"]["name"]
    version = 10 * int(before["auditID"].rpartition("-")[2]) + 5
    tree["metadata"]["resourceVersion"] = str(version)
    line.update(responseObject=tree, verb=verb, auditID=f"more-{version}")
    line["user"] = {"username": user, "groups": ["system:authenticated"]}
    line["objectRef"].update(name=name, subresource="status" if verb == "update" else "")
    line["responseStatus"]["code"] = 201 if verb == "create" else 200
    for each in ("requestReceivedTimestamp", "stageTimestamp"):
        line[each] = before["stageTimestamp"]
    _move(line, timedelta(milliseconds=5))
    line["requestReceivedTimestamp"] = before["stageTimestamp"]
    return line


def _close_gaps(lines: Lines, left_out: Iterable[dict], step: int = 1) -> None:
    """Counts versions anew without those of lines that are left out; `step` is that of versions.

    A version without a line is that of a lost line, which excuses what nothing is said of.
    """
    gone = sorted(step * _version(line) for line in left_out)
    _renumber(lines, lambda version: version - step * bisect_left(gone, version))


def _make_room(lines: Lines) -> None:
    """Multiplies all versions by ten, so that others fit between them."""
    _renumber(lines, lambda version: 10 * version)


def _renumber(lines: Lines, change: Callable[[int], int]) -> None:
    def walk(tree: object) -> None:
        if isinstance(tree, dict):
            version = tree.get("resourceVersion")
            if isinstance(version, str) and version.isdigit():
                tree["resourceVersion"] = str(change(int(version)))
            for each in tree.values():
                walk(each)
        elif isinstance(tree, list):
            for each in tree:
                walk(each)

    for tree in {id(tree): tree for line in lines for tree in bodies(line)}.values():
        walk(tree)


def _drawn(found: Iterable, draw: random.Random) -> list:
    listed = list(found)
    return draw.sample(listed, len(listed))
