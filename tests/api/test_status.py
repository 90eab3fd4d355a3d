"""Every error of ours has a Status."""

import inspect

import msgspec
import pytest

from app.api.kubernetes import status
from app.domain import errors
from app.domain.errors import (
    BadRequest,
    ChainBroken,
    InputError,
    Invalid,
    LogUnavailable,
    NotFound,
    Rejected,
    RevisionTooLarge,
    StatusCause,
)


def leaves():
    found = [
        kind
        for _, kind in inspect.getmembers(errors, inspect.isclass)
        if issubclass(kind, Rejected) and kind is not Rejected
    ]
    assert len(found) > 10
    return found


@pytest.mark.parametrize("kind", leaves(), ids=lambda kind: kind.__name__)
def test_every_rejection_has_a_code_and_a_reason_of_its_own(kind):
    tree = status.status_of(kind("because", group="g", resource="things", name="x"))
    assert tree["kind"] == "Status"
    assert tree["status"] == "Failure"
    assert tree["message"] == "because"
    assert 400 <= tree["code"] < 600
    assert tree["reason"] != "InternalError"
    assert tree["details"] == {"name": "x", "group": "g", "kind": "things"}


def test_group_of_core_objects_is_left_out():
    assert status.status_of(NotFound("m", resource="pods", name="p"))["details"] == {
        "name": "p",
        "kind": "pods",
    }


def test_causes_carry_reason_message_and_field():
    cause = StatusCause(reason="FieldValueInvalid", message="bad", field="spec.a")
    tree = status.status_of(Invalid("m", causes=(cause,)))
    assert tree["details"]["causes"] == [
        {"reason": "FieldValueInvalid", "message": "bad", "field": "spec.a"}
    ]


def test_error_without_details_has_none():
    assert "details" not in status.status_of(BadRequest("m"))


def test_retry_is_told_in_a_header_too():
    answer = status.answer(RevisionTooLarge("m", retry_after_seconds=1))
    assert (b"retry-after", b"1") in answer.headers


@pytest.mark.parametrize(
    ("problem", "code"),
    [
        (LogUnavailable("the disk is full"), 503),
        (ChainBroken(3, "x"), 500),
        (InputError("odd name", cure="change it"), 400),
    ],
    ids=["log unavailable", "chain broken", "input"],
)
def test_errors_that_are_no_rejections_have_a_code(problem, code):
    assert status.answer(problem).status == code


def test_mistakes_of_ours_do_not_show_their_insides():
    answer = status.unexpected(KeyError("secret"))
    assert answer.status == 500
    assert b"secret" not in answer.body
    assert msgspec.json.decode(answer.body)["reason"] == "InternalError"
