"""What commands write: texts from histories are shown, never obeyed by the terminal."""

import io
import sys

import msgspec
import pytest

from app.adapters import whole_files
from app.cli import console
from app.cli.application import application
from app.cli.exit_codes import ExitCode
from app.domain.values.texts import visible_text

EVIL = "a\x1b[2J\x1b]52;c;eA==\x07\x00\r\x7f\x9b31m\x85z\N{RIGHT-TO-LEFT OVERRIDE}\N{LANGUAGE TAG}"
SHOWN = r"a\x1b[2J\x1b]52;c;eA==\x07\x00\x0d\x7f\x9b31m\x85z\u202e\U000e0001"


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_control_characters_are_spelt_out(capsys):
    console.say(EVIL)
    console.note(EVIL)
    console.complain(EVIL)
    out, error = capsys.readouterr()
    assert out == SHOWN + "\n"
    assert error == f"{SHOWN}\nredra: {SHOWN}\n"


@pytest.mark.parametrize("words", [["--fo%s"], ["wh%sy"], ["why", "--fo%s"], ["completion", "%s"]])
def test_words_that_cannot_be_read_are_spelt_out(capsys, words):
    typed = EVIL.replace("\0", "").replace("=", "")
    assert application([word.replace("%s", typed) for word in words]) == ExitCode.UNUSABLE
    error = capsys.readouterr().err
    assert visible_text.visible(error) == error
    assert r"\u202e" in error


def test_line_ends_tabs_and_all_other_letters_stay(capsys):
    text = "two\n\tlines \N{NO-BREAK SPACE}é→\N{GRINNING FACE} \\x1b"
    console.say(text)
    assert capsys.readouterr().out == text + "\n"


def test_columns_are_as_wide_as_what_is_shown(capsys):
    console.table(("name", "text"), [("\x1b", "x"), ("plain", "y")])
    assert capsys.readouterr().out == "NAME    TEXT\n\\x1b    x\nplain   y\n"


def test_line_of_a_table_is_one_line(capsys):
    console.table(("a\nb", "text"), [("x", "two\n\tlines")])
    assert capsys.readouterr().out == "A\\nB   TEXT\nx      two\\n\\tlines\n"


def test_style_is_the_only_command_to_a_terminal(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.delenv("NO_COLOR", raising=False)
    console.say("\x1b[5mx", console.HEAD)
    assert terminal.getvalue() == "\x1b[1m\\x1b[5mx\x1b[0m\n"


@pytest.mark.parametrize("write", [console.say_json, console.say_json_line, console.say_yaml])
def test_documents_hold_the_same_text_and_no_control(capsys, write):
    import yaml

    write({"text": EVIL})
    written = capsys.readouterr().out
    read = yaml.safe_load if write is console.say_yaml else msgspec.json.decode
    assert read(written) == {"text": EVIL}
    assert visible_text.visible(written) == written


def test_file_that_cannot_be_written_stays_as_it_was(tmp_path, monkeypatch):
    file = tmp_path / "report.html"
    file.write_bytes(b"old")
    file.chmod(0o640)
    whole_files.write(file, b"new")
    assert (file.read_bytes(), file.stat().st_mode & 0o777) == (b"new", 0o640)

    def fail(path, content):
        with path.open("wb") as opened:
            opened.write(content[:1])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(type(file), "write_bytes", fail)
    with pytest.raises(OSError, match="No space"):
        whole_files.write(file, b"newer")
    assert file.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [file]


def test_temporary_file_of_a_killed_writer_goes_and_that_of_a_living_one_stays(tmp_path):
    (tmp_path / ".0123456789abcdef.partial").write_bytes(b"hal")
    file = tmp_path / "table.csv"
    with whole_files.replacing(file) as partial:
        partial.write_bytes(b"whole")
        whole_files.remove_leftovers(tmp_path)
        assert list(tmp_path.iterdir()) == [partial]
    assert file.read_bytes() == b"whole"
    whole_files.remove_leftovers(tmp_path / "nowhere")
