"""Readers of kubectl output for people: the tables of `get` and the pages of `describe`.

This output shows only a few fields, so an object read from it is partial: the identity, the node,
the phase, and labels and taints where shown. The records carry this as a loss.

    NAMESPACE   NAME   READY   STATUS    RESTARTS   AGE   NODE
    default     a      1/1     Running   0          3d    n1
"""

import re
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet

from app.adapters.history.printouts import (
    columns,
    event_objects,
    foreign,
    pages,
    parts,
    pod_words,
    untitled,
)
from app.adapters.history.printouts.commands import Commands, NamesCommand, PrintedCommand
from app.adapters.history.printouts.parts import Printout
from app.domain.objects import registry
from app.domain.objects.kind import Kind
from app.domain.objects.schema.structural import Schemas
from app.domain.values.fields import meta
from app.domain.values.json_tree import JsonObject

_TITLES = re.compile(
    r"^(?:EVENT\s+)?(?:NAMESPACE\s+)?"
    r"(?:NAME\s{2,}[A-Z]|LAST SEEN\s{2,}TYPE\s{2,}REASON\s{2,}OBJECT"
    r"|LAST ?SEEN\s{2,}FIRST ?SEEN\s{2,}COUNT\s{2,}NAME\s{2,}KIND\b)"
)
_TITLE = re.compile(r"[A-Z][A-Z0-9()-]*(?: [A-Z0-9()-]+)*")
_BEHIND = re.compile(
    r"(?P<command>.{1,300}?)[ \t]{1,200}"
    r"(?P<titles>(?:NAMESPACE[ ]{2,200}NAME|NAME|LAST SEEN)[ ]{2,200}[A-Z].*)"
)
"""Titles on the line of their command, where a line end was lost."""

_COLUMNS = re.compile(r"[A-Z][A-Z0-9_.-]*(?:\s{2,}[A-Z][A-Z0-9_.-]*)+")
_INDENT = re.compile(r"(?:[ \t]+|[ \t]*#[ \t]*)(?=NAME|LAST ?SEEN|EVENT)")
"""The begin of a table that is set in, or that a script shows in comments below its command."""

_PAGE_INDENT = re.compile(r"[ \t]+(?=Name: )")
_RULE = re.compile(r"\s*[-=]{3}[-=\s]*")
_DOTS = re.compile(r"\.\.\.|\u2026")
_WORDS = frozenset({"MESSAGE", "REASON"})
"""Columns with words of people, which may hold dots of their own."""

CUT_NAME = "the name in this row was cut, so its object is not known"
CUT_CELL = "a cell of this row was cut"
CUT_ROW = "this row ends before its age, so it is cut, and its object is not known"
CUT_EVENT = "this row ends before its message, so it is cut, and what it is about is not known"
DELETED_ROW = (
    "this row says that its object was deleted: what the rows above it show of the object is left "
    "out"
)
NO_ROW = "a row of another kind than its table, whose cells cannot be told apart"
NO_CELLS = "the cells of the rows below these titles cannot be told apart"
COLUMNS = (
    "custom columns are read where the command above names fields that tell the object, or the "
    "first is NAME, or NAMESPACE before it"
)
NO_SUBJECT = "a table of events, but the object that they are about is not shown above it"
UNKNOWN_SUBJECT = "an Event, but its row names no object of a kind that redra knows"
NO_PAGE = "a table of events below a description whose kind redra does not know"
FOREIGN_PAGE = "a description of an object of a kind that redra does not know"
COMMENTED_EVENTS = "a table of the events of a description in comments, which redra does not read"
NO_TITLES = "rows of a table whose titles a filter left out"
NO_EVENT_TITLES = "a row of events whose titles are not shown above it"
NO_KIND = "a table of kubectl get, but nothing tells of which kind"
FOREIGN_KIND = "a table of kubectl get of a kind that redra does not know"
NO_NAMESPACE = "a name of all namespaces (-o name -A), without its own"
TEMPLATE = "the output of a template (-o jsonpath, go-template), which redra does not read"
_NAMED = re.compile(r"(?P<kind>[a-z][a-z0-9]*(?:\.[a-z0-9.-]+)?)/(?P<name>\S+)")
_COUNT = re.compile(r"[0-9]{1,9}")
_BY_TITLES = (
    ({"READY", "STATUS", "RESTARTS"}, "pods"),
    ({"STATUS", "ROLES", "VERSION"}, "nodes"),
    ({"NODE", "DRIVER", "POOL"}, "resourceslices"),
    ({"DESIRED", "CURRENT", "READY", "NODE SELECTOR"}, "daemonsets"),
    ({"READY", "UP-TO-DATE", "AVAILABLE"}, "deployments"),
    ({"DESIRED", "CURRENT", "READY"}, "replicasets"),
    ({"COMPLETIONS", "DURATION"}, "jobs"),
    ({"DESIRED", "SUCCESSFUL"}, "jobs"),
    ({"TYPE", "CLUSTER-IP", "PORT(S)"}, "services"),
    ({"PROVISIONER", "RECLAIMPOLICY"}, "storageclasses"),
)
"""Column titles that identify the table of one kind; longer sets come before shorter ones."""

_OF_ALL = frozenset({"EVENT", "NAMESPACE", "NAME", "AGE", "LABELS"})
_OF_CLAIMS = frozenset({"CLASSNAME", "RESOURCECLASSNAME", "ALLOCATIONMODE"})
_OF_NODES = r"\b(?:Not)?Ready(?:,SchedulingDisabled\b|[ \t]+\S+[ \t]+v\d+\.\d)"
_LIKE_OTHERS: tuple[tuple[set[str], frozenset[str], str, re.Pattern[str]], ...] = (
    ({"STATE"}, _OF_CLAIMS, "resourceclaims", re.compile(r"\b(?:pending|deleted|allocated)\b")),
    ({"STATUS"}, frozenset(), "namespaces", re.compile(r"\b(?:Active|Terminating)\b")),
    ({"STATUS"}, frozenset({"VERSION"}), "nodes", re.compile(_OF_NODES)),
)
"""Kinds whose titles other kinds have too: titles it has, titles it may have beside those of all,
and a word of its rows. Nodes had no ROLES up to 1.7. A command that asks for something else takes
precedence."""

_OF_NAME_AND_AGE = ("deviceclasses", "resourceclaimtemplates", "workloads", "podgroups")
"""Kinds whose tables have no titles but those of all; kinds of Kueue and Volcano of the same names
have more."""

_EVENTS = registry.find_name("events")[0]
_OF_OLD_EVENTS = frozenset({"REASON", "KIND", "SUBOBJECT"})
"""Titles of Events up to 1.13, whose subject is told by its kind and the name of the Event."""

_EVENT_TYPES = ("Normal", "Warning")
_OLD_NAME = re.compile(r"(?P<subject>\S+)\.[0-9a-f]{14,16}")
_EVENT_ROW = re.compile(
    r"(?:\S+\s+)?(?:\d+[smhdy])+\s+(?:\(x\d+ over [^)]*\)\s+)?(?:Normal|Warning)\s+"
    r"\w+\s+[\w.]+/\S+(?:\s|$)"
)
_FILTERED_ROW = re.compile(r"\S+(?: {2,}\S+){3,}")


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
    elif not at or not lines[at - 1].strip() or "describe" in lines[at - 1]:
        # Set in anywhere else but below its command, it is the name of a part of a page.
        page = _PAGE_INDENT.match(lines[at])
        if page is not None:
            return pages.description(_set_in(lines, at, page.group(), "Name:"), 0, schemas)
    if commands is not None and (chosen := _chosen(lines, at, commands, number)).lines:
        return chosen
    if commands is not None and (listed := commands.names_above(number)) is not None:
        return _names(lines, at, listed)
    if _TITLES.match(lines[at]):
        return _table(lines, at, commands or Commands(), number)
    if commands is not None and " get " in lines[at] and (both := _BEHIND.match(lines[at])):
        commands.note(both["command"], number - 1)
        if commands.of(number, None) is not None:
            return _table([both["titles"], *lines[at + 1 :]], 0, commands, number)
    if lines[at].startswith("Name:"):
        return pages.description(lines, at, schemas)
    if pages.EVENT_TITLES.match(lines[at]):
        return pages.events_alone(lines, at)
    return _untitled(lines, at, commands or Commands(), number)


def problem(lines: Sequence[str], at: int, commands: Commands, number: int) -> str:
    """The loss where a line begins no printout; empty for a line of text."""
    line = lines[at].strip()
    if commands.is_template_above(number):
        return TEMPLATE
    if unread := foreign.problem(line):
        return unread
    if foreign.is_change(lines, at):
        return foreign.CHANGE
    if pages.is_of_foreign_kind(lines, at):
        return FOREIGN_PAGE
    if pages.EVENT_TITLES.match(lines[at]):
        return NO_PAGE if pages.is_below_page(lines, at) else NO_SUBJECT
    if line.startswith("#") and pages.EVENT_TITLES.match(line.lstrip("# \t")):
        return COMMENTED_EVENTS
    if _EVENT_ROW.match(line) or pages.begins_rows(lines, at):
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
        is_chosen = newest.has_columns and _COLUMNS.fullmatch(line) is not None
        return COLUMNS if is_chosen or columns.begins(line, newest.columns) else ""
    titles = {match.group() for match in _TITLE.finditer(line)}
    if _kind(titles, row, commands, number) is not None:
        return NO_CELLS
    is_open = newest is not None and newest.is_open
    if not line.endswith("AGE") or is_open:
        return ""
    names_kind = any(_NAMED.fullmatch(word) for word in row.split(maxsplit=2)[:2])
    return FOREIGN_KIND if names_kind else NO_KIND


def _chosen(lines: Sequence[str], at: int, commands: Commands, number: int) -> Printout:
    """The table of columns that a command for one kind names; without lines for any other."""
    command = commands.of(number, None)
    if command is None or not columns.begins(lines[at], command.columns):
        return Printout()
    kind = command.kinds[0] if len(command.kinds) == 1 and not command.is_open else None
    alike = (each for each in commands.others_of_group(command) if each.has_columns)
    if kind is None or any(columns.begins(lines[at], each.columns) for each in alike):
        return Printout()
    namespace = commands.namespace(command, kind)
    return columns.parse(lines, at, command.columns, kind, namespace)


def _set_in(lines: Sequence[str], at: int, indent: str, begin: str = "") -> list[str]:
    """The lines from here on that have this indentation, without it, up to the next `begin`."""
    inner: list[str] = []
    for number in range(at, len(lines)):
        line = lines[number]
        if line.strip() and not line.startswith(indent):
            break
        if begin and inner and line.startswith(begin, len(indent)):
            break
        inner.append(line.removeprefix(indent))
    return inner


def _table(lines: Sequence[str], at: int, commands: Commands, number: int) -> Printout:
    titles = [(match.start(), match.group()) for match in _TITLE.finditer(lines[at])]
    names = [title for _, title in titles]
    begin = at + 1
    if begin < len(lines) and _RULE.fullmatch(lines[begin]):
        begin += 1
    kind = _kind(set(names), lines[begin] if begin < len(lines) else "", commands, number)
    command = commands.of(number, kind)
    namespace = "" if command is None else commands.namespace(command, kind)
    table = Printout()
    objects: dict[int, JsonObject] = {}
    rows: dict[tuple[str, ...], list[int]] = {}
    end = begin
    while end < len(lines) and lines[end].strip() and not _TITLES.match(lines[end]):
        row: Mapping[str, str]
        row, of_row = parts.cells(lines[end], titles), kind
        if kind is not None and _kind_of_row(lines[end]) not in (None, kind):
            # A watch of several kinds prints the titles of each once, and then rows of all.
            bare = untitled.cells(lines[end])
            if bare is None:
                table.damage.append((end - at, NO_ROW))
                end += 1
                continue
            of_row, row = bare
        if row.get("AGE") == "" and parts.ROW_NAME.fullmatch(row.get("NAME", "")):
            # It is no prompt. kubectl shows `<unknown>` for an age that it does not know.
            table.damage.append((end - at, CUT_ROW))
            end += 1
            continue
        if row.get("MESSAGE") == "" and "OBJECT" in row and row.get("TYPE", "") in _EVENT_TYPES:
            table.damage.append((end - at, CUT_EVENT))
            end += 1
            continue
        cut = [name for name, cell in row.items() if name not in _WORDS and _DOTS.search(cell)]
        if cut:
            row = {**row, **dict.fromkeys(cut, "")}
            problem = CUT_NAME if {"NAME", "OBJECT", "NAMESPACE"} & {*cut} else CUT_CELL
            table.damage.append((end - at, problem))
            if problem == CUT_NAME:
                end += 1
                continue
        tree = object_of_row(row, of_row, namespace)
        if tree is None and "REASON" in row and row.get("TYPE") in _EVENT_TYPES:
            table.damage.append((end - at, UNKNOWN_SUBJECT))
            end += 1
            continue
        if tree is None:
            break
        # A watch shows an object again with each change.
        metadata = tree["metadata"]
        key = tree["kind"], metadata.get("namespace", ""), metadata["name"]
        if row.get("EVENT") == "DELETED":
            table.damage.append((end - at, DELETED_ROW))
            for line in rows.pop(key, ()):
                del objects[line]
        else:
            rows.setdefault(key, []).append(end)
            objects[end] = tree
        end += 1
    if end == begin:
        return Printout()
    if command is not None and (command.is_any or len(command.kinds) != 1):
        command.line = number + end - at
    table.objects, table.lines = list(objects.values()), end - at
    return table


def _names(lines: Sequence[str], at: int, command: NamesCommand) -> Printout:
    """The names that `-o name` prints, one on a line."""
    listed = Printout()
    for line in lines[at:]:
        match = _NAMED.fullmatch(line.strip())
        kinds = registry.find_name(match["kind"]) if match is not None else ()
        if match is None or not kinds or not parts.ROW_NAME.fullmatch(match["name"]):
            break
        if command.is_of_all and kinds[0].namespaced:
            listed.damage.append((listed.lines, NO_NAMESPACE))
        else:
            listed.objects.append(parts.identity(kinds[0], match["name"], command.namespace))
        listed.lines += 1
    return listed


def _kind_of_row(line: str) -> Kind | None:
    """The kind before the name in a row, as in `pod/web`; None where there is none."""
    for word in line.split(maxsplit=2)[:2]:
        prefix, slash, _ = word.partition("/")
        if slash and (named := registry.find_name(prefix)):
            return named[0]
    return None


def _untitled(lines: Sequence[str], at: int, commands: Commands, number: int) -> Printout:
    """The rows that begin at a line and whose titles are left out."""
    table = Printout()
    for line in lines[at:]:
        cells = untitled.cells(line)
        if cells is None:
            break
        kind, row = cells
        command = commands.of(number, kind)
        namespace = "" if command is None else commands.namespace(command, kind)
        tree = object_of_row(row, kind, namespace)
        if tree is None:
            break
        table.objects.append(tree)
        table.lines += 1
    return table


def _kind(titles: set[str], row: str, commands: Commands, number: int) -> Kind | None:
    """The kind of a table: from the prefix of its names, its titles, or the command above it."""
    prefix, slash, _ = (row.split() or [""])[0].partition("/")
    if slash and (named := registry.find_name(prefix)):
        return named[0]
    if (alone := kind_of_titles(titles)) is not None:
        return alone
    newest = commands.of(number, None)
    if newest is not None and not _may_show(newest, titles):
        newest = None
    for needed, others, name, word in _LIKE_OTHERS:
        meant = registry.find_name(name)[0]
        is_alike = titles - _OF_ALL - others == needed and word.search(row) is not None
        if is_alike and (newest is None or newest.is_of(meant)):
            return meant
    if newest is None or len(newest.kinds) != 1 or newest.is_open:
        return None
    beside = [each for each in commands.others_of_group(newest) if _may_show(each, titles)]
    is_sure = all(each.kinds == newest.kinds and not each.is_open for each in beside)
    return newest.kinds[0] if is_sure else None


def _may_show(command: PrintedCommand, titles: set[str]) -> bool:
    """True unless all kinds that a command asks for have other titles than these."""
    if command.is_open or command.is_any or command.has_columns:
        return True
    known: dict[str, set[str]] = {}
    for needed, name in _BY_TITLES:
        known[name] = known.get(name, set()) | needed
    for needed, _, name, _ in _LIKE_OTHERS:
        known[name] = known.get(name, set()) | needed
    known |= {name: {"NAME"} if titles <= _OF_ALL else set() for name in _OF_NAME_AND_AGE}
    return any(kind.plural not in known or known[kind.plural] & titles for kind in command.kinds)


def kind_of_titles(titles: AbstractSet[str]) -> Kind | None:
    """The kind that alone has columns with these titles; None where no kind has, or several."""
    if {"REASON", "OBJECT"} <= titles or titles >= _OF_OLD_EVENTS:
        return _EVENTS
    plural = next((name for needed, name in _BY_TITLES if needed <= titles), None)
    return registry.find_name(plural)[0] if plural else None


def object_of_row(row: Mapping[str, str], kind: Kind | None, namespace: str) -> JsonObject | None:
    """The object of a row; None when the row does not describe an object."""
    if "OBJECT" in row and "REASON" in row:
        return _event(row, namespace)
    if row.keys() >= _OF_OLD_EVENTS:
        old = _OLD_NAME.fullmatch(row.get("NAME", ""))
        subject = f"{row['KIND']}/{old['subject']}" if old is not None else ""
        return _event({**row, "OBJECT": subject}, namespace)
    name = row.get("NAME", "")
    prefix, slash, rest = name.partition("/")
    if slash:
        named = registry.find_name(prefix)
        kind, name = (named[0] if named else None), rest
    if kind is None or not parts.ROW_NAME.fullmatch(name):
        return None
    tree = parts.identity(kind, name, row.get("NAMESPACE", "") or namespace)
    if kind.kind == "Pod":
        parts.fill(tree, "spec", nodeName=row.get("NODE", ""))
        parts.fill(tree, "status", podIP=row.get("IP", ""))
        pod_words.fill(tree, row.get("STATUS", ""), row.get("READY", ""), row.get("RESTARTS", ""))
    elif kind.kind == "Node":
        _node(tree, row)
    elif kind.kind == "ResourceClaim" and row.get("STATE"):
        # The table does not show which devices a claim has, nor who uses it. A later table takes an
        # allocation away that an earlier one showed.
        words = row["STATE"].split(",")
        tree["status"] = {"allocation": {} if "allocated" in words else None}
        if "deleted" in words:
            tree["metadata"]["deletionTimestamp"] = meta.UNKNOWN_TIME
    elif kind.kind == "ResourceSlice":
        parts.fill(tree, "spec", nodeName=row.get("NODE", ""), driver=row.get("DRIVER", ""))
        if row.get("POOL"):
            tree.setdefault("spec", {})["pool"] = {"name": row["POOL"]}
    return tree


def _node(tree: JsonObject, row: Mapping[str, str]) -> None:
    states = row.get("STATUS", "").split(",")
    if "SchedulingDisabled" in states:
        tree["spec"] = {"unschedulable": True}
    ready = "True" if "Ready" in states else "False" if "NotReady" in states else "Unknown"
    tree["status"] = {"conditions": [{"type": "Ready", "status": ready}]}
    if row.get("VERSION"):
        tree["status"]["nodeInfo"] = {"kubeletVersion": row["VERSION"]}
    roles = [role for role in row.get("ROLES", "").split(",") if role not in parts.NOT_SHOWN]
    if roles:
        labels = {f"node-role.kubernetes.io/{role}": "" for role in roles}
        tree["metadata"]["labels"] = labels


def _event(row: Mapping[str, str], namespace: str) -> JsonObject | None:
    """The Event object of a row of `kubectl get events`."""
    prefix, slash, name = row["OBJECT"].partition("/")
    kinds = registry.find_name(prefix)
    if not slash or not kinds:
        return None
    subject = parts.identity(kinds[0], name, row.get("NAMESPACE", "") or namespace)
    event = event_objects.about_subject(
        subject, kinds[0], row.get("TYPE", ""), row["REASON"], row.get("MESSAGE", "")
    )
    # A command for several kinds prints the kind before each name.
    own_name = row.get("NAME", "").rpartition("/")[2]
    if parts.ROW_NAME.fullmatch(own_name):
        event["metadata"]["name"] = own_name
    if row.get("SUBOBJECT", "") not in parts.NOT_SHOWN:
        event["involvedObject"]["fieldPath"] = row["SUBOBJECT"]
    component, _, host = row.get("SOURCE", "").partition(", ")
    if component not in parts.NOT_SHOWN:
        event["source"] = {"component": component, **({"host": host} if host else {})}
    if _COUNT.fullmatch(row.get("COUNT", "")):
        event["count"] = int(row["COUNT"])
    return event_objects.with_count(event, row.get("LAST SEEN", ""))
