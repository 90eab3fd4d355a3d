"""Recordings altered by machine, an eighth time: what controllers write into a status.

Each alteration is as in `crossed_tampering`.
"""

import json
import random
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from tests.conformance.crossed_tampering import Told
from tests.conformance.further_tampering import one_of
from tests.conformance.tampering import Lines, bodies, of

Condition = dict[str, Any]

RULES = "devicetaintrules"

# What no controller writes.


def observe_a_later_generation(lines: Lines, draw: random.Random) -> Told:
    """The condition of a rule is about a generation that the rule does not have yet."""
    return _changed(lines, draw, RULES, lambda each: _observe(each, each["observedGeneration"] + 1))


def observe_an_earlier_generation(lines: Lines, draw: random.Random) -> Told:
    """The condition of a rule is about the generation before the one that it describes."""
    return _changed(lines, draw, RULES, lambda each: _observe(each, each["observedGeneration"] - 1))


def observe_no_generation(lines: Lines, draw: random.Random) -> Told:
    """The condition of a rule is about generation 0, which no rule has."""
    return _changed(lines, draw, RULES, lambda each: _observe(each, 0))


def leave_the_observed_generation_out(lines: Lines, draw: random.Random) -> Told:
    """The condition of a rule does not say which generation it is about."""
    return _changed(lines, draw, RULES, lambda each: each.pop("observedGeneration"))


def observe_another_generation_of_a_pod(lines: Lines, draw: random.Random) -> Told:
    """The scheduler's condition is about a generation that the pod does not have yet."""
    return _changed(lines, draw, "pods", lambda each: _observe(each, 7))


def tell_another_number(lines: Lines, draw: random.Random) -> Told:
    """The message of a rule is about 77 pods."""
    text = "77 pods need to be evicted in 1 namespace."
    return _changed(lines, draw, RULES, lambda each: each.update(message=text))


def give_another_reason(lines: Lines, draw: random.Random) -> Told:
    """The reason of a rule's condition is one that fits no rule."""
    return _changed(lines, draw, RULES, lambda each: each.update(reason="NotStartedYet"))


def turn_the_status(lines: Lines, draw: random.Random) -> Told:
    """The status of a rule's condition is the opposite."""
    turned = {"True": "False", "False": "True"}
    return _changed(lines, draw, RULES, lambda each: each.update(status=turned[each["status"]]))


def leave_the_time_out(lines: Lines, draw: random.Random) -> Told:
    """The condition of a rule has no time."""
    return _changed(lines, draw, RULES, lambda each: each.pop("lastTransitionTime"))


# What contradicts itself.


def write_before_the_rule_was_made(lines: Lines, draw: random.Random) -> Told:
    """The condition of a rule changed an hour before the rule was made."""
    return _changed(lines, draw, RULES, lambda each: _shift(each, timedelta(hours=-1)))


def write_after_the_answer(lines: Lines, draw: random.Random) -> Told:
    """The condition of a rule changed an hour after the server answered with it."""
    return _changed(lines, draw, RULES, lambda each: _shift(each, timedelta(hours=1)))


def write_before_the_spec_changed(lines: Lines, draw: random.Random) -> Told:
    """The first condition about a changed spec changed three seconds before the spec did."""
    by = timedelta(seconds=-3)
    return _changed(lines, draw, RULES, lambda each: _shift(each, by), _is_first_of_a_change(lines))


# What a controller writes that has not seen the newest spec.


def describe_the_spec_before(lines: Lines, draw: random.Random) -> Told:
    """The spec of a rule changes just before the first condition, which is about the spec before.

    The change is one of the taint's value, which decides nothing here. The controller sees it
    25 ms later, and then writes the condition anew. All versions are ten times as high, so that
    there is room for both writes.
    """
    created = one_of([line for line in of(lines, RULES) if line["verb"] == "create"], draw)
    uid = created["responseObject"]["metadata"]["uid"]
    told = next(line for line in _written(lines, RULES) if _uid(line) == uid)
    for line in lines:
        _spread_versions(line)
    first = int(told["responseObject"]["metadata"]["resourceVersion"])
    changed, again = (json.loads(json.dumps(line)) for line in (created, told))
    changed |= {"verb": "patch", "requestObject": {"spec": {"taint": {"value": "changed"}}}}
    changed |= {"auditID": "00000000-0000-0000-0000-000000000021"}
    changed |= {"requestReceivedTimestamp": created["stageTimestamp"]}
    changed["stageTimestamp"] = told["requestReceivedTimestamp"]
    changed["objectRef"] |= {"name": created["responseObject"]["metadata"]["name"]}
    again |= {"auditID": "00000000-0000-0000-0000-000000000022"}
    again["requestReceivedTimestamp"] = again["stageTimestamp"] = _later(told["stageTimestamp"])
    lines.insert(lines.index(told), changed)
    lines.insert(lines.index(told) + 1, again)
    for line, version in ((changed, first - 5), (again, first + 5)):
        line["responseObject"]["metadata"]["resourceVersion"] = str(version)
    for line in of(lines, RULES):
        for tree in bodies(line) if line is not created else ():
            if tree.get("metadata", {}).get("uid") != uid:
                continue
            if "spec" in tree:
                tree["metadata"]["generation"] = 2
                tree["spec"]["taint"]["value"] = "changed"
            for condition in _observing(tree) if line is not told else ():
                condition["observedGeneration"] = 2
    return Told((created["objectRef"]["name"],), "its first condition is about the spec before")


# What the lines say.


def _uid(line: dict[str, Any]) -> str:
    return str((line.get("responseObject") or {}).get("metadata", {}).get("uid", ""))


def _later(stamp: str) -> str:
    """The time 25 ms later."""
    later = datetime.fromisoformat(stamp) + timedelta(milliseconds=25)
    return later.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _spread_versions(tree: Any) -> None:
    """Makes all resource versions ten times as high."""
    if isinstance(tree, list):
        for item in tree:
            _spread_versions(item)
    if isinstance(tree, dict):
        for name, value in tree.items():
            if name == "resourceVersion" and isinstance(value, str) and value.isdigit():
                tree[name] = f"{value}0"
            else:
                _spread_versions(value)


def _observe(condition: Condition, generation: int) -> None:
    condition["observedGeneration"] = generation


def _shift(condition: Condition, by: timedelta) -> None:
    changed = datetime.fromisoformat(condition["lastTransitionTime"]) + by
    condition["lastTransitionTime"] = changed.strftime("%Y-%m-%dT%H:%M:%SZ")


def _is_first_of_a_change(lines: Lines) -> Callable[[dict[str, Any]], bool]:
    """Whether a line has the first condition about a generation after the first."""
    seen: set[tuple[str, int]] = set()
    first = []
    for line in _written(lines, RULES):
        tree = line["responseObject"]
        place = tree["metadata"]["uid"], tree["metadata"]["generation"]
        if place not in seen and place[1] > 1:
            first.append(line)
        seen.add(place)
    return lambda line: any(line is each for each in first)


def _changed(
    lines: Lines,
    draw: random.Random,
    resource: str,
    change: Callable[[Condition], object],
    is_meant: Callable[[dict[str, Any]], bool] = lambda line: True,
) -> Told:
    """Changes the conditions of one write of a controller wherever they are shown."""
    line = one_of([line for line in _written(lines, resource) if is_meant(line)], draw)
    metadata = line["responseObject"]["metadata"]
    uid, had = metadata["uid"], json.dumps(_observing(line["responseObject"]))
    for each in of(lines, resource):
        for tree in bodies(each):
            is_of_it = tree.get("metadata", {}).get("uid") == uid
            if is_of_it and json.dumps(_observing(tree)) == had:
                for condition in _observing(tree):
                    change(condition)
    return Told((metadata["name"],), f"a condition of {metadata['name']} was {had}")


def _written(lines: Lines, resource: str) -> list[dict[str, Any]]:
    """The writes of a status with a condition that says which generation it is about."""
    return [
        line
        for line in of(lines, resource)
        if line["objectRef"].get("subresource") == "status" and line["verb"] == "patch"
        if _observing(line.get("responseObject") or {})
    ]


def _observing(tree: dict[str, Any]) -> list[Condition]:
    conditions = tree.get("status", {}).get("conditions") or ()
    return [each for each in conditions if "observedGeneration" in each]
