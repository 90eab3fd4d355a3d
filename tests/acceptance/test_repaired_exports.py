"""Known defects exported as tests of their repair: they fail under the defect's release."""

import re
import runpy
import subprocess
from functools import partial
from pathlib import Path

import anyio
import pytest

from app.adapters.history.formats.bundle import BundleWriter
from app.analysis.incidents.incident import IncidentVariant
from app.bootstrap.gallery import incident_files, playing
from app.bootstrap.handover import stories
from app.bootstrap.stores import memory_store
from app.service import exporting
from tests import draws
from tests.command_line import pytest_command, redra

pytestmark = pytest.mark.slow


def bundle(incident: str, variant: IncidentVariant, path: Path) -> Path:
    """The history of an incident as a file."""
    exhibit = incident_files.read(incident).incident
    events = playing.play(exhibit, variant).events

    async def export() -> None:
        store = memory_store()
        info = await store.log.create_history(
            incident,
            seed=playing.SEED,
            settings=exhibit.cluster_of(variant).settings(),
            created=events[0].stamp.time,
        )
        await store.log.append(info.id, expected=await store.log.head(info.id), events=events)
        await exporting.export_history(
            store.log, info, BundleWriter(path), program="tests", file=path.name
        )

    anyio.run(export)
    return path


def run_test(file: Path, **changes: object) -> None:
    """Run the test of an exported file under other settings, as the plug-in's marker does."""
    names = runpy.run_path(str(file))
    (test,) = [value for name, value in names.items() if name.startswith("test_")]
    test(partial(stories.run, changes=changes))


@pytest.mark.parametrize(
    "name",
    [
        "common-values-stay-narrow",
        "counters-stay-booked",
        "rules-not-seen",
        "scoring-fails-for-shared-claims",
    ],
)
def test_test_of_a_repair_fails_under_the_release_of_the_defect(name: str, tmp_path: Path) -> None:
    incident = incident_files.read(name).incident
    assert incident.repaired is not None
    fixed = incident.repaired.profile
    source = bundle(name, IncidentVariant.BROKEN, tmp_path / f"{name}.zip")
    recorded, repaired = tmp_path / "test_recorded.py", tmp_path / "test_repaired.py"
    assert redra("export", source, "--as", "pytest", "-o", recorded)[0] == 0
    code, out, error = redra(
        "export", source, "--as", "pytest", "--expect", "repaired", "-o", repaired
    )
    assert code == 0, error
    assert f"under {fixed}" in out
    assert f"It asserts what {fixed} decides (--expect repaired)" in repaired.read_text()
    assert f"({incident.number.lower()})" in repaired.read_text()
    assert "(--expect recorded)" in recorded.read_text()
    run_test(recorded)
    with pytest.raises(AssertionError):
        run_test(repaired)
    run_test(repaired, profile=fixed)
    with pytest.raises(AssertionError):
        run_test(recorded, profile=fixed)


@draws.in_turn("ways")
@pytest.mark.parametrize(
    ("name", "number", "asserted"),
    [
        ("admin-access-takes-the-device", "q9", "history.claims == {"),
        ("counters-by-pool-name", "q3", 'not history.shows("violation counters-not-overdrawn")'),
        ("extended-resources-stay", "c3", "history.rules == {"),
        ("finished-pod-is-deleted", "c4", "history.rules == {"),
        ("pool-disappears-while-it-changes", "q13", "history.messages == {"),
        ("share-without-capacity", "q17", "history.pods == {"),
    ],
)
def test_defect_that_no_release_repairs_is_repaired_by_its_switch(
    name: str, number: str, asserted: str, tmp_path: Path
) -> None:
    source = bundle(name, IncidentVariant.BROKEN, tmp_path / f"{name}.zip")
    file = tmp_path / "test_repaired.py"
    code, _, error = redra("export", source, "--as", "pytest", "--expect", "repaired", "-o", file)
    assert code == 0, error
    text = file.read_text()
    assert f"assert {asserted}" in text.replace("'violation", '"violation').replace("')", '")')
    assert f'@pytest.mark.redra(quirks=["{number}=off"])' in text
    with pytest.raises(AssertionError):
        run_test(file)
    run_test(file, quirks={number: False})
    # Each of its assertions tells the defect by itself.
    story, _, asserts = text.partition("history = redra_history(HISTORY)\n")
    for number_of, part in enumerate(asserts.split("    assert ")[1:]):
        alone = tmp_path / f"test_alone_{number_of}.py"
        alone.write_text(f"{story}history = redra_history(HISTORY)\n    assert {part}")
        with pytest.raises(AssertionError):
            run_test(alone)
        run_test(alone, quirks={number: False})


MARKED = ("admin-access-takes-the-device", "counters-stay-booked", "rules-not-seen")
"""The history of the third has a gate on that is off by default in the release of the repair."""

SWITCHES = ('quirks={"q9": False}', 'quirks=["q9=off"]', 'quirks=("q9=off",)', 'quirks="q9=off"')
"""Ways to write that the defect of the first of them is repaired."""


def repaired(name: str, folder: Path) -> str:
    """The text of the exported test of a repair."""
    source = bundle(name, IncidentVariant.BROKEN, folder / f"{name}.zip")
    file = folder / f"{name}.py"
    words = ("--as", "pytest", "--expect", "repaired", "-o", file)
    assert redra("export", source, *words)[0] == 0
    return file.read_text()


def marked(text: str, marker: str) -> str:
    """The file with a marker above its test, as somebody writes it."""
    return text.replace("def test_", f"import pytest\n\n@{marker}\ndef test_", 1)


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The results of pytest for exported files, by name, run in one process as by a user."""
    folder = tmp_path_factory.mktemp("exported")
    texts = {name: repaired(name, folder) for name in MARKED}
    files = {each: marked(texts[MARKED[0]], f"pytest.mark.redra({each})") for each in SWITCHES}
    for name, text in texts.items():
        (marker,) = re.findall(r"passes with `@(pytest.+?)`", text)
        files |= {f"{name} as it is": text, f"{name} as its head says": marked(text, marker)}
    run = folder / "run"
    run.mkdir()
    for number, text in enumerate(files.values()):
        (run / f"test_{number}.py").write_text(text)
    done = subprocess.run(
        pytest_command("-rA", run), cwd=run, capture_output=True, check=False, text=True
    )
    said = re.findall(r"^(PASSED|FAILED|ERROR) test_(\d+)\.py", done.stdout, re.MULTILINE)
    assert len(said) == len(files), done.stdout
    names = [*files]
    return {names[int(number)]: outcome for outcome, number in said}


@draws.in_turn("ways")
@pytest.mark.parametrize("name", MARKED)
def test_marker_that_the_head_names_makes_the_test_pass(
    outcomes: dict[str, str], name: str
) -> None:
    assert outcomes[f"{name} as it is"] == "FAILED"
    assert outcomes[f"{name} as its head says"] == "PASSED"


@pytest.mark.parametrize("switches", SWITCHES)
def test_switches_of_a_marker_may_be_written_as_people_do(
    outcomes: dict[str, str], switches: str
) -> None:
    assert outcomes[switches] == "PASSED"


def test_history_without_a_known_defect_has_no_test_of_a_repair(tmp_path: Path) -> None:
    source = bundle("counters-stay-booked", IncidentVariant.REPAIRED, tmp_path / "sound.zip")
    file = tmp_path / "test_sound.py"
    code, out, error = redra("export", source, "--as", "pytest", "--expect", "repaired", "-o", file)
    assert (code, out, file.exists()) == (2, "", False)
    assert "no later release and no switch repairs a defect" in error


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--as", "manifests"), "--expect"),
        ((), "--expect"),
        (("--as", "pytest", "--never", "evicted default/web"), "--never"),
    ],
)
def test_repair_is_asked_for_tests_alone(words: tuple[str, ...], said: str, tmp_path: Path) -> None:
    source = bundle("counters-stay-booked", IncidentVariant.BROKEN, tmp_path / "small.zip")
    code, _, error = redra("export", source, *words, "--expect", "repaired", "-o", tmp_path / "out")
    assert code == 2
    assert said in error
