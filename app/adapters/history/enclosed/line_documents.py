"""Documents within a line of text: JSON between quotes, and records that collectors show.

"{\\"kind\\":\\"Event\\", …}"                                   jq without -r, aws logs --query
[0] kube.audit: [[1.2, {}], {"log"=>"{"kind":"Event", …}"}]   fluent-bit, output stdout
record={"kind"=>"Event", "user"=>nil}                         fluentd
"""

import json
import re
from collections.abc import Iterator
from itertools import islice
from typing import Any

from app.adapters.history.audit import envelopes

TRIES_MAX = 16
"""Places of a line that are tried as the beginning of a document."""

_PAIR = re.compile(r'\{"[^"\\]*"\s*=>')
_BEGIN = re.compile(r'\{\s*"(?:[^"\\]|\\.)*"\s*:')
_QUOTED = re.compile(r'"\s*\{\\"(?:[^"\\]|\\.)*"')
_QUOTED_BEGIN = re.compile(r'"\s*\{\\"')
_WRAPPED = re.compile(r'\[\d+\] \S|\{"[^"\\]*"\s*=>|\[\s*"\s*\{\\"')
_RESULT = re.compile(r"\w+: \[[^\]]{1,300}\](?: \(item=.{0,300}?\))? => \{")
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)|=>|\bnil\b', re.DOTALL)
_AS_JSON = {"=>": ":", "nil": "null"}


def is_wrapped(text: str) -> bool:
    """True for a text that begins with a bracket and is not JSON, but may hold a document."""
    return _WRAPPED.match(text) is not None


def result_in(line: str) -> int | None:
    """The column at which the result of a task of Ansible begins; None in other lines."""
    match = _RESULT.match(line)
    return None if match is None else match.end() - 1


def is_record(line: str) -> bool:
    """True for a line with a record as Ruby and fluent-bit show it."""
    return _PAIR.search(line) is not None


def json_in_record(line: str) -> int | None:
    """The column at which JSON may begin in a text of a record; None without any."""
    begin = _BEGIN.search(line)
    return None if begin is None else begin.start()


def quoted_events(line: str) -> Iterator[Any]:
    """The audit events that stand as JSON between quotes."""
    for match in islice(_quoted(line), TRIES_MAX):
        try:
            value = json.loads(json.loads(match.group()))
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict) and envelopes.is_event(value):
            yield value


def _quoted(line: str) -> Iterator[re.Match[str]]:
    """The texts between quotes, up to the first without its second quote.

    From there on each quote has a backslash, so none of them ends a text.
    """
    at = 0
    while (begin := _QUOTED_BEGIN.search(line, at)) is not None:
        match = _QUOTED.match(line, begin.start())
        if match is None:
            return
        yield match
        at = match.end()


def is_cut_event(line: str) -> bool:
    """True for an audit event between quotes of which the second is missing."""
    begin = _QUOTED_BEGIN.search(line)
    return begin is not None and "auditID" in line and _QUOTED.match(line, begin.start()) is None


def record(line: str) -> Any:
    """The record in a line. Raises ValueError for one that cannot be read.

    fluent-bit does not escape the quotes in its texts, so a record with a quote in a text cannot.
    """
    begin = _PAIR.search(line)
    if begin is None:
        raise ValueError("there is no record")
    text = _TOKEN.sub(lambda match: _AS_JSON.get(match[0], match[0]), line[begin.start() :])
    value, _ = json.JSONDecoder().raw_decode(text)
    return value
