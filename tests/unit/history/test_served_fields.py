"""Objects as Rancher's API serves them are those that the API server stores."""

import copy
import json

import pytest

from app.adapters.history.opening import open_history
from app.adapters.history.reading import ReadOptions
from tests.unit.history.formats.truth import OBJECTS

CONDITION = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-02T03:04:05Z"}


def stored(kind, version="v1", namespace="shop", **parts):
    metadata = {"name": "a", "namespace": namespace, "uid": f"u-{kind}", "resourceVersion": "7"}
    if not namespace:
        del metadata["namespace"]
    metadata["creationTimestamp"] = "2026-01-02T03:04:05Z"
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **parts}


SUBJECT = {"kind": "Pod", "namespace": "shop", "name": "web-1", "apiVersion": "v1", "uid": "u-Pod"}
KINDS = [
    stored("Event", type="Warning", reason="Failed", message="no", involvedObject=SUBJECT),
    stored("Node", namespace="", status={"conditions": [CONDITION]}),
    stored(
        "Deployment",
        "apps/v1",
        spec={"selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {}}},
        status={"conditions": [{**CONDITION, "lastUpdateTime": "2026-01-02T03:04:05Z"}]},
    ),
    stored("Widget", "example.com/v1", id="own", actions=["a"], links={"b": "c"}, fields=[1]),
    *(each for each in OBJECTS if each["kind"] in ("ResourceClaim", "ResourceSlice", "Pod")),
]


def served(tree):
    """What Rancher answers for a stored object, by its own rule: what it adds goes in front."""
    tree = copy.deepcopy(tree)
    metadata = tree["metadata"]
    group = tree["apiVersion"].rpartition("/")[0]
    before = {
        "id": "/".join(filter(None, (metadata.get("namespace"), metadata["name"]))),
        "type": ".".join(filter(None, (group, tree["kind"].lower()))),
        "links": {"self": "https://rancher.example.com/v1/x", "view": "https://x"},
        "actions": {},
    }
    for name in before:
        if name in tree:
            tree[f"_{name}"] = tree.pop(name)
    metadata["fields"] = ["a", "1/1"]
    metadata["relationships"] = [{"toId": "shop/b", "toType": "x", "rel": "uses"}]
    metadata["state"] = {"error": False, "message": "", "name": "active", "transitioning": False}
    for condition in tree.get("status", {}).get("conditions", []):
        condition |= {"error": False, "transitioning": False}
        condition.setdefault("lastUpdateTime", condition["lastTransitionTime"])
    return {**before, **tree}


FORMS = {
    "one object": lambda items: "\n".join(json.dumps(item, indent=1) for item in items),
    "a collection": lambda items: json.dumps(
        {"type": "collection", "links": {"self": "https://x"}, "resourceType": "x", "data": items}
    ),
    "changes": lambda items: "\n".join(
        json.dumps({"name": "resource.change", "resourceType": "x", "data": item}) for item in items
    ),
}


def objects(folder, text):
    path = folder / "answer.json"
    path.write_text(text)
    with open_history([path], ReadOptions()) as history:
        read = {record.uid: record.object for record in history.records()}
        assert not history.refusals
        return read


@pytest.mark.parametrize("form", FORMS)
def test_answer_of_rancher_gives_what_the_server_stores(tmp_path, form):
    shown = FORMS[form]([served(tree) for tree in KINDS])
    assert objects(tmp_path, shown) == objects(tmp_path, FORMS["one object"](KINDS))


@pytest.mark.parametrize("name", ["id", "type", "links"])
def test_fields_that_only_look_like_them_are_the_objects_own(tmp_path, name):
    tree = served(KINDS[3])
    tree[name] = "another"
    assert objects(tmp_path, json.dumps(tree))[tree["metadata"]["uid"]] == tree
