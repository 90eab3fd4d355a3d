"""Semantic versions: strict form, normalised form, precedence."""

import pytest

from app.domain.values import semver
from app.domain.values.semver import SemverError


@pytest.mark.parametrize(
    "text", ["", "1", "1.2", "01.2.3", "1.2.3-", "1.2.3-01", "1.2.3+", "v1.2.3", "1.2.x", "1.2.3.4",
             "18446744073709551616.0.0", "1.2.3-a..b", "1.2.3-ä", "1.2.3\n"],
)  # fmt: skip
def test_strict_parsing_refuses(text: str) -> None:
    with pytest.raises(SemverError):
        semver.parse(text)


def test_precedence_ascends_as_the_standard_lists_it() -> None:
    ascending = ["1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta", "1.0.0-beta", "1.0.0-beta.2",
                 "1.0.0-beta.11", "1.0.0-rc.1", "1.0.0", "1.9.0", "1.10.0", "2.0.0"]  # fmt: skip
    keys = [semver.parse(text).key for text in ascending]
    assert keys == sorted(keys)
    assert len(set(keys)) == len(keys)


def test_build_metadata_does_not_count_but_is_kept() -> None:
    one, other = semver.parse("1.0.0+a"), semver.parse("1.0.0+b")
    assert semver.compare(one, other) == 0
    assert str(one) == "1.0.0+a"


@pytest.mark.parametrize(
    ("text", "printed"),
    [("v1.2", "1.2.0"), ("1", "1.0.0"), ("01.02.003-rc.1", "1.2.3-rc.1"), ("v1.2.3+b", "1.2.3+b"),
     ("00.0.0", "0.0.0")],
)  # fmt: skip
def test_normalised_parsing_completes(text: str, printed: str) -> None:
    assert str(semver.parse_normalised(text)) == printed


@pytest.mark.parametrize("text", ["1.2-rc", "1+b", "vv1.2.3", ""])
def test_normalised_parsing_refuses(text: str) -> None:
    with pytest.raises(SemverError):
        semver.parse_normalised(text)
