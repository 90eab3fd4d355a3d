"""JSON and YAML texts of trees, whole or damaged."""

import json

import yaml

_NUMBERS = ["1" * 5_000, "1e400", "-0", "1.0000000000000000000001", "NaN", "Infinity", "0x10", "01"]
_YAML_SCALARS = [
    "0x_", "0b_", "0o7", "-0x1f", "0_7", "1_000", ".inf", "-.INF", ".nan", "1e999", "1:30:00", "~",
    "!!binary aGk=", "!!int x", "!!float 1", "!!str 5", "!!python/object:os.system x", "!x y",
    "2026-01-01", "2026-01-01T00:00:00Z", "yes", "off", "=", "<<", "*nothing", "&a", "&a 1", "|",
    ">-", "'",
    '"', "[", "{", "? a", "- b", "%TAG ! x", "@", "`", "\\x00", "0o", "0b2", "1__", "+.5", "_",
]  # fmt: skip
_LAUGHS = (
    "a: &a [x, x, x, x, x, x, x, x, x, x]\n"
    + "".join(
        f"{name}: &{name} [{', '.join([f'*{before}'] * 10)}]\n"
        for before, name in zip("abcdefgh", "bcdefghi", strict=True)
    )
)  # fmt: skip
_LONG_ALIAS = (
    "l: &l " + "x" * 50_000 + "\ndata: {" + ", ".join(f"k{n}: *l" for n in range(400)) + "}\n"
)
_MERGES = [
    "<<: [1]\n", "<<: {a: 1}\n", "<<: [{a: 1}, {b: 2}]\n", "<<: x\n", "b: &b {c: 1}\nd: {<<: *b}\n",
    "<<: [[]]\n", "<<:\n", "<<: &m {<<: {a: 1}}\nx: {<<: [*m, *m]}\n",
]  # fmt: skip


def json_text(rng, tree):
    """The JSON text of a tree, sometimes damaged."""
    text = json.dumps(tree, ensure_ascii=rng.random() < 0.7)
    if rng.random() < 0.55:
        return _bytes(text)
    if rng.random() < 0.3:
        text = json.dumps(tree, indent=rng.choice((1, 4)), separators=(" , ", " : "))
    return rng.choice(
        (_repeated_key, _cut, _noise, _surrogate, _number, _around, _deep, _inserted)
    )(rng, text)


def yaml_text(rng, tree):
    """The YAML text of a tree, sometimes damaged."""
    text = _dumped(rng, tree)
    if rng.random() < 0.4:
        return _bytes(text)
    return rng.choice(
        (_cut, _noise, _yaml_scalar, _yaml_scalar, _yaml_extra, _yaml_extra, _inserted)
    )(rng, text)


def _dumped(rng, tree):
    try:
        return yaml.safe_dump(tree, default_flow_style=rng.choice((None, True, False)))
    except (yaml.YAMLError, RecursionError):
        return json.dumps(tree)


def _bytes(text):
    return text.encode("utf-8", "surrogatepass")


def _repeated_key(rng, text):
    places = [place for place, letter in enumerate(text) if letter == "{"]
    place = rng.choice(places) + 1 if places else 0
    pair = rng.choice(
        ('"metadata":{},', '"metadata" : 5,', '"name":"x","name":"y",', '"a":1,"a":{},')
    )
    return _bytes(text[:place] + pair + text[place:])


def _cut(rng, text):
    return _bytes(text)[: rng.randint(0, len(text))]


def _noise(rng, text):
    raw = bytearray(_bytes(text))
    for _ in range(rng.choice((1, 1, 2, 5, 30))):
        place = rng.randint(0, len(raw))
        raw[place : place + rng.choice((0, 1, 2))] = rng.choice(
            (
                b"\xff",
                b"\xc3",
                b"\x00",
                b"\xed\xa0\x80",
                b"\xf5\x80\x80\x80",
                b'"',
                b"{",
                b",",
                b"\n",
            )
        )
    return bytes(raw)


def _surrogate(rng, text):
    place = text.find('"', rng.randint(0, len(text)))
    return _bytes(
        text[: place + 1] + rng.choice(("\\ud800", "\\udfff\\ud800", "\\u0000")) + text[place + 1 :]
    )


def _number(rng, text):
    places = [place for place, letter in enumerate(text) if letter == ":"]
    place = rng.choice(places) + 1 if places else 0
    return _bytes(f'{text[:place]}{rng.choice(_NUMBERS)},"z":{text[place:]}')


def _around(rng, text):
    before, after = rng.choice(
        (
            ("\ufeff", ""),
            ("", "}"),
            ("[", "]"),
            ("", text),
            (" " * 1000, "\n"),
            ("//\n", ""),
            ('"', '"'),
        )
    )
    return _bytes(before + text + after)


def _deep(rng, text):
    depth = rng.choice((90, 101, 5_000, 200_000))
    opening, closing = rng.choice((("[", "]"), ('{"a":', "}")))
    inner = opening * depth + "1" + closing * (depth if rng.random() < 0.7 else 0)
    return _bytes(text[:-1] + ',"deep":' + inner + "}" if text.endswith("}") else inner)


def _inserted(rng, text):
    place = rng.randint(0, len(text))
    return _bytes(text[:place] + rng.choice(_YAML_SCALARS) + text[place:])


def _yaml_scalar(rng, text):
    places = [place for place in range(len(text) - 1) if text[place : place + 2] == ": "]
    place = rng.choice(places) + 2 if places else 0
    return _bytes(f"{text[:place]}{rng.choice(_YAML_SCALARS)} {text[place:]}")


def _yaml_extra(rng, text):
    extra = rng.choice(
        (_LAUGHS, _LONG_ALIAS, *_MERGES, "---\n" + text, "...\nx", "? [a]\n: b\n",
         "? {a: b}\n: c\n", "%YAML 1.1\n---\n", "&x x: *x\n", "x: &x [*x]\n", "\t\n",
         "a: 1\na: 2\n", "!!map\n")
    )  # fmt: skip
    return _bytes(extra + text if rng.random() < 0.5 else text + "\n" + extra)
