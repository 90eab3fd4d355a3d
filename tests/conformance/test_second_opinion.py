"""The second opinion agrees with the reference where it answers, and notices a wrong evaluator.

Recordings come by day.
"""

import json
from collections import Counter
from dataclasses import replace

import pytest

from app.adapters.second_opinion import CelPython
from app.bootstrap import process_settings, replays, stores
from app.domain.cel import program
from app.domain.cel.evaluation import calls
from app.domain.cel.program import ProgramCache
from app.domain.cel.values import equality
from app.ports import Match
from app.service.replays.verifying import VerifyOutcome
from tests import draws
from tests.conformance.recordings import RECORDINGS
from tests.shared_data import shared_path

UPSTREAM = ("conformance", "upstream", "cel.json")
RANDOM = ("conformance", "oracle", "cel-random.jsonl")


def _answer(expected):
    if "error" in expected or "runtimeError" in expected:
        return Match.ERROR
    return Match.MATCH if expected.get("match") else Match.NO_MATCH


def _questions(path):
    """Expression, driver, device and the reference's answer, where the expression compiles."""
    if path is UPSTREAM:
        for case in json.loads(shared_path(*path).read_text())["cases"]:
            if "compileError" not in case["expected"]:
                yield case["expression"], case["driver"], case["device"], _answer(case["expected"])
        return
    for case in map(json.loads, shared_path(*path).read_text().splitlines()):
        if "compileError" not in case["expected"]:
            for device, expected in zip(case["devices"], case["expected"]["devices"], strict=True):
                yield case["expression"], case["driver"], device, _answer(expected)


@draws.in_turn("ways")
@pytest.mark.parametrize(("path", "said", "unsaid"), [(UPSTREAM, 150, 20), (RANDOM, 1_200, 400)])
def test_second_opinion_is_that_of_the_reference_where_it_answers(path, said, unsaid):
    second = CelPython()
    wrong, reasons, answered = [], Counter(), 0
    for expression, driver, device, wanted in _questions(path):
        opinion = second.ask(
            expression,
            driver=driver,
            attributes=device.get("attributes") or {},
            capacity=device.get("capacity") or {},
            allow_multiple_allocations=device.get("allowMultipleAllocations", False),
        )
        if opinion.answer is None:
            reasons[opinion.reason] += 1
            continue
        answered += 1
        if opinion.answer is not wanted:
            wrong.append((expression, device, wanted, opinion.answer))
    assert wrong == []
    assert answered >= said
    assert reasons.total() <= unsaid, reasons
    # Almost all of them are functions that are not registered, and are named.
    named = [count for reason, count in reasons.items() if "the function " in reason]
    assert sum(named) >= reasons.total() * 9 // 10, reasons


async def _verify(name):
    settings = process_settings.settings(verify_processes=1)
    store = stores.memory_store()
    path = shared_path("histories", name, "audit.jsonl.gz")
    history = await replays.load_files(store, settings, (path,))
    return await replays.verify(store, settings, history, "", lambda *_: None, second=CelPython())


@draws.BY_DAY
@pytest.mark.parametrize(
    "name", [draws.repeated(name) if name == "i-soak-short" else name for name in RECORDINGS]
)
async def test_second_opinion_agrees_on_a_recording(name):
    opinion = (await _verify(name)).opinion
    assert opinion.disagreements == ()
    assert opinion.unsaid == {}
    assert opinion.unasked == 0
    assert opinion.agreed == opinion.expressions * opinion.devices > 0


def _negating(right):
    def negated(*arguments, negated):
        return right(*arguments, negated=not negated)

    return negated


@draws.in_turn("wrongs")
@pytest.mark.parametrize(
    ("name", "module", "function", "wrong"),
    [
        ("c-multihost-tpu", equality, "_equal_quantities", lambda _right: lambda _a, _b: True),
        ("c-multihost-tpu", equality, "_equal_quantities", lambda _right: lambda _a, _b: False),
        ("a-quickstart", calls, "compile_equality_with_text", _negating),
    ],
)
async def test_wrong_function_of_the_evaluator_is_noticed(
    name, module, function, wrong, monkeypatch
):
    monkeypatch.setattr(module, function, wrong(getattr(module, function)))
    # Programs that were compiled before have the right function.
    monkeypatch.setattr(program, "_shared", ProgramCache())
    report = await _verify(name)
    assert report.opinion.disagreed > 0
    assert report.outcome is not VerifyOutcome.VERIFIED


@draws.in_turn("ways")
async def test_disagreement_alone_makes_the_outcome_verified_in_part():
    report = await _verify("a-quickstart")
    assert report.outcome is VerifyOutcome.VERIFIED
    doubted = replace(report, opinion=replace(report.opinion, disagreed=1))
    assert (doubted.agrees, doubted.outcome) == (True, VerifyOutcome.PARTLY)
    unsure = replace(report, opinion=replace(report.opinion, unsaid={"no idea": 1}))
    assert unsure.outcome is VerifyOutcome.PARTLY
    cut = replace(report, opinion=replace(report.opinion, unasked=1))
    assert cut.outcome is VerifyOutcome.PARTLY
