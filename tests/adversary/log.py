"""Audit logs as lists of parsed lines, with the few changes that alterations are made of.

A change of an object is made in every line that shows the object, from one line to another, so that
the altered log contradicts itself nowhere but in the point that the alteration is about.
"""

import copy
import gzip
import json
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_OID, uuid5

import msgspec

Json = dict[str, Any]

_STAMP = "%Y-%m-%dT%H:%M:%S.%fZ"
_VERSION = re.compile(r"resourceVersion=(\d+)")

FACTOR = 10
"""Room between two versions of the store, for writes that an alteration adds."""


class NotFound(LookupError):
    """The recording has nothing that the alteration could alter."""


class Log:
    """The lines of one audit log."""

    def __init__(self, lines: list[Json]) -> None:
        self.lines = lines

    @classmethod
    def read(cls, path: Path) -> "Log":
        """Reads a packed log."""
        with gzip.open(path, "rt", encoding="utf-8") as stream:
            return cls([json.loads(line) for line in stream])

    def copy(self) -> "Log":
        """A log that can be changed without changing this one."""
        return Log(msgspec.json.decode(msgspec.json.encode(self.lines)))

    def text(self) -> str:
        """The lines as an API server writes them."""
        return "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in self.lines)

    def find(
        self,
        verb: str = "",
        resource: str = "",
        name: str = "",
        *,
        by: str = "",
        code: int = 0,
        after: int = -1,
        where: Callable[[Json], bool] = lambda line: True,
    ) -> Iterator[int]:
        """The positions of the written requests that match; `resource` may be `pods/status`."""
        for number, line in enumerate(self.lines):
            about = line["objectRef"]
            full = about["resource"] + (
                f"/{about['subresource']}" if about.get("subresource") else ""
            )
            if (
                number > after
                and line["level"] != "Metadata"
                and verb in ("", line["verb"])
                and resource in ("", full)
                and name in ("", about.get("name", ""))
                and by in line["user"]["username"]
                and code in (0, line["responseStatus"].get("code", 0))
                and where(line)
            ):
                yield number

    def first(self, *words: str, **how: Any) -> int:
        """The first position that `find` gives."""
        for number in self.find(*words, **how):
            return number
        raise NotFound(f"{words} {how}")

    def allocations(self, *, after: int = -1) -> list[int]:
        """The positions at which the scheduler gave a claim its devices."""
        return list(
            self.find(
                "update",
                "resourceclaims/status",
                by="kube-scheduler",
                code=200,
                after=after,
                where=lambda line: bool(results_of(line["responseObject"])),
            )
        )

    def allocation(self, name: str = "", *, after: int = -1) -> int:
        """The first allocation of a claim whose name begins so."""
        for number in self.allocations(after=after):
            if self.lines[number]["objectRef"]["name"].startswith(name):
                return number
        raise NotFound(f"no allocation of {name}")

    def of(self, uid: str, *, start: int = 0, end: int | None = None) -> Iterator[Json]:
        """Every recorded state of one object, in requests and responses of its own kind."""
        for line in self.lines[start:end]:
            for side in ("requestObject", "responseObject"):
                body = line.get(side)
                if isinstance(body, dict) and body.get("metadata", {}).get("uid") == uid:
                    yield body

    def alter(
        self, uid: str, change: Callable[[Json], None], *, start: int = 0, end: int | None = None
    ) -> None:
        """Changes every recorded state of one object from one line to another."""
        for body in self.of(uid, start=start, end=end):
            change(body)

    def drop(self, gone: Callable[[Json], bool], *, start: int = 0) -> None:
        """Leaves out the lines from `start` that match."""
        kept = [line for line in self.lines[start:] if not gone(line)]
        if len(kept) == len(self.lines) - start:
            raise NotFound("no line to leave out")
        self.lines[start:] = kept

    def cut(self, end: int) -> None:
        """Leaves out everything from a position on: the recording ended there."""
        del self.lines[end:]

    def widen(self) -> None:
        """Makes room between the versions: versions are opaque, only their order counts."""
        self.renumber(lambda version: version * FACTOR)

    def close(self, version: int) -> None:
        """Counts the versions on as if one had never been given."""
        self.renumber(lambda each: each - 1 if each > version else each)

    def close_all(self) -> None:
        """Counts the versions of answered writes on without a break: each has a line."""
        versions = sorted(
            {
                int(version)
                for line in self.lines
                if line["verb"] not in ("get", "list", "watch")
                and (version := _answered_version(line)).isdigit()
            }
        )
        self.renumber(lambda version: bisect_right(versions, version))

    def renumber(self, change: Callable[[int], int]) -> None:
        """Changes every version, where it stands, into another."""
        for line in self.lines:
            line["requestURI"] = _VERSION.sub(
                lambda match: f"resourceVersion={change(int(match[1]))}", line["requestURI"]
            )
            for side in ("objectRef", "requestObject", "responseObject", "responseStatus"):
                _renumber(line.get(side), change)

    def again(self, number: int, *, seconds: float = 0.0, to: int | None = None) -> Json:
        """Inserts a copy of a line as a request of its own, so much later; returns the copy."""
        new = copy.deepcopy(self.lines[number])
        new["auditID"] = str(uuid5(NAMESPACE_OID, f"{new['auditID']} {seconds} {to}"))
        for field in ("requestReceivedTimestamp", "stageTimestamp"):
            new[field] = later(new[field], seconds)
        if to is None:
            to = next(
                (
                    place
                    for place in range(number + 1, len(self.lines))
                    if self.lines[place]["stageTimestamp"] > new["stageTimestamp"]
                ),
                len(self.lines),
            )
        self.lines.insert(to, new)
        return new

    def version_before(self, number: int) -> int:
        """A version that nothing has, after all of the lines before; needs `widen`."""
        highest = 0
        for line in self.lines[:number]:
            answer = line.get("responseObject") or {}
            version = answer.get("metadata", {}).get("resourceVersion", "")
            if version.isdigit():
                highest = max(highest, int(version))
        return highest + 1


def later(stamp: str, seconds: float) -> str:
    """A time of an audit line, so much later."""
    return (datetime.fromisoformat(stamp) + timedelta(seconds=seconds)).strftime(_STAMP)


def results_of(claim: Json) -> list[Json]:
    """The results of the allocation of a claim, if it has one."""
    allocation = (claim.get("status") or {}).get("allocation") or {}
    results: list[Json] = allocation.get("devices", {}).get("results", [])
    return results


def uid_of(line: Json) -> str:
    """The uid of the object that was answered."""
    uid: str = line["responseObject"]["metadata"]["uid"]
    return uid


def _answered_version(line: Json) -> str:
    answer = line.get("responseObject") or {}
    return str(answer.get("metadata", {}).get("resourceVersion", ""))


def _renumber(node: object, change: Callable[[int], int]) -> None:
    if isinstance(node, list):
        for item in node:
            _renumber(item, change)
    elif isinstance(node, dict):
        for key, value in node.items():
            if key == "resourceVersion" and isinstance(value, str) and value.isdigit():
                node[key] = str(change(int(value))) if value != "0" else value
            else:
                _renumber(value, change)
