"""Which characters of foreign texts are spelt out, judged by Unicode's own data."""

import json
import sys
import unicodedata

from app.domain.values.texts import visible_text

DIRECTIONS = {"LRE", "RLE", "PDF", "LRO", "RLO", "LRI", "RLI", "FSI", "PDI"}
JOINERS = {"\N{ZERO WIDTH JOINER}", "\N{ZERO WIDTH NON-JOINER}"}


OF_SCRIPTS = {"ARABIC", "SYRIAC", "KAITHI", "EGYPTIAN", "SHORTHAND", "MUSICAL"}
"""Scripts with format characters of their own, which are seen, or belong to notations."""


def acts(letter):
    """True for controls, marks of direction, line separators and characters without room."""
    kind, name = unicodedata.category(letter), unicodedata.name(letter, "")
    if letter in "\n\t" or letter in JOINERS:
        return False
    if kind in ("Cc", "Zl", "Zp") or unicodedata.bidirectional(letter) in DIRECTIONS:
        return True
    return kind == "Cf" and (
        name == "ARABIC LETTER MARK" or name.partition(" ")[0] not in OF_SCRIPTS
    )


def test_what_acts_is_spelt_out_and_all_else_stays():
    letters = list(map(chr, range(sys.maxunicode + 1)))
    acting = [letter for letter in letters if not letter.isprintable() and acts(letter)]
    for letter in acting:
        shown = visible_text.visible(letter)
        assert shown != letter, (hex(ord(letter)), unicodedata.name(letter, ""))
        assert shown.isprintable()
    others = "".join({*letters} - {*acting})
    assert visible_text.visible(others) == others


def test_escapes_name_the_character():
    text = "\x1b[2J a\N{RIGHT-TO-LEFT OVERRIDE}b \x85 \N{LANGUAGE TAG}\n\t\N{GRINNING FACE}é"
    assert visible_text.visible(text) == (
        "\\x1b[2J a\\u202eb \\x85 \\U000e0001\n\t\N{GRINNING FACE}é"
    )


def test_json_keeps_its_values():
    value = {"a\N{RIGHT-TO-LEFT OVERRIDE}": "\N{LANGUAGE TAG}\x9b\N{ZERO WIDTH SPACE}é"}
    shown = visible_text.visible_json(json.dumps(value, ensure_ascii=False))
    assert json.loads(shown) == value
    assert visible_text.visible(shown) == shown


def test_fields_of_forms_hold_what_was_typed():
    page = '<p title="!">!</p>\r\n<input value="!"><textarea a="b">x!</textarea>\r'
    shown = '<p title="\\u202e">\\u202e</p>\n<input value="!"><textarea a="b">x!</textarea>\\x0d'
    mark = "\N{RIGHT-TO-LEFT OVERRIDE}"
    assert visible_text.visible_html(page.replace("!", mark)) == shown.replace("!", mark)
