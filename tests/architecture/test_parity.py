"""What code, tests and documents cite of `docs/parity` exists there: the section, or the number."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.shared_data import REPOSITORY

PAGES = ("allocator", "api", "cel", "controllers", "history-formats", "objects")
FOLDERS = ("app", "projections", "migrations", "tests", "bench", "docs")
NUMBER = r"(?:\d+(?:\.\d+)?|[CQ]\d+)"
CITATION = re.compile(
    rf"(?<![\w/-])({'|'.join(PAGES)})\.md,?(?: sections?| §)? "
    rf"({NUMBER}(?:(?:, | and | to |/){NUMBER}(?!\s*\w*\.md))*)"
)
WRAPPED = re.compile(r"\s*\n\s*(?:#:? )?")


@cache
def sections(page: str) -> frozenset[str]:
    """The numbers of the headings of a page, and of the rows of its register."""
    text = (REPOSITORY / "docs" / "parity" / f"{page}.md").read_text(encoding="utf-8")
    headings = re.findall(r"^#{2,3} (\d+(?:\.\d+)?)[. ]", text, re.MULTILINE)
    return frozenset([*headings, *re.findall(r"^\| ([CQ]\d+)\b", text, re.MULTILINE)])


def citations(text: str) -> Iterator[tuple[str, str]]:
    """Page and number of each citation, also where a line ends within one."""
    for page, numbers in CITATION.findall(WRAPPED.sub(" ", text)):
        for number in re.findall(NUMBER, numbers):
            yield page, number


CLAIM = re.compile(r"\bParity:")
END = re.compile(r'"""|\n[ \t]*\n')
COMMENT = re.compile(r"[^\n]*(?:\n[ \t]*#[^\n]*)*")


def claims(text: str) -> Iterator[tuple[int, str]]:
    """Each claim of parity with its line: to the end of its paragraph or comment."""
    for match in CLAIM.finditer(text):
        line = text[text.rfind("\n", 0, match.start()) + 1 : match.start()]
        if "#" in line:
            comment = COMMENT.match(text, match.start())
            assert comment is not None
            yield text.count("\n", 0, match.start()) + 1, comment.group()
        else:
            end = END.search(text, match.start())
            yield (
                text.count("\n", 0, match.start()) + 1,
                text[match.start() : end.start() if end else len(text)],
            )


def files() -> list[Path]:
    return [
        path
        for folder in FOLDERS
        for path in sorted((REPOSITORY / folder).rglob("*"))
        if path.suffix in {".py", ".md", ".story"}
    ]


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_cited_section_exists(folder: str) -> None:
    missing = {
        f"{path.relative_to(REPOSITORY)}: {page}.md {number}"
        for path in files()
        if path.relative_to(REPOSITORY).parts[0] == folder
        for page, number in citations(path.read_text(encoding="utf-8"))
        if number not in sections(page)
    }
    assert not missing


def test_every_claim_of_parity_cites_a_section() -> None:
    uncited = [
        f"{path.relative_to(REPOSITORY)}:{line}: {comment}"
        for path in files()
        if path.suffix == ".py" and path != Path(__file__).resolve()
        for line, comment in claims(path.read_text(encoding="utf-8"))
        if not any(citations(comment))
    ]
    assert not uncited, "name the page and section of docs/parity, or do not claim parity"


@pytest.mark.parametrize(
    ("text", "cited"),
    [
        ("# Parity: the texts are upstream's.\nx = 1  # api.md 3", False),
        ("# Parity: the texts are\n    # upstream's (api.md 3).", True),
        ('"""What.\n\nParity: api.md\n3; the texts.\n"""', True),
        ('"""What. Parity: the texts.\n\nSee api.md 3."""', False),
        ('"""Parity: design 8."""\n# api.md 3', False),
    ],
)
def test_claim_reaches_to_the_end_of_its_paragraph(text: str, cited: bool) -> None:
    ((_, comment),) = claims(text)
    assert any(citations(comment)) is cited


def test_pages_cite_their_own_sections() -> None:
    for page in PAGES:
        text = (REPOSITORY / "docs" / "parity" / f"{page}.md").read_text(encoding="utf-8")
        own = re.findall(r"(?<!\.md )\bsections? (\d+(?:\.\d+)?)\b", text)
        assert set(own) <= sections(page), page


@pytest.mark.parametrize(
    ("text", "cited"),
    [
        ("Parity: allocator.md 10.2 and 11.3.", ["10.2", "11.3"]),
        ("(controllers.md\n    # 5.5, 9 and C24)", ["5.5", "9", "C24"]),
        ("objects.md 5.4, controllers.md 6.2.", ["5.4", "6.2"]),
        ("history-formats.md sections 1 and 3.6; `version`", ["1", "3.6"]),
        ("allocator.md Q1).", ["Q1"]),
        ("docs/reference/api.md 3", []),
        ("cel.md, introduction", []),
    ],
)
def test_citations_are_found_in_all_forms(text: str, cited: list[str]) -> None:
    assert [number for _, number in citations(text)] == cited
