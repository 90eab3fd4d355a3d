"""Upstream's table of CEL cases: compilation, match, errors and both costs.

Each row of `conformance/upstream/cel.json` is one case; texts are compared in full.
"""

import json
from functools import lru_cache

import pytest

from app.domain import cel
from tests import draws
from tests.shared_data import shared_is_present, shared_path
from tests.together import together

_FILE = ("conformance", "upstream", "cel.json")


@lru_cache(maxsize=1)
def _cases():
    if not shared_is_present(*_FILE):
        return {}
    document = json.loads(shared_path(*_FILE).read_text())
    return {case["name"]: case for case in document["cases"]}


_LONG = [name for name in sorted(_cases()) if name.startswith("expensive/")]
"""Cases whose evaluation takes seconds until its cost is over the limit."""


@together(sorted(_cases().keys() - _LONG), str, absent=lambda: shared_path(*_FILE))
def test_upstream_case_is_reproduced(name):
    check_case(name)


@draws.in_turn("refusals")
@pytest.mark.parametrize("name", _LONG)
def test_upstream_case_of_much_work_is_reproduced(name):
    check_case(name)


def check_case(name):
    case = _cases()[name]
    expected = case["expected"]
    environment = (
        cel.STORED if case["environment"] == "stored" else cel.new_environment(case["features"])
    )
    if "compileError" in expected:
        with pytest.raises(cel.CompileError) as caught:
            cel.compile_expression(case["expression"], environment=environment)
        assert str(caught.value) == expected["compileError"]
        return
    program = cel.compile_expression(case["expression"], environment=environment)
    device = case["device"]
    outcome = program.evaluate(
        cel.DeviceInput(
            driver=case["driver"],
            attributes=device.get("attributes") or {},
            capacity=device.get("capacity") or {},
            allow_multiple_allocations=device.get("allowMultipleAllocations", False),
        )
    )
    assert program.max_cost == expected.get("maxCost", 0)
    assert outcome == cel.SelectorOutcome(
        match=expected.get("match"),
        error=expected.get("runtimeError"),
        cost=expected.get("actualCost", 0),
    )


def test_the_table_is_whole():
    shared_path(*_FILE)
    assert len(_cases()) == 180
