"""Documents within a line of text: JSON between quotes, and records that collectors show.

level=info msg="a claim" claim="{\\"kind\\":\\"ResourceClaim\\", …}"   values that logs quote
"{\\"kind\\":\\"Event\\", …}"                                   jq without -r, aws logs --query
[0] kube.audit: [[1.2, {}], {"log"=>"{"kind":"Event", …}"}]   fluent-bit, output stdout
record={"kind"=>"Event", "user"=>nil}                         fluentd
2026-01-02T03:04:05Z kube-apiserver-audit-1 {                  aws logs tail --format json
"""

import json
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from app.adapters.history import kinds
from app.adapters.history.audit import envelopes
from app.domain.values.json_tree import JsonObject

TRIES_MAX = 16
"""Places of a line that are tried as the beginning of a document."""

ABOVE_MAX = 120
"""Characters before JSON in a line that may name the annotation that it is the value of."""

AROUND_APPLIED = "the object around this annotation cannot be read"

_decoder = json.JSONDecoder()
_EMBEDDED = re.compile(r'\{\s*"')
_PAIR = re.compile(r'\{"[^"\\]*"\s*=>')
_BEGIN = re.compile(r'\{\s*"(?:[^"\\]|\\.)*"\s*:')
_QUOTED = re.compile(r'\{\\"(?:[^"\\]|\\.)*"')
_QUOTED_BEGIN = re.compile(r'\{\\"')
_WRAPPED = re.compile(r'\[\d+\] \S|\{"[^"\\]*"\s*=>|\[\s*"\s*\{\\"')
_RESULT = re.compile(r"\w+: \[[^\]]{1,300}\](?: \(item=.{0,300}?\))? => \{")
_FIELD = re.compile(r'\s+"[^"\\]*":(?:\s|$)')
_APPLIED_NAME = r"kubectl\.kubernetes\.io/last-applied-configuration\\*[\"']?[:=]"
_APPLIED = re.compile(rf"[^A-Za-z\"'{{]{{0,40}}(?:Annotations:\s*)?[\"']?{_APPLIED_NAME}")
_APPLIED_ABOVE = re.compile(rf"{_APPLIED_NAME}[^{{}}]{{0,40}}\Z")
_APPLIED_BLOCK = re.compile(rf".*{_APPLIED_NAME}\s*[|>][-+]?\s*$")
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)|=>|\bnil\b', re.DOTALL)
_AS_JSON = {"=>": ":", "nil": "null"}


def is_wrapped(text: str) -> bool:
    """True for a text that begins with a bracket and is not JSON, but may hold a document."""
    return _WRAPPED.match(text) is not None


def result_in(line: str) -> int | None:
    """The column at which the result of a task of Ansible begins; None in other lines."""
    match = _RESULT.match(line)
    return None if match is None else match.end() - 1


def opens(lines: Sequence[str], at: int) -> bool:
    """True for a line that ends with the bracket of JSON over several lines."""
    following = lines[at + 1] if at + 1 < len(lines) else ""
    return lines[at].endswith("{") and _FIELD.match(following) is not None


def is_applied(lines: Sequence[str], at: int) -> bool:
    """True for the annotation with what somebody applied, which is no state that was stored."""
    above = lines[at - 1] if at else ""
    return _APPLIED.match(lines[at]) is not None or _APPLIED.match(above) is not None


def json_in(line: str) -> int | None:
    """The column at which JSON begins in a line; None without any, and for that annotation."""
    begin = _EMBEDDED.search(line)
    if begin is None or _APPLIED_ABOVE.search(
        line, max(0, begin.start() - ABOVE_MAX), begin.start()
    ):
        return None
    return begin.start()


def begins_applied(line: str) -> bool:
    """True for the first line of that annotation in YAML."""
    return _APPLIED_BLOCK.match(line) is not None


def is_record(line: str) -> bool:
    """True for a line with a record as Ruby and fluent-bit show it."""
    return _PAIR.search(line) is not None


def json_in_record(line: str) -> int | None:
    """The column at which JSON may begin in a text of a record; None without any."""
    begin = _BEGIN.search(line)
    return None if begin is None else begin.start()


def quoted(line: str) -> Iterator[Any]:
    """The audit events and stored objects that stand as JSON between quotes."""
    for match in islice(_quoted(line), TRIES_MAX):
        try:
            value, _ = _decoder.raw_decode(json.loads(f'"{match.group()}'))
        except (ValueError, RecursionError):
            continue
        if not isinstance(value, dict):
            continue
        if envelopes.is_event(value) or _is_stored(value):
            yield value
        elif (named := kinds.of_fields(value)) is not None:
            yield {**value, "apiVersion": named[0], "kind": named[1]}


def _is_stored(value: JsonObject) -> bool:
    """Whether it is an object that a server has stored, not what somebody applies or asks for.

    A list is one if each of its objects is.
    """
    if kinds.is_list(value):
        items = value.get("items") or []
        return bool(items) and all(isinstance(item, dict) and _has_uid(item) for item in items)
    is_object = all(isinstance(value.get(name), str) for name in ("apiVersion", "kind"))
    return is_object and _has_uid(value)


def _has_uid(value: JsonObject) -> bool:
    metadata = value.get("metadata")
    return isinstance(metadata, dict) and kinds.is_stored(metadata)


def _quoted(line: str) -> Iterator[re.Match[str]]:
    """The brackets in texts between quotes, each up to the second quote of its text.

    Behind the first text without its second quote each quote has a backslash: none ends a text.
    """
    at = 0
    while (begin := _QUOTED_BEGIN.search(line, at)) is not None:
        match = _QUOTED.match(line, begin.start())
        if match is None:
            return
        yield match
        at = match.end()


def cut_off(line: str) -> str:
    """The text that breaks off between quotes of which the second is missing; else empty."""
    begin = _QUOTED_BEGIN.search(line)
    if begin is None or _QUOTED.match(line, begin.start()) is not None:
        return ""
    if "auditID" in line:
        return "an audit event"
    is_object = all(mark in line for mark in ('\\"kind\\"', '\\"metadata\\"'))
    return "an object" if is_object else ""


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
