"""Circumstances that honest recordings may have, put into generated ones by machine.

Those of audit logs change the lines in place and return how many things they changed.
"""

import copy
import json
import random
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from tests.conformance.soak_recordings import MANAGER
from tests.conformance.tampering import Lines

SCHEDULER = "system:kube-scheduler"
SECOND = "second-scheduler"
REFUSED = ("resourceclaims", "pods", "devicetaintrules", "resourcequotas")


def refuse_updates(lines: Lines, draw: random.Random) -> int:
    """Updates of controllers are refused first, because the object was changed meanwhile.

    The same request follows some milliseconds later, with the new version.
    """
    refused = []
    for line in lines:
        reference, user = line["objectRef"], line["user"]["username"]
        is_controller = user == SCHEDULER or user.startswith(MANAGER)
        is_update = line["verb"] == "update" and reference["resource"] in REFUSED
        if is_controller and is_update and draw.random() < 0.4:
            refused.append(_conflict(line, len(refused), draw))
    lines += refused
    lines.sort(key=lambda line: line["stageTimestamp"])
    return len(refused)


def _conflict(line: dict, number: int, draw: random.Random) -> dict:
    begun = datetime.fromisoformat(line["requestReceivedTimestamp"].replace("Z", "+00:00"))
    reference = line["objectRef"]
    status = {
        "metadata": {},
        "status": "Failure",
        "message": f"Operation cannot be fulfilled on {reference['resource']} "
        f'"{reference["name"]}": the object has been modified; please apply your changes to '
        "the latest version and try again",
        "reason": "Conflict",
        "code": 409,
    }
    vain = copy.deepcopy(line)
    vain.pop("requestObject", None)
    vain.update(
        auditID=f"conflict-{number}",
        responseStatus=status,
        responseObject={"kind": "Status", "apiVersion": "v1", **status},
    )
    for name, millis in (
        ("requestReceivedTimestamp", draw.uniform(5.2, 9)),
        ("stageTimestamp", draw.uniform(0.2, 5)),
    ):
        instant = begun - timedelta(milliseconds=millis)
        vain[name] = instant.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return vain


def divide_between_schedulers(lines: Lines, draw: random.Random) -> int:
    """A half of the pods names another scheduler, which has a user and a reporter of its own."""
    theirs = {
        _place(line)
        for line in lines
        if line["objectRef"]["resource"] == "pods"
        and line["verb"] == "create"
        and not line["objectRef"].get("subresource")
        and draw.random() < 0.5
    }
    users: dict[tuple[str, str], tuple[str, str]] = {}
    for line in lines:
        tree, resource = line.get("responseObject") or {}, line["objectRef"]["resource"]
        place = _place(line)
        if resource == "pods" and place in theirs and "spec" in tree:
            tree["spec"]["schedulerName"] = SECOND
        if resource == "resourceclaims":
            for owner in tree.get("metadata", {}).get("ownerReferences", ()):
                users[place] = (place[0], owner["name"])
            if place not in users or line["user"]["username"] == SCHEDULER:
                reserved = (tree.get("status") or {}).get("reservedFor", ())
                for consumer in reserved[-1:] if not _owners(tree) else ():
                    users[place] = (place[0], consumer["name"])
        if line["user"]["username"] != SCHEDULER:
            continue
        match resource:
            case "events":
                subject = tree["involvedObject"]
                is_theirs = (subject["namespace"], subject["name"]) in theirs
            case "resourceclaims":
                is_theirs = users.get(place) in theirs
            case _:
                is_theirs = place in theirs
        if is_theirs:
            line["user"]["username"] = f"{MANAGER}{SECOND}"
            if resource == "events":
                _report_by(tree, SECOND)
    return len(theirs)


def divide_between_servers(lines: Lines, draw: random.Random) -> int:
    """Some clients talk to a second API server, whose clock is behind or ahead by up to 0.4 s."""
    ahead = timedelta(milliseconds=draw.choice([-1, 1]) * draw.uniform(40, 400))
    theirs = {user for user in sorted(_users(lines)) if draw.random() < 0.5}
    changed = 0
    for line in lines:
        if line["user"]["username"] in theirs:
            changed += 1
            for name in ("requestReceivedTimestamp", "stageTimestamp"):
                instant = datetime.fromisoformat(line[name].replace("Z", "+00:00")) + ahead
                line[name] = instant.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    lines.sort(key=lambda line: line["stageTimestamp"])
    return changed


def watch_anew(folder: Path, times: int) -> None:
    """The watches end so many times, and other ones at once go on in their files.

    Each begins with a list of what exists, sorted by namespace and name.
    """
    streams = {
        path: [json.loads(line) for line in path.read_text().splitlines()]
        for path in sorted(folder.iterdir())
    }
    versions = sorted(_version(event) for events in streams.values() for event in events)
    ends = [versions[len(versions) * number // (times + 1)] for number in range(1, times + 1)]
    for path, events in streams.items():
        left, state, written = [*ends], dict[tuple[str, str], Any](), list[Any]()
        for event in events:
            while left and _version(event) > left[0]:
                left.pop(0)
                written += [{"type": "ADDED", "object": state[each]} for each in sorted(state)]
            metadata = event["object"]["metadata"]
            place = metadata.get("namespace", ""), metadata["name"]
            state[place] = event["object"]
            if event["type"] == "DELETED":
                del state[place]
            written.append(event)
        path.write_text("".join(f"{json.dumps(event)}\n" for event in written))


def _version(event: Any) -> int:
    return int(event["object"]["metadata"]["resourceVersion"])


def _users(lines: Lines) -> set[str]:
    return {line["user"]["username"] for line in lines}


def _owners(tree: dict) -> list:
    return tree.get("metadata", {}).get("ownerReferences") or []


def _report_by(tree: dict, name: str) -> None:
    for field in ("reportingComponent", "reportingController"):
        if field in tree:
            tree[field] = name
    if "component" in tree.get("source", {}):
        tree["source"]["component"] = name


def _place(line: dict) -> tuple[str, str]:
    return line["objectRef"].get("namespace", ""), line["objectRef"]["name"]
