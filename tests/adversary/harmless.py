"""HARMLESS: logs that an honest cluster or its collector might have written just as well.

The verdict is that of the recording as it is: nothing that redra judges has changed.
"""

import copy
import gzip
import hashlib
import json
import random
import re
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from tests.adversary.catalogue import (
    ALL,
    MIG,
    NOT_BLAMED,
    QUICKSTART,
    SAME,
    SMALL,
    TAINTS,
    TPU,
    VERSIONS,
    Change,
    alteration,
)
from tests.adversary.log import Json, Log, NotFound, later, uid_of
from tests.adversary.rewriting import each_text

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{6})?Z")
_EVENT_NAME = re.compile(r"\.(18[0-9a-f]{14})\b")
_UID = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")
_SOME = (QUICKSTART, MIG, TAINTS, TPU)


def harmless(recordings: tuple[str, ...] = SMALL) -> Callable[[Change], Change]:
    """Registers an alteration after which all answers stay the same."""
    return alteration("harmless", recordings, verify=SAME, decide=SAME)


def _turned(node: Any, *, key: Callable[[str], object] | None) -> Any:
    if isinstance(node, dict):
        names = sorted(node) if key else list(node)[::-1]
        return {name: _turned(node[name], key=key) for name in names}
    if isinstance(node, list):
        return [_turned(item, key=key) for item in node]
    return node


@harmless(ALL)
def keys_in_reverse_order(log: Log) -> None:
    """The fields of every object come in the reverse order: JSON objects have none."""
    log.lines = [_turned(line, key=None) for line in log.lines]


@harmless()
def keys_sorted_and_blanks(log: Log) -> str:
    """A collector wrote the lines anew with sorted keys and blanks after colons."""
    return "".join(json.dumps(line, sort_keys=True) + "\n" for line in log.lines)


@harmless()
def carriage_returns(log: Log) -> str:
    """The lines end as Windows ends them."""
    return log.text().replace("\n", "\r\n")


@harmless()
def byte_order_mark_and_blank_lines(log: Log) -> bytes:
    """A mark at the beginning, an empty line after every tenth, none at the end."""
    lines = log.text().splitlines()
    text = "\n".join(line + ("\n" if n % 10 == 0 else "") for n, line in enumerate(lines))
    return b"\xef\xbb\xbf" + text.encode()


@harmless(ALL)
def packed(log: Log) -> bytes:
    """The file is packed, in several members as rotated files put together are."""
    lines = log.text().splitlines(keepends=True)
    third = len(lines) // 3 + 1
    return b"".join(
        gzip.compress("".join(lines[n : n + third]).encode()) for n in range(0, len(lines), third)
    )


@harmless(ALL)
def every_line_twice(log: Log) -> None:
    """A collector delivers at least once: every line comes twice, with one auditID."""
    log.lines = [line for line in log.lines for _ in (0, 1)]


@harmless()
def the_end_again(log: Log) -> None:
    """A rotated file was read again: the last third follows once more."""
    log.lines += log.lines[-len(log.lines) // 3 :]


@harmless()
def in_the_order_of_receipt(log: Log) -> None:
    """A store of logs gives the lines sorted by the time at which requests were received."""
    log.lines.sort(key=lambda line: str(line["requestReceivedTimestamp"]))


@harmless()
def newest_first(log: Log) -> None:
    """A store of logs gives the newest lines first."""
    log.lines.reverse()


@harmless()
def shuffled(log: Log) -> None:
    """A store of logs gives the lines in no order; each has its time and version."""
    random.Random(7).shuffle(log.lines)


@harmless()
def one_list(log: Log) -> str:
    """The lines are batches of a webhook: lists of a hundred events."""
    size = 100
    return "".join(
        json.dumps(
            {
                "kind": "EventList",
                "apiVersion": "audit.k8s.io/v1",
                "metadata": {},
                "items": log.lines[n : n + size],
            }
        )
        + "\n"
        for n in range(0, len(log.lines), size)
    )


@harmless()
def received_stages_between(log: Log) -> None:
    """The policy does not leave out the stage RequestReceived: each request has two lines."""
    lines = []
    for line in log.lines:
        first = copy.deepcopy(line)
        first["stage"] = "RequestReceived"
        first["stageTimestamp"] = first["requestReceivedTimestamp"]
        for field in ("responseStatus", "responseObject", "annotations"):
            first.pop(field, None)
        lines += [first, line]
    log.lines = lines


@harmless()
def started_and_panicked_stages(log: Log) -> None:
    """Lines of stages that end no write: watches that start, and a read that ended in a panic."""
    for number in range(len(log.lines) - 1, 0, -7):
        line = copy.deepcopy(log.lines[number])
        if line["level"] == "Metadata":
            line["stage"] = "Panic"
            line["responseStatus"] = {"metadata": {}, "code": 500, "status": "Failure"}
            line["auditID"] = f"{number:08d}-0000-4000-8000-000000000000"
            log.lines.insert(number, line)


def _renamed(log: Log, pairs: dict[str, str]) -> None:
    pattern = re.compile("|".join(map(re.escape, pairs)))
    if not any(name in log.text() for name in pairs):
        raise NotFound(str(pairs))
    each_text(log, lambda text: pattern.sub(lambda match: pairs[match[0]], text))


@harmless()
def nodes_renamed(log: Log) -> None:
    """The nodes, and pools named after them, have other names in the same order."""
    named = "worker-" in log.text() or "dgx-" in log.text()
    _renamed(
        log,
        {"worker-": "wrk-", "dgx-": "dgy-"}
        if named
        else {f"node-{n}": f"n-{n}" for n in range(10)},
    )


@harmless((QUICKSTART, TAINTS, MIG, TPU))
def namespaces_renamed(log: Log) -> None:
    """The namespaces of the workloads have other names."""
    pairs = {}
    for space in ("basic-resourceclaimtemplate", "basic-shared-claim-across-pods", "never-fits"):
        pairs[space] = f"x-{space[2:]}"
    for space in ("taints", "mig", "tpu"):
        pairs[f"namespaces/{space}"] = f"namespaces/lab-{space}"
        pairs[f'"namespace": "{space}"'] = f'"namespace": "lab-{space}"'
        pairs[f'"name": "{space}", "apiVersion"'] = f'"name": "lab-{space}", "apiVersion"'
        pairs[f'"name": "{space}", "uid"'] = f'"name": "lab-{space}", "uid"'
        pairs[f'"kubernetes.io/metadata.name": "{space}"'] = (
            f'"kubernetes.io/metadata.name": "lab-{space}"'
        )
        pairs[f'"name": "{space}"}}'] = f'"name": "lab-{space}"}}'
        pairs[f'"name": "{space}", "labels"'] = f'"name": "lab-{space}", "labels"'
        pairs[f"claim {space}/"] = f"claim lab-{space}/"
        pairs[f"assigned {space}/"] = f"assigned lab-{space}/"
        pairs[f"pod: {space}/"] = f"pod: lab-{space}/"
    _renamed(log, pairs)


@harmless()
def domains_renamed(log: Log) -> None:
    """The drivers are of another vendor: their domain is another one of the same order."""
    _renamed(
        log,
        {
            "gpu.example.com": "gpu.acme.example",
            "gpu.nvidia.com": "gpu.vendor.example",
            "mig.nvidia.com": "mig.vendor.example",
            "tpu.google.com": "tpu.vendor.example",
        },
    )


@harmless(ALL)
def uids_exchanged(log: Log) -> None:
    """All uids are others, each always the same one."""

    def other(match: re.Match[str]) -> str:
        text = hashlib.sha256(match[0].encode()).hexdigest()
        return f"{text[:8]}-{text[8:12]}-4{text[13:16]}-8{text[17:20]}-{text[20:32]}"

    each_text(log, lambda text: _UID.sub(other, text))


@harmless(ALL)
def versions_times_ten(log: Log) -> None:
    """Every version of the store is ten times as high: other kinds took those between."""
    log.widen()


@harmless()
def versions_far_along(log: Log) -> None:
    """The store is old: every version is higher by twelve thousand million."""

    def walk(node: object) -> None:
        if isinstance(node, list):
            for item in node:
                walk(item)
        elif isinstance(node, dict):
            for key, value in node.items():
                if key == "resourceVersion" and isinstance(value, str) and value.isdigit():
                    node[key] = str(int(value) + 12_000_000_000)
                else:
                    walk(value)

    walk(log.lines)


def _times(log: Log, change: Callable[[str], str]) -> None:
    each_text(log, lambda text: _TIME.sub(lambda match: change(match[0]), text))


@harmless(ALL)
def in_another_year(log: Log) -> None:
    """Everything happens 403 days, 7 hours and 13 seconds earlier, the names of Events included."""
    delta = timedelta(days=-403, hours=-7, seconds=-13)

    def change(text: str) -> str:
        form = "%Y-%m-%dT%H:%M:%S.%fZ" if "." in text else "%Y-%m-%dT%H:%M:%SZ"
        return (datetime.fromisoformat(text) + delta).strftime(form)

    def name(match: re.Match[str]) -> str:
        return f".{int(match[1], 16) + int(delta.total_seconds()) * 10**9:016x}"

    _times(log, change)
    each_text(log, lambda text: _EVENT_NAME.sub(name, text))


@harmless()
def times_with_nanoseconds(log: Log) -> None:
    """A collector writes the times of the lines with nine digits."""
    for line in log.lines:
        for field in ("requestReceivedTimestamp", "stageTimestamp"):
            line[field] = line[field].replace("Z", "000Z")


@harmless()
def times_with_offset(log: Log) -> None:
    """A collector writes the times of the lines in a zone two hours ahead."""
    for line in log.lines:
        for field in ("requestReceivedTimestamp", "stageTimestamp"):
            line[field] = later(line[field], 7200).replace("Z", "+02:00")


@alteration("harmless", SMALL, verify=NOT_BLAMED, decide=NOT_BLAMED)
def times_to_milliseconds(log: Log) -> None:
    """A collector keeps milliseconds of the times of lines: some order within one is lost."""
    for line in log.lines:
        for field in ("requestReceivedTimestamp", "stageTimestamp"):
            line[field] = line[field][:-4] + "Z"


@alteration("harmless", _SOME, verify=NOT_BLAMED, decide=NOT_BLAMED)
def times_to_seconds(log: Log) -> None:
    """A collector keeps whole seconds: the order of lines and the versions are still there."""
    for line in log.lines:
        for field in ("requestReceivedTimestamp", "stageTimestamp"):
            line[field] = line[field][:-8] + "Z"


_USERS = {
    "system:kube-scheduler": "system:serviceaccount:openshift-kube-scheduler:openshift-kube-sched",
    "system:kube-controller-manager": "system:serviceaccount:openshift-kcm:kcm",
    "alice": "u-6xk2p@example.com",
    "kubernetes-admin": "kube:admin",
    "system:serviceaccount:dra-driver:dra-driver": "system:serviceaccount:nvidia:gpu-driver",
}


@harmless(ALL)
def users_renamed(log: Log) -> None:
    """Scheduler, users and driver have other names, as on other platforms."""
    for line in log.lines:
        name = line["user"]["username"]
        line["user"]["username"] = _USERS.get(name, name)


@alteration("harmless", SMALL, verify=NOT_BLAMED, decide=NOT_BLAMED)
def bindings_through_a_server_whose_clock_is_behind(log: Log) -> None:
    """A client changes its server (goaway-chance): bindings, without versions, are 15 ms early."""
    for line in log.lines:
        if line["objectRef"].get("subresource") == "binding":
            for field in ("requestReceivedTimestamp", "stageTimestamp"):
                line[field] = later(line[field], -0.015)


@alteration("harmless", SMALL, verify=NOT_BLAMED, decide=NOT_BLAMED)
def every_second_line_from_a_server_ahead(log: Log) -> None:
    """Two API servers behind a load balancer; the clock of one is 20 ms ahead."""
    for line in log.lines[1::2]:
        for field in ("requestReceivedTimestamp", "stageTimestamp"):
            line[field] = later(line[field], 0.02)


@alteration("harmless", ALL, verify=SAME, decide=NOT_BLAMED)
def controllers_share_an_account(log: Log) -> None:
    """All loops of the controller manager use one account (no use-service-account-credentials)."""
    for line in log.lines:
        if line["user"]["username"].startswith("system:serviceaccount:kube-system:"):
            line["user"]["username"] = "system:kube-controller-manager"


@alteration("harmless", _SOME, verify=SAME, decide=NOT_BLAMED)
def everybody_is_admin(log: Log) -> None:
    """A small cluster: everything, users and control plane, is done as one administrator."""
    for line in log.lines:
        line["user"] = {"username": "kubernetes-admin", "groups": ["system:masters"]}


@harmless()
def agents_and_addresses(log: Log) -> None:
    """Other user agents, addresses, audit annotations and unknown fields of the lines."""
    for number, line in enumerate(log.lines):
        line["userAgent"] = "hyperkube/v0"
        line["sourceIPs"] = ["2001:db8::7", "192.0.2.1"]
        line.setdefault("annotations", {})["mutation.webhook.example.com/x"] = str(number)
        line["authenticationMetadata"] = {"impersonationConstraint": ""}


@harmless((QUICKSTART, MIG, TPU, TAINTS, VERSIONS))
def managed_fields_left_out(log: Log) -> None:
    """The policy leaves managed fields out (omitManagedFields), as most do."""

    def walk(node: object) -> None:
        if isinstance(node, list):
            for item in node:
                walk(item)
        elif isinstance(node, dict):
            node.pop("managedFields", None)
            for value in node.values():
                walk(value)

    walk(log.lines)


@harmless()
def pods_with_annotations_and_labels(log: Log) -> None:
    """A webhook gives every pod an annotation and a label at its creation."""
    for number in list(log.find("create", "pods", code=201)):

        def change(body: Json) -> None:
            body["metadata"].setdefault("annotations", {})["injector.example.com/v"] = "7"
            body["metadata"].setdefault("labels", {})["team"] = "a"

        log.alter(uid_of(log.lines[number]), lambda body: change(body) if "spec" in body else None)


@harmless()
def claims_and_slices_with_annotations(log: Log) -> None:
    """Templates give their claims an annotation, and the driver its slices (2.2)."""
    for line in log.lines:
        for side in ("requestObject", "responseObject"):
            body = line.get(side)
            if not isinstance(body, dict):
                continue
            if body.get("kind") == "ResourceClaimTemplate":
                inner = body["spec"].setdefault("metadata", {})
                inner.setdefault("annotations", {})["cost.example.com/centre"] = "42"
            if body.get("kind") == "ResourceSlice":
                body["metadata"].setdefault("annotations", {})["driver.example.com/build"] = "9"
            owners = body.get("metadata", {}).get("ownerReferences")
            if body.get("kind") == "ResourceClaim" and owners:
                body["metadata"]["annotations"]["cost.example.com/centre"] = "42"


@harmless()
def an_idle_second_driver(log: Log) -> None:
    """Another driver publishes a slice of its own that nobody asks for."""
    log.widen()
    place = log.first("create", "resourceslices", code=201)
    new = log.again(place, seconds=0.001, to=place + 1)
    version = str(log.version_before(place + 1))
    for body in (new["requestObject"], new["responseObject"]):
        body["metadata"]["name"] = "zz-nic"
        body["apiVersion"] = "resource.k8s.io/v1"
        body["spec"] = {
            "driver": "nic.example.com",
            "nodeName": body["spec"].get("nodeName", "node-9"),
            "pool": {"name": "nics", "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": "nic-0"}],
        }
    new["requestURI"] = "/apis/resource.k8s.io/v1/resourceslices"
    new["objectRef"].update(name="zz-nic", apiVersion="v1")
    new["responseObject"]["metadata"].update(
        uid="a1b7a3f0-0000-4000-8000-0000000000ff", resourceVersion=version
    )


@harmless((QUICKSTART, MIG, TAINTS))
def older_version_of_the_group(log: Log) -> None:
    """Every client writes and reads resource.k8s.io/v1beta2, whose objects look the same."""
    for line in log.lines:
        if line["objectRef"].get("apiGroup") == "resource.k8s.io":
            line["objectRef"]["apiVersion"] = "v1beta2"
    each_text(
        log,
        lambda text: re.sub(r"resource\.k8s\.io/v1(?!beta|alpha)", "resource.k8s.io/v1beta2", text),
    )
