"""Watch streams with events that cannot be read: the others are read, and the damage is named."""

import json

import pytest
import yaml

from app.adapters.history.opening import open_history
from app.adapters.history.reading import ReadOptions
from app.domain.errors import InputError
from tests.unit.history.worlds import CLAIMS, brief, tree, watch

NAMELESS = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"uid": "x"}}
NUMBERED = {**NAMELESS, "metadata": {"name": 7}}
DAMAGED = {
    "no name": (watch("ADDED", NAMELESS), "without metadata.name"),
    "a name that is no text": (watch("ADDED", NUMBERED), "it is not a watch event"),
    "another type": (watch("CHANGED", tree(CLAIMS, "z", rv=44)), "unknown event type 'CHANGED'"),
    "a table": (
        watch("ADDED", {"apiVersion": "meta.k8s.io/v1", "kind": "Table", "rows": []}),
        "the stream holds tables",
    ),
    "no event": ({"message": "retrying"}, "it is not a watch event"),
}


def as_lines(events):
    return "".join(json.dumps(event) + "\n" for event in events)


def as_yaml(events):
    return "---\n".join(yaml.safe_dump(event) for event in events)


@pytest.mark.parametrize("form", [as_lines, as_yaml])
@pytest.mark.parametrize(("event", "problem"), DAMAGED.values(), ids=DAMAGED)
def test_event_that_cannot_be_read_is_named_and_the_others_are_read(tmp_path, form, event, problem):
    events = [
        watch("ADDED", tree(CLAIMS, "a", rv=40)),
        watch("ADDED", tree(CLAIMS, "b", rv=41)),
        event,
        watch("MODIFIED", tree(CLAIMS, "a", rv=50)),
        watch("DELETED", tree(CLAIMS, "b", rv=51)),
    ]
    path = tmp_path / "stream"
    path.write_text(form(events))
    with pytest.raises(InputError, match=f"{problem}.*or go on"):
        open_history([path], ReadOptions(way_on="or go on"))
    with open_history([path], ReadOptions(keep_going=True)) as history:
        records = list(history.records())
        ((place, text),) = history.refused_places
    assert brief(records) == [
        ("BASELINE", "a"),
        ("BASELINE", "b"),
        ("MODIFIED", "a"),
        ("DELETED", "b"),
    ]
    assert problem in text
    assert place == f"stream:{form(events[:2]).count(chr(10)) + 1}"
