"""Malformed requests: `python -m tests.fuzz requests --cases N --seed S`.

`bodies` and `api` send malformed objects to the right endpoint; here the request is malformed:
repeated parameters or those of another endpoint, the character 0 and other control characters in
every part, values of every type at every level of custom objects and of their patches, media types,
methods and encodings that do not fit together. The cases include redra's own endpoints. `live`
sends the same cases to a real process with its database.
"""

import gzip
import json
import random
from collections import Counter
from urllib.parse import quote, quote_plus

from tests.api.custom import CRDS, WIDGETS, definition, widget
from tests.fuzz import mutations, texts
from tests.fuzz.bodies import send_cases
from tests.fuzz.seeds import all_seeds
from tests.fuzz.target import Sent, target

CASES_OF_A_TARGET = 2_500
HISTORY = "/redra/v1/histories/default"
METHODS = ("GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE", "TRACE", "get", "x")
PATCHES = (
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
    "application/apply-patch+cbor",
)
CONTENT_TYPES = (
    *PATCHES,
    "",
    "application/json",
    "application/json; charset=utf-16",
    "application/JSON",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
    "application/cbor",
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=x",
    "text/plain",
    "application/json;;=",
    ";",
    "a/b/c",
    "application/merge-patch+json;" + "x=y;" * 400,
    "\xff\xfe",
)
ACCEPTS = (
    "",
    "*/*",
    "application/*",
    "text/html",
    "application/json;q=0",
    "application/json;q=x",
    "application/json;q=1e400",
    "application/cbor",
    "application/yaml;as=Table",
    "application/json;as=Table;v=v9;g=meta.k8s.io",
    "application/json;as=Table;v=v1;g=meta.k8s.io",
    "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
    "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
    "application/vnd.kubernetes.protobuf",
    "application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io",
    "application/json;as=;v=;g=",
    "application/json;as=Table;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
    ",,,",
    ";;;",
    "application/json," * 300,
    "\xff",
    "application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
    "application/com.github.proto-openapi.spec.v3.v1.0+protobuf",
    "text/plain;version=0.0.4",
)
ENCODINGS = ("gzip", "deflate", "br", "identity", "gzip, gzip", "x", "\xff", "gzip;q=0", "*;q=0")
PARAMETERS = {
    "watch": ("1", "true", "0", "x", ""),
    "timeoutSeconds": ("0", "1", "-1", "x", "99999999999999999999"),
    "limit": ("0", "1", "-1", "999999999999999999", "x"),
    "continue": ("x", "eyJydiI6MX0", "%", "eyJ2IjoibWV0YS5rOHMuaW8vdjEifQ"),
    "resourceVersion": ("0", "1", "5", "999999999999", "x", "-1", ""),
    "resourceVersionMatch": ("Exact", "NotOlderThan", "x", ""),
    "sendInitialEvents": ("true", "false", ""),
    "allowWatchBookmarks": ("true", "false"),
    "labelSelector": ("a=b", "a in (b)", "!a", "((", "a=b,", "a" * 300, "a=" + "b" * 64),
    "fieldSelector": ("metadata.name=x", "spec.nodeName=n", "x=y", "metadata.name", "=="),
    "dryRun": ("All", "x", ""),
    "fieldManager": ("m", "x" * 200, "\u202e"),
    "fieldValidation": ("Strict", "Warn", "Ignore", "x"),
    "force": ("true", "false", "x"),
    "gracePeriodSeconds": ("0", "-1", "5", "x", "999999999999999999"),
    "propagationPolicy": ("Foreground", "Background", "Orphan", "x"),
    "orphanDependents": ("true", "x"),
    "pretty": ("true", "x"),
    "includeObject": ("None", "Object", "Metadata", "x"),
    "timeout": ("1s", "x", "99999h"),
    "at": ("0", "1", "5", "-1", "x", "2026-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "9" * 30),
    "after": ("0", "1", "-1", "x", "999999999999999999"),
    "follow": ("0", "false"),
    "kind": ("pod", "pods", "resourceclaim", "devicetaintrule", "widget", "x", "Pod.v1."),
    "name": ("x", "w", "p", "x" * 3_000, "a/b"),
    "namespace": ("default", "kube-system", "x", ""),
    "node": ("n", "x", ""),
    "help": ("true", "0"),
    "controller": ("scheduling", "x"),
    "resource": ("pods", "x"),
    "outcome": ("Scheduled", "x"),
    "container": ("c", "x"),
    "tailLines": ("5", "x"),
    "exclude": ("x",),
    "verbose": ("", "1"),
    "hash": ("x",),
}
CONTROLS = ("\0", "a\0b", "\n", "\r\n", "\x7f", "\x1b[0m", "\ud800", "\u2028", "\ufeff", "\x85")
PATH_PARTS = (*(text for text in CONTROLS if text != "\ud800"), "//", "..", ";", "é")
"""What is put into paths; a server's parser leaves no lone surrogates in them."""
PAGES = (
    "/", "/api", "/api/v1", "/apis", "/apis/resource.k8s.io", "/apis/resource.k8s.io/v1",
    "/apis/example.com/v1", "/openapi/v2", "/openapi/v3", "/openapi/v3/api/v1", "/version",
    "/healthz", "/livez", "/livez/ping", "/readyz", "/metrics", "/redra/v1",
    "/redra/v1/openapi.json", "/redra/v1/histories", "/redra/v1/workers", HISTORY,
    f"{HISTORY}/events", f"{HISTORY}/decisions", f"{HISTORY}/views", f"{HISTORY}/views/claims",
    f"{HISTORY}/views/x", f"{HISTORY}/why", f"{HISTORY}/blast", f"{HISTORY}/x",
    "/redra/v1/histories/none", "/redra/v1/histories/none/why", "/h/default/api/v1/pods",
    "/h/default@1/api/v1/pods", "/h/default@x/api/v1/pods", "/h/none/api/v1/pods", "/h/",
    "/h/@/api", "/h/default@2026-01-01T00:00:00Z/api/v1/nodes",
)  # fmt: skip
REDRA_BODIES = (
    {"name": "made", "seed": 0, "profile": "1.37", "gates": {"DRAAdminAccess": True}},
    {"objects": [widget()], "delete": ["pod/x"]},
)


class Cases:
    """Generates the requests, case by case; `setup` creates their objects."""

    def __init__(self, seed):
        self._rng = random.Random(f"requests {seed}")
        self._seeds = [seed for seed in all_seeds() if not seed.is_review]
        self._reviews = [seed for seed in all_seeds() if seed.is_review]
        self._places = [
            *(seed.collection for seed in self._seeds),
            *(f"{seed.collection}/x" for seed in self._seeds),
            *(f"{seed.collection}/x/{part}" for seed in self._seeds for part in seed.subresources),
            *(seed.collection for seed in self._reviews),
            *([WIDGETS, f"{WIDGETS}/w", f"{WIDGETS}/w/status", f"{WIDGETS}/w/scale"] * 4),
            *(PAGES * 2),
        ]

    def setup(self):
        """The requests that create the objects of the cases."""
        for seed in self._seeds:
            yield _post(seed.collection, seed.tree)
        yield _post(CRDS, definition())
        yield _post(WIDGETS, widget())

    def next(self):
        """The requests of the next case."""
        rng = self._rng
        make = rng.choices((self._anything, self._custom, self._parameters), weights=(3, 4, 3))[0]
        yield make()
        if rng.random() < 0.3:
            # A case may have deleted the kind or the object.
            yield _post(CRDS, definition())
            yield _post(WIDGETS, widget())

    def _anything(self):
        rng = self._rng
        path = rng.choice(self._places)
        if rng.random() < 0.2:
            place = rng.randint(1, len(path))
            path = path[:place] + rng.choice((*PATH_PARTS, "%00")) + path[place:]
        headers = self._headers()
        body = self._body() if rng.random() < 0.6 else None
        if body is not None and rng.random() < 0.1:
            headers["content-encoding"] = rng.choice(ENCODINGS)
            body = rng.choice((body, gzip.compress(body)))
        return Sent(
            method=rng.choice(METHODS), path=path, query=self._query(), body=body, headers=headers
        )

    def _parameters(self):
        """A read with any parameters."""
        rng = self._rng
        path = rng.choice(self._places)
        headers = {"accept": rng.choice(ACCEPTS)} if rng.random() < 0.3 else {}
        return Sent(
            method=rng.choice(("GET", "GET", "GET", "HEAD", "DELETE")),
            path=path,
            query=self._query(),
            headers=headers,
        )

    def _custom(self):
        """A write or patch of a custom object with a value of any type at any level."""
        rng = self._rng
        tree = mutations.mutated(rng, self._widget())
        if rng.random() < 0.5 and isinstance(tree, dict):
            part = rng.choice(("metadata", "spec", "status", "apiVersion", "kind", "metadata"))
            tree[part] = mutations.odd(rng)
        method = rng.choice(("POST", "PUT", "PATCH", "PATCH", "PATCH"))
        path = WIDGETS if method == "POST" else f"{WIDGETS}/w{rng.choice(('', '', '2'))}"
        if method != "POST":
            path += rng.choice(("", "", "", "/status", "/scale"))
        kind = rng.choice(PATCHES) if method == "PATCH" else "application/json"
        if kind == PATCHES[0] and rng.random() < 0.8:
            tree = [self._operation() for _ in range(rng.choice((1, 1, 2, 4)))]
        elif method == "PATCH" and isinstance(tree, dict):
            for name in rng.sample(sorted(tree, key=str), rng.randint(0, len(tree))):
                del tree[name]
        if rng.random() < 0.05:
            kind = rng.choice(CONTENT_TYPES)
        make = texts.yaml_text if "yaml" in kind else texts.json_text
        query = rng.choice(("", "fieldManager=m", "fieldManager=m&force=true", self._query()))
        return Sent(
            method=method,
            path=path,
            query=query,
            body=make(rng, tree),
            headers={"content-type": kind},
        )

    def _widget(self):
        rng = self._rng
        tree = widget(
            color="red",
            code="abc",
            port=rng.choice((5, "http")),
            free={"a": [1, {"b": None}]},
            labels={"a": "b"},
            parts=[{"name": "one", "count": 1}, {"name": "two"}],
            tags=["a", "b"],
            template={"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "t"}},
        )
        tree["status"] = {"replicas": 1, "phase": "x", "selector": "a=b"}
        return tree

    def _operation(self):
        rng = self._rng
        places = ["/" + "/".join(map(str, place)) for place in mutations.places(self._widget())]
        places += ["", "/", "/metadata", "/metadata/labels", "/spec", "/status", "/x/y", "/spec/-"]
        return {
            "op": rng.choice(("add", "replace", "remove", "test", "move", "copy")),
            "path": rng.choice(places),
            "from": rng.choice(places),
            "value": mutations.odd(rng),
        }

    def _query(self):
        rng = self._rng
        parts = []
        for _ in range(rng.choice((0, 1, 1, 2, 3, 6))):
            name = rng.choice(sorted(PARAMETERS))
            value = rng.choice(PARAMETERS[name])
            if rng.random() < 0.15:
                value = rng.choice(CONTROLS)
            if rng.random() < 0.03:
                name += rng.choice(CONTROLS)
            parts.append(f"{_escaped(name)}={_escaped(value)}")
            if rng.random() < 0.25:
                parts.append(
                    f"{_escaped(name)}={_escaped(rng.choice(PARAMETERS.get(name, ('x',))))}"
                )
        if rng.random() < 0.05:
            parts.append(
                rng.choice(("%", "%zz", "&&", "=", "a", "=b", ";", "%ff=%fe", "a=b=c", "?"))
            )
        return rng.choice(("&", "&", "&", "&&", ";")).join(parts)

    def _headers(self):
        rng = self._rng
        found = {}
        if rng.random() < 0.5:
            found["accept"] = rng.choice(ACCEPTS)
        if rng.random() < 0.6:
            found["content-type"] = rng.choice(CONTENT_TYPES)
        if rng.random() < 0.1:
            found["accept-encoding"] = rng.choice(ENCODINGS)
        if rng.random() < 0.1:
            name = rng.choice(("authorization", "impersonate-user", "user-agent", "x-request-id",
                               "if-none-match", "content-length", "impersonate-group"))  # fmt: skip
            found[name] = rng.choice(("", "x", "Bearer x", "Basic \xff", "5", "-1", "a" * 5_000))
        return found

    def _body(self):
        rng = self._rng
        draw = rng.random()
        if draw < 0.2:
            return rng.choice(
                (b"", b"\0", b"null", b"[]", b"5", b'"x"', b"{", b"\xff\xfe{", b"---")
            )
        if draw < 0.4:
            return texts.json_text(rng, mutations.mutated(rng, rng.choice(REDRA_BODIES)))
        seed = rng.choice((*self._seeds, *self._reviews))
        return texts.json_text(rng, mutations.mutated(rng, seed.copy()))


def _escaped(text):
    """The text escaped for a query; some characters are left unescaped."""
    raw = text.encode("utf-8", "surrogatepass")
    return quote(raw, safe="") if "\0" in text or "\n" in text else quote_plus(raw, safe="()=,!")


def _post(path, tree):
    return Sent(method="POST", path=path, body=json.dumps(tree).encode())


def run(*, cases, seed):
    """Sends `cases` cases in parts, each to its own server; raises the first Finding.

    Returns the number of answers by code.
    """
    codes = Counter()
    done = 0
    while done < cases:
        count = min(CASES_OF_A_TARGET, cases - done)
        with target() as found:
            sending = send_cases(found, Cases(f"{seed}-{done}"))
            for _ in range(count):
                next(sending)
            found.judge.report(f"requests, seed {seed}, cases {done} to {done + count}")
        codes += found.judge.codes
        done += count
    return codes
