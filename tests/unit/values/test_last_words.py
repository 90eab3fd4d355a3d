"""The last words of a container stand behind its exit code, cut at the beginning."""

import pytest

from app.domain.values.fields import core

LONG = " ".join(f"line-{number}" for number in range(100))


@pytest.mark.parametrize(
    ("reason", "message", "why"),
    [
        ("", "", ""),
        ("Error", "", " (Error)"),
        ("", "no license\n", " (no license)"),
        ("Error", " panic:\n\tno device \n", " (Error: panic: no device)"),
        ("", "x" * core.MESSAGE_SHOWN_MAX, f" ({'x' * core.MESSAGE_SHOWN_MAX})"),
        ("", "y" + "x" * core.MESSAGE_SHOWN_MAX, f" (… {'x' * core.MESSAGE_SHOWN_MAX})"),
    ],
)
def test_reason_and_message_stand_in_brackets(reason, message, why):
    assert core.Terminated(reason=reason, message=message).why == why


def test_end_of_a_long_message_begins_with_a_whole_word():
    why = core.Terminated(message=LONG).why
    assert why.startswith(" (… line-")
    assert why.endswith(" line-99)")
    first = why.removeprefix(" (… ").split()[0]
    assert f" {first} " in LONG
    assert len(why) <= core.MESSAGE_SHOWN_MAX + len(" (… )")
