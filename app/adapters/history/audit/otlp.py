"""Plain values of logs in the JSON of OpenTelemetry, which names the type of each value.

{"kvlistValue": {"values": [{"key": "kind", "value": {"stringValue": "Pod"}}]}}
→  {"kind": "Pod"}
"""

import re
from typing import Any

from app.domain.values.json_tree import JsonObject

_MARK = "resourceLogs"
_SCALARS = ("stringValue", "boolValue", "doubleValue", "bytesValue")
_INTEGER = re.compile(r"-?[0-9]{1,19}")


def plain(document: JsonObject) -> JsonObject:
    """The document with plain values; unchanged unless it holds logs of OpenTelemetry."""
    if _MARK not in document:
        return document
    return {name: _walked(part) for name, part in document.items()}


def _walked(value: Any) -> Any:
    if isinstance(value, list):
        return [_walked(item) for item in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1:
        ((name, content),) = value.items()
        if name in _SCALARS:
            return content
        if name == "intValue" and isinstance(content, int | str):
            return int(content) if _INTEGER.fullmatch(str(content)) else content
        items = content.get("values") or [] if isinstance(content, dict) else None
        if name == "arrayValue" and isinstance(items, list):
            return [_value(item) for item in items]
        if name == "kvlistValue" and isinstance(items, list):
            return _fields(items)
    return {name: _walked(part) for name, part in value.items()}


def _fields(items: list[Any]) -> JsonObject:
    pairs = [item for item in items if isinstance(item, dict) and isinstance(item.get("key"), str)]
    return {pair["key"]: _value(pair.get("value")) for pair in pairs}


def _value(value: Any) -> Any:
    """The plain value; one without a type is null."""
    return _walked(value) if value else None
