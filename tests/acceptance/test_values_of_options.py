"""Odd values of all options of all commands: refused in a line, and nothing is left behind."""

import itertools
import json
import os
import sys
from pathlib import Path

import pytest

from app.adapters import whole_files
from app.cli.exit_codes import ExitCode
from tests import draws
from tests.acceptance.test_exit_codes import OF_HISTORIES
from tests.acceptance.test_moments_of_commands import commands, required
from tests.command_line import database_running, redra

OPTIONS = [
    (front, command, option)
    for front, command in commands()
    for option in command.params
    if option.param_type_name == "option" and not option.is_flag
]
SAYING_NOTHING = {
    "": "it is empty, as if a variable were not set; write it, or leave it out",
    os.fsdecode(b"\xff"): "it has a text that is not Unicode, with half of a character in it",
}
IDS = [f"{' '.join(front)} {option.opts[0]}" for front, _, option in OPTIONS]


@pytest.mark.parametrize(("front", "command", "option"), OPTIONS, ids=IDS)
def test_value_that_says_nothing_is_refused_by_every_option(
    tmp_path: Path, front: tuple[str, ...], command: object, option: object
) -> None:
    """A variable of a shell that is not set gives an empty one; no answer has half a character."""
    for name, (value, problem) in itertools.product(option.opts, SAYING_NOTHING.items()):
        code, out, error = redra(
            *(*front, *required(command), name, value),
            folder=tmp_path,
            REDRA_DATA=str(tmp_path / "data"),
        )
        assert (code, out) == (ExitCode.UNUSABLE, "")
        assert error == f"redra: {'/'.join(option.opts)}: {problem}\n"
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize(
    ("line", "refusal"),
    [
        ("up --gate ,", "--gate: ',' has a switch without a name"),
        ("up --gate x=on,", "--gate: 'x=on,' has a switch without a name"),
        ("up --quirk ,c1=on", "--quirk: ',c1=on' has a switch without a name"),
        ("up --authorization nope", "--authorization: the value must be one of `open`, `rbac`; "
         "see docs/reference/settings.md"),
        ("up --kubeconfig x", "--kubeconfig: it is that of clusters to record; add --attach "
         "HISTORY"),
        ("replay x --profile nope", "--profile: it applies to decide and verify replays, and the "
         "mode is fold; add --mode decide or --mode verify"),
        ("replay x --gate nope", "--gate: it applies to decide and verify replays, and the "
         "mode is fold; add --mode decide or --mode verify"),
        ("export x -o -", "-o -: it is no file; name a file, or /dev/stdout"),
        ("minimise x --keep violation -o /dev/null", "/dev/null: it is no file, and what was tried "
         "is kept beside it; name a new file"),
        ("minimise x --keep violation -o y --seconds nan", "--seconds: nan is no finite number"),
        ("diff x y --within 1e400", "--within: 1e400 is no finite number"),
        ("record --once --history x --kubeconfig utf-16", "utf-16: it is not UTF-8; name a "
         "kubeconfig with --kubeconfig"),
        ("record --once --history x --kubeconfig deep", "deep: it is nested too deeply; name a "
         "kubeconfig with --kubeconfig"),
        ("migrate --data circle", "circle/postgres: it cannot be used as a file: Too many levels "
         "of symbolic links"),
    ],
)  # fmt: skip
def test_value_without_an_effect_is_refused_in_the_words_of_its_option(
    tmp_path: Path, line: str, refusal: str
) -> None:
    (tmp_path / "circle").symlink_to("circle")
    (tmp_path / "utf-16").write_text("kind: Config", encoding="utf-16")
    (tmp_path / "deep").write_text("[" * 3_000)
    limit = sys.getrecursionlimit()
    # As in a process of its own: another module of a worker may have raised it.
    sys.setrecursionlimit(1_000)
    try:
        ended = redra(*line.split(), folder=tmp_path, REDRA_DATA=str(tmp_path / "data"))
    finally:
        sys.setrecursionlimit(limit)
    assert (ended[:2], ended[2].splitlines()[-1]) == ((ExitCode.UNUSABLE, ""), f"redra: {refusal}")
    assert {each.name for each in tmp_path.iterdir()} == {"circle", "utf-16", "deep"}


def test_folder_whose_name_is_not_unicode_holds_no_database(tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode(b"\xff")
    folder.mkdir()
    code, out, error = redra("migrate", folder=folder, REDRA_DATA="data")
    assert (code, out) == (ExitCode.UNUSABLE, "")
    assert error.startswith("redra: data/postgres: its path is not Unicode")
    assert not [*folder.iterdir()]


def test_output_that_is_a_circle_of_links_is_refused(tmp_path: Path) -> None:
    (tmp_path / "circle").symlink_to("circle")
    with pytest.raises(OSError, match="Too many levels of symbolic links"):
        whole_files.write(tmp_path / "circle", b"")


def test_pipe_gets_what_its_writer_wrote_in_any_order(tmp_path: Path) -> None:
    """An archive is not written from its beginning to its end, as a pipe takes it."""
    reading, writing = os.pipe()
    with whole_files.replacing(Path(f"/dev/fd/{writing}")) as whole, whole.open("wb") as target:
        target.write(b"?ello")
        target.seek(0)
        target.write(b"h")
    os.close(writing)
    with Path(f"/dev/fd/{reading}").open("rb") as source:
        os.close(reading)
        assert source.read() == b"hello"


def test_answers_take_the_place_of_their_questions_only_when_all_are_there(tmp_path: Path) -> None:
    question = '{"name":"a","input":{"nodes":[],"classes":[],"slices":[],"claims":[]}}\n'
    lines = tmp_path / "lines"
    lines.write_text(f"{question}nothing")
    assert redra("allocate", lines, "-o", lines)[0] == ExitCode.UNUSABLE
    assert lines.read_text() == f"{question}nothing"
    lines.write_text(question)
    assert redra("allocate", lines, "-o", lines) == (ExitCode.DONE, "", "")
    assert [json.loads(line)["name"] for line in lines.read_text().splitlines()] == ["a"]
    assert [*tmp_path.iterdir()] == [lines]
    assert redra("allocate", "-", "-o", "-", stdin=question, folder=tmp_path)[0] == ExitCode.DONE
    assert [*tmp_path.iterdir()] == [lines]


LASTING = {"up", "work", "project", "serve-replay", "watch-over", "demo", "record"}
"""Commands that go on for as long as nothing is wrong."""

SLOW = {"minimise", "rehearse", "report", "sweep"}
"""Commands that work for seconds; most values mean nothing else to them than to the others."""

ODD = {
    "a name": "nope", "a number": "-1", "a separator": ",", "line ends": "a\nb",
    "a long text": "x" * 3_000, "a folder": ".", "a pair": "a=b=c", "zero": "0",
    "an endless number": "nan", "a large number": "9" * 30,
}  # fmt: skip
FIRST = "diff --within"
WORDS = {
    "cel": "cel true --history {}", "lint": "lint --history {}", "histories": "histories",
    "fleet": "fleet --profile small --show", "profiles": "profiles", "migrate": "migrate",
    "allocate": "allocate lines", "import": "import lines --history made",
    "histories create": "histories create made", "incidents list": "incidents list",
    "incidents show": "incidents show c1", "incidents run": "incidents run c1",
}  # fmt: skip


CASES = {
    f"{' '.join(front)} {option.opts[0]}": (front, option)
    for front, _, option in OPTIONS
    if front[0] not in LASTING | SLOW
}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("options") / "data"
    with database_running(folder, recorded=True):
        yield folder


@pytest.mark.database
@pytest.mark.parametrize(
    "case", [case if case == FIRST else draws.repeated(case) for case in CASES]
)
def test_odd_values_are_refused_in_a_line_or_have_an_answer(
    data: Path, tmp_path: Path, case: str
) -> None:
    """What a command does not handle, it raises here."""
    front, option = CASES[case]
    (tmp_path / "lines").write_text('{"name":"a"}\n')
    name = " ".join(front)
    words = (WORDS.get(name) or OF_HISTORIES[name]).replace("{out}", "out").split()
    words = [word.replace("{}", "prod") for word in words]
    for each in set(words) & {*option.opts}:
        del words[words.index(each) : words.index(each) + 2]
    for value in ODD.values():
        given = [*words[: len(front)], f"{option.opts[0]}={value}", *words[len(front) :]]
        before = {*tmp_path.iterdir()}
        code, out, error = redra(*given, folder=tmp_path, REDRA_DATA=str(data))
        assert code in {*ExitCode} - {ExitCode.DEFECT, ExitCode.INTERRUPTED}, value
        if code in (ExitCode.UNUSABLE, ExitCode.NO_ANSWER):
            said = [line for line in error.splitlines() if not line.startswith(("Usage", "Try"))]
            assert (out, 1 <= len([*filter(None, said)]) <= 2) == ("", True), said
            # A new folder of data stays, and has what the next import needs.
            assert {*tmp_path.iterdir()} == before or option.opts[0] == "--data", value
