"""JSON with comments, trailing commas and dots, as people leave it in what they attach.

The texts are made from plain objects, so the plain object is what each of them must give.
"""

import json

import pytest

from app.adapters.history import json_text
from app.adapters.history.opening import open_history
from app.adapters.history.reading import ReadOptions
from app.domain.errors import InputError
from tests.unit.history.worlds import CLAIMS, tree

REQUEST = {"name": "r", "exactly": {"deviceClassName": "http://x//y#z,]", "count": 1}}
CLAIM = tree(CLAIMS, "gpu", "shop", spec={"devices": {"requests": [REQUEST]}})
TEXT = json.dumps(CLAIM, indent=2)
LEFT_OUT = "the ... stands for a part that was left out of the copy"


def altered(old, new):
    assert TEXT.count(old) == 1
    return TEXT.replace(old, new)


def imported(tmp_path, text):
    path = tmp_path / "a.json"
    path.write_bytes(text.encode())
    with open_history([path], ReadOptions()) as history:
        records = list(history.records())
        lost = [f"{place}: {problem}" for place, problem in history.refused_places]
    return [record.object for record in records], lost


ONE = altered('"count": 1', '"count": 1 // one')
FENCED = altered('"count": 1', '"count": 1, // one')
BRACKET = altered('"requests": [', '"requests": [ // }')
COMMA = altered('"count": 1', '"count": 1,')

FORMS = [
    altered('"count": 1', '"count": 1 // just one'),
    altered('"count": 1', '"count": 1, # just one'),
    altered('"count": 1', '"count": /* see\nbelow */ 1,'),
    altered('"name": "r",', '"name": "r", // "name": "s",'),
    f"// exported by hand\n{COMMA}",
    "\ufeff" + ONE.replace("\n", "\r\n"),
    f"see:\n\n```json\n{FENCED}\n```\n",
    f"so\n{BRACKET}\nand more\n",
]


@pytest.mark.parametrize("text", FORMS)
def test_object_is_what_it_is_without_comments(tmp_path, text):
    assert imported(tmp_path, text) == ([CLAIM], [])


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (altered('"count": 1', '"count": 1,\n// ... the rest omitted'), 17),
        (altered('"count": 1', '"count": 1 // 3 more fields'), 16),
        (altered('"count": 1', '"count": 1,\n  ...'), 17),
        (altered('"count": 1', '"count": 1,\n\u2026'), 17),
    ],
)
def test_part_that_a_comment_says_is_left_out_is_named_with_its_line(tmp_path, text, line):
    assert imported(tmp_path, text) == ([CLAIM], [f"a.json:{line}: {LEFT_OUT}"])


def test_value_that_dots_stand_for_is_missing_and_named(tmp_path):
    ((claim,), lost) = imported(tmp_path, altered('"count": 1', '"count": ... // one'))
    assert claim["spec"]["devices"]["requests"][0]["exactly"].pop("count") is None
    assert lost == [f"a.json:16: {LEFT_OUT}"]


@pytest.mark.parametrize(
    "text", [FORMS[0][:-9], altered('"count": 1', '"count" ... // x'), FORMS[0].replace(":", "=")]
)
def test_text_that_is_no_json_without_comments_is_refused(tmp_path, text):
    with pytest.raises(InputError, match=r"a\.json"):
        imported(tmp_path, text)


@pytest.mark.parametrize("text", [TEXT, "[]", "{} // behind", '{"a": "// no comment"}', "{"])
def test_text_without_comments_is_not_read_another_way(text):
    assert json_text.uncommented(text, 0) is None


def test_many_commas_and_brackets_take_time_that_grows_with_their_number():
    text = "[" + "[1,]," * 50_000 + "]"
    whole = json_text.uncommented(text, 0)
    assert whole is not None
    assert json.loads(whole.text) == [[1]] * 50_000
