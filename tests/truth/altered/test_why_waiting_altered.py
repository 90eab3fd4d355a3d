"""`why` of pods that wait in altered recordings says what the altered lines say, and nothing else.

Each alteration states beforehand which causes it takes or gives; the model of the altered lines
holds that, and every fact of the answer is compared with it. Rows come by day.
"""

import json

import pytest

from tests import draws
from tests.adversary.running import recording
from tests.truth.altered.asking import imported, page_of
from tests.truth.altered.drawing import ROWS, altered
from tests.truth.altered.recorded import condition_of, until
from tests.truth.waiting import comparing


@draws.BY_DAY
@pytest.mark.parametrize("seed", draws.seeds(1))
@pytest.mark.parametrize(
    ("title", "name"), [(title, name) for title, names in ROWS.items() for name in names]
)
async def test_waiting_pod_is_explained_by_the_altered_lines(title, name, seed, tmp_path):
    log, line, model, gone = altered(name, title, seed)
    about = line["objectRef"]
    asked = await imported(log, tmp_path)
    answer = await asked.why("pod", about["namespace"], about["name"])
    body = answer.to_json()
    assert list(comparing.differences(model, body, page_of(answer))) == []
    said = json.dumps(body)
    assert [one for one in gone if one in said] == []
    assert body["recorded"]["message"] == condition_of(line)


@draws.BY_DAY
@pytest.mark.parametrize("title", ROWS)
async def test_answer_about_the_unaltered_recording_is_noticed(title, tmp_path):
    """The comparison with the altered lines is not blind to what the alteration changes."""
    name = ROWS[title][0]
    _, line, model, _ = altered(name, title, 0)
    about = line["objectRef"]
    asked = await imported(until(name, recording(name).lines.index(line)), tmp_path)
    answer = await asked.why("pod", about["namespace"], about["name"])
    assert list(comparing.differences(model, answer.to_json(), page_of(answer)))
