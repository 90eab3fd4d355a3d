"""Formats of names."""

from collections.abc import Callable

import pytest

from app.domain.values import names
from tests.together import together

FORMATS = [
    (names.label, "a", True),
    (names.label, "a-b-0", True),
    (names.label, "", False),
    (names.label, "-a", False),
    (names.label, "a.b", False),
    (names.label, "A", False),
    (names.label, "a\n", False),
    (names.label, "a" * 63, True),
    (names.label, "a" * 64, False),
    (names.subdomain, "a.b-c.d", True),
    (names.subdomain, "a..b", False),
    (names.subdomain, "a.", False),
    (names.subdomain, ".".join(["a" * 63] * 4)[:253], True),
    (names.subdomain, "a" * 254, False),
    (names.c_identifier, "_a9", True),
    (names.c_identifier, "9a", False),
    (names.c_identifier, "a-b", False),
    (names.label_name, "example.com/My_Name.x", True),
    (names.label_name, "MyName", True),
    (names.label_name, "/a", False),
    (names.label_name, "a/", False),
    (names.label_name, "a/b/c", False),
    (names.label_name, "EXAMPLE.com/a", False),
    (names.label_name, "x" * 64, False),
    (names.label_value, "", True),
    (names.label_value, "a_b.C", True),
    (names.label_value, "a_", False),
    (names.label_value, "a" * 64, False),
    (names.path_segment, "system:admin", True),
    (names.path_segment, "a/b", False),
    (names.path_segment, "..", False),
]


@together(FORMATS, lambda row: f"{row[0].__name__} {row[1]!r}")
def test_names_follow_their_format(row: tuple[Callable[[str], object], str, bool]) -> None:
    check, text, is_fine = row
    assert (check(text) == ()) is is_fine


def test_every_broken_rule_has_its_message() -> None:
    assert names.label("A" * 64) == ("must be no more than 63 bytes", names.LABEL_MESSAGE)
    assert names.label_name("a/") == (
        "name part must be non-empty",
        f"name part {names.QUALIFIED_MESSAGE}",
    )


@pytest.mark.parametrize(
    ("text", "fine"),
    [
        ("123e4567-e89b-42d3-a456-426614174000", True),
        ("123E4567-e89b-42d3-a456-426614174000", False),
        ("123e4567e89b42d3a456426614174000", False),
        ("", False),
    ],
)
def test_uids_are_lower_case_rfc_4122(text: str, *, fine: bool) -> None:
    assert names.is_uid(text) is fine


def test_generated_names_have_a_suffix_of_five_from_the_alphabet() -> None:
    found = names.generated("pod-gpu-", "some-uid", 0)
    assert found.startswith("pod-gpu-")
    assert len(found) == len("pod-gpu-") + 5
    assert set(found[-5:]) <= set(names.SUFFIX_ALPHABET)


def test_generated_names_derive_from_uid_and_attempt() -> None:
    assert names.generated("a-", "u", 0) == names.generated("a-", "u", 0)
    others = {names.generated("a-", uid, attempt) for uid in "uvwx" for attempt in range(4)}
    assert len(others) == 16


def test_a_long_base_is_cut_so_that_63_characters_remain() -> None:
    assert len(names.generated("x" * 80, "u", 0)) == 63
