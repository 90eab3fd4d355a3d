"""RENAMED: names, uids, times and versions mapped in all places alike.

Who compares what was decided sees the same decisions under other names, so the verdict is that of
the recording. Names count only where the specification orders by them: the slices of a pool by
name, the pools of a node by driver and name (allocator.md 2.6).
"""

import hashlib
import random
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.adversary.catalogue import (
    ALL,
    FAILS,
    MIG,
    NOT_BLAMED,
    QUICKSTART,
    SAME,
    SMALL,
    TPU,
    VERSIONS,
    alteration,
)
from tests.adversary.log import Json, Log, NotFound
from tests.adversary.rewriting import each_text, in_answers

_SECOND = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_MICROS = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")
_EVENT_NAME = re.compile(r"\.(18[0-9a-f]{14})\b")
_DRAWN = "bcdfghjklmnpqrstvwxz2456789"


def pods_of(log: Log) -> list[str]:
    """The names of the pods that users made, in the order of their creation."""
    names = []
    for number in log.find("create", "pods", code=201):
        metadata = log.lines[number]["responseObject"]["metadata"]
        if "generateName" not in metadata and metadata["name"] not in names:
            names.append(metadata["name"])
    if not names:
        raise NotFound("no pod with a name of its own")
    return names


def rename(log: Log, pairs: Mapping[str, str]) -> None:
    """Renames objects wherever they are named, and what is named after them."""
    words = sorted(pairs, key=len, reverse=True)
    pattern = re.compile(rf"(?<![\w.-])(?:{'|'.join(map(re.escape, words))})(?![A-Za-z0-9])")
    each_text(log, lambda text: pattern.sub(lambda match: pairs[match[0]], text))


@alteration("mapped", SMALL, verify=SAME, decide=SAME)
def pods_renamed_in_order(log: Log) -> None:
    """Pods, and claims and Events named after them, have other names of the same order."""
    rename(log, {name: f"x-{name}" for name in pods_of(log)})


@alteration("mapped", SMALL, verify=SAME, decide=SAME)
def pods_renamed_against_the_order(log: Log) -> None:
    """A pod that was made later has a smaller name: the queue is one of times (controllers 4.1)."""
    names = pods_of(log)
    rename(log, {name: f"y{len(names) - n:03d}" for n, name in enumerate(names)})


@alteration("mapped", ALL, verify=SAME, decide=SAME)
def generated_names_drawn_again(log: Log) -> None:
    """What the server adds to a generateName is drawn: another draw would have been as good."""
    done = 0
    for resource in ("pods", "resourceclaims"):  # claims are named after pods
        pairs: dict[str, str] = {}
        for number in log.find("create", resource, code=201):
            metadata = log.lines[number]["responseObject"]["metadata"]
            begin, name = metadata.get("generateName"), metadata["name"]
            if begin and name.startswith(begin):
                digest = hashlib.sha256(name.encode()).digest()
                pairs[name] = begin + "".join(_DRAWN[byte % len(_DRAWN)] for byte in digest[:5])
        if pairs:
            rename(log, pairs)
        done += len(pairs)
    if not done:
        raise NotFound("no generated name")


@alteration("mapped", ALL, verify=SAME, decide=SAME)
def versions_unevenly_apart(log: Log) -> None:
    """Between two writes other kinds took up to five versions, at random."""
    drawn = random.Random("versions")
    higher = [0]
    while len(higher) < 200_000:
        higher.append(higher[-1] + 1 + drawn.randrange(6))
    log.renumber(lambda version: higher[version] if version < len(higher) else version * 6)


def _moved(log: Log, delta: timedelta) -> None:
    """Moves all times; a whole second is moved with the line that shows it first."""
    shown: dict[tuple[str, str], int] = {}

    def seconds(text: str) -> int:
        return int(datetime.fromisoformat(text).timestamp())

    def carry(line: Json, text: str) -> int:
        """The whole seconds by which a second of this line is moved."""
        stamps = [line["requestReceivedTimestamp"], line["stageTimestamp"]]
        at = next((one for one in stamps if seconds(one) == seconds(text)), stamps[0])
        instant = datetime.fromisoformat(at)
        return int((instant + delta).timestamp()) - int(instant.timestamp())

    def walk(node: Any, line: Json, place: str) -> Any:
        if isinstance(node, dict):
            place = (node.get("metadata") or {}).get("uid") or place
            # Items of a list are told apart by these: each has seconds of its own.
            place += "".join(str(node.get(name, "")) for name in ("type", "manager", "subresource"))
            return {key: walk(value, line, f"{place}/{key}") for key, value in node.items()}
        if isinstance(node, list):
            return [walk(item, line, place) for item in node]
        if isinstance(node, str) and _SECOND.fullmatch(node):
            by = shown.setdefault((place, node), carry(line, node))
            return datetime.fromtimestamp(seconds(node) + by, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        if isinstance(node, str):
            return _MICROS.sub(lambda match: _micros(match[0], delta), node)
        return node

    for number in sorted(
        range(len(log.lines)), key=lambda number: str(log.lines[number]["stageTimestamp"])
    ):
        line = log.lines[number]
        log.lines[number] = walk(line, line, _uid(line))
    nanos = int(delta.total_seconds() * 1e6) * 1000
    each_text(
        log,
        lambda text: _EVENT_NAME.sub(lambda match: f".{int(match[1], 16) + nanos:016x}", text),
    )


def _uid(line: Json) -> str:
    """The uid of the object that a request is about; else its audit id."""
    answer = line.get("responseObject") or {}
    return str(answer.get("metadata", {}).get("uid") or line["auditID"])


def _micros(text: str, delta: timedelta) -> str:
    return (datetime.fromisoformat(text) + delta).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


@alteration("mapped", (QUICKSTART, MIG, TPU, VERSIONS), verify=SAME, decide=SAME)
def four_tenths_of_a_second_later(log: Log) -> None:
    """All happens 0.4 s later, so that whole seconds are others; nothing waits for a second."""
    _moved(log, timedelta(seconds=0.4))


@alteration("mapped", ALL, verify=SAME, decide=SAME)
def ninety_years_later(log: Log) -> None:
    """Everything happens 90 years later, beyond what 32 bits hold."""
    _moved(log, timedelta(days=32_871))


def _bodies(log: Log, kind: str) -> Iterator[Json]:
    for line in log.lines:
        for side in ("requestObject", "responseObject"):
            body = line.get(side)
            if isinstance(body, dict) and body.get("kind") == kind:
                yield body


def published(log: Log) -> list[str]:
    """The names of all devices that slices have, in the order of their first publication."""
    names: dict[str, None] = {}
    for body in _bodies(log, "ResourceSlice"):
        for one in body["spec"].get("devices") or ():
            names[one["name"]] = None
    if not names:
        raise NotFound("no device")
    return list(names)


def rename_devices(log: Log, pairs: Mapping[str, str]) -> None:
    """Renames devices where slices publish them, and where results, statuses and rules name them.

    Their positions in the slices stay.
    """
    for body in _bodies(log, "ResourceSlice"):
        for one in body["spec"].get("devices") or ():
            one["name"] = pairs[one["name"]]

    def change(node: Json) -> None:
        name = node.get("device")
        if isinstance(name, str):
            node["device"] = pairs.get(name, name)

    in_answers(log, change)


@alteration("mapped", ALL, verify=SAME, decide=SAME)
def devices_renamed_in_order(log: Log) -> None:
    """The devices have other names of the same order."""
    rename_devices(log, {name: f"d-{name}" for name in published(log)})


@alteration("mapped", ALL, verify=SAME, decide=SAME)
def devices_renamed_against_the_order(log: Log) -> None:
    """The devices have names of the reverse order; they are searched as published (2.6)."""
    names = published(log)
    rename_devices(log, {name: f"d{len(names) - n:04d}" for n, name in enumerate(names)})


def _rename_pools(log: Log, other: Callable[[str], str]) -> None:
    def change(node: Json) -> None:
        pool = node.get("pool")
        if isinstance(pool, str):
            node["pool"] = other(pool)
        elif isinstance(pool, dict) and "name" in pool:
            pool["name"] = other(pool["name"])

    in_answers(log, change)


@alteration("mapped", ALL, verify=SAME, decide=SAME)
def pools_renamed_in_order(log: Log) -> None:
    """The pools are no longer named after nodes; their order is the same."""
    _rename_pools(log, lambda pool: f"rack-{pool}")


@alteration("mapped", SMALL, verify=SAME, decide=SAME)
def pools_renamed_against_the_order(log: Log) -> None:
    """The pools have names of the reverse order; each node sees one pool alone (2.6)."""
    turned = str.maketrans("0123456789", "9876543210")
    _rename_pools(log, lambda pool: f"rack-{pool.translate(turned)}")


def _slice_names(log: Log) -> list[str]:
    return sorted({body["metadata"]["name"] for body in _bodies(log, "ResourceSlice")})


@alteration("mapped", (QUICKSTART, MIG, TPU, VERSIONS), verify=SAME, decide=SAME)
def slices_renamed_in_order(log: Log) -> None:
    """The slices have other names of the same order."""
    rename(log, {name: f"s-{name}" for name in _slice_names(log)})


@alteration("mapped", (QUICKSTART, VERSIONS), verify=SAME, decide=SAME)
def slices_renamed_against_the_order(log: Log) -> None:
    """The slices have names of the reverse order; each pool has one with devices (2.6)."""
    _reverse_slices(log)


@alteration("mapped", MIG, verify=FAILS, decide=FAILS)
def slices_of_a_pool_renamed_against_the_order(log: Log) -> None:
    """The slices of one pool are searched by name (2.6), and those in front were passed over."""
    _reverse_slices(log)


def _reverse_slices(log: Log) -> None:
    names = _slice_names(log)
    rename(log, {name: f"s{len(names) - n:03d}" for n, name in enumerate(names)})


@alteration("mapped", QUICKSTART, verify=FAILS, decide=FAILS)
def devices_published_in_the_reverse_order(log: Log) -> None:
    """The slices list their devices in the reverse order, and the last one is always taken."""
    for body in _bodies(log, "ResourceSlice"):
        body["spec"]["devices"].reverse()


@alteration("mapped", (QUICKSTART, MIG), verify=FAILS, decide=FAILS)
def device_renamed_in_its_slice_alone(log: Log) -> None:
    """A device has another name where it is published than where claims name it."""
    name = log.lines[log.allocation("")]["responseObject"]["status"]["allocation"]["devices"][
        "results"
    ][0]["device"]
    for body in _bodies(log, "ResourceSlice"):
        for one in body["spec"].get("devices") or ():
            if one["name"] == name:
                one["name"] = f"x-{name}"


@alteration("mapped", ALL, verify=SAME, decide=SAME)
def drivers_renamed_in_order(log: Log) -> None:
    """The drivers have longer names; attributes, capacities and selectors follow."""
    drivers = sorted({body["spec"]["driver"] for body in _bodies(log, "ResourceSlice")})
    domain = re.compile(rf"(?<![\w.-])(?:{'|'.join(map(re.escape, drivers))})(?![\w-])")
    each_text(log, lambda text: domain.sub(lambda match: f"{match[0]}.vendor.test", text))


@alteration("mapped", QUICKSTART, verify=NOT_BLAMED, decide=NOT_BLAMED)
def users_and_pods_share_a_name(log: Log) -> None:
    """A user has the name of a pod: names of different kinds have nothing to do with each other."""
    for line in log.lines:
        if line["user"]["username"] == "alice":
            line["user"]["username"] = "pod0"
