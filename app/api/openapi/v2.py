"""OpenAPI v2 for clients that do not support v3: made from the v3 documents, as JSON and protobuf.

kubectl before 1.27 uses the protobuf form to explain, to validate and to find merge keys; `kind:
List` makes every kubectl request it. Field numbers are those of the message `openapi.v2.Document`.
Parity: api.md 4.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from app.domain.values.json_tree import JsonObject

_V3_REF = "#/components/schemas/"
_REF = "#/definitions/"
_KEPT = frozenset(
    {
        *("additionalProperties", "default", "description", "enum", "format", "items"),
        *("properties", "required", "type"),
    }
)
"""The schema fields that v2 has; other fields are only in v3."""


def document(title: str, version: str, parts: Iterable[JsonObject]) -> JsonObject:
    """Merge all v3 documents into one v2 document."""
    definitions: JsonObject = {}
    paths: JsonObject = {}
    for part in parts:
        for name, schema in part["components"]["schemas"].items():
            if name not in definitions:
                definitions[name] = _schema(schema)
        for path, item in part["paths"].items():
            paths[path] = _item(item)
    return {
        "swagger": "2.0",
        "info": {"title": title, "version": version},
        "paths": dict(sorted(paths.items())),
        "definitions": dict(sorted(definitions.items())),
    }


def encode(document: JsonObject) -> bytes:
    """The document as protobuf."""
    paths = b"".join(
        _field(2, _text(1, path) + _field(2, _encoded_item(item)))
        for path, item in document["paths"].items()
    )
    definitions = _named(document["definitions"])
    info = _text(1, document["info"]["title"]) + _text(2, document["info"]["version"])
    return b"".join(
        (_text(1, document["swagger"]), _field(2, info), _field(8, paths), _field(9, definitions))
    )


def _schema(schema: Any) -> JsonObject:
    """A v3 schema as v2: a reference is beside its description."""
    if not isinstance(schema, dict):
        return {}
    converted: JsonObject = {}
    reference = schema.get("$ref") or next(
        (part["$ref"] for part in schema.get("allOf", ()) if "$ref" in part), None
    )
    if reference:
        converted["$ref"] = _REF + str(reference).removeprefix(_V3_REF)
    for key, value in schema.items():
        if key == "properties":
            converted[key] = {name: _schema(part) for name, part in value.items()}
        elif key in ("items", "additionalProperties"):
            converted[key] = _schema(value)
        elif key in _KEPT or (key.startswith("x-kubernetes-") and key != _RULES):
            converted[key] = value
    return converted


_RULES = "x-kubernetes-validations"


def _item(item: JsonObject) -> JsonObject:
    converted: JsonObject = {}
    for method, operation in item.items():
        if method == "parameters":
            converted[method] = [_parameter(each) for each in operation]
        else:
            converted[method] = _operation(operation)
    return converted


def _operation(operation: JsonObject) -> JsonObject:
    shown = {key: operation[key] for key in operation if key.startswith("x-kubernetes-")}
    parameters = [_parameter(each) for each in operation.get("parameters", ())]
    content = operation.get("requestBody", {}).get("content", {})
    if content:
        shape = next(iter(content.values()))["schema"]
        parameters.insert(
            0, {"name": "body", "in": "body", "required": True, "schema": _schema(shape)}
        )
    responses = {}
    for code, response in operation["responses"].items():
        shapes = list(response.get("content", {}).values())
        responses[code] = {"description": response["description"]}
        if shapes:
            responses[code]["schema"] = _schema(shapes[0]["schema"])
    produces = next(iter(operation["responses"].values())).get("content", {})
    return {
        "operationId": operation["operationId"],
        "consumes": list(content) or ["*/*"],
        "produces": list(produces),
        "parameters": parameters,
        "responses": responses,
        **shown,
    }


def _parameter(parameter: JsonObject) -> JsonObject:
    shown = {key: value for key, value in parameter.items() if key != "schema"}
    return shown | {"type": parameter["schema"]["type"], "uniqueItems": True}


# ---- protobuf

_METHODS = {"get": 2, "put": 3, "post": 4, "delete": 5, "options": 6, "head": 7, "patch": 8}
_PLACES = {"header": 1, "query": 3, "path": 4}
_PARAMETER_FIELDS = {"query": (2, 3, 4, 6), "path": (2, 3, 4, 5), "header": (2, 3, 4, 5)}
"""Field numbers of place, description, name and type; they depend on the place."""


def _encoded_schema(schema: Mapping[str, Any]) -> bytes:
    parts = [
        _text(number, schema.get(key))
        for number, key in ((1, "$ref"), (2, "format"), (4, "description"))
    ]
    if "default" in schema:
        parts.append(_field(5, _any(schema["default"])))
    parts += [_text(19, name) for name in schema.get("required", ())]
    parts += [_field(20, _any(value)) for value in schema.get("enum", ())]
    if "additionalProperties" in schema:
        parts.append(_field(21, _field(1, _encoded_schema(schema["additionalProperties"]))))
    if schema.get("type"):
        parts.append(_field(22, _text(1, schema["type"])))
    if "items" in schema:
        parts.append(_field(23, _field(1, _encoded_schema(schema["items"]))))
    if schema.get("properties"):
        parts.append(_field(25, _named(schema["properties"])))
    parts += _extensions(31, schema)
    return b"".join(parts)


def _named(schemas: Mapping[str, Any]) -> bytes:
    """Encoded schemas by name, for `definitions` and `properties`."""
    return b"".join(
        _field(1, _text(1, name) + _field(2, _encoded_schema(schema)))
        for name, schema in schemas.items()
    )


def _encoded_item(item: Mapping[str, Any]) -> bytes:
    parts = [
        _field(number, _encoded_operation(item[method]))
        for method, number in _METHODS.items()
        if method in item
    ]
    parts += [_field(9, _encoded_parameter(each)) for each in item.get("parameters", ())]
    return b"".join(parts)


def _encoded_operation(operation: Mapping[str, Any]) -> bytes:
    parts = [_text(5, operation["operationId"])]
    parts += [_text(6, name) for name in operation["produces"]]
    parts += [_text(7, name) for name in operation["consumes"]]
    parts += [_field(8, _encoded_parameter(each)) for each in operation["parameters"]]
    responses = b"".join(
        _field(1, _text(1, code) + _field(2, _field(1, _encoded_response(response))))
        for code, response in operation["responses"].items()
    )
    return b"".join((*parts, _field(9, responses), *_extensions(13, operation)))


def _encoded_response(response: Mapping[str, Any]) -> bytes:
    encoded = _text(1, response["description"])
    if "schema" in response:
        encoded += _field(2, _field(1, _encoded_schema(response["schema"])))
    return encoded


def _encoded_parameter(parameter: Mapping[str, Any]) -> bytes:
    """A ParametersItem that contains the parameter."""
    place = parameter["in"]
    if place == "body":
        schema = _field(5, _encoded_schema(parameter["schema"]))
        body = _text(2, parameter["name"]) + _text(3, "body") + _flag(4) + schema
        return _field(1, _field(1, body))
    inside, description, name, kind = _PARAMETER_FIELDS[place]
    parts = _flag(1) if parameter.get("required") else b""
    parts += _text(inside, place) + _text(description, parameter.get("description"))
    parts += _text(name, parameter["name"]) + _text(kind, parameter["type"])
    return _field(1, _field(2, _field(_PLACES[place], parts)))


def _extensions(number: int, holder: Mapping[str, Any]) -> Iterator[bytes]:
    for key, value in holder.items():
        if key.startswith("x-"):
            yield _field(number, _text(1, key) + _field(2, _any(value)))


def _any(value: Any) -> bytes:
    """A value of any type, encoded as YAML, which includes JSON."""
    return _text(2, msgspec.json.encode(value).decode() + "\n")


def _text(number: int, text: str | None) -> bytes:
    return _field(number, text.encode()) if text else b""


def _flag(number: int) -> bytes:
    return _varint(number << 3) + b"\x01"


def _field(number: int, body: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(body)) + body


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)
