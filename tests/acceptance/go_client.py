"""What client-go puts on the wire, and what its decoders take.

Bodies are protobuf by the published field table, answers are asked for as protobuf or JSON, options
stand in the query in the order of their names. `check_types` is as strict as Go's decoders: each
value must be of the type that the published schema gives. Parity: api.md 3 and 12.
"""

import json
import re
from functools import lru_cache

from tests.acceptance.server_process import following
from tests.shared_data import shared_path
from tests.unit.protobuf.wire import META, encode_message, envelope

PROTOBUF = "application/vnd.kubernetes.protobuf"
HEADERS = {
    "Accept": f"{PROTOBUF},application/json",
    "Accept-Encoding": "gzip",
    "User-Agent": "driver/v0.0.0 (linux/amd64) kubernetes/$Format",
}
STREAM = {
    "allowWatchBookmarks": "true",
    "resourceVersionMatch": "NotOlderThan",
    "sendInitialEvents": "true",
}
TIMES = {"timeout": "6m14s", "timeoutSeconds": "374"}
_PACKAGES = {"": "core", "events.k8s.io": "events", "rbac.authorization.k8s.io": "rbac"}
_RFC3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_REF = "#/components/schemas/"
_NULL_TIMES = {"creationTimestamp", "lastProbeTime", "lastTransitionTime"} | {
    "deprecatedFirstTimestamp", "deprecatedLastTimestamp", "eventTime", "firstTimestamp",
    "lastTimestamp",
}  # fmt: skip


@lru_cache(maxsize=1)
def _table():
    return json.loads(shared_path("openapi", "protobuf-fields.json").read_text())


def body(tree):
    """The bytes of a typed object."""
    group, _, version = tree["apiVersion"].rpartition("/")
    package = _PACKAGES.get(group, group.partition(".")[0])
    name = f"k8s.io.api.{package}.{version}.{tree['kind']}"
    return envelope(tree["apiVersion"], tree["kind"], encode_message(_table(), name, tree))


def delete_options(api_version, **options):
    """The bytes of DeleteOptions, which say the group of what is deleted."""
    raw = encode_message(_table(), f"{META}DeleteOptions", options)
    return envelope(api_version, "DeleteOptions", raw)


class GoClient:
    """The verbs of a typed client over plain HTTP. Each answer's objects are checked."""

    def __init__(self, http):
        self.http = http

    def _send(self, method, path, content, expected, query):
        answer = self.http.request(
            method, path, content=content, params=query, headers={"Content-Type": PROTOBUF}
        )
        assert answer.status_code == expected, answer.text
        assert answer.headers["content-type"] == "application/json"
        tree = answer.json()
        if tree["kind"] != "Status":
            check_types(tree)
        return tree

    def create(self, path, tree, expected=201, **query):
        """POST of an object."""
        return self._send("POST", path, body(tree), expected, query)

    def update(self, path, tree, expected=200, **query):
        """PUT of an object."""
        return self._send("PUT", path, body(tree), expected, query)

    def delete(self, path, api_version, expected=200, **options):
        """DELETE with options in the body."""
        return self._send("DELETE", path, delete_options(api_version, **options), expected, {})

    def get(self, path, expected=200, **query):
        """GET of an object or a list."""
        return self._send("GET", path, b"", expected, query)

    def apply(self, path, tree, manager, expected=200):
        """A typed apply configuration: JSON text, force always said."""
        answer = self.http.patch(
            path,
            params={"fieldManager": manager, "force": "true"},
            content=json.dumps(tree),
            headers={"Content-Type": "application/apply-patch+yaml"},
        )
        assert answer.status_code == expected, answer.text
        check_types(answer.json())
        return answer.json()


class Reflector:
    """The store of an informer: a streaming list, then watches from the last version."""

    def __init__(self, http, path, **selectors):
        self.store = {}
        self.version = ""
        self.told = []
        self._http = http
        self._path = path
        self._selectors = selectors

    def streaming_list(self, until=lambda reflector: True):
        """Fill the store up to the bookmark and follow until there is enough."""
        with following(self._http, self._path, **STREAM, **TIMES, **self._selectors) as lines:
            for line in lines:
                marks = line["object"]["metadata"].get("annotations", {})
                self._take(line)
                if marks.get("k8s.io/initial-events-end") == "true":
                    break
            while not until(self):
                self._take(next(lines))

    def list(self):
        """The fallback: one page from any cached state."""
        parameters = {"limit": "500", "resourceVersion": "0", **self._selectors}
        found = self._http.get(self._path, params=parameters).json()
        self.store = {item["metadata"]["name"]: item for item in found["items"]}
        self.version = found["metadata"]["resourceVersion"]

    def resume(self, until):
        """Go on after the last version over a new connection."""
        parameters = {"allowWatchBookmarks": "true", "resourceVersion": self.version, **TIMES}
        with following(self._http, self._path, **parameters, **self._selectors) as lines:
            while not until(self):
                self._take(next(lines))

    def _take(self, line):
        kind, tree = line["type"], line["object"]
        assert kind in ("ADDED", "MODIFIED", "DELETED", "BOOKMARK"), line
        assert tree["kind"], line
        assert tree["apiVersion"], line
        assert int(tree["metadata"]["resourceVersion"]) > 0
        self.version = tree["metadata"]["resourceVersion"]
        if kind == "BOOKMARK":
            return
        check_types(tree)
        name = tree["metadata"]["name"]
        self.told.append((kind, name))
        if kind == "DELETED":
            self.store.pop(name)
        else:
            self.store[name] = tree


@lru_cache(maxsize=32)
def _schemas(api_version):
    place = f"apis__{api_version.replace('/', '__')}" if "/" in api_version else "api__v1"
    return json.loads(shared_path("openapi", f"{place}.json").read_text())["components"]["schemas"]


def check_types(tree):
    """Fail unless an object or list is what its schema says, field by field."""
    schemas = _schemas(tree["apiVersion"])
    group, _, version = tree["apiVersion"].rpartition("/")
    kind = tree["kind"].removesuffix("List")
    wanted = {"group": group, "version": version, "kind": kind}
    (schema,) = [
        found for found in schemas.values()
        if wanted in found.get("x-kubernetes-group-version-kind", [])
    ]  # fmt: skip
    if kind == tree["kind"]:
        _check(schemas, schema, tree, kind)
        return
    assert isinstance(tree["items"], list), tree["items"]
    assert tree["metadata"]["resourceVersion"], tree["metadata"]
    for item in tree["items"]:
        _check(schemas, schema, item, kind)


def _check(schemas, schema, value, place):
    (part,) = schema.get("allOf", [schema])
    if "$ref" in part:
        part = schemas[part["$ref"].removeprefix(_REF)]
    choices = {choice["type"] for choice in part.get("oneOf", [])}
    if choices:
        is_quantity = "number" in choices
        whole = isinstance(value, int) and not isinstance(value, bool) and not is_quantity
        assert isinstance(value, str) or whole, (place, value)
        return
    if value is None:
        assert place.rpartition(".")[2] in _NULL_TIMES, f"{place} is null"
        return
    _CHECKS.get(part.get("type"), _check_nothing)(schemas, part, value, place)


def _check_object(schemas, part, value, place):
    assert isinstance(value, dict), (place, value)
    fields, others = part.get("properties"), part.get("additionalProperties")
    for name in part.get("required", []):
        assert name in value, f"{place} has no {name}"
    for name, item in value.items():
        if fields is not None:
            assert name in fields, f"{place} has {name}"
            _check(schemas, fields[name], item, f"{place}.{name}")
        elif others:
            _check(schemas, others, item, f"{place}.{name}")


def _check_array(schemas, part, value, place):
    assert isinstance(value, list), (place, value)
    for item in value:
        _check(schemas, part["items"], item, f"{place}[]")


def _check_string(schemas, part, value, place):
    assert isinstance(value, str), (place, value)
    if part.get("format") == "date-time":
        assert _RFC3339.fullmatch(value), (place, value)


def _check_integer(schemas, part, value, place):
    assert isinstance(value, int), (place, value)
    assert not isinstance(value, bool), (place, value)


def _check_boolean(schemas, part, value, place):
    assert isinstance(value, bool), (place, value)


def _check_nothing(schemas, part, value, place):
    """Anything goes: raw extensions and owned fields."""


_CHECKS = {
    "array": _check_array,
    "boolean": _check_boolean,
    "integer": _check_integer,
    "object": _check_object,
    "string": _check_string,
}
