"""Bodies: JSON and YAML to trees, duplicates, bounds."""

import pytest
import yaml

from app.domain.errors import BadRequest, Rejected, TooLarge
from app.domain.objects.schema import decode, encode_yaml
from app.domain.objects.schema.decode import DecodeBounds


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        (b'{"a":1,"b":{"a":2}}', ()),
        (b'{"a":1,"a":2}', ('duplicate field "a"',)),
        (b'{"a" : 1, "a" : 2}', ('duplicate field "a"',)),
        (b'{"a":{"b":[{"c":1},{"c":1,"d":2,"c":3}]}}', ('duplicate field "a.b[1].c"',)),
        (b'{"a":"x\\":1","b":":y"}', ()),
        (b'{"a\\\\":1,"a\\\\":2}', ('duplicate field "a\\"',)),
        (b'{"a":1,"a":2,"b":1,"b":2}', ('duplicate field "a"', 'duplicate field "b"')),
        (b'{"a":":","a":"x"}', ('duplicate field "a"',)),
        (rb'{"a":"x","a":"\u003a"}', ('duplicate field "a"',)),
        (rb'{"a":"x","a":"\u003A"}', ('duplicate field "a"',)),
        (rb'{"a":":\u003a","b":"\\u003a"}', ()),
    ],
)
def test_duplicate_keys_of_json_are_named(text: bytes, problems: tuple[str, ...]) -> None:
    assert decode.decode_json(text).problems == problems


@pytest.mark.parametrize("colons", [998, 999, 1_000, 1_001, 3_000])
def test_duplicate_key_beside_many_colons_is_named(colons: int) -> None:
    inside = b":" * colons
    assert decode.decode_json(b'{"a":"%b"}' % inside).problems == ()
    doubled = decode.decode_json(b'{"a":"%b","b":1,"b":2}' % inside)
    assert doubled.problems == ('duplicate field "b"',)


@pytest.mark.parametrize("depth", [98, 99, 100, 101, 102])
def test_nesting_is_bounded_however_objects_and_lists_share_it(depth: int) -> None:
    for objects in (1, depth // 2, depth):
        lists = depth - objects
        text = b'{"a":' * objects + b"[" * lists + b"1" + b"]" * lists + b"}" * objects
        if depth > DecodeBounds().depth_max:
            with pytest.raises(TooLarge):
                decode.decode_json(text)
        else:
            assert decode.decode_json(text).problems == ()
        wide = b'{"a":[%b{}]}' % (b"[]," * depth)
        assert len(decode.decode_json(wide).value["a"]) == depth + 1


def test_the_last_of_two_equal_keys_counts() -> None:
    assert decode.decode_json(b'{"a":1,"a":2}').value == {"a": 2}
    assert decode.decode_yaml(b"a: 1\na: 2\n").value == {"a": 2}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1),
        ("0x1F", 31),
        ("017", 15),
        ("0o17", 15),
        ("1_000", 1000),
        ("-5", -5),
        ("1.5", 1.5),
        ("1e3", 1000),
        ("12:30", "12:30"),
        ("12:30:45", "12:30:45"),
        ("2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z"),
        ("2026-01-02", "2026-01-02"),
        ("true", True),
        ("yes", True),
        ("off", False),
        ("y", True),
        ("N", False),
        ("0X1F", 31),
        ("0B11", 3),
        ("6_e4", 60_000),
        (".8_4", 0.84),
        ("258__.", 258),
        (".8_", ".8_"),
        ("7e620", "7e620"),
        ("1e", "1e"),
        ("_1", "_1"),
        ('"yes"', "yes"),
        ("!!str 5", "5"),
        ("~", None),
        ("", None),
        ("1Gi", "1Gi"),
        ("1.2.3", "1.2.3"),
        ("0b", "0b"),
        ("099", 99),
        ("|\n  two\n  lines", "two\nlines\n"),
    ],
)
def test_yaml_scalars_become_the_json_that_kubectl_makes(text: str, value: object) -> None:
    assert decode.decode_yaml(f"a: {text}\n".encode()).value == {"a": value}


def test_written_yaml_is_read_as_what_it_was_made_of() -> None:
    words = "y Y n N yes Off true null ~ 1e3 12e03 08 0o7 0X1F 1_0 6_e4 .5 1. +1 -0 .inf = <<"
    texts = [*words.split(), "", " ", "1:30", "2026-01-02", "0x", "a: b", "é", "a\nb\n", "- a"]
    tree = {"texts": texts, "keys": dict.fromkeys(texts, "v"), "values": [1, 0.5, True, None]}
    for options in ({}, {"allow_unicode": True}, {"sort_keys": True}):
        written = encode_yaml.encode_yaml(tree, **options)
        assert decode.decode_yaml(written.encode()).value == tree
        assert yaml.safe_load(written) == tree
    documents = encode_yaml.encode_yaml_documents([tree, tree]).encode()
    assert [each.value for each in decode.decode_yaml_documents(documents)] == [tree, tree]
    part = {"name": "n"}
    assert encode_yaml.encode_yaml([part, part]) == '- name: "n"\n- name: "n"\n'


def test_yaml_keys_become_text() -> None:
    assert decode.decode_yaml(b"1: a\ntrue: b\n").value == {"1": "a", "true": "b"}


def test_yaml_merge_keys_do_not_override() -> None:
    text = b"base: &b {x: 1, y: 2}\nuse: {<<: *b, y: 3}\n"
    assert decode.decode_yaml(text).value["use"] == {"x": 1, "y": 3}


def test_duplicate_keys_of_yaml_are_named() -> None:
    found = decode.decode_yaml(b"a:\n- b: 1\n  b: 2\n")
    assert found.problems == ('duplicate field "a[0].b"',)


def test_every_yaml_document_is_read_and_empty_ones_are_left_out() -> None:
    found = list(decode.decode_yaml_documents(b"---\na: 1\n---\n# nothing\n---\nb: 2\n"))
    assert [each.value for each in found] == [{"a": 1}, {"b": 2}]


_BOMB = b"a: &a [1,1,1,1,1,1,1,1,1,1]\n" + b"".join(
    b"%c: &%c [*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c]\n" % tuple([name, name] + [name - 1] * 10)
    for name in range(ord("b"), ord("h"))
)


@pytest.mark.parametrize(
    ("text", "is_yaml", "error"),
    [
        (b"[" * 100_000, True, TooLarge),
        (b"- " * 10_000 + b"1", True, TooLarge),
        (_BOMB, True, TooLarge),
        (b"{a: b", True, BadRequest),
        (b"\xff\xfe\x00", True, BadRequest),
        (b"a: \x01", True, BadRequest),
        (b"a: .inf", True, BadRequest),
        (b"[1]: 2", True, BadRequest),
        (b"a: *nothing", True, BadRequest),
        (b"<<: [1]", True, BadRequest),
        (b"<<: [{a: 1}, [2]]", True, BadRequest),
        (b"just text", True, BadRequest),
        (b"", True, BadRequest),
        (b"[" * 100_000, False, BadRequest),
        (b'{"a":' * 200 + b"1" + b"}" * 200, False, TooLarge),
        (b'{"a":1}x', False, BadRequest),
        (b"\xff", False, BadRequest),
        (b"[]", False, BadRequest),
        (b"", False, BadRequest),
        (b'"' + b"x" * 4_000_000 + b'"', False, TooLarge),
    ],
)
def test_what_cannot_be_read_is_refused(
    text: bytes, error: type[Rejected], *, is_yaml: bool
) -> None:
    with pytest.raises(error):
        decode.decode(text, is_yaml=is_yaml)


def test_bounds_are_parameters() -> None:
    tight = DecodeBounds(bytes_max=10, depth_max=2, values_max=3)
    assert decode.decode_json(b'{"a":[1]}', tight).value == {"a": [1]}
    for text in (b'{"a":[[]]}', b'{"a":1,"b":2}'):
        with pytest.raises(TooLarge):
            decode.decode_json(text, tight)
    with pytest.raises(TooLarge):
        decode.decode_yaml(b"[1,2,3,4]", tight)


@pytest.mark.parametrize("text", ["0x_", "0b", "-0o_", "0x", "_", "-x"])
def test_prefixes_without_digits_are_text(text: str) -> None:
    assert decode.decode_yaml(f"a: {text}".encode()).value == {"a": text}


@pytest.mark.parametrize(("text", "number"), [("0x_1f", 31), ("1_000_", 1000), ("-0b1_1", -3)])
def test_underscores_between_digits_are_nothing(text: str, number: int) -> None:
    assert decode.decode_yaml(f"a: {text}".encode()).value == {"a": number}


def test_aliases_of_long_texts_count_as_often_as_they_stand() -> None:
    text = "a: &long " + "x" * 100_000 + "\nb: [" + "*long, " * 40 + "]"
    with pytest.raises(TooLarge, match="after aliases are expanded"):
        decode.decode_yaml(text.encode())
    folded = "a: &one [" + "x, " * 1_000 + "]\nb: &two [" + "*one, " * 1_000 + "]\nc: [*two, *two]"
    with pytest.raises(TooLarge, match="after aliases are expanded"):
        decode.decode_yaml(folded.encode())
