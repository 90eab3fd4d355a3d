"""Readers of the pages of `kubectl describe`.

Name:         a
Namespace:    default
Node:         n1/10.0.0.1
Status:       Running
"""

import re
from collections.abc import Iterator, Mapping, Sequence

from app.adapters.history.printouts import containers, descriptions, event_objects, parts, pod_words
from app.adapters.history.printouts.parts import Printout
from app.domain.objects import registry
from app.domain.objects.kind import Kind
from app.domain.objects.schema.structural import Schemas
from app.domain.values import api_groups, event_reasons
from app.domain.values.json_tree import JsonObject

NO_EVENTS = "No events."
"""The end of a page without Events, up to 1.1."""

UNREAD_EVENTS = "rows of the Events of this description cannot be read"
NO_END = "the description ends before its Events, so it may be cut here"
_FIELD_OF_AN_OBJECT = re.compile(r"^(?:metadata|spec|status|data|kind):")
EVENT_TITLES = re.compile(
    r"^\s*(?:Type\s+Reason\s+Age\s+From\s+Message"
    r"|FirstSeen\s+LastSeen\s+Count\s+From\s+Sub[oO]bjectPath\s+(?:Type\s+)?Reason\s+Message)\s*$"
)
"""The titles of Events, and those up to 1.7, between whose columns are tabs; up to 1.1 without a
type."""

_COUNT = re.compile(r"[1-9][0-9]{0,8}")
_COUNTED = re.compile(r"(?<=\s)([1-9][0-9]{0,8})\s+(?=\{)")
"""A count before its source, up to 1.1, where tabs became single spaces."""

_SET_OUT = re.compile(r"-{3,}(?: +-{3,})* *$|(?:Normal|Warning)\s+\w+\s")
_FIELD = re.compile(r"^(?P<name>[A-Z][\w ()-]*):(?:\s+(?P<value>\S.*)?)?$")
_ASSIGNED = re.compile(
    r"Successfully assigned (?P<namespace>[a-z0-9-]+)/(?P<name>[a-z0-9.-]+) to \S+"
)
_IN_POD = re.compile(
    r".* in pod (?P<name>[a-z0-9.-]+)_(?P<namespace>[a-z0-9-]+)\((?P<uid>[0-9a-f-]{36})\)"
)
_ASKED = re.compile(
    r"\b(?:kubectl(?:\.sh|\.exe)?|oc|k) (?:\S+ ){0,8}?describe (?:-n \S+ |-\S+ ){0,4}"
    r"(?P<kind>[a-zA-Z.]+)[/ ]"
)
"""The command for a page, with the kind that it asks for."""

_DESCRIBED = re.compile(
    r"\b(?:kubectl(?:\.sh|\.exe)?|oc|k) (?:\S+ ){0,8}?describe (?:-n \S+ |-\S+ ){0,4}"
    r"(?P<kind>[a-zA-Z.]+)[/ ](?P<name>[a-z0-9][a-z0-9.-]*)(?=[\s`|;]|$)"
)
_IN_NAMESPACE = re.compile(r"(?:\s-n[ =]?|\s--namespace[ =])(?P<namespace>[a-z0-9-]+)")
EVENT_ROW = re.compile(
    r"\s*(?:Normal|Warning)\s{2,}\w+\s{2,}(?:\d+[smhdy])+(?: \(x\d+ over [^)]*\))?\s{2,}\S+\s{2,}\S"
)
"""A row of the Events of a page."""

_SINGLE_BLANKS = re.compile(
    r"\s*(?P<Type>Normal|Warning)\s+(?P<Reason>\w+)"
    r"\s+(?P<Age>(?:(?:\d+[smhdy])+(?: \(x\d+ over [^)]*\))?|<unknown>))"
    r"\s+(?P<From>\S+(?:(?<=,) \S+)?)\s+(?P<Message>\S.*)"
)
"""A row whose columns are lost, as where somebody copied it: only its last cell has blanks."""

_NAMED_IN = {event_reasons.SCHEDULED: _ASSIGNED, "BackOff": _IN_POD}
"""The forms of messages that name the pod they are about, by reason."""

_TAINT = re.compile(
    r"(?<![^=:\s])(?P<key>[^=:\s]+)(?:=(?P<value>[^=:\s]*))?:(?P<effect>No\w+|Prefer\w+)"
)

_WORKLOADS = (
    ({"StrategyType", "Replicas", "Selector"}, "deployments"),
    ({"Desired Number of Nodes Scheduled", "Selector"}, "daemonsets"),
    ({"Update Strategy", "Replicas", "Pods Status"}, "statefulsets"),
    ({"Parallelism", "Completions"}, "jobs"),
)
"""The fields that only pages of a kind have."""

_OF_EACH_PAGE = {"Labels", "Annotations"}
"""Fields of each page, without a value where an object has none."""

_CONTROLLED = {"Controlled By", "Replicas", "Pods Status"}
_OF_DEPLOYMENT = "Deployment/"
_DESIRED = re.compile(r"(?:\d+ current / )?(?P<count>\d{1,9}) desired\b.*")
_NUMBERS = {"Parallelism": "parallelism", "Completions": "completions"}


def is_gap(lines: list[str], number: int, block: list[str]) -> bool:
    """True when a line of three dots replaces fields: the next line continues the object."""
    if number >= len(lines):
        return False
    following = lines[number]
    return bool(_FIELD_OF_AN_OBJECT.match(following)) or goes_on(block, following)


def goes_on(block: Sequence[str], following: str) -> bool:
    """True when the line after dots continues a description that begins in the block."""
    if not any(line.startswith("Name:") for line in block):
        return False
    return following.startswith((" ", "\t")) or _FIELD.match(following) is not None


def description(lines: Sequence[str], at: int, schemas: Schemas | None) -> Printout:
    """The page that begins at a line; without lines when none begins there.

    The kind of a page that somebody shortened is that of the command above it.
    """
    fields: dict[str, list[str]] = {}
    end = at
    last: list[str] = []
    while end < len(lines):
        line = lines[end]
        match = _FIELD.match(line)
        is_event = last is fields.get("Events") and _is_of_events(line, last)
        if is_event or (end > at and descriptions.is_open(lines[end - 1])):
            last.append(line.rstrip())
        elif match is not None:
            if match["name"] == "Name" and end > at:
                break
            last = fields.setdefault(match["name"], [])
            if match["value"]:
                last.append(match["value"].strip())
        elif line.startswith((" ", "\t")) and not descriptions.is_gap(line):
            last.append(line.rstrip())
        elif line.strip() == NO_EVENTS:
            last = fields.setdefault("Events", [])
        elif line.strip() and not descriptions.is_gap(line):
            break
        end += 1
    kind = _described_kind(fields)
    if kind is None and "API Version" not in fields:
        kind = _asked_kind(lines, at)
    name = " ".join(fields.get("Name", [])).strip()
    if kind is None or not parts.ROW_NAME.fullmatch(name):
        return Printout()
    page = lines[at:end]
    tree = _described(kind, name, fields)
    events = fields.get("Events", [])
    damage = [
        (index, descriptions.LEFT_OUT)
        for index, line in enumerate(page)
        if descriptions.is_gap(line)
    ]
    if schemas is not None and "API Version" in fields:
        cut = _complete(tree, page, fields["API Version"][0], schemas)
        damage = sorted({*damage, *cut})
    if "Events" not in fields and not _is_of_many(lines, at, end):
        damage.append((len(page) - 1, NO_END))
    if _are_unread(events):
        damage.append((len(page) - 1, UNREAD_EVENTS))
    return Printout([tree, *_events(tree, kind, events)], end - at, damage)


def _is_of_events(line: str, above: Sequence[str]) -> bool:
    """True for a line of the table of Events that has lost the indentation of the page."""
    if EVENT_TITLES.match(line):
        return not above
    return bool(above) and bool(EVENT_TITLES.match(above[0])) and bool(_SET_OUT.match(line))


def events_alone(lines: Sequence[str], at: int) -> Printout:
    """The table of Events that begins at a line, without the page that it ends.

    A table is about one object. What was scheduled, and what is restarted, its messages name; else
    the command above it does.
    """
    if not EVENT_TITLES.match(lines[at]):
        return Printout()
    end = at + 1
    while end < len(lines) and lines[end].strip():
        end += 1
    rows = [*_rows(lines[at:end])]
    named = {
        (match["namespace"], match["name"])
        for row in rows
        if row["Reason"] in _NAMED_IN
        and (match := _NAMED_IN[row["Reason"]].fullmatch(row["Message"])) is not None
    }
    pods = registry.find_name("pods")[0]
    if len(named) == 1:
        ((namespace, name),) = named
        kind, subject = pods, parts.identity(pods, name, namespace)
    elif not named and (described := _asked_object(lines, at)) is not None:
        kind, subject = described
    else:
        return Printout()
    damage = [(0, UNREAD_EVENTS)] if _are_unread(lines[at:end]) else []
    return Printout([*_events(subject, kind, lines[at:end])], end - at, damage)


def _asked_object(lines: Sequence[str], at: int) -> tuple[Kind, JsonObject] | None:
    """The object whose page the command directly above a table of Events asks for."""
    above = [line for line in lines[max(0, at - 4) : at] if line.strip() not in ("", "Events:")]
    command = _DESCRIBED.search(above[-1]) if above else None
    kinds = registry.find_name(command["kind"]) if command else []
    if command is None or not kinds:
        return None
    namespace = _IN_NAMESPACE.search(above[-1])
    return kinds[0], parts.identity(
        kinds[0], command["name"], namespace["namespace"] if namespace else ""
    )


def begins_rows(lines: Sequence[str], at: int) -> bool:
    """Whether a row of the Events of a page stands at a line, and no other, or titles, above it."""
    above = lines[at - 1] if at else ""
    is_first = not EVENT_ROW.match(above) and not above.strip().startswith(("Type", "----"))
    return is_first and EVENT_ROW.match(lines[at]) is not None


def is_of_foreign_kind(lines: Sequence[str], at: int) -> bool:
    """Whether the page that begins at a line is of a kind that redra does not know."""
    if not lines[at].startswith("Name:"):
        return False
    named = set[str]()
    for line in lines[at + 1 :]:
        match = _FIELD.match(line)
        if line.startswith("Name:"):
            break
        if match is None and line.strip() and not line.startswith((" ", "\t")):
            break
        if match is not None and (match["value"] or match["name"] in _OF_EACH_PAGE):
            named.add(match["name"])
    return named >= {"API Version", "Kind"} or named >= _OF_EACH_PAGE


def is_below_page(lines: Sequence[str], at: int) -> bool:
    """Whether a line stands below the first line of a page, with only fields between them."""
    for line in reversed(lines[:at]):
        if line.startswith("Name:"):
            return True
        if line.strip() and not line.startswith((" ", "\t")) and not _FIELD.match(line):
            return False
    return False


def _events(tree: JsonObject, kind: Kind, lines: Sequence[str]) -> Iterator[JsonObject]:
    """The Event objects in the table at the end of a description."""
    for row in _rows(lines):
        event = event_objects.about_subject(
            tree, kind, row.get("Type", ""), row["Reason"], row["Message"]
        )
        event = event_objects.with_count(event, row.get("Age", ""))
        if _COUNT.fullmatch(row.get("Count", "")):
            event["count"] = int(row["Count"])
        if place := row.get("SubObjectPath", row.get("SubobjectPath", "")):
            event["involvedObject"]["fieldPath"] = place
        # Old releases print the node of a kubelet behind its name.
        component, _, host = row["From"].partition(", ")
        if component.startswith("{"):
            component, _, host = component.strip("{} ").partition(" ")
        source = {"component": component, **({"host": host} if host else {})}
        yield {**event, "source": source} if component else event


def _rows(lines: Sequence[str]) -> Iterator[dict[str, str]]:
    """The rows of a table of Events, by title; none without the titles."""
    if not lines or not EVENT_TITLES.match(lines[0]):
        return
    lines = [line.expandtabs() for line in lines]
    titles = [(match.start(), match.group()) for match in re.finditer(r"\S+", lines[0])]
    for line in lines[1:]:
        row = parts.cells(line, titles) or _row_without_tabs(line, titles)
        if not row and (match := _SINGLE_BLANKS.fullmatch(line.rstrip())) is not None:
            row = match.groupdict()
        if row and row["Reason"].strip("-") and row["Message"]:
            yield row


def _row_without_tabs(line: str, titles: Sequence[tuple[int, str]]) -> dict[str, str]:
    """The cells of a row of an old release whose tabs are gone; empty for other rows.

    Most rows are about no part of an object, and have a cell less than titles.
    """
    names = [name for _, name in titles]
    place = next((at for at, name in enumerate(names) if name.lower() == "subobjectpath"), None)
    if place is None:
        return {}
    line = _COUNTED.sub(r"  \1  ", line.strip(), count=1)
    words = re.split(r"\s{2,}", line, maxsplit=len(names) - 1)
    if not any(word.startswith("spec.") for word in words[place : place + 1]):
        words = re.split(r"\s{2,}", line, maxsplit=len(names) - 2)
        words.insert(place, "")
    return dict(zip(names, words, strict=True)) if len(words) == len(names) else {}


def _are_unread(lines: Sequence[str]) -> bool:
    """Whether rows below the titles of a table of Events are none that can be read."""
    if not lines or not EVENT_TITLES.match(lines[0]):
        return False
    written = sum(bool(line.strip(" \t-")) for line in lines[1:])
    return written > sum(1 for _ in _rows(lines))


def _is_of_many(lines: Sequence[str], at: int, end: int) -> bool:
    """Whether a page is one of several that one command printed: then kubectl prints no Events."""
    names = sum(line.startswith("Name:") for line in (*lines[:at], *lines[end:]))
    return bool(names) and not any(line.startswith("Events:") for line in lines)


def _complete(
    tree: JsonObject, lines: Sequence[str], version: str, schemas: Schemas
) -> list[tuple[int, str]]:
    """Add all fields, as kubectl prints them for a kind without a page of its own; the damage."""
    group, _, name = version.rpartition("/")
    # The first structured form is read as the next one, which names its fields alike.
    is_first = (group, name) == (api_groups.RESOURCE, "v1alpha3")
    node = schemas.find(group, "v1beta1" if is_first else name, tree["kind"])
    if node is None:
        # The API has a sentence for a version that it does not know.
        tree["apiVersion"] = version
        return []
    content = descriptions.read(lines, node)
    metadata = content.tree.pop("metadata", {})
    tree["apiVersion"] = version
    if isinstance(metadata, dict):
        tree["metadata"] = {**metadata, **tree["metadata"]}
    tree.update({part: value for part, value in content.tree.items() if part in node.fields})
    return content.damage


def _asked_kind(lines: Sequence[str], at: int) -> Kind | None:
    """The kind that a command directly above a page asks for; None without such a command."""
    above = next((line for line in reversed(lines[max(0, at - 2) : at]) if line.strip()), "")
    command = _ASKED.search(above)
    named = registry.find_name(command["kind"]) if command else []
    return named[0] if named else None


def _described_kind(fields: dict[str, list[str]]) -> Kind | None:
    if "Kind" in fields and "API Version" in fields:
        group, _, version = (
            fields["API Version"][0].rpartition("/") if fields["API Version"] else ("", "", "")
        )
        named = fields["Kind"][0] if fields["Kind"] else ""
        known = registry.find_kind(group, version, named)
        others = (kind for kind in registry.find_name(named) if kind.group == group)
        return known or next(others, None)
    if "Containers" in fields and "Node" in fields:
        return registry.find_name("pods")[0]
    # A node that has not reported its size has neither.
    # Up to 1.1 all of a node's size could be had.
    of_nodes = ({"Capacity", "Allocatable"}, {"Taints", "Unschedulable"}, {"Addresses", "Capacity"})
    if any(names <= fields.keys() for names in of_nodes):
        return registry.find_name("nodes")[0]
    plural = _workload_plural(fields)
    return registry.find_name(plural)[0] if plural else None


def _described(kind: Kind, name: str, fields: dict[str, list[str]]) -> JsonObject:
    tree = parts.identity(kind, name, _first(fields, "Namespace"))
    labels = _pairs(fields.get("Labels", []))
    if labels:
        tree["metadata"]["labels"] = labels
    if kind.kind == "Pod":
        # Before 1.0 the node was the host.
        node = _first(fields, "Node") or _first(fields, "Host")
        parts.fill(tree, "spec", nodeName=node.partition("/")[0])
        pod_words.fill(tree, _first(fields, "Status"))
        parts.fill(
            tree,
            "status",
            podIP=_first(fields, "IP"),
            startTime=containers.instant(_first(fields, "Start Time")),
            reason=_first(fields, "Reason"),
        )
        containers.fill(tree, fields)
    elif kind.kind == "Node":
        taints = [_taint(match) for match in map(_TAINT.search, fields.get("Taints", [])) if match]
        spec: JsonObject = {"taints": taints} if taints else {}
        if _first(fields, "Unschedulable") == "true":
            spec["unschedulable"] = True
        if spec:
            tree["spec"] = spec
        status = {
            part.lower(): _amounts(fields.get(part, [])) for part in ("Capacity", "Allocatable")
        }
        tree["status"] = {part: amounts for part, amounts in status.items() if amounts}
        if version := _amounts(fields.get("System Info", [])).get("Kubelet Version"):
            tree["status"]["nodeInfo"] = {"kubeletVersion": version}
        if created := containers.instant(_first(fields, "CreationTimestamp")):
            tree["metadata"]["creationTimestamp"] = created
    else:
        _fill_workload(tree, fields)
    conditions = _conditions(fields.get("Conditions", []))
    if conditions and kind.kind in ("Pod", "Node"):
        tree.setdefault("status", {})["conditions"] = conditions
    return tree


def _conditions(lines: list[str]) -> list[JsonObject]:
    """The type and status of each condition; kubectl prints no more of a pod's conditions."""
    words = (line.split() for line in lines)
    return [
        {"type": cells[0], "status": cells[1]}
        for cells in words
        if cells[1:2] and cells[1] in ("True", "False", "Unknown")
    ]


def _first(fields: dict[str, list[str]], name: str) -> str:
    values = fields.get(name, [])
    return values[0].strip() if values and values[0].strip() not in parts.NOT_SHOWN else ""


def _pairs(lines: list[str]) -> dict[str, str]:
    pairs = (line.strip().partition("=") for line in lines)
    return {key: value for key, equals, value in pairs if equals}


def _amounts(lines: list[str]) -> dict[str, str]:
    pairs = (line.strip().partition(":") for line in lines)
    return {key: value.strip() for key, colon, value in pairs if colon and value.strip()}


def _taint(match: re.Match[str]) -> JsonObject:
    taint = {"key": match["key"], "effect": match["effect"]}
    if match["value"]:
        taint["value"] = match["value"]
    return taint


def _workload_plural(fields: Mapping[str, Sequence[str]]) -> str:
    """The plural name of the kind of a page of a workload; empty if no field shows it.

    kubectl does not print the kind of an object. It follows from fields that only pages of one kind
    have. A ReplicaSet and a ReplicationController have the same fields, except for a controller,
    which only a ReplicaSet has.
    """
    for needed, name in _WORKLOADS:
        if needed <= fields.keys():
            return name
    if fields.keys() >= _CONTROLLED and fields["Controlled By"][:1]:
        return "replicasets" if fields["Controlled By"][0].startswith(_OF_DEPLOYMENT) else ""
    return ""


def _fill_workload(tree: JsonObject, fields: dict[str, list[str]]) -> None:
    """Adds to a workload its creation and the numbers of pods that are wanted."""
    created = containers.instant(_first(fields, "CreationTimestamp"))
    if created:
        tree["metadata"]["creationTimestamp"] = created
    if (desired := _DESIRED.fullmatch(_first(fields, "Replicas"))) is not None:
        tree.setdefault("spec", {})["replicas"] = int(desired["count"])
    for title, name in _NUMBERS.items():
        if (text := _first(fields, title)).isdecimal():
            tree.setdefault("spec", {})[name] = int(text)
