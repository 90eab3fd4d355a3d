"""Rows of tables of kubectl without their titles, which a filter or a watch left out.

    $ kubectl get pods -A | grep web
    shop   web-1   0/1   Pending   0   5m

A row is read only where its words leave no doubt about their columns: those of Events, pods, claims
and nodes do.
"""

import re
from collections.abc import Mapping

from app.domain.objects import registry
from app.domain.objects.kind import Kind

_NAME = r"[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?"
_AGE = r"(?:<unknown>|<invalid>|(?:\d+[smhdy])+)"
_AGO = rf"(?: \({_AGE} ago\))?"
_GAP = r"[ \t]+"
_WIDE = r"[ \t]{2,}"
_NAMESPACE = rf"(?:(?P<NAMESPACE>{_NAME}){_GAP})?"

_POD = re.compile(
    rf"{_NAMESPACE}(?P<NAME>(?:pod/)?{_NAME}){_GAP}(?P<READY>\d+/\d+){_GAP}"
    rf"(?P<STATUS>[A-Z][A-Za-z]*(?::[\w./:-]+)?){_GAP}(?P<RESTARTS>\d+{_AGO}){_GAP}(?P<AGE>{_AGE})"
    rf"(?:{_GAP}(?P<IP>[\da-f.:]+|<none>){_GAP}(?P<NODE>{_NAME}|<none>)(?:{_GAP}\S+)*"
    rf"|{_GAP}(?P<ALONE>(?=[a-z0-9.-]*[a-z])(?![\da-f.:]+(?:\s|$)){_NAME})"
    rf"|{_GAP}[\w./-]+=\S*)?[ \t]*"
)
"""Up to 1.2, `-o wide` added the node alone; with `--show-labels` the labels are last."""

_CLAIM = re.compile(
    rf"(?:(?P<NAMESPACE>{_NAME}){_WIDE})?"
    rf"(?P<NAME>(?:resourceclaim(?:\.resource\.k8s\.io)?/)?{_NAME}){_WIDE}"
    r"(?P<STATE>pending|deleted|(?:deleted,)?allocated(?:,reserved)?)"
    rf"{_WIDE}(?P<AGE>{_AGE})[ \t]*"
)
_NODE = re.compile(
    rf"(?P<NAME>(?:node/)?{_NAME}){_GAP}(?P<STATUS>(?:Not)?Ready(?:,SchedulingDisabled)?){_GAP}"
    rf"(?P<ROLES><none>|[a-z0-9,.-]+){_GAP}(?P<AGE>{_AGE}){_GAP}(?P<VERSION>v\d+\.\d+\S*)"
    rf"(?:{_GAP}\S.*)?"
)
_EVENT = re.compile(
    rf"(?:(?P<NAMESPACE>{_NAME}){_GAP})?(?P<SEEN>{_AGE}(?: \(x\d+ over {_AGE}\))?){_GAP}"
    rf"(?P<TYPE>Normal|Warning){_GAP}(?P<REASON>\w+){_GAP}(?P<OBJECT>[\w.]+/\S+)"
    r"(?:[ \t]+(?P<MESSAGE>\S.*))?"
)
_WIDE_MESSAGE = re.compile(r"\S+(?:, \S+)?[ \t]{2,}\S")
"""The beginning of what follows the object with `-o wide`, which has more columns."""

_HAS_AGE = re.compile(r"\d[smhdy](?:\s|$)")

LINE_MAX = 4096
"""Characters of a line that are compared with the rows."""

_ROWS = ((_POD, "pods"), (_CLAIM, "resourceclaims"), (_NODE, "nodes"))


def cells(line: str) -> tuple[Kind, Mapping[str, str]] | None:
    """The kind and the cells of a row, by the titles that are missing; None for other lines."""
    line = line.strip()
    if len(line) > LINE_MAX or _HAS_AGE.search(line) is None:
        return None
    event = _EVENT.fullmatch(line)
    if event is not None:
        row = {title: cell or "" for title, cell in event.groupdict().items()}
        if not row["MESSAGE"] or _WIDE_MESSAGE.match(row["MESSAGE"]):
            # Without a message it may end within the name of its object.
            return None
        return registry.find_name("events")[0], {**row, "LAST SEEN": row.pop("SEEN")}
    for pattern, plural in _ROWS:
        match = pattern.fullmatch(line)
        if match is not None:
            shown = {title: cell for title, cell in match.groupdict().items() if cell}
            if "ALONE" in shown:
                shown["NODE"] = shown.pop("ALONE")
            return registry.find_name(plural)[0], shown
    return None
