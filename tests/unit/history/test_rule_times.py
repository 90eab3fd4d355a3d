"""Times in conditions of DeviceTaintRules against the requests around them."""

import pytest

from app.domain.log.records import Loss
from tests.unit.history.worlds import audit, audit_records, tree

TYPE = ("resource.k8s.io", "v1", "devicetaintrules", "DeviceTaintRule")


def rule(generation, effect, *, created=0, **condition):
    """The rule, with a condition if its second is given."""
    conditions = [
        {
            "type": "EvictionInProgress",
            "observedGeneration": condition["observed"],
            "lastTransitionTime": f"2026-01-01T00:00:{condition['second']:02d}Z",
        }
        for _ in range("second" in condition)
    ]
    made = f"2026-01-01T00:00:{created:02d}Z"
    return tree(
        TYPE,
        "r",
        metadata={"generation": generation, "creationTimestamp": made},
        spec={"taint": {"key": "k", "effect": effect}},
        status={"conditions": conditions},
    )


@pytest.mark.parametrize(
    ("observed", "second", "is_odd"),
    [
        (2, 20, False),  # right after the change of the spec
        (2, 21, False),  # within the clock skew after the answer
        (2, 22, True),  # after the answer
        (2, 18, False),  # within a second and the clock skew before the change
        (2, 17, True),  # before the spec that it is about
        (1, 11, False),  # about the spec before
        (1, 9, False),  # within the clock skew before the creation
        (1, 8, True),  # before the creation
    ],
)
def test_time_of_a_condition_fits_between_its_spec_and_the_answer(
    observed, second, is_odd, tmp_path
):
    told = rule(2, "None", created=10, observed=observed, second=second)
    records = audit_records(
        tmp_path,
        audit("create", rule(1, "NoExecute", created=10), type_=TYPE, second=10),
        audit("patch", rule(2, "None", created=10), type_=TYPE, second=20),
        audit("patch", told, type_=TYPE, subresource="status", second=20),
    )
    assert (Loss.TIMES_CONTRADICT in records[-1].losses) is is_odd


def test_spec_whose_change_was_not_recorded_limits_no_time(tmp_path):
    records = audit_records(
        tmp_path,
        audit("create", rule(1, "NoExecute", created=10), type_=TYPE, second=10),
        audit(
            "patch",
            rule(2, "None", created=10, observed=2, second=12),
            type_=TYPE,
            subresource="status",
            second=20,
        ),
    )
    assert not any(Loss.TIMES_CONTRADICT in each.losses for each in records)


@pytest.mark.parametrize("before", [(), ("create",)], ids=["log-begins-later", "line-lost"])
def test_write_that_finds_the_condition_there_did_not_ask_for_the_spec(before, tmp_path):
    generation = 2 if before else 1
    there = rule(generation, "None", created=10, observed=generation, second=12)
    labelled = {**there, "metadata": {**there["metadata"], "labels": {"team": "gpu"}}}
    records = audit_records(
        tmp_path,
        *(audit(verb, rule(1, "NoExecute", created=10), type_=TYPE, second=10) for verb in before),
        audit("patch", labelled, type_=TYPE, second=30),
    )
    assert not any(Loss.TIMES_CONTRADICT in each.losses for each in records)
