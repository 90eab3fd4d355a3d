"""Label, field and node selectors."""

import pytest

from app.domain.values import selectors
from app.domain.values.selectors import SelectorError

LABELS = {"app": "web", "tier": "1", "empty": "", "example.com/zone": "a"}

LABEL_ROWS = [
    ("", True),
    ("app=web", True),
    ("app==web,tier=1", True),
    ("app!=web", False),
    ("missing!=web", True),
    ("app in (db, web)", True),
    ("app notin (db)", True),
    ("missing notin (db)", True),
    ("missing in (db)", False),
    ("app", True),
    ("!app", False),
    ("!missing", True),
    ("tier>0", True),
    ("tier<1", False),
    ("app>1", False),
    ("empty=", True),
    ("example.com/zone in (a)", True),
    ("app in (web),tier notin (2,3),!missing", True),
    ("empty in ()", True),
    ("empty in (x,)", True),
    ("app in (,web)", True),
    ("app in (x, ,web) , tier", True),
    ("app in (db,)", False),
    ("empty=,app=web", True),
]


@pytest.mark.parametrize(("text", "expected"), LABEL_ROWS)
def test_label_selector_text_selects(text: str, expected: bool) -> None:
    assert selectors.parse_labels(text).matches(LABELS) is expected


@pytest.mark.parametrize("text", ["=x", "a b", "a in x", "a=b=c", "a,,b", "a in (x", "-a", "a>x"])
def test_unreadable_label_selector_is_refused(text: str) -> None:
    with pytest.raises(SelectorError):
        selectors.parse_labels(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a=b=c", "found '=', expected: ',' or 'end of string'"),
        ("a=b c", "found 'c', expected: ',' or 'end of string'"),
        ("a=b,", "found '', expected: identifier after ','"),
        ("a,,b", "found ',', expected: identifier after ','"),
        ("=x", "found '=', expected: !, identifier, or 'end of string'"),
        ("!=x", "found '!=', expected: !, identifier, or 'end of string'"),
        ("a,!", "unable to parse requirement: found '', expected: identifier"),
        (
            "a b",
            "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt",
        ),
        ("a in b", "unable to parse requirement: found 'b' expected: '('"),
        ("a in (", "unable to parse requirement: found '', expected: ',', ')' or identifier"),
        ("a in ((x)", "unable to parse requirement: found '(', expected: ',', ')' or identifier"),
        ("a notin (x", "unable to parse requirement: found '', expected: ',' or ')'"),
        ("a in (x y)", "unable to parse requirement: found 'y', expected: ',' or ')'"),
        ("a in (x,", "unable to parse requirement: found '', expected: ',', or identifier"),
        ("d=1,bad===", "unable to parse requirement: found '=', expected: identifier"),
        ("a!==b", "unable to parse requirement: found '=', expected: identifier"),
        ("a in (x)b", "found 'b', expected: ',' or 'end of string'"),
    ],
)
def test_message_names_what_was_found_and_what_could_stand_there(text: str, message: str) -> None:
    with pytest.raises(SelectorError) as refusal:
        selectors.parse_labels(text)
    assert str(refusal.value) == message


def test_label_selector_object_joins_labels_and_expressions() -> None:
    selector = selectors.label_selector_of(
        {
            "matchLabels": {"app": "web"},
            "matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["2"]}],
        }
    )
    assert selector.matches(LABELS)
    assert not selector.matches({"app": "web", "tier": "2"})


FIELDS = {"metadata.name": "a,b", "spec.nodeName": ""}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", True),
        (r"metadata.name=a\,b", True),
        ("metadata.name!=x,spec.nodeName=", True),
        ("spec.nodeName!=", False),
        ("metadata.name==x", False),
    ],
)
def test_field_selector_compares_texts(text: str, expected: bool) -> None:
    assert selectors.parse_fields(text).matches(lambda field: FIELDS.get(field, "")) is expected


def test_field_selector_without_operator_is_refused() -> None:
    with pytest.raises(SelectorError):
        selectors.parse_fields("metadata.name")


def term(*, expressions=(), fields=()):
    return {
        "matchExpressions": [
            {"key": key, "operator": operator, "values": list(values)}
            for key, operator, values in expressions
        ],
        "matchFields": [
            {"key": key, "operator": operator, "values": list(values)}
            for key, operator, values in fields
        ],
    }


NODE_ROWS = [
    ([], False),
    ([term()], False),
    ([term(expressions=[("app", "In", ["web"])])], True),
    ([term(expressions=[("app", "In", ["db"])]), term(fields=[("metadata.name", "In", ["n"])])],
     True),
    ([term(expressions=[("app", "Exists", []), ("tier", "Gt", ["1"])])], False),
    ([term(expressions=[("absent", "NotIn", ["x"])])], True),
    ([term(expressions=[("absent", "DoesNotExist", [])])], True),
    ([term(expressions=[("app", "Lt", ["5"])])], False),
    ([term(fields=[("metadata.name", "NotIn", ["n"])])], False),
]  # fmt: skip


@pytest.mark.parametrize(("terms", "expected"), NODE_ROWS)
def test_node_selector_terms_are_alternatives(terms: list, expected: bool) -> None:
    selector = selectors.node_selector_of({"nodeSelectorTerms": terms})
    assert selector.matches("n", LABELS) is expected


def test_node_without_name_skips_the_name_part() -> None:
    selector = selectors.node_selector_of(
        {"nodeSelectorTerms": [term(fields=[("metadata.name", "In", ["n"])])]}
    )
    assert selector.matches("", {})


@pytest.mark.parametrize(
    "bad",
    [
        term(fields=[("metadata.name", "In", ["a", "b"])]),
        term(fields=[("metadata.name", "Exists", [])]),
        term(expressions=[("app", "In", [])]),
        term(expressions=[("app", "Gt", ["x"])]),
        term(expressions=[("app", "Near", ["x"])]),
        term(expressions=[("a b", "Exists", [])]),
    ],
)
def test_one_bad_term_makes_the_node_selector_an_error(bad: dict) -> None:
    good = term(expressions=[("app", "Exists", [])])
    with pytest.raises(SelectorError):
        selectors.node_selector_of({"nodeSelectorTerms": [good, bad]})
