"""Broken request bodies: `python -m tests.fuzz bodies --cases N --seed S`.

Each case takes a valid object, changes it, writes it as JSON, YAML or protobuf (which is damaged
once more), and sends it as a create, a replacement, a patch of any type, or the options of a
delete. If an object is stored, it is then read in every form. The same seed gives the same cases.
"""

import json
import random
from collections import Counter

from tests.fuzz import mutations, texts, wire
from tests.fuzz.seeds import DELETE_OPTIONS, SUBRESOURCE_BODIES, all_seeds
from tests.fuzz.target import Sent, target

CASES_OF_A_TARGET = 2_500
"""After so many cases a new server is begun, so that the log in memory stays small."""

_QUERIES = [
    "", "", "", "dryRun=All", "fieldValidation=Strict", "fieldValidation=Ignore", "fieldManager=f",
    "fieldManager=f&force=true", "dryRun=x", "fieldValidation=x", "fieldManager=" + "x" * 200,
    "force=1", "fieldManager=%00", "dryRun=All&dryRun=All", "pretty=true&timeout=32s",
]  # fmt: skip
_ACCEPTS = [
    "", "application/json", "*/*", "application/yaml",
    "application/vnd.kubernetes.protobuf,application/json",
    "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
    "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
    "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json",
]  # fmt: skip
_LIST_QUERIES = [
    "", "limit=1", "limit=-1", "limit=0&continue=x", "labelSelector=a%3Db", "labelSelector=%21a",
    "labelSelector=a+in+(b,c)", "labelSelector=((", "fieldSelector=metadata.name%3Dx",
    "fieldSelector=spec.x%3D1", "resourceVersion=0", "resourceVersion=5&resourceVersionMatch=Exact",
    "watch=true&resourceVersion=1&timeoutSeconds=0", "watch=1&allowWatchBookmarks=1",
    "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true",
    "includeObject=Object", "includeObject=None", "resourceVersion=999999999999999999999",
    "continue=eyJydiI6MX0", "timeoutSeconds=x", "limit=99999999999999999999999",
]  # fmt: skip
_VERSIONS = {"resource.k8s.io": ("v1", "v1beta2", "v1beta1", "v1alpha3")}
JSON = "application/json"
YAML = "application/yaml"
PROTOBUF = "application/vnd.kubernetes.protobuf"
_PATCHES = {
    "application/merge-patch+json": texts.json_text,
    "application/strategic-merge-patch+json": texts.json_text,
    "application/apply-patch+yaml": texts.yaml_text,
}
_OTHER_TYPES = ["", "text/plain", "application/cbor", "application/json;charset=x", "x" * 500]


class Cases:
    """Generates the requests, case by case."""

    def __init__(self, seed):
        self._rng = random.Random(seed)
        self._seeds = all_seeds()

    def setup(self):
        """The requests that create the objects of patches and replacements."""
        for seed in self._seeds:
            body = json.dumps(seed.tree).encode()
            yield Sent(method="POST", path=seed.collection, body=body)

    def next(self):
        """The requests of the next case: a write, and a read of the stored object."""
        rng = self._rng
        seed = rng.choice(self._seeds)
        make = rng.choices(
            (self._create, self._replace, self._patch, self._json_patch, self._delete),
            weights=(1, 0, 0, 0, 0) if seed.is_review else (8, 4, 6, 4, 1),
        )[0]
        yield make(seed)
        if not seed.is_review:
            yield self._read(seed)
            if rng.random() < 0.3:
                body = json.dumps(seed.tree).encode()
                yield Sent(method="POST", path=seed.collection, body=body)

    def _create(self, seed):
        rng = self._rng
        tree = seed.copy()
        if rng.random() < 0.7:
            tree["metadata"]["name"] = f"x{rng.randrange(40)}"
        return self._written("POST", seed.collection, mutations.mutated(rng, tree))

    def _replace(self, seed):
        path, tree = self._target(seed)
        return self._written("PUT", path, mutations.mutated(self._rng, tree))

    def _target(self, seed):
        """The path of an object or of a part of it, and a body for it."""
        rng = self._rng
        path, tree = f"{seed.collection}/{seed.tree['metadata'].get('name', 'x')}", seed.copy()
        if seed.subresources and rng.random() < 0.35:
            part = rng.choice(seed.subresources)
            path += f"/{part}"
            tree = json.loads(json.dumps(SUBRESOURCE_BODIES.get(part, tree)))
        return path, tree

    def _written(self, method, path, tree):
        rng = self._rng
        kind = rng.choices((JSON, YAML, PROTOBUF, "other"), weights=(4, 4, 4, 0.3))[0]
        body = None
        if kind == PROTOBUF and isinstance(tree, dict):
            body = wire.protobuf_body(rng, tree)
        if body is None:
            kind = JSON if kind == PROTOBUF else kind
            body = (texts.yaml_text if kind == YAML else texts.json_text)(rng, tree)
        if kind == "other":
            kind = rng.choice(_OTHER_TYPES)
        return self._sent(method, path, body, kind)

    def _patch(self, seed):
        rng = self._rng
        path, tree = self._target(seed)
        kind = rng.choice(sorted(_PATCHES))
        tree = mutations.mutated(rng, tree)
        if isinstance(tree, dict) and rng.random() < 0.5:
            for name in rng.sample(sorted(tree, key=str), rng.randint(0, len(tree))):
                if kind.startswith("application/apply") and name in ("apiVersion", "kind"):
                    continue
                del tree[name]
        return self._sent("PATCH", path, _PATCHES[kind](rng, tree), kind)

    def _json_patch(self, seed):
        rng = self._rng
        path, tree = self._target(seed)
        places = ["/" + "/".join(map(str, place)) for place in mutations.places(tree)]
        places += ["", "/", "/a/b/c", "/metadata/labels/-", "/spec/-", "/~2", "x", "/metadata/name"]
        operations = [self._operation(places) for _ in range(rng.choice((1, 1, 2, 5, 40)))]
        if rng.random() < 0.05:
            operations = mutations.odd(rng)
        body = texts.json_text(rng, operations)
        return self._sent("PATCH", path, body, "application/json-patch+json")

    def _operation(self, places):
        rng = self._rng
        found = {
            "op": rng.choice(("add", "replace", "remove", "test", "move", "copy", "copy", "x", 5)),
            "path": rng.choice(places),
            "from": rng.choice(places),
            "value": mutations.odd(rng),
        }
        if rng.random() < 0.2:
            found.pop(rng.choice(sorted(found)))
        return found

    def _delete(self, seed):
        rng = self._rng
        options = mutations.mutated(rng, DELETE_OPTIONS)
        path = seed.collection
        if rng.random() < 0.9:
            path += f"/x{rng.choice(('', rng.randrange(40)))}"
        return self._written("DELETE", path, options)

    def _read(self, seed):
        rng = self._rng
        path, query = seed.collection, rng.choice(_LIST_QUERIES)
        group = seed.api_version.partition("/")[0]
        if group in _VERSIONS:
            version = rng.choice(_VERSIONS[group])
            path = path.replace(f"/{seed.api_version}/", f"/{group}/{version}/")
        if rng.random() < 0.4:
            path, query = f"{path}/x{rng.choice(('', rng.randrange(40)))}", ""
        return Sent(method="GET", path=path, query=query, headers={"accept": rng.choice(_ACCEPTS)})

    def _sent(self, method, path, body, kind):
        rng = self._rng
        headers = {"content-type": kind}
        if rng.random() < 0.2:
            headers["accept"] = rng.choice(_ACCEPTS)
        return Sent(
            method=method, path=path, query=rng.choice(_QUERIES), body=body, headers=headers
        )


def send_cases(found, cases):
    """Sends the cases to a target, one per step, after the objects are set up."""
    for sent in cases.setup():
        found.send(sent)
    while True:
        for sent in cases.next():
            found.send(sent)
        yield


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
            found.judge.report(f"bodies, seed {seed}, cases {done} to {done + count}")
        codes += found.judge.codes
        done += count
    return codes
