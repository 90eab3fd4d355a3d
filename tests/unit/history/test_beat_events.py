"""Events in documents of Metricbeat, as files of its output and as hits of a search."""

import json

import pytest

from app.adapters.history.opening import open_history
from app.adapters.history.reading import ReadOptions
from app.domain.errors import InputError
from app.domain.log.records import Loss

FIRST, LAST = "2026-01-02T03:04:05Z", "2026-01-02T03:06:05Z"


def document(kind="Pod", name="web-1", **changes):
    event = {
        "count": 3,
        "involved_object": {"api_version": "v1", "kind": kind, "name": name, "uid": "u-1"},
        "message": "0/1 nodes are available",
        "metadata": {
            "name": f"{name}.17f", "namespace": "default" if kind == "Node" else "shop",
            "uid": "u-2", "timestamp": {"created": FIRST},
        },
        "reason": "FailedScheduling",
        "timestamp": {"first_occurrence": FIRST, "last_occurrence": LAST},
        "type": "Warning",
        **changes,
    }  # fmt: skip
    return {"@timestamp": LAST, "metricset": {"name": "event"}, "kubernetes": {"event": event}}


def read(tmp_path, *documents):
    path = tmp_path / "metricbeat.ndjson"
    path.write_text("".join(json.dumps(each) + "\n" for each in documents))
    with open_history([path], ReadOptions()) as history:
        return list(history.records())


@pytest.mark.parametrize("wrap", [dict, lambda hit: {"_index": "m", "_source": hit}])
def test_event_has_its_name_its_subject_and_its_times(tmp_path, wrap):
    [record] = read(tmp_path, wrap(document()))
    assert Loss.PRINTED in record.losses
    event = record.object
    assert (event["metadata"]["name"], event["metadata"]["namespace"]) == ("web-1.17f", "shop")
    assert event["metadata"]["uid"] == "u-2"
    subject = {"kind": "Pod", "namespace": "shop", "name": "web-1", "uid": "u-1"}
    assert event["involvedObject"] == subject
    assert (event["type"], event["reason"], event["count"]) == ("Warning", "FailedScheduling", 3)
    assert (event["firstTimestamp"], event["lastTimestamp"]) == (FIRST, LAST)


def test_event_about_a_node_is_about_an_object_without_a_namespace(tmp_path):
    [record] = read(tmp_path, document("Node", "n1"))
    assert record.namespace == "default"
    assert "namespace" not in record.object["involvedObject"]


@pytest.mark.parametrize("lack", ["reason", "involved_object", "metadata"])
def test_document_that_lacks_what_makes_an_event_is_none(tmp_path, lack):
    with pytest.raises(InputError):
        read(tmp_path, document(**{lack: ""}))
