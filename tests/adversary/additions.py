"""HARMLESS: more lines, of things that change nothing, and recordings that end earlier."""

import copy
from collections.abc import Callable

from tests.adversary.catalogue import ALL, NOT_BLAMED, alteration
from tests.adversary.harmless import harmless
from tests.adversary.log import FACTOR, Json, Log, NotFound


def _write(log: Log, at: int, **how: object) -> None:
    base = log.lines[at]
    line: Json = {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": "RequestResponse",
        "auditID": f"{at:08d}-1111-4000-8000-000000000000",
        "stage": "ResponseComplete",
        "verb": "update",
        "user": {"username": "system:node:worker-1", "groups": ["system:nodes"]},
        "sourceIPs": ["192.0.2.7"],
        "userAgent": "kubelet/v1.36.2",
        "responseStatus": {"metadata": {}, "code": 200},
        "requestReceivedTimestamp": base["requestReceivedTimestamp"],
        "stageTimestamp": base["stageTimestamp"],
    }
    line.update(how)
    log.lines.insert(at, line)


@harmless()
def unknown_kinds(log: Log) -> None:
    """Writes of kinds that redra does not know lie between: leases, and objects of an operator.

    Corrected: some of them had a version that a later write had before, or the one of another.
    """
    log.widen()
    _unknown(log, 5, "coordination.k8s.io/v1", "Lease", "leases")
    _unknown(log, 11, "ops.example.com/v2", "Frob", "frobs")


def _unknown(log: Log, every: int, api_version: str, kind: str, plural: str) -> None:
    space, last = "kube-node-lease", api_version.rpartition("/")[2]
    places: dict[int, tuple[int, int]] = {}
    for number in range(61 + (len(log.lines) - 62) % every, len(log.lines), every):
        # One write between the last recorded version and the next, which is FACTOR higher.
        before = log.version_before(number)
        places.setdefault(before // FACTOR, (number, before - 1 + every % 7))
    first = min(places.values())
    for number, version in reversed(places.values()):
        made = number == first[0]
        named = {"name": "x", "namespace": space, "uid": "a1b7a3f0-0000-4000-8000-0000000000aa"}
        named["resourceVersion"] = str(version)
        body: Json = {"kind": kind, "apiVersion": api_version, "metadata": named}
        body["odd"] = [{}, None, {"a": [number]}]
        about = {"resource": plural, "namespace": space, "name": "x", "apiVersion": last}
        about["apiGroup"] = api_version.rpartition("/")[0]
        _write(
            log,
            number,
            verb="create" if made else "update",
            responseStatus={"metadata": {}, "code": 201 if made else 200},
            auditID=f"{number:08d}-{every:04d}-4000-8000-000000000000",
            objectRef=about,
            requestObject=body,
            responseObject=body,
            requestURI=f"/apis/{api_version}/namespaces/{space}/{plural}" + ("" if made else "/x"),
        )


@harmless()
def refused_requests(log: Log) -> None:
    """Somebody without rights tries to delete pods and claims, and is refused with 403."""
    status = {"metadata": {}, "status": "Failure", "reason": "Forbidden", "code": 403}
    for number in reversed(list(log.find("create", "pods", code=201))):
        name = log.lines[number]["responseObject"]["metadata"]["name"]
        space = log.lines[number]["objectRef"]["namespace"]
        about = {"resource": "pods", "namespace": space, "name": name, "apiVersion": "v1"}
        _write(
            log,
            number + 2,
            verb="delete",
            objectRef=about,
            responseStatus=status,
            user={"username": "mallory"},
            userAgent="kubectl",
            responseObject={"kind": "Status", "apiVersion": "v1", **status},
            requestURI=f"/api/v1/namespaces/{space}/pods/{name}",
        )


@harmless()
def trials(log: Log) -> None:
    """Pods are created with dryRun=All: nothing is stored."""
    for number in reversed(list(log.find("create", "pods", code=201))):
        line = copy.deepcopy(log.lines[number])
        line["auditID"] = f"{number:08d}-2222-4000-8000-000000000000"
        line["requestURI"] += ("&" if "?" in line["requestURI"] else "?") + "dryRun=All"
        line["responseObject"]["metadata"].pop("resourceVersion")
        line["responseObject"]["metadata"]["uid"] = f"{number:08d}-2222-4000-8000-00000000000d"
        log.lines.insert(number, line)


@harmless()
def writes_without_effect(log: Log) -> None:
    """Kubelets report a state again that is the stored one: no new version (6.4)."""
    for number in reversed(list(log.find("patch", "pods/status", by="system:node", code=200))):
        log.again(number, seconds=0.0001, to=number + 1)


@harmless()
def heartbeats(log: Log) -> None:
    """Nodes report their conditions every second: new versions with other heartbeat times only."""
    log.widen()
    last = {}
    for number in list(log.find("patch", "nodes", code=200)):
        last[log.lines[number]["objectRef"]["name"]] = number
    if not last:
        raise NotFound("no node")
    used: set[int] = set()
    for name, number in last.items():
        state = log.lines[number]["responseObject"]
        start = max(last.values())
        for made, place in enumerate(range(len(log.lines) - 1, start, -25)):
            before = log.lines[place - 1]
            body = copy.deepcopy(state)
            stamp = before["stageTimestamp"][:19] + "Z"
            conditions = [
                {"type": one["type"], "lastHeartbeatTime": stamp}
                for one in body["status"]["conditions"]
            ]
            for one in body["status"]["conditions"]:
                one["lastHeartbeatTime"] = stamp
            version = log.version_before(place) + 3 + sorted(last).index(name)
            if version in used:
                continue
            used.add(version)
            body["metadata"]["resourceVersion"] = str(version)
            about = {"resource": "nodes", "name": name, "apiVersion": "v1", "subresource": "status"}
            _write(
                log,
                place,
                verb="patch",
                objectRef=about,
                responseObject=body,
                user={"username": f"system:node:{name}", "groups": ["system:nodes"]},
                requestObject={"status": {"conditions": conditions}},
                requestReceivedTimestamp=before["stageTimestamp"],
                stageTimestamp=before["stageTimestamp"],
                auditID=f"{place:08d}-3333-4000-8000-{made:012d}",
                requestURI=f"/api/v1/nodes/{name}/status?timeout=10s",
            )
            if place > 1 and len(last) > 4:
                break


def _prefix(share: float) -> Callable[[Log], None]:
    return lambda log: log.cut(int(len(log.lines) * share))


def _register_ends() -> None:
    for percent in range(5, 100, 10):

        def change(log: Log, percent: int = percent) -> None:
            _prefix(percent / 100)(log)

        change.__name__ = f"ends_after_{percent}_percent"
        change.__doc__ = f"The recording ends after {percent} % of its lines."
        alteration("ends", ALL, verify=NOT_BLAMED, decide=NOT_BLAMED)(change)


_register_ends()
