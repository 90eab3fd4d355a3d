"""Refusals of an import: what a binary file is, and whether there is a rest to import."""

import gzip
import itertools
import json
import random

import msgspec
import pytest

from app.adapters.history.opening import open_history
from app.adapters.history.reading import ReadOptions
from app.domain.errors import InputError

POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web-1", "namespace": "shop"}}
LISTED = {**POD, "metadata": {**POD["metadata"], "uid": "u", "resourceVersion": "7"}}
REST = "or import the rest with --keep-going"


def refusal(path):
    with pytest.raises(InputError) as problem:
        open_history([path], ReadOptions(way_on=REST))
    return problem.value


def packed_trace(*, numbers):
    """A trace as MessagePack whose parts and events are arrays."""
    events = [[second, [POD], []] for second in range(numbers, numbers + 3)]
    return msgspec.msgpack.encode([["config"], events, {}])


def cut_gzip(seed, *, begin=b""):
    """The second half of a packed list of pods, behind the beginning."""
    draw = random.Random(seed)
    names = [f"pod-{draw.random()}" for _ in range(400)]
    whole = gzip.compress(json.dumps({"apiVersion": "v1", "items": names}).encode())
    return begin + whole[len(whole) // 2 :]


@pytest.mark.parametrize(
    ("content", "what"),
    [
        # A trace with bytes of zero in it, and one without.
        (packed_trace(numbers=0), "it is MessagePack without the names of its fields"),
        (packed_trace(numbers=1), "it is MessagePack without the names of its fields"),
        (packed_trace(numbers=1)[:-5], "it is binary"),
        (cut_gzip(1), "it is binary"),
        (cut_gzip(2), "it is binary"),
        (cut_gzip(3, begin=b"apiVersion").replace(b"\0", b""), "it is binary"),
        (b'\n\x1c\n\x03web\x12\x00\x1a\x02{"apiVersion": "v1"}\x02\x08\x01', "it is binary"),
        (b"\x7fELF\x02\x01\x01 apiVersion " + bytes(range(1, 256)), "a program"),
        (b"\x89PNG\r\n apiVersion " + bytes(range(1, 256)), "a picture"),
    ],
)
def test_binary_file_is_named_as_such(tmp_path, content, what):
    (tmp_path / "trace").write_bytes(content)
    problem = refusal(tmp_path / "trace")
    assert problem.problem.startswith(what)
    assert problem.cure
    assert "YAML" not in str(problem)


@pytest.mark.parametrize("coding", ["utf-8", "cp1252", "utf-16"])
@pytest.mark.parametrize(("begin", "end"), [("", "\x07"), ("“", "”")])
def test_damaged_text_is_no_binary_file(tmp_path, coding, begin, end):
    text = f"{begin}apiVersion: v1\nkind: Pod\nmetadata: {{name: a\n# größer, siehe Gerät{end}\n"
    (tmp_path / "pod.yaml").write_bytes(text.encode(coding))
    problem = refusal(tmp_path / "pod.yaml")
    assert "binary" not in str(problem)


def test_control_character_is_named_with_its_line(tmp_path):
    (tmp_path / "pod.yaml").write_text("apiVersion: v1\nkind: Pod\nmetadata: {name: a\x07}\n")
    problem = refusal(tmp_path / "pod.yaml")
    assert (problem.place, problem.problem) == (
        "pod.yaml:3",
        "it is not YAML: it holds the control character 0x07",
    )


@pytest.mark.parametrize("good", range(3))
@pytest.mark.parametrize("bad_first", [True, False])
def test_rest_is_offered_where_there_is_one(tmp_path, good, bad_first):
    pods = [LISTED | {"metadata": {**LISTED["metadata"], "name": f"p{n}"}} for n in range(good)]
    bad = {**POD, "metadata": {"namespace": "shop"}}
    pods = [bad, *pods] if bad_first else [*pods, bad]
    path = tmp_path / "pods.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": pods}))
    problem = refusal(path)
    assert problem.cure.endswith(REST) == bool(good)
    if good:
        with open_history([path], ReadOptions(keep_going=True)) as history:
            assert len(list(history.records())) == good


@pytest.mark.parametrize("order", list(itertools.permutations(("pod.json", "cut.yaml"))))
def test_another_file_is_a_rest(tmp_path, order):
    (tmp_path / "pod.json").write_text(json.dumps(LISTED))
    (tmp_path / "cut.yaml").write_text("apiVersion: v1\nmetadata: {\n")
    assert REST not in refusal(tmp_path / "cut.yaml").cure
    with pytest.raises(InputError, match=f"{REST}$"):
        open_history([tmp_path / name for name in order], ReadOptions(way_on=REST))
