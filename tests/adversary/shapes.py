"""SHAPES: fields that no release has, and values of other types than a server writes.

A field that is not known comes from a newer release or a collector; where it asks for something of
a device, it may decide. A value of another type is none that a server wrote: a collector changed
it, so that a refusal which names the place is as good as an answer, and what rests on the value is
never agreed to.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tests.adversary import devices, evictions
from tests.adversary.catalogue import (
    ALTERATIONS,
    MIG,
    NOT_BLAMED,
    NOT_PASSED,
    QUICKSTART,
    REFUSED_OR_NOT_BLAMED,
    REFUSED_OR_NOT_PASSED,
    SAME,
    SMALL,
    TAINTS,
    VERSIONS,
    alteration,
)
from tests.adversary.log import Json, Log, NotFound, results_of, uid_of

_WRONGS = (devices, evictions)
"""The modules whose alterations are taken: they have to be registered first."""


def _bodies(log: Log, *kinds: str) -> Iterator[Json]:
    for line in log.lines:
        for side in ("requestObject", "responseObject"):
            body = line.get(side)
            if not isinstance(body, dict):
                continue
            kind = str(body.get("kind", ""))
            if kind in kinds or not kinds:
                yield body
            elif kind.removesuffix("List") in kinds:
                yield from body.get("items") or ()


def _add(log: Log, path: Sequence[str], value: Any, *kinds: str) -> None:
    done = 0
    for body in _bodies(log, *kinds):
        node: Any = body
        for name in path[:-1]:
            node = node.get(name) if isinstance(node, dict) else None
        if isinstance(node, dict) and node:
            node[path[-1]] = value
            done += 1
    if not done:
        raise NotFound(str(path))


@alteration("shapes", SMALL, verify=SAME, decide=SAME)
def unknown_fields_of_lines(log: Log) -> None:
    """Each line, its user and its reference have fields more, of all types, as collectors add."""
    for number, line in enumerate(log.lines):
        line["@version"] = "1"
        line["cluster"] = {"name": "lab", "nodes": [None, 1.5, {}]}
        line["user"]["session"] = [number]
        line["objectRef"]["shard"] = number
        line["responseStatus"]["took"] = 1e-3


@alteration("shapes", SMALL, verify=SAME, decide=SAME)
def unknown_fields_of_metadata_and_status(log: Log) -> None:
    """Metadata and status of all objects have a field more, of a newer release."""
    _add(log, ("metadata", "shard"), {"id": 4, "of": [8]}, "Pod", "ResourceClaim", "Node")
    _add(log, ("status", "observedBy"), ["x"], "Pod", "Node", "ResourceClaim")


@alteration("shapes", SMALL, verify=SAME, decide=SAME)
def unknown_field_of_pods(log: Log) -> None:
    """The spec of pods has a field more, of a newer release, that kubelets read."""
    _add(log, ("spec", "hibernation"), {"policy": "Never"}, "Pod")


def _requests(log: Log, claim: str) -> Iterator[Json]:
    uid = uid_of(log.lines[log.allocation(claim)])
    for body in log.of(uid):
        for request in body.get("spec", {}).get("devices", {}).get("requests", ()):
            yield request.get("exactly", request)


@alteration("shapes", (QUICKSTART, MIG, TAINTS, VERSIONS), verify=NOT_BLAMED, decide=NOT_BLAMED)
def unknown_field_of_a_request(log: Log) -> None:
    """A request has a field more: a newer release may have asked for something with it."""
    for request in _requests(log, ""):
        request["affinity"] = {"near": "nic"}


@alteration("shapes", (QUICKSTART, MIG, TAINTS, VERSIONS), verify=NOT_BLAMED, decide=NOT_BLAMED)
def unknown_field_of_devices(log: Log) -> None:
    """Devices have a field more, of a newer release."""
    for body in _bodies(log, "ResourceSlice"):
        for one in body["spec"].get("devices") or ():
            one["orbit"] = {"height": 3}


def _beside(wrong: str, recording: str, change_log: Callable[[Log], None], verdict: str) -> None:
    one = ALTERATIONS[wrong]

    def change(log: Log) -> None:
        one.change(log)
        change_log(log)

    change.__name__ = f"{wrong}_and_{change_log.__name__}"
    change.__doc__ = f"{one.why} Besides: {' '.join((change_log.__doc__ or '').split())}"
    verify, decide = (one.verify, one.decide) if verdict == SAME else (verdict, verdict)
    alteration("shapes", recording, verify=verify, decide=decide)(change)


for _field in (
    unknown_fields_of_lines,
    unknown_fields_of_metadata_and_status,
    unknown_field_of_pods,
):
    _beside("device_in_two_claims", QUICKSTART, _field, SAME)
    _beside("later_device_than_the_first", QUICKSTART, _field, SAME)
    _beside("eviction_missing", TAINTS, _field, SAME)
for _field in (unknown_field_of_a_request, unknown_field_of_devices):
    _beside("device_in_two_claims", QUICKSTART, _field, NOT_PASSED)
    _beside("later_device_than_the_first", QUICKSTART, _field, NOT_PASSED)


def _texts(node: Any) -> Any:
    """The value with each number as a text."""
    if isinstance(node, dict):
        return {name: _texts(value) for name, value in node.items()}
    if isinstance(node, list):
        return [_texts(item) for item in node]
    if isinstance(node, int | float) and not isinstance(node, bool):
        return str(node)
    return node


def _lone(node: Any) -> Any:
    """The value with each list of one item as the item."""
    if isinstance(node, dict):
        return {name: _lone(value) for name, value in node.items()}
    if isinstance(node, list):
        return _lone(node[0]) if len(node) == 1 else [_lone(item) for item in node]
    return node


def _each_body(log: Log, change: Callable[[Any], Any]) -> None:
    for line in log.lines:
        for side in ("requestObject", "responseObject"):
            if side in line:
                line[side] = change(line[side])


@alteration("shapes", SMALL, verify=REFUSED_OR_NOT_BLAMED, decide=REFUSED_OR_NOT_BLAMED)
def numbers_are_texts(log: Log) -> None:
    """An index holds texts alone: each number in an object is a text."""
    _each_body(log, _texts)


@alteration("shapes", SMALL, verify=REFUSED_OR_NOT_BLAMED, decide=REFUSED_OR_NOT_BLAMED)
def lists_of_one_are_items(log: Log) -> None:
    """An index holds each list of one item as that item."""
    _each_body(log, _lone)


@alteration("shapes", SMALL, verify=REFUSED_OR_NOT_BLAMED, decide=REFUSED_OR_NOT_BLAMED)
def codes_are_texts(log: Log) -> None:
    """An index holds the codes of answers as texts."""
    for line in log.lines:
        line["responseStatus"]["code"] = str(line["responseStatus"]["code"])


def _wrong_type(
    name: str, why: str, recordings: Sequence[str], change: Callable[[Json], object]
) -> None:
    """Registers a change of each state of an allocated claim, and of the allocation alone."""

    def everywhere(log: Log) -> None:
        uid = uid_of(log.lines[log.allocation("")])
        done = [change(body) for body in log.of(uid) if results_of(body)]
        assert done

    everywhere.__name__ = name
    everywhere.__doc__ = why
    alteration("shapes", recordings, verify=REFUSED_OR_NOT_PASSED, decide=REFUSED_OR_NOT_PASSED)(
        everywhere
    )


def _devices(body: Json) -> Json:
    devices: Json = body["status"]["allocation"]["devices"]
    return devices


_ALLOCATED = (QUICKSTART, MIG, TAINTS, VERSIONS)

for _name, _why, _change in (
    (
        "device_is_a_number",
        "The name of an allocated device is a number, which names none.",
        lambda body: results_of(body)[0].update(device=0),
    ),
    (
        "results_are_an_object",
        "The results of an allocation are an object by number, which gives no device.",
        lambda body: _devices(body).update(results={"0": _devices(body)["results"][0]}),
    ),
    (
        "results_are_a_text",
        "The results of an allocation are a text, which gives no device.",
        lambda body: _devices(body).update(results=str(_devices(body)["results"])),
    ),
    (
        "pool_is_a_list",
        "The pool of an allocated device is a list with its name.",
        lambda body: results_of(body)[0].update(pool=[results_of(body)[0]["pool"]]),
    ),
    (
        "consumers_are_a_text",
        "The consumers of an allocated claim are a text, which names no pod.",
        lambda body: body["status"].update(reservedFor=str(body["status"].get("reservedFor"))),
    ),
    (
        "allocation_is_a_list",
        "The allocation of a claim is a list with it.",
        lambda body: body["status"].update(allocation=[body["status"]["allocation"]]),
    ),
):
    _wrong_type(_name, _why, _ALLOCATED, _change)


@alteration("shapes", _ALLOCATED, verify=REFUSED_OR_NOT_BLAMED, decide=REFUSED_OR_NOT_BLAMED)
def count_is_a_text(log: Log) -> None:
    """The count of one claim's request is a text: an index changed its type."""
    uid = uid_of(log.lines[log.allocation("")])
    for body in log.of(uid):
        for request in body["spec"]["devices"]["requests"]:
            (request.get("exactly") or request)["count"] = "1"


@alteration(
    "shapes", (QUICKSTART, TAINTS), verify=REFUSED_OR_NOT_BLAMED, decide=REFUSED_OR_NOT_BLAMED
)
def devices_of_one_slice_are_an_object(log: Log) -> None:
    """The devices of one slice are an object by number."""
    name = log.lines[log.first("create", "resourceslices", code=201)]["responseObject"]["metadata"][
        "name"
    ]
    for body in _bodies(log, "ResourceSlice"):
        if body["metadata"]["name"] == name:
            listed = body["spec"].get("devices") or []
            body["spec"]["devices"] = {str(n): one for n, one in enumerate(listed)}


@alteration("shapes", SMALL, verify=REFUSED_OR_NOT_BLAMED, decide=REFUSED_OR_NOT_BLAMED)
def labels_of_nodes_are_lists(log: Log) -> None:
    """The labels of nodes are lists of pairs: an index stores them so."""
    done = 0
    for body in _bodies(log, "Node"):
        labels = body["metadata"].get("labels")
        if isinstance(labels, dict):
            body["metadata"]["labels"] = [{"key": key, "value": labels[key]} for key in labels]
            done += 1
    if not done:
        raise NotFound("no labels")
