"""Pages about a recording that names no authors do not say that the import wrote anything."""

import json

import pytest

from app.adapters.history.opening import open_history
from app.adapters.history.reading import ReadOptions
from app.adapters.memory import MemoryLog, MemoryStore, MemoryWakeUp
from app.service import importing
from app.service.importing import ImportOptions
from tests.api.serving import serving
from tests.web.reading import read

PLACE = "kind=pods&namespace=default&name=p"


def pod(version, **status):
    metadata = {"name": "p", "namespace": "default", "uid": "u", "resourceVersion": str(version)}
    spec = {"containers": [{"name": "c", "image": "i"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status}


async def recorded(folder):
    """A watch that lists a pod, and shows a change of it and its deletion."""
    path = folder / "watch.json"
    events = [("ADDED", pod(4)), ("MODIFIED", pod(5, phase="Running")), ("DELETED", pod(6))]
    path.write_text("".join(json.dumps({"type": t, "object": o}) + "\n" for t, o in events))
    store = MemoryStore()
    log = MemoryLog(store, MemoryWakeUp().grown)
    with open_history([path], ReadOptions()) as source:
        await importing.import_records(log, source, name="default", options=ImportOptions())
    return store


@pytest.mark.parametrize(
    ("page", "said"),
    [
        (f"why?{PLACE}", "by an unrecorded user"),
        (f"object?{PLACE}", "observe by an unrecorded user"),
        (f"object?{PLACE}", "first seen was there already"),
        ("timeline?kind=PodDeleted", "unrecorded"),
    ],
)
async def test_page_of_a_recording_says_that_its_authors_are_unrecorded(tmp_path, page, said):
    async with serving(store=await recorded(tmp_path)) as server:
        answer = await server.raw("GET", f"/ui/h/default/{page}")
        text = read(answer.text).one("main").text
    assert answer.status_code == 200
    assert said in text
    assert "redra:import" not in text
