"""Recordings in which one field of one object has another value, in every line that shows it.

No line contradicts another one about the field, so only what a server or a controller may write
speaks against it. Each alteration has its verdict from the specification, fixed before any run.
"""

import copy
import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from tests.adversary.catalogue import FAILS
from tests.adversary.log import Json, Log, NotFound, results_of

Edit = Callable[[Json], Any]
"""Changes a state of the object; gives something true if it did."""


@dataclass(frozen=True)
class Field:
    """An alteration of one field: the kind of its objects, the change of a state, the verdict.

    `is_used`: only a slice is altered from whose pool a claim got a device. FAILS is one of verify
    or of decide, and names the object, unless that is published: then a claim is wrong.
    """

    kind: str
    edit: Edit
    verdict: str
    is_used: bool


FIELDS: dict[str, Field] = {}


def field(kind: str, verdict: str = FAILS, *, is_used: bool = False) -> Callable[[Edit], Edit]:
    """Registers the change of a state under the name of the function."""

    def register(edit: Edit) -> Edit:
        assert edit.__name__ not in FIELDS
        assert edit.__doc__
        FIELDS[edit.__name__] = Field(kind, edit, verdict, is_used)
        return edit

    return register


def altered(log: Log, name: str) -> tuple[Log, str]:
    """The log with the field altered in every line about a drawn object, and the object's name."""
    one = FIELDS[name]
    states = {
        uid: body
        for line in log.lines
        if (body := line.get("responseObject") or {}).get("kind") == one.kind
        and (uid := _uid(body))
    }
    used = _used(log) if one.is_used else set()
    order = [uid for uid, body in states.items() if not one.is_used or _pool(body) in used]
    random.Random(name).shuffle(order)
    for uid in order:
        before = list(_states(log, uid))
        if changed(one.edit(body) for body in copy.deepcopy(before)):
            other = log.copy()
            for body in _states(other, uid):
                one.edit(body)
            return other, states[uid]["metadata"]["name"]
    raise NotFound(name)


def _uid(body: Json) -> str:
    return str((body.get("metadata") or {}).get("uid", ""))


def _pool(body: Json) -> tuple[str, str]:
    spec = body.get("spec") or {}
    return spec.get("driver", ""), (spec.get("pool") or {}).get("name", "")


def _used(log: Log) -> set[tuple[str, str]]:
    """The pools of which claims got devices."""
    claims = (line.get("responseObject") or {} for line in log.lines)
    return {
        (result["driver"], result["pool"])
        for claim in claims
        if claim.get("kind") == "ResourceClaim"
        for result in results_of(claim)
    }


def _states(log: Log, uid: str) -> Iterator[Json]:
    """The states of an object in answers, and what requests give of them."""
    for line in log.lines:
        answer, request = line.get("responseObject") or {}, line.get("requestObject")
        if _uid(answer) == uid:
            yield answer
            if isinstance(request, dict) and request.get("kind") != "DeleteOptions":
                yield request
        elif isinstance(request, dict) and _uid(request) == uid:
            yield request


def listed(body: Json, *path: str) -> list[Json]:
    """The list at the end of a path; empty where there is none."""
    node: Any = body
    for name in path:
        node = (node or {}).get(name)
    return node or []


def put(node: Json, name: str, value: Any) -> bool:
    """Sets a field; true."""
    node[name] = value
    return True


def changed(changes: Iterable[Any]) -> bool:
    """Makes all the changes; whether one of them changed something."""
    return any(list(changes))


def owners(body: Json) -> list[Json]:
    """The owners of an object."""
    return listed(body, "metadata", "ownerReferences")
