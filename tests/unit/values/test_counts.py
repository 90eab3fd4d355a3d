"""Numbers with their nouns."""

import pytest

from app.domain.values import counts


@pytest.mark.parametrize(
    ("count", "noun", "text"),
    [
        (0, "finding", "0 findings"),
        (1, "finding", "1 finding"),
        (2, "more pool", "2 more pools"),
        (2, "device class", "2 device classes"),
        (1, "history", "1 history"),
        (3, "history", "3 histories"),
        (2, "key", "2 keys"),
        (2, "DeviceClass", "2 DeviceClasses"),
        (2, "ResourceSlicePatch", "2 ResourceSlicePatches"),
    ],
)
def test_noun_agrees_with_its_number(count: int, noun: str, text: str) -> None:
    assert counts.of(count, noun) == text


@pytest.mark.parametrize(
    ("count", "singular", "text"),
    [
        (0, "waits", "wait"),
        (1, "waits", "waits"),
        (2, "waits", "wait"),
        (2, "refuses", "refuse"),
        (2, "matches", "match"),
        (2, "carries", "carry"),
        (2, "is", "are"),
        (2, "has", "have"),
        (2, "was", "were"),
        (2, "does", "do"),
        (2, "goes", "go"),
    ],
)
def test_verb_agrees_with_the_number_of_its_subjects(count: int, singular: str, text: str) -> None:
    assert counts.verb(count, singular) == text
