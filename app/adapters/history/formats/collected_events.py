"""Events as collectors for Loki write them: Grafana Alloy, the agents before it, Promtail.

    name=web-1 kind=Pod objectAPIversion=v1 objectRV=31 eventRV=30 sourcecomponent=kubelet
        sourcehost=n1 reason=BackOff type=Warning count=4 msg="Back-off restarting failed container"

is one line; with `log_format = "json"` the fields are those of an object. The namespace is a label
of the stream that the line belongs to, so it stands beside the line or nowhere.

Parity: history-formats.md 10.5.
"""

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from app.adapters.history.formats.logged_events import LoggedEvent
from app.domain.objects import registry

MARK = "objectAPIversion"
"""The field that no other line of a log has."""

_FIELD = re.compile(r'(?<!\S)(?P<name>\w+)=(?:"(?P<text>(?:[^"\\]|\\.)*)"|(?P<bare>\S*))')
_MARKED, _NAME = f" {MARK}=", "name="
_WORD = re.compile(r"\w+=\S+")
_LABELS = re.compile(r"\{[^{}]*\}")
"""The labels before a line, as logcli prints them, or in a cell of a table."""

_NAMESPACE = re.compile(r'\bnamespace"{0,2}(?:=|: ?)"{1,2}([a-z0-9-]{1,63})"{1,2}')
_LABELLED = ("stream", "labels", "fields", "metric")
"""Where the answers of Loki, and the downloads of Grafana, keep the labels of a line."""


def of_line(line: str) -> LoggedEvent | None:
    """The Event of a line; None for another line, and for one that is cut before its message."""
    begin = _begin(line)
    if begin is None:
        return None
    text = line[begin:]
    if 'msg=""' in text and not text.rstrip().endswith('msg=""'):
        # A cell of a table doubles its quotes.
        text = text.replace('""', '"')
    fields = {
        each["name"]: each["bare"] if each["text"] is None else _unquoted(each["text"])
        for each in _FIELD.finditer(text)
    }
    return _event(fields, _labelled(line[:begin]))


def is_line(line: str) -> bool:
    """True for a line that begins such an Event, whole or cut."""
    return _begin(line) is not None


def of_tree(tree: Mapping[str, Any]) -> LoggedEvent | None:
    """The Event of a line in JSON; None for other documents."""
    if MARK not in tree:
        return None
    return _event({name: str(value) for name, value in tree.items()}, "")


def namespace_of(tree: Mapping[str, Any]) -> str:
    """The namespace among the labels of a stream or of a line; empty when there is none."""
    for name in _LABELLED:
        labels = tree.get(name)
        if isinstance(labels, dict) and isinstance(namespace := labels.get("namespace"), str):
            return namespace
    return ""


def _begin(line: str) -> int | None:
    """The beginning of the field `name`, between which and the mark there are only other fields."""
    last, at = 0, line.find(_MARKED)
    while at >= 0:
        begin, end = None, at
        for word in reversed(line[last:at].split(" ")):
            end -= len(word)
            name = _name(word)
            begin = begin if name is None else end + name
            if not _WORD.fullmatch(word):
                break
            end -= 1
        if begin is not None:
            return begin
        last, at = at + 1, line.find(_MARKED, at + 1)
    return None


def _name(word: str) -> int | None:
    """The beginning of the field `name` at the end of a word: behind other blanks or a quote."""
    if not word or word[-1].isspace():
        return None
    text = word.split()[-1]
    at = 0 if text.startswith(_NAME) else text.find(f'"{_NAME}') + 1
    is_field = text.startswith(_NAME, at) and len(text) > at + len(_NAME)
    return len(word) - len(text) + at if is_field else None


def _labelled(text: str) -> str:
    """The namespace among the first labels that name one; empty without any."""
    for labels in _LABELS.finditer(text):
        names = _NAMESPACE.findall(labels[0])
        if names:
            return str(names[-1])
    return ""


def _event(fields: Mapping[str, str], namespace: str) -> LoggedEvent | None:
    name, kind, message = fields.get("name"), fields.get("kind"), fields.get("msg")
    if not name or not kind or message is None or not fields.get("reason"):
        return None
    count = fields.get("count", "")
    kinds = registry.find_name(kind)
    return LoggedEvent(
        kind=kind,
        api_version=fields[MARK],
        namespace=namespace,
        name=name,
        uid="",
        field_path="",
        type=fields.get("type", ""),
        reason=fields["reason"],
        message=message,
        component=fields.get("sourcecomponent") or fields.get("reportingcontroller", ""),
        host=fields.get("sourcehost", ""),
        series=int(count) if re.fullmatch(r"[0-9]{1,9}", count) else 0,
        is_unplaced=not namespace and all(each.namespaced for each in kinds),
    )


def _unquoted(text: str) -> str:
    try:
        return str(msgspec.json.decode(f'"{text}"'))
    except msgspec.DecodeError:
        return text
