"""The names of kinds in sentences: those of several words as the API writes them."""

import re
from pathlib import Path

import pytest

from app.cli import explaining
from app.domain.objects import registry
from app.domain.values.texts import kind_words

ANSWERS = Path(__file__).parents[1] / "analysis"
"""The folder of kept answers, whose headings are subjects as programs read them."""

UPSTREAM = re.compile(
    r"resourceclaim not available on the node|(?:resourceclaim|persistentvolumeclaim) \""
)
"""Words of the scheduler's messages, which are quoted as they are."""


@pytest.mark.parametrize(
    ("kind", "word"),
    [("Pod", "pod"), ("ResourceSlice", "ResourceSlice"), ("CSIDriver", "CSIDriver"), ("", "")],
)
def test_kind_of_one_word_is_a_noun_and_others_are_written_as_in_the_api(kind: str, word: str):
    assert kind_words.in_sentence(kind) == word


@pytest.mark.parametrize(
    ("subject", "title"),
    [
        ("resourceclaim lab/train", "ResourceClaim lab/train"),
        ("pod lab/train", "pod lab/train"),
        ("device gpu.example.com/n0/gpu-0", "device gpu.example.com/n0/gpu-0"),
        ("widgets lab/one", "widgets lab/one"),
        ("resourceslices.resource.k8s.io", "resourceslices.resource.k8s.io"),
    ],
)
def test_answer_is_headed_as_people_write_its_subject(subject: str, title: str):
    assert registry.titled(subject) == title
    answer = {"subject": subject, "outcome": "Pending", "text": "", "doubts": [], "reasons": {}}
    answer["reasons"] = {"text": subject, "children": []}
    assert explaining.parts(answer)[0] == f"{title}: Pending"


@pytest.mark.parametrize("room", ["explain", "findings"])
def test_sentences_of_answers_write_kinds_as_kubernetes_does(room: str):
    words = [
        kind.singular for kind in registry.kinds() if kind_words.in_sentence(kind.kind)[0].isupper()
    ]
    lower = re.compile(rf"(?<![\w./-])(?:{'|'.join(words)})(?:s|es)? (?!\S+: [A-Z])")
    wrong = [
        line
        for file in (ANSWERS / room).glob("*.txt")
        for line in file.read_text(encoding="utf-8").splitlines()
        if lower.search(UPSTREAM.sub("", line))
    ]
    assert not wrong
