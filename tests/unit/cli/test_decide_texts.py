"""What `redra replay --mode decide` prints about the writes of a recording."""

from app.cli import replaying


def test_treatments_of_recorded_writes_are_named_in_words_and_in_one_order():
    inputs = {
        "controller that is not emulated": 2,
        "refused or without effect": 3,
        "outside": 202,
        "decided again": 189,
    }
    assert replaying.recorded_writes_text(inputs) == (
        "recorded writes: 189 decided again, 202 taken as inputs (from users, drivers, kubelets "
        "and others), 2 taken from controllers that are not emulated, 3 refused or without effect"
    )
