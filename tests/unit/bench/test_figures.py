"""Figures of measurements: what a comparison calls better, worse or noise, and what is refused."""

import json
import random
import re

import pytest

from bench import figures
from bench.__main__ import main

RATE, TIME = "api.creates.32_clients", "folding.event"


def verdicts(before, after):
    """The last column of a comparison, by the work that it is about."""
    titles, *lines = figures.compared(before, after)
    start = titles.index("after / before")
    return {
        line[: titles.index("unit")].strip(): line[start:].split(maxsplit=1)[1] for line in lines
    }


@pytest.mark.parametrize("seed", range(20))
def test_a_change_beyond_the_noise_has_its_direction(seed):
    chance = random.Random(seed)
    name = chance.choice(sorted(figures.anchors()))
    anchor = figures.anchors()[name]
    base = chance.uniform(0.5, 5_000)
    before = [base * chance.uniform(0.99, 1.01) for _ in range(chance.randint(1, 3))]
    far = (1 + anchor.noise) * 1.1
    larger = [value * far for value in before]
    assert verdicts({name: before}, {name: before}) == {anchor.work: "within noise"}
    within = [value * (1 + anchor.noise / 2) for value in before]
    assert verdicts({name: before}, {name: within}) == {anchor.work: "within noise"}
    grown, shrunk = ("WORSE", "better") if anchor.is_less_better else ("better", "WORSE")
    assert verdicts({name: before}, {name: larger}) == {anchor.work: grown}
    assert verdicts({name: larger}, {name: before}) == {anchor.work: shrunk}


def test_runs_whose_ranges_meet_are_noise_however_far_their_medians_are():
    before, after = [1.0, 1.0, 9.0], [2.0, 2.0, 2.0]
    work = figures.anchors()[TIME].work
    assert verdicts({TIME: before}, {TIME: after}) == {work: "within noise"}
    assert verdicts({TIME: [1.0, 1.0, 1.3]}, {TIME: after}) == {work: "WORSE"}


@pytest.mark.parametrize("factor", [0.9, 0.99, 1.01, 1.1])
def test_many_runs_show_changes_that_few_cannot(factor):
    work = figures.anchors()[TIME].work
    before = [10.0, 10.1, 10.2, 10.3]
    after = [value * factor for value in before]
    few = verdicts({TIME: before[:3]}, {TIME: after[:3]})
    assert few == {work: "within noise"}
    expected = {0.9: "better", 1.1: "WORSE"}.get(factor, "within noise")
    assert verdicts({TIME: before}, {TIME: after}) == {work: expected}


def test_only_what_both_sides_measured_is_compared():
    assert verdicts({TIME: [1.0]}, {RATE: [1.0]}) == {}


def test_what_is_reached_depends_on_what_is_better():
    reach = figures.anchors()[TIME].reach, figures.anchors()[RATE].reach
    for factor, ends in ((0.5, ("  reached", "not reached")), (2.0, ("not reached", "  reached"))):
        lines = figures.table({TIME: [reach[0] * factor], RATE: [reach[1] * factor]})
        found = {line.split("  ")[0]: line for line in lines}
        for name, end in zip((TIME, RATE), ends, strict=True):
            assert found[figures.anchors()[name].work].endswith(end)


def test_noted_figures_are_read_back_and_kept_beside_earlier_ones(tmp_path, monkeypatch):
    path = tmp_path / "noted.jsonl"
    monkeypatch.setenv(figures.FILE, str(path))
    for value in (1.5, 2.5):
        figures.note(TIME, value)
    figures.note(RATE, 7)
    values = figures.noted(path)
    assert values == {TIME: [1.5, 2.5], RATE: [7]}
    monkeypatch.setattr(figures, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(figures, "commit", lambda: "abc1234")
    figures.save({TIME: [9.0]}, "a machine")
    saved = figures.save(values, "a machine")
    assert figures.file_of("abc") == saved
    assert figures.load(saved) == ({TIME: [9.0, 1.5, 2.5], RATE: [7]}, "a machine")


def test_nothing_is_kept_unless_a_run_collects(tmp_path, monkeypatch):
    monkeypatch.delenv(figures.FILE, raising=False)
    monkeypatch.chdir(tmp_path)
    figures.note(TIME, 1)
    assert not list(tmp_path.iterdir())
    with pytest.raises(KeyError, match="no entry in anchors"):
        figures.note("unknown", 1)


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "{}", '{"figures": {"a": 1}, "machine": ""}', '{"figures": {"a": ["b"]}}'],
)
def test_a_file_without_figures_is_refused(text, tmp_path):
    path = tmp_path / "result.json"
    path.write_text(text)
    with pytest.raises(SystemExit, match="no file of figures"):
        main(["compare", str(path), str(path)])


def test_a_beginning_that_several_results_share_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(figures, "RESULTS", tmp_path)
    for name in ("ab1", "ab2"):
        (tmp_path / f"{name}.json").write_text("{}")
    with pytest.raises(SystemExit, match="several results begin with 'ab'; there are: ab1, ab2"):
        main(["compare", "ab", "ab1"])
    with pytest.raises(SystemExit, match="no result begins with 'c'"):
        main(["compare", "c", "ab1"])


@pytest.mark.parametrize(
    "words", [["nothing"], ["compare", "a"], ["turns"], ["turns", "/"], ["--rounds", "0"]]
)
def test_wrong_arguments_are_refused_before_anything_is_measured(words, capsys):
    with pytest.raises(SystemExit) as stop:
        main(words)
    assert stop.value.code == 2
    assert "error:" in capsys.readouterr().err


def test_each_figure_is_noted_by_some_measurement():
    sources = [path for path in figures.FOLDER.glob("*.py") if path.name != "figures.py"]
    text = "\n".join(path.read_text() for path in sources)
    starts = set(re.findall(r'^    \("([a-z-]+)"', text, re.MULTILINE))
    noted = {name for name in figures.anchors() if f'"{name}"' in text}
    noted |= {f"starts.{word.strip('-')}" for word in starts}
    assert set(figures.anchors()) <= noted


def test_anchors_say_what_they_are():
    kept = json.loads((figures.FOLDER / "anchors.json").read_text())
    for name, entry in kept["figures"].items():
        assert entry["better"] in ("less", "more"), name
        assert 0 < entry["noise"] <= 1, name
    works = [entry["work"] for entry in kept["figures"].values()]
    assert len(works) == len(set(works))
