"""Readers of kubectl output for people: the tables of `get` and the pages of `describe`.

This output shows only a few fields, so an object read from it is partial: the identity, the node,
the phase, and labels and taints where shown. The records carry this as a loss.

    NAMESPACE   NAME   READY   STATUS    RESTARTS   AGE   NODE
    default     a      1/1     Running   0          3d    n1
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from app.adapters.history.printouts import descriptions, event_objects
from app.adapters.history.printouts.commands import Commands, PrintedCommand
from app.domain.objects import registry
from app.domain.objects.kind import Kind
from app.domain.objects.schema.structural import Schemas
from app.domain.values.json_tree import JsonObject

_TITLES = re.compile(
    r"^(?:EVENT\s+)?(?:NAMESPACE\s+)?"
    r"(?:NAME\s{2,}[A-Z]|LAST SEEN\s{2,}TYPE\s{2,}REASON\s{2,}OBJECT)"
)
_TITLE = re.compile(r"[A-Z][A-Z0-9()-]*(?: [A-Z0-9()-]+)*")
_COLUMNS = re.compile(r"[A-Z][A-Z0-9_.-]*(?:\s{2,}[A-Z][A-Z0-9_.-]*)+")
_INDENT = re.compile(r"[ \t]+(?=NAME|LAST SEEN|EVENT)")
_RULE = re.compile(r"\s*[-=]{3}[-=\s]*")
_ROW_NAME = re.compile(r"[a-z0-9](?:[a-z0-9:/_-]|\.(?!\.|$))*")
_DOTS = re.compile(r"\.\.\.|\u2026")
_WORDS = frozenset({"MESSAGE", "REASON"})
"""Columns with words of people, which may hold dots of their own."""

CUT_NAME = "the name in this row was cut, so its object is not known"
CUT_CELL = "a cell of this row was cut"
NO_CELLS = "the cells of the rows below these titles cannot be told apart"
COLUMNS = "custom columns are read where the first is NAME, or NAMESPACE before it"
NO_SUBJECT = "a table of events, but the object that they are about is not shown above it"
NO_TITLES = "rows of a table whose titles a filter left out"
NO_EVENT_TITLES = "a row of events whose titles are not shown above it"
NO_END = "the description ends before its Events, so it may be cut here"
NO_KIND = "a table of kubectl get, but nothing tells of which kind"
_COUNT = re.compile(r"[0-9]{1,9}")
_NONE = ("<none>", "<unset>", "<unknown>", "")
_PHASES = {
    "Pending": "Pending",
    "Running": "Running",
    "Succeeded": "Succeeded",
    "Failed": "Failed",
    "Completed": "Succeeded",
    "Error": "Failed",
    "ContainerCreating": "Pending",
    "SchedulingGated": "Pending",
}
"""Phases by the STATUS column. Other words are reasons of containers and do not give a phase."""

_BY_TITLES = (
    ({"READY", "STATUS", "RESTARTS"}, "pods"),
    ({"STATUS", "ROLES", "VERSION"}, "nodes"),
    ({"NODE", "DRIVER", "POOL"}, "resourceslices"),
    ({"DESIRED", "CURRENT", "READY", "NODE SELECTOR"}, "daemonsets"),
    ({"READY", "UP-TO-DATE", "AVAILABLE"}, "deployments"),
    ({"DESIRED", "CURRENT", "READY"}, "replicasets"),
    ({"COMPLETIONS", "DURATION"}, "jobs"),
    ({"TYPE", "CLUSTER-IP", "PORT(S)"}, "services"),
    ({"PROVISIONER", "RECLAIMPOLICY"}, "storageclasses"),
)
"""Column titles that identify the table of one kind; longer sets come before shorter ones."""

_OF_ALL = frozenset({"EVENT", "NAMESPACE", "NAME", "AGE", "LABELS"})
_OF_CLAIMS = frozenset({"CLASSNAME", "RESOURCECLASSNAME", "ALLOCATIONMODE"})
_LIKE_OTHERS: tuple[tuple[set[str], frozenset[str], str], ...] = (
    ({"STATE"}, _OF_CLAIMS, "resourceclaims"),
    ({"STATUS"}, frozenset(), "namespaces"),
)
"""Kinds whose titles other kinds have too: titles it has, titles it may have beside those of all.
A command that asks for something else takes precedence."""

_EVENTS = registry.find_name("events")[0]
_EVENT_ROW = re.compile(
    r"(?:\S+\s+)?(?:\d+[smhdy])+\s+(?:\(x\d+ over [^)]*\)\s+)?(?:Normal|Warning)\s+"
    r"\w+\s+[\w.]+/\S+\s"
)
_FILTERED_ROW = re.compile(r"\S+(?: {2,}\S+){3,}")
_EVENT_TITLES = re.compile(r"^\s+Type\s+Reason\s+Age\s+From\s+Message$")
_FIELD = re.compile(r"^(?P<name>[A-Z][\w ()-]*):(?:\s+(?P<value>\S.*)?)?$")
_TAINT = re.compile(
    r"(?<![^=:\s])(?P<key>[^=:\s]+)(?:=(?P<value>[^=:\s]*))?:(?P<effect>No\w+|Prefer\w+)"
)


@dataclass(slots=True)
class Printout:
    """The objects of a table or description, and its number of lines: 0 when none begins there.

    `damage` has the index of a line, counted from the first, and a sentence for what is missing.
    """

    objects: list[JsonObject] = field(default_factory=list)
    lines: int = 0
    damage: list[tuple[int, str]] = field(default_factory=list)


def parse(
    lines: Sequence[str],
    at: int,
    schemas: Schemas | None = None,
    commands: Commands | None = None,
    number: int = 1,
) -> Printout:
    """The table or description that begins at a line.

    With schemas, a description in which kubectl prints every field is read completely. `commands`
    are those above the line, and `number` is the number of the line in their text.
    """
    indent = _INDENT.match(lines[at])
    if indent is not None:
        lines, at = _set_in(lines, at, indent.group()), 0
    if _TITLES.match(lines[at]):
        return _table(lines, at, commands or Commands(), number)
    if lines[at].startswith("Name:"):
        return _description(lines, at, schemas)
    return Printout()


def problem(lines: Sequence[str], at: int, commands: Commands, number: int) -> str:
    """The loss where a line begins no printout; empty for a line of text."""
    line = lines[at].strip()
    if _EVENT_TITLES.match(lines[at]):
        return NO_SUBJECT
    if _EVENT_ROW.match(line):
        return NO_EVENT_TITLES
    row = lines[at + 1] if at + 1 < len(lines) else ""
    newest = commands.of(number, None)
    if not row.strip() and not (newest is not None and newest.is_filtered):
        return ""
    if not _TITLES.match(line):
        if newest is None or number - newest.line > 2:
            return ""
        if newest.is_filtered and number - newest.line == 1 and _FILTERED_ROW.match(line):
            return NO_TITLES
        return COLUMNS if newest.has_columns and _COLUMNS.fullmatch(line) else ""
    titles = {match.group() for match in _TITLE.finditer(line)}
    if _kind(titles, row, commands, number) is not None:
        return NO_CELLS
    is_open = newest is not None and newest.is_open
    return NO_KIND if line.endswith("AGE") and not is_open else ""


def _set_in(lines: Sequence[str], at: int, indent: str) -> list[str]:
    """The lines from here on that have this indentation, without it."""
    inner: list[str] = []
    for line in lines[at:]:
        if line.strip() and not line.startswith(indent):
            break
        inner.append(line.removeprefix(indent))
    return inner


def goes_on(block: Sequence[str], following: str) -> bool:
    """True when the line after dots continues a description that begins in the block."""
    if not any(line.startswith("Name:") for line in block):
        return False
    return following.startswith((" ", "\t")) or _FIELD.match(following) is not None


def _table(lines: Sequence[str], at: int, commands: Commands, number: int) -> Printout:
    titles = [(match.start(), match.group()) for match in _TITLE.finditer(lines[at])]
    names = [title for _, title in titles]
    begin = at + 1
    if begin < len(lines) and _RULE.fullmatch(lines[begin]):
        begin += 1
    kind = _kind(set(names), lines[begin] if begin < len(lines) else "", commands, number)
    row_kind = _EVENTS if {"REASON", "OBJECT"} <= set(names) else kind
    command = commands.of(number, row_kind)
    namespace = "" if command is None else commands.namespace(command, row_kind)
    table = Printout()
    objects: dict[tuple[str, ...], JsonObject] = {}
    end = begin
    while end < len(lines) and lines[end].strip() and not _TITLES.match(lines[end]):
        row = _cells(lines[end], titles)
        cut = [name for name, cell in row.items() if name not in _WORDS and _DOTS.search(cell)]
        if cut:
            row.update(dict.fromkeys(cut, ""))
            problem = CUT_NAME if {"NAME", "OBJECT", "NAMESPACE"} & {*cut} else CUT_CELL
            table.damage.append((end - at, problem))
            if problem == CUT_NAME:
                end += 1
                continue
        tree = _object(row, kind, namespace)
        if tree is None:
            break
        # A watch shows an object again with each change; the last row is its state.
        metadata = tree["metadata"]
        key = tree["kind"], metadata.get("namespace", ""), metadata["name"]
        objects.pop(key, None)
        if row.get("EVENT") != "DELETED":
            objects[key] = tree
        end += 1
    if end == begin:
        return Printout()
    if command is not None and len(command.kinds) != 1:
        command.line = number + end - at
    table.objects, table.lines = list(objects.values()), end - at
    return table


def _cells(line: str, titles: list[tuple[int, str]]) -> dict[str, str]:
    """The cells of a row, by title.

    Cells are split at the positions of the titles. In a wider row of `--watch`, or where tabs were
    changed, they are split at runs of spaces instead. The result is empty when neither works.
    """
    borders = [start for start, _ in titles[1:]] + [len(line) + 1]
    cells = [line[start:border].strip() for (start, _), border in zip(titles, borders, strict=True)]
    if any(line[at - 1 : at].strip() for at in borders[:-1]) or any("  " in c for c in cells[:-1]):
        words = re.split(r"\s{2,}", line.strip(), maxsplit=len(titles) - 1)
        if len(words) != len(titles):
            return {}
        cells = words
    return {title: cell for (_, title), cell in zip(titles, cells, strict=True)}


def _kind(titles: set[str], row: str, commands: Commands, number: int) -> Kind | None:
    """The kind of a table: from the prefix of its names, its titles, or the command above it."""
    prefix, slash, _ = (row.split() or [""])[0].partition("/")
    if slash and (named := registry.find_name(prefix)):
        return named[0]
    plural = next((name for needed, name in _BY_TITLES if needed <= titles), None)
    if plural is not None:
        return registry.find_name(plural)[0]
    newest = commands.of(number, None)
    if newest is not None and not _may_show(newest, titles):
        newest = None
    for needed, others, name in _LIKE_OTHERS:
        meant = registry.find_name(name)[0]
        if titles - _OF_ALL - others == needed and (newest is None or newest.is_of(meant)):
            return meant
    if newest is None or len(newest.kinds) != 1 or newest.is_open:
        return None
    beside = [each for each in commands.beside(newest) if _may_show(each, titles)]
    is_sure = all(each.kinds == newest.kinds and not each.is_open for each in beside)
    return newest.kinds[0] if is_sure else None


def _may_show(command: PrintedCommand, titles: set[str]) -> bool:
    """True unless all kinds that a command asks for have other titles than these."""
    if command.is_open or command.is_any or command.has_columns:
        return True
    known = {name: needed for needed, name in _BY_TITLES}
    return any(kind.plural not in known or known[kind.plural] & titles for kind in command.kinds)


def _object(row: dict[str, str], kind: Kind | None, namespace: str) -> JsonObject | None:
    """The object of a row; None when the row does not describe an object."""
    if "OBJECT" in row and "REASON" in row:
        return _event(row, namespace)
    name = row.get("NAME", "")
    prefix, slash, rest = name.partition("/")
    if slash:
        named = registry.find_name(prefix)
        kind, name = (named[0] if named else None), rest
    if kind is None or not _ROW_NAME.fullmatch(name):
        return None
    tree = _identity(kind, name, row.get("NAMESPACE", "") or namespace)
    if kind.kind == "Pod":
        _fill(tree, "spec", nodeName=row.get("NODE", ""))
        _fill(tree, "status", phase=_PHASES.get(row.get("STATUS", ""), ""), podIP=row.get("IP", ""))
    elif kind.kind == "Node":
        _node(tree, row)
    elif kind.kind == "ResourceClaim" and row.get("STATE"):
        # The table does not show which devices a claim has, nor who uses it. A later table takes an
        # allocation away that an earlier one showed.
        is_allocated = "allocated" in row["STATE"].split(",")
        tree["status"] = {"allocation": {} if is_allocated else None}
    elif kind.kind == "ResourceSlice":
        _fill(tree, "spec", nodeName=row.get("NODE", ""), driver=row.get("DRIVER", ""))
        if row.get("POOL"):
            tree.setdefault("spec", {})["pool"] = {"name": row["POOL"]}
    return tree


def _identity(kind: Kind, name: str, namespace: str) -> JsonObject:
    metadata: JsonObject = {"name": name}
    if kind.namespaced and namespace:
        metadata["namespace"] = namespace
    return {"apiVersion": kind.storage_api_version, "kind": kind.kind, "metadata": metadata}


def _fill(tree: JsonObject, part: str, **fields: str) -> None:
    shown = {name: text for name, text in fields.items() if text not in _NONE}
    if shown:
        tree.setdefault(part, {}).update(shown)


def _node(tree: JsonObject, row: dict[str, str]) -> None:
    states = row.get("STATUS", "").split(",")
    if "SchedulingDisabled" in states:
        tree["spec"] = {"unschedulable": True}
    ready = "True" if "Ready" in states else "False" if "NotReady" in states else "Unknown"
    tree["status"] = {"conditions": [{"type": "Ready", "status": ready}]}
    if row.get("VERSION"):
        tree["status"]["nodeInfo"] = {"kubeletVersion": row["VERSION"]}
    roles = [role for role in row.get("ROLES", "").split(",") if role not in _NONE]
    if roles:
        labels = {f"node-role.kubernetes.io/{role}": "" for role in roles}
        tree["metadata"]["labels"] = labels


def _event(row: dict[str, str], namespace: str) -> JsonObject | None:
    """The Event object of a row of `kubectl get events`."""
    prefix, slash, name = row["OBJECT"].partition("/")
    kinds = registry.find_name(prefix)
    if not slash or not kinds:
        return None
    subject = _identity(kinds[0], name, row.get("NAMESPACE", "") or namespace)
    event = event_objects.about_subject(
        subject, kinds[0], row.get("TYPE", ""), row["REASON"], row.get("MESSAGE", "")
    )
    if _ROW_NAME.fullmatch(row.get("NAME", "")):
        event["metadata"]["name"] = row["NAME"]
    if row.get("SUBOBJECT"):
        event["involvedObject"]["fieldPath"] = row["SUBOBJECT"]
    component, _, host = row.get("SOURCE", "").partition(", ")
    if component:
        event["source"] = {"component": component, **({"host": host} if host else {})}
    if _COUNT.fullmatch(row.get("COUNT", "")):
        event["count"] = int(row["COUNT"])
    return event_objects.with_count(event, row.get("LAST SEEN", ""))


def _described_events(tree: JsonObject, kind: Kind, lines: Sequence[str]) -> Iterator[JsonObject]:
    """The Event objects in the table at the end of a description."""
    if not lines or not _EVENT_TITLES.match(lines[0]):
        return
    titles = [(match.start(), match.group()) for match in re.finditer(r"\S+", lines[0])]
    for line in lines[1:]:
        row = _cells(line, titles)
        if row and row["Reason"].strip("-") and row["Message"]:
            component = {"component": row["From"]} if row["From"] else {}
            event = event_objects.about_subject(
                tree, kind, row["Type"], row["Reason"], row["Message"]
            )
            event = event_objects.with_count(event, row["Age"])
            yield {**event, "source": component} if component else event


def _description(lines: Sequence[str], at: int, schemas: Schemas | None) -> Printout:
    fields: dict[str, list[str]] = {}
    end = at
    last: list[str] = []
    while end < len(lines):
        line = lines[end]
        match = _FIELD.match(line)
        if end > at and descriptions.is_open(lines[end - 1]):
            last.append(line.rstrip())
        elif match is not None:
            if match["name"] == "Name" and end > at:
                break
            last = fields.setdefault(match["name"], [])
            if match["value"]:
                last.append(match["value"].strip())
        elif line.startswith((" ", "\t")) and not descriptions.is_gap(line):
            last.append(line.rstrip())
        elif line.strip() and not descriptions.is_gap(line):
            break
        end += 1
    kind = _described_kind(fields)
    name = " ".join(fields.get("Name", [])).strip()
    if kind is None or not _ROW_NAME.fullmatch(name):
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
    return Printout([tree, *_described_events(tree, kind, events)], end - at, damage)


def _is_of_many(lines: Sequence[str], at: int, end: int) -> bool:
    """Whether a page is one of several that one command printed: then kubectl prints no Events."""
    names = sum(line.startswith("Name:") for line in (*lines[:at], *lines[end:]))
    return bool(names) and not any(line.startswith("Events:") for line in lines)


def _complete(
    tree: JsonObject, lines: Sequence[str], version: str, schemas: Schemas
) -> list[tuple[int, str]]:
    """Add all fields, as kubectl prints them for a kind without a page of its own; the damage."""
    group, _, name = version.rpartition("/")
    node = schemas.find(group, name, tree["kind"])
    if node is None:
        return []
    content = descriptions.read(lines, node)
    metadata = content.tree.pop("metadata", {})
    tree["apiVersion"] = version
    if isinstance(metadata, dict):
        tree["metadata"] = {**metadata, **tree["metadata"]}
    tree.update({part: value for part, value in content.tree.items() if part in node.fields})
    return content.damage


def _described_kind(fields: dict[str, list[str]]) -> Kind | None:
    if "Kind" in fields and "API Version" in fields:
        group, _, version = (
            fields["API Version"][0].rpartition("/") if fields["API Version"] else ("", "", "")
        )
        named = fields["Kind"][0] if fields["Kind"] else ""
        return registry.find_kind(group, version, named)
    if "Containers" in fields and "Node" in fields:
        return registry.find_name("pods")[0]
    # A node that has not reported its size has neither.
    if {"Capacity", "Allocatable"} <= fields.keys() or {"Taints", "Unschedulable"} <= fields.keys():
        return registry.find_name("nodes")[0]
    return None


def _described(kind: Kind, name: str, fields: dict[str, list[str]]) -> JsonObject:
    tree = _identity(kind, name, _first(fields, "Namespace"))
    labels = _pairs(fields.get("Labels", []))
    if labels:
        tree["metadata"]["labels"] = labels
    if kind.kind == "Pod":
        _fill(tree, "spec", nodeName=_first(fields, "Node").partition("/")[0])
        _fill(tree, "status", phase=_PHASES.get(_first(fields, "Status"), ""))
        containers = _containers(fields.get("Containers", []))
        if containers:
            tree.setdefault("spec", {})["containers"] = containers
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
    return values[0].strip() if values and values[0].strip() not in _NONE else ""


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


def _containers(lines: list[str]) -> list[JsonObject]:
    """The names and images of containers: names are indented by two spaces, fields by four."""
    containers: list[JsonObject] = []
    for line in lines:
        text = line.strip()
        if re.fullmatch(r" {2}[a-z0-9-]+:", line.rstrip()):
            containers.append({"name": text.removesuffix(":")})
        elif containers and line.startswith("    Image:"):
            containers[-1]["image"] = text.removeprefix("Image:").strip()
    return containers
