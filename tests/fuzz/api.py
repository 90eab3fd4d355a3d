"""Requests generated from the served OpenAPI: `python -m tests.fuzz api --cases N --seed S`.

schemathesis reads the documents of all group-versions as a client would, and makes requests that
they allow and requests that they forbid. Most requests get an existing namespace and name, so that
they pass the first check. The same seed gives the same cases.
"""

import json
import random
import zlib
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import quote, unquote, urlencode

import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as seeded
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode

from tests.fuzz import wire
from tests.fuzz.bodies import PROTOBUF
from tests.fuzz.seeds import all_seeds
from tests.fuzz.target import Sent, target

SETTLED = 0.85
"""Share of the requests that are moved to names that may exist."""
CASES_OF_A_TARGET = 4_000
NAMES = ["x", "x0", "x1", "x2"]


@dataclass(frozen=True, kw_only=True)
class Operation:
    """An operation of a document by its place, with its strategies."""

    place: str
    found: schemathesis.schemas.APIOperation

    def number(self, seed):
        """A number derived from the operation and the seed, the same in every process."""
        name = f"{seed} {self.place} {self.found.method} {self.found.path}"
        return zlib.crc32(name.encode())


def operations(found, places=()):
    """Every operation of the served documents, or those at the given places."""
    index = json.loads(found.send(Sent(method="GET", path="/openapi/v3")).body)["paths"]
    every = []
    for place in sorted(places or index):
        document = json.loads(found.send(Sent(method="GET", path=f"/openapi/v3/{place}")).body)
        schema = schemathesis.openapi.from_dict(document)
        every += [
            Operation(place=place, found=result.ok()) for result in schema.get_all_operations()
        ]
    return every


def requests_of(operation, count, seed):
    """About `count` requests, half of which the document does not allow."""
    rng = random.Random(operation.number(seed))
    shares = {GenerationMode.POSITIVE: (count + 1) // 2, GenerationMode.NEGATIVE: count // 2}
    for mode, share in shares.items():
        for case in _cases(operation, mode, share, rng.randrange(2**32)):
            yield _sent(rng, case)


def _cases(operation, mode, count, number):
    made = []
    if count == 0:
        return made

    @seeded(number)
    @settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(operation.found.as_strategy(generation_mode=mode))
    def make(case):
        made.append(case)

    # Some operations can hardly be asked wrongly: what was found before giving up is sent.
    with suppress(Unsatisfiable):
        make()
    return made


def _sent(rng, case):
    path = case.operation.path
    for name, value in (case.path_parameters or {}).items():
        if rng.random() < SETTLED:
            value = "default" if name == "namespace" else rng.choice(NAMES)
        path = path.replace(f"{{{name}}}", quote(str(value), safe="", errors="replace"))
    asked = case.query or {}
    if str(asked.get("timeoutSeconds")).isdecimal():
        # A watch that asks for years is given them.
        asked = asked | {"timeoutSeconds": 0}
    query = urlencode(asked, doseq=True, errors="replace")
    headers = {"accept": "application/json"}
    body = None
    if case.media_type is not None:
        headers["content-type"] = case.media_type
        body = _body(rng, case)
    return Sent(
        method=case.method.upper(), path=unquote(path), query=query, body=body, headers=headers
    )


def _body(rng, case):
    tree = case.body
    if isinstance(tree, bytes):
        return tree
    if isinstance(tree, dict) and rng.random() < SETTLED:
        metadata = tree.get("metadata")
        kept = metadata if isinstance(metadata, dict) and rng.random() < 0.3 else {}
        tree = tree | {"metadata": kept | {"name": rng.choice(NAMES)}}
        tree["metadata"].pop("namespace", None)
        tree.pop("apiVersion", None)
        tree.pop("kind", None)
    if case.media_type == PROTOBUF and isinstance(tree, dict):
        named = case.operation.definition.raw.get("x-kubernetes-group-version-kind", {})
        version = "/".join(filter(None, (named.get("group"), named.get("version"))))
        body = wire.protobuf_body(rng, tree | {"apiVersion": version, "kind": named.get("kind")})
        if body is not None:
            return body
    return json.dumps(tree, default=str).encode("utf-8", "surrogatepass")


def run(*, cases, seed, places=()):
    """Sends about `cases` cases, spread over all operations; raises the first Finding.

    Returns the number of answers by code.
    """
    codes = Counter()
    with target() as found:
        every = operations(found, places)
    random.Random(seed).shuffle(every)
    share = max(1, -(-cases // len(every)))
    done = 0
    while done < cases:
        with target() as found:
            for begun in all_seeds():
                body = json.dumps(begun.tree).encode()
                found.send(Sent(method="POST", path=begun.collection, body=body))
            sent = 0
            while sent < min(CASES_OF_A_TARGET, cases - done):
                operation = every[0]
                every.append(every.pop(0))
                for request in requests_of(operation, share, f"{seed}-{done}"):
                    found.send(request)
                    sent += 1
            done += sent
            found.judge.report(f"api, seed {seed}, {done} cases over {len(every)} operations")
            codes += found.judge.codes
    return codes
