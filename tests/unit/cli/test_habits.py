"""Words that users of kubectl type, and that redra answers with one sentence."""

from pathlib import Path

import pytest

from tests.command_line import redra

COMMANDS = [
    ("findings",), ("map",), ("scan",), ("fit",), ("capacity",), ("diff", "a", "b"),
    ("blast", "--delete", "node/x"), ("why", "pod/x"),
]  # fmt: skip


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[0])
def test_watching_and_labels_are_refused_with_what_does_it(
    words: tuple[str, ...], tmp_path: Path
) -> None:
    for option in ("--watch", "-w"):
        code, out, error = redra(*words, option, data=tmp_path)
        assert (code, out, error.count("\n")) == (2, "", 1)
        assert "--watch: the answer is about one moment; use `redra timeline --watch`" in error
    for option in ("--selector", "-l") if words not in (("map",), ("scan",)) else ():
        code, out, error = redra(*words, option, "app=web", data=tmp_path)
        assert (code, out, error.count("\n")) == (2, "", 1)
        assert "--selector: this command has no label selector; use `redra timeline -l`" in error


@pytest.mark.parametrize("words", [*COMMANDS, ("timeline",), ("log",)], ids=lambda words: words[0])
def test_all_namespaces_are_what_answers_are_about(words: tuple[str, ...], tmp_path: Path) -> None:
    plain = redra(*words, data=tmp_path)
    assert plain[0] == 2, "nothing is here"
    assert "the folder has no data of redra" in plain[2]
    for option in ("--all-namespaces", "-A"):
        assert redra(*words, option, data=tmp_path) == plain
