"""The errors that `redra lint` finds in manifests of public repositories, each judged.

`data/lint_corpus.tsv` has a row for each error, file by file: the rule, the field, and why it is
right by the published API and its own messages. An error without a row is wrong until it is
judged, and so is a row without its error.
"""

import csv
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import pytest

from app.analysis.lint.findings import LintFinding, LintSeverity
from app.bootstrap.linting import sources
from app.domain.errors import InputError
from app.settings import Settings, read
from tests import draws
from tests.shared_data import shared_path

TABLE = Path(__file__).parent / "data" / "lint_corpus.tsv"
MADE_UP = "kubernetes__api"
"""Objects in which each text is the name of its field, which the API refuses: `nameValue`."""

FOLDERS = (
    "google__dranet",
    "kubernetes__enhancements",
    "kubernetes__kubernetes",
    "kubernetes__website",
    "kubernetes-sigs__dranet",
    "kubernetes-sigs__dra-driver-nvidia-gpu",
    "kubernetes-sigs__wg-device-management",
    "aojea__kubernetes-network-driver",
)
"""Repositories of which some come with each run; all others are one test."""


def errors(files: Iterable[Path]) -> set[tuple[str, str, str]]:
    """The errors by file, rule and field; a file without any object of the API has none."""
    root, settings = shared_path("corpus"), read({})
    return {
        (str(file.relative_to(root)), finding.rule.id, finding.place.field)
        for file in files
        for finding in _findings(file, settings)
    }


def _findings(file: Path, settings: Settings) -> list[LintFinding]:
    try:
        report = sources.lint_files(settings, [file], [])
    except InputError:
        return []
    return [each for each in report.findings if each.severity is LintSeverity.ERROR]


@cache
def judged() -> frozenset[tuple[str, str, str]]:
    """The rows of the table."""
    with TABLE.open(encoding="utf-8", newline="") as lines:
        rows = csv.DictReader(lines, delimiter="\t")
        return frozenset((row["file"], row["rule"], row["field"]) for row in rows)


def manifests(folder: str) -> list[Path]:
    root = shared_path("corpus")
    return [
        each for each in sorted((root / folder).rglob("*")) if each.suffix in (".yaml", ".json")
    ]


@draws.BY_DAY
@pytest.mark.parametrize("folder", FOLDERS)
def test_each_error_in_a_manifest_of_a_repository_is_judged(folder: str) -> None:
    assert errors(manifests(folder)) == {row for row in judged() if row[0].startswith(f"{folder}/")}


def test_each_error_in_manifests_of_other_repositories_is_judged() -> None:
    others = [
        each.name
        for each in shared_path("corpus").iterdir()
        if each.is_dir() and each.name not in (*FOLDERS, MADE_UP)
    ]
    files = [file for folder in others for file in manifests(folder)]
    rows = {row for row in judged() if row[0].partition("/")[0] in others}
    assert rows, "the table has rows of drivers"
    assert errors(files) == rows


def test_each_row_of_the_table_says_why_it_is_right() -> None:
    with TABLE.open(encoding="utf-8", newline="") as lines:
        rows = list(csv.reader(lines, delimiter="\t"))[1:]
    assert rows
    assert all(len(row) == 4 and row[3] for row in rows)
