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
        (2, "has", "2 have"),
        (1, "contradicts", "1 contradicts"),
        (2, "contradicts", "2 contradict"),
    ],
)
def test_noun_agrees_with_its_number(count: int, noun: str, text: str) -> None:
    assert counts.of(count, noun) == text
