"""Attempts of pods, counted from the raw events of a log: decisions, and what the pods show.

The outcome of an attempt is what its pod shows afterwards: a node, or a condition with its message.
"""

import re
from collections.abc import Iterator

from tests.truth.answers import Ask, differences
from tests.truth.courses import Life, Lives

SCHEDULER = "system:kube-scheduler"


async def attempts(lines: list[dict], known: Lives, ask: Ask, name: tuple[str, str]) -> list[str]:
    """The differences for the last life of a pod."""
    life = known["pods", *name][-1]
    answer = await ask("attempts", kind="pods", namespace=name[0], name=name[1])
    if not answer["is_decided"]:
        return []
    first = life.lines[0]
    wrong = list(differences("created", answer["created"], first["stamp"]["time"]))
    items = answer["items"]
    counted = list(_counted(lines, life.tree["metadata"]["uid"]))
    own = [one for one in counted if not one[2]]
    wrong += differences("omitted", answer["omitted"] + len(items), len(own))
    said = [(one["revision"], one["repeated"], one["repeated_until"]) for one in items]
    wrong += differences("attempts", said, _with_repeated(counted)[len(own) - len(items) :])
    wrong += _ends(life, items)
    by_revision = {line["revision"]: line for line in lines}
    for one in items:
        wrong += _trigger(one, by_revision)
        wrong += _numbers(one, known)
    return wrong


def _counted(lines: list[dict], uid: str) -> Iterator[tuple[int, str, bool]]:
    """Revision and time of each attempt for a pod, and whether it only repeats the one before."""
    for line in lines:
        if line["type"] != "DecisionRecorded" or line["object"]["controller"] != "scheduling":
            continue
        inputs, time = line["object"]["inputs"], line["stamp"]["time"]
        if inputs.get("uid") == uid and "attempt" in inputs:
            yield line["revision"], time, False
        for batch in inputs.get("attempts") or ():
            yield from ((line["revision"], time, True) for pod in batch["pods"] if pod[2] == uid)


def _with_repeated(counted: list[tuple[int, str, bool]]) -> list[tuple[int, int, str]]:
    """Each attempt that wrote something, how often it was repeated, and when for the last time."""
    made: list[tuple[int, int, str]] = []
    for revision, time, repeats in counted:
        if repeats:
            made[-1] = (made[-1][0], made[-1][1] + 1, time)
        else:
            made.append((revision, 0, ""))
    return made


def _ends(life: Life, items: list[dict]) -> Iterator[str]:
    """A node and messages of the pod are those of the attempt before them."""
    node = message = ""
    for line in life.lines:
        if line["stamp"]["actor"]["user"] != SCHEDULER:
            continue
        before = [one for one in items if one["revision"] < line["revision"]]
        if (new := line["object"]["spec"].get("nodeName", "")) != node:
            node = new
            last = before[-1] if before else {}
            yield from differences(
                "node", (last.get("outcome"), last.get("node")), ("Scheduled", node)
            )
            nodes = [one["node"] for one in items if one["outcome"] == "Scheduled"]
            yield from differences("placements", nodes, [node])
        condition = _condition(line["object"])
        if condition.get("status") == "False" and condition["message"] != message:
            message = condition["message"]
            shown = {text for one in before[-1:] for text in _messages(one)}
            if message not in shown:
                yield f"revision {line['revision']}: {message!r}, the attempt said {sorted(shown)}"


def _messages(attempt: dict) -> Iterator[str]:
    yield attempt["message"]
    yield from (step["message"] for step in attempt["binding"])


def _condition(pod: dict) -> dict:
    for one in (pod.get("status") or {}).get("conditions") or ():
        if one["type"] == "PodScheduled":
            return dict(one)
    return {}


def _trigger(attempt: dict, lines: dict[int, dict]) -> Iterator[str]:
    trigger = attempt["trigger"]
    if trigger is None:
        return
    line = lines[trigger["revision"]]
    wanted = {key: line[key] for key in ("type", "group", "resource", "namespace", "name")}
    wanted["actor"] = line["stamp"]["actor"]["user"]
    shown = {key: trigger[key] for key in wanted}
    yield from differences(f"trigger of {attempt['revision']}", shown, wanted)
    if trigger["revision"] >= attempt["revision"]:
        yield f"attempt {attempt['revision']} was woken by {trigger['revision']}, which is later"


def _numbers(attempt: dict, known: Lives) -> Iterator[str]:
    """The nodes of a message are those of the moment, and its verdicts add up to them."""
    parts = re.match(r"0/(\d+) nodes are available: (.*?)\.(?: |$)", attempt["message"])
    if parts is None or attempt["binding"]:
        return
    nodes = sum(
        life.lines[0]["revision"] < attempt["revision"]
        and (life.end is None or life.end["revision"] > attempt["revision"])
        for key, own in known.items()
        if key[0] == "nodes"
        for life in own
    )
    yield from differences(f"nodes of {attempt['revision']}", int(parts[1]), nodes)
    counted = sorted(
        (text, int(number))
        for number, text in re.findall(r"(?:^|, )(\d+) (.*?)(?=, \d+ |$)", parts[2])
    )
    if counted and sum(number for _, number in counted) == nodes:
        said = sorted((one["text"], one["nodes"]) for one in attempt["verdicts"])
        yield from differences(f"verdicts of {attempt['revision']}", said, counted)
