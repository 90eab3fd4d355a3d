"""Quantities in the sentences of invariants."""

import pytest

from app.analysis.verify.invariants import pools


@pytest.mark.parametrize(
    ("quantities", "texts"),
    [
        (("42949672960", "20Gi"), ("40Gi", "20Gi")),
        (("-20Gi", "1536Mi"), ("-20Gi", "1536Mi")),
        (("10737418241", "10Gi"), ("10737418241", "10737418240")),
        (("1Ki", "2Ki"), ("1024", "2048")),
        (("1500m", "0"), ("1.5", "0")),
        (("0", "1Gi"), ("0", "1Gi")),
    ],
)
def test_amounts_that_are_compared_are_written_alike(quantities, texts):
    exact = [pools.billionths(each) for each in quantities]
    assert pools.compared(*exact) == texts
    assert [pools.billionths(each) for each in texts] == exact
