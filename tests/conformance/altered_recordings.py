"""Recordings altered by machine; the meaning of each alteration decides the verdict.

Lines are those of an audit log. Nothing here depends on how a replay works: an alteration is a rule
about lines, objects and their fields.
"""

from collections.abc import Callable, Iterator
from copy import deepcopy

from app.domain.values import timestamps

SCHEDULER = "system:kube-scheduler"
ACCOUNTS = "system:serviceaccount:kube-system:"
EVICTION = "device-taint-eviction-controller"
CLAIMS = "resource-claim-controller"
SECONDS = 1_000_000


def renamed(lines: list[dict]) -> list[dict]:
    """Gives every user another, meaningless name."""
    names: dict[str, str] = {}

    def rename(line: dict) -> dict:
        user = line["user"]
        name = names.setdefault(user["username"], f"user-{len(names)}")
        return {**line, "user": {**user, "username": name}, "userAgent": "agent"}

    return [rename(line) for line in lines]


def under_accounts_of_a_company(lines: list[dict]) -> list[dict]:
    """Scheduler and controllers keep an account each, with names that upstream does not know."""
    names = (("system:kube-scheduler", "acme:scheduler"), (ACCOUNTS, "corp:"))

    def rename(line: dict) -> dict:
        name = line["user"]["username"]
        for prefix, other in names:
            if name.startswith(prefix):
                name = other + name[len(prefix) :]
        return {**line, "user": {**line["user"], "username": name}}

    return [rename(line) for line in lines]


def under_one_account(lines: list[dict]) -> list[dict]:
    """All controllers of the manager under the one name that they have without accounts."""

    def merge(line: dict) -> dict:
        if not line["user"]["username"].startswith(ACCOUNTS):
            return line
        return {**line, "user": {**line["user"], "username": "system:kube-controller-manager"}}

    return [merge(line) for line in lines]


def with_late_clock(lines: list[dict], millis: int) -> list[dict]:
    """Shifts the scheduler's clock, which dates its Events."""

    def late(tree: dict) -> dict:
        if tree.get("eventTime"):
            at = timestamps.parse(tree["eventTime"]) + millis * 1_000
            tree = {**tree, "eventTime": timestamps.micro_text(timestamps.Instant(at))}
        return tree

    return [
        _changed(line, late)
        if line["user"]["username"] == SCHEDULER and line["objectRef"]["resource"] == "events"
        else line
        for line in lines
    ]


def given_twice(lines: list[dict], seconds: float) -> tuple[list[dict], str]:
    """Gives a claim the device of another claim for some seconds; returns its name."""
    holders: dict[tuple[str, str, str], str] = {}
    for number, line in enumerate(lines):
        claim = _body(line)
        is_about_claim = line["objectRef"]["resource"] == "resourceclaims"
        if not is_about_claim or not _is_done(line) or "metadata" not in claim:
            continue
        name = line["objectRef"].get("name") or claim["metadata"]["name"]
        results = _results(claim)
        for device in [each for each, holder in holders.items() if holder == name]:
            del holders[device]
        if line["verb"] == "delete" or not results:
            continue
        mine = _device(results[0])
        others = [each for each in holders if each[:2] == mine[:2] and each != mine]
        is_fresh = "allocationTimestamp" in claim["status"]["allocation"] and len(results) == 1
        if others and is_fresh:
            return _with_device(lines, number, name, others[0][2], seconds), name
        for each in results:
            holders[_device(each)] = name
    raise AssertionError("no two claims of one pool at a time")


def moved(lines: list[dict], pod: str, node: str) -> list[dict]:
    """The pod runs on another node; its claims stay where they are."""

    def move(tree: dict) -> dict:
        for part, field in (("spec", "nodeName"), ("status", "nominatedNodeName")):
            if isinstance(tree.get(part), dict) and tree[part].get(field):
                tree[part][field] = node
        if "target" in tree:
            tree["target"]["name"] = node
        return tree

    return [_changed(line, move) if _is_about(line, "pods", pod) else line for line in lines]


def exchanged(lines: list[dict], first: str, second: str) -> list[dict]:
    """Exchanges two names, such as those of devices, in everything about claims."""
    names = {first: second, second: first}

    def exchange(tree: object) -> object:
        if isinstance(tree, dict):
            return {field: exchange(value) for field, value in tree.items()}
        if isinstance(tree, list):
            return [exchange(item) for item in tree]
        return names.get(tree, tree) if isinstance(tree, str) else tree

    return [
        _changed(line, exchange) if line["objectRef"]["resource"] == "resourceclaims" else line
        for line in lines
    ]


def with_attribute(lines: list[dict], device: str, name: str, value: str) -> list[dict]:
    """A device was published with another value of an attribute."""

    def change(tree: dict) -> dict:
        for each in tree.get("spec", {}).get("devices", ()):
            if each["name"] == device:
                each["attributes"][name] = {"string": value}
        return tree

    return [
        _changed(line, change) if line["objectRef"]["resource"] == "resourceslices" else line
        for line in lines
    ]


def reserved_as_well(lines: list[dict], claim: str, name: str, uid: str) -> list[dict]:
    """While the claim is reserved for its pod, it is reserved for another consumer as well."""

    def reserve(tree: dict) -> dict:
        status = tree.get("status")
        if isinstance(status, dict) and status.get("reservedFor"):
            status["reservedFor"].append({"resource": "pods", "name": name, "uid": uid})
        return tree

    return [
        _changed(line, reserve) if _is_about(line, "resourceclaims", claim) else line
        for line in lines
    ]


def made_with(lines: list[dict], claim: str, **exactly: object) -> list[dict]:
    """The claim requests something else than its template, in every line about it."""

    def ask(tree: dict) -> dict:
        for request in (tree.get("spec") or {}).get("devices", {}).get("requests", ()):
            request["exactly"] |= exactly
        return tree

    return [
        _changed(line, ask) if _is_about(line, "resourceclaims", claim) else line for line in lines
    ]


def without_bodies(lines: list[dict], is_bare: Callable[[dict], bool]) -> list[dict]:
    """Some lines at the level Metadata, without request and response objects."""
    bodies = ("requestObject", "responseObject")
    return [
        {**{name: part for name, part in line.items() if name not in bodies}, "level": "Metadata"}
        if is_bare(line)
        else line
        for line in lines
    ]


def is_made(line: dict, resource: str, name: str) -> bool:
    """True when the line is the create of an object."""
    return line["verb"] == "create" and _is_done(line) and _is_about(line, resource, name)


def uid_of(lines: list[dict], resource: str, name: str) -> str:
    """The uid of the first object of that name."""
    return next(_body(line)["metadata"]["uid"] for line in lines if is_made(line, resource, name))


def without(lines: list[dict], is_left_out: Callable[[dict], bool]) -> list[dict]:
    """The log without some lines."""
    return [line for line in lines if not is_left_out(line)]


def is_placement_of(pod: str, claims: set[str]) -> Callable[[dict], bool]:
    """True for the lines about a pod and its claims from its placement on."""
    began = False

    def tell(line: dict) -> bool:
        nonlocal began
        reference = line["objectRef"]
        about_pod = _is_about(line, "pods", pod)
        about_claim = reference["resource"] == "resourceclaims" and reference.get("name") in claims
        is_theirs = line["user"]["username"] == SCHEDULER
        nominated = _body(line).get("status", {})
        if about_pod and is_theirs and isinstance(nominated, dict):
            began |= "nominatedNodeName" in nominated or reference.get("subresource") == "binding"
        about_event = reference["resource"] == "events" and (
            _body(line).get("regarding", {}).get("name") == pod
        )
        return began and (about_pod or about_claim or about_event)

    return tell


def is_eviction_of(pod: str) -> Callable[[dict], bool]:
    """True for the lines about a pod from its eviction for a taint on."""
    began = False

    def tell(line: dict) -> bool:
        nonlocal began
        body = _body(line)
        about_event = line["objectRef"]["resource"] == "events" and (
            (body.get("regarding") or body.get("involvedObject") or {}).get("name") == pod
        )
        is_about = _is_about(line, "pods", pod) or about_event
        began |= is_about and line["user"]["username"].endswith(EVICTION)
        return began and is_about

    return tell


def evicted(lines: list[dict]) -> Iterator[str]:
    """Pods that were evicted for taints."""
    for line in lines:
        if line["user"]["username"].endswith(EVICTION) and line["verb"] == "delete":
            yield line["objectRef"]["name"]


def bound(lines: list[dict]) -> Iterator[tuple[str, str]]:
    """Pods that were bound, with their nodes."""
    for line in lines:
        if line["objectRef"].get("subresource") == "binding" and _is_done(line):
            yield line["objectRef"]["name"], line["requestObject"]["target"]["name"]


def claims_of(lines: list[dict], pod: str) -> set[str]:
    """Claims that were made for a pod."""
    return {
        _body(line)["metadata"]["name"]
        for line in lines
        if line["objectRef"]["resource"] == "resourceclaims"
        and line["verb"] == "create"
        and any(
            owner["name"] == pod for owner in _body(line)["metadata"].get("ownerReferences", ())
        )
    }


def is_release_of(lines: list[dict], pod: str) -> Callable[[dict], bool]:
    """True for the lines in which a controller takes claims back that were reserved for a pod."""
    claims = {
        _body(line)["metadata"]["name"]
        for line in lines
        if _body(line).get("kind") == "ResourceClaim"
        and any(user["name"] == pod for user in _body(line)["status"].get("reservedFor", ()))
    }
    return lambda line: (
        line["objectRef"]["resource"] == "resourceclaims"
        and line["objectRef"].get("name") in claims
        and line["user"]["username"].endswith(CLAIMS)
    )


def _with_device(
    lines: list[dict], since: int, claim: str, device: str, seconds: float
) -> list[dict]:
    until = timestamps.parse(lines[since]["stageTimestamp"]) + int(seconds * SECONDS)

    def give(tree: dict) -> dict:
        for each in _results(tree):
            each["device"] = device
        return tree

    return [
        _changed(line, give)
        if number >= since
        and _is_about(line, "resourceclaims", claim)
        and timestamps.parse(line["stageTimestamp"]) <= until
        else line
        for number, line in enumerate(lines)
    ]


def _changed(line: dict, change: Callable) -> dict:
    changed = deepcopy(line)
    for part in ("requestObject", "responseObject"):
        if isinstance(changed.get(part), dict):
            changed[part] = change(changed[part])
    return changed


def _body(line: dict) -> dict:
    return line.get("responseObject") or line.get("requestObject") or {}


def _is_done(line: dict) -> bool:
    return line["responseStatus"].get("code", 200) < 300


def _is_about(line: dict, resource: str, name: str) -> bool:
    reference = line["objectRef"]
    made = _body(line).get("metadata") or {}
    return reference["resource"] == resource and name in (reference.get("name"), made.get("name"))


def _results(claim: dict) -> list[dict]:
    status = claim.get("status")
    allocation = status.get("allocation") or {} if isinstance(status, dict) else {}
    return allocation.get("devices", {}).get("results", [])


def _device(result: dict) -> tuple[str, str, str]:
    return result["driver"], result["pool"], result["device"]


def in_versions(lines: list[dict], *versions: str) -> list[dict]:
    """Objects of resource.k8s.io/v1 as clients of older versions saw them, line by line in turn."""

    def ask(line: dict, version: str) -> dict:
        reference = line["objectRef"]
        if reference.get("apiGroup") != "resource.k8s.io" or reference["apiVersion"] != "v1":
            return line
        uri = line["requestURI"].replace("resource.k8s.io/v1/", f"resource.k8s.io/{version}/")
        asked = {**line, "objectRef": {**reference, "apiVersion": version}, "requestURI": uri}
        return _changed(asked, lambda tree: _of_version(tree, version))

    return [ask(line, versions[number % len(versions)]) for number, line in enumerate(lines)]


def _of_version(tree: dict, version: str) -> dict:
    """An object, or a list of some. v1beta1 has no `exactly`, and devices that are `basic`."""
    if tree.get("apiVersion") == "resource.k8s.io/v1":
        tree["apiVersion"] = f"resource.k8s.io/{version}"
    for item in tree.get("items", ()):
        _of_version(item, version)
    if version == "v1beta1" and isinstance(tree.get("spec"), dict):
        _flatten(tree["spec"])
    return tree


def _flatten(spec: dict) -> None:
    if isinstance(spec.get("spec"), dict):
        _flatten(spec["spec"])
    devices = spec.get("devices")
    if isinstance(devices, dict):
        for request in devices.get("requests", ()):
            request.update(request.pop("exactly", {}))
    if isinstance(devices, list):
        spec["devices"] = [{"name": each.pop("name"), "basic": each} for each in devices]
