"""Exports of planted defects: tests that fail without the repair, cases, and redacted names.

Planted defects and recordings come by day: each goes the same way out and back.
"""

import gzip
import json
import runpy
import shutil
import subprocess
from functools import partial
from pathlib import Path

import pytest
import yaml

from app.bootstrap.handover import stories
from app.domain.allocation import AllocatedState, Allocation, Allocator, Features
from app.domain.devices.cel_selectors import CelCompiler
from app.domain.objects import first_objects
from app.domain.objects.kinds.services import ServiceRanges
from tests import draws
from tests.cluster import USER, Cluster
from tests.command_line import redra
from tests.conformance.recordings import RECORDINGS
from tests.shared_data import shared_path
from tests.simulation import originals, planted_soak
from tests.simulation.planted_soak import DEFECTS
from tests.simulation.test_redaction import FORMS, WHOLE, unpacked

pytestmark = pytest.mark.slow

PODS = 30


def write_soak(folder: Path, pods: int = PODS) -> Path:
    bundle = folder / "soak.zip"
    planted_soak.write(planted_soak.soak(1, pods), bundle)
    return bundle


def run_test(file: Path) -> None:
    """Runs the test of an exported file, as pytest does with the fixture of the plug-in."""
    names = runpy.run_path(str(file))
    (test,) = [value for name, value in names.items() if name.startswith("test_")]
    test(partial(stories.run, changes=None))


@draws.in_turn("ways")
@pytest.mark.parametrize(
    ("name", "redact"),
    [
        ("forgets", ("--redact",)),
        # This one looks at a name of a device, which would be gone.
        ("overdraws", ()),
        ("unprotected", ("--redact",)),
    ],
)
def test_exported_test_fails_with_the_defect_and_passes_without(
    name: str, redact: tuple[str, ...], tmp_path: Path
) -> None:
    file = tmp_path / "test_defect.py"
    with planted_soak.planted(name):
        small = tmp_path / "small.zip"
        rule = DEFECTS[name].rule
        code, _, error = redra(
            "minimise", write_soak(tmp_path), "--keep", f"violation {rule}", "-o", small
        )
        assert code == 0, error
        code, out, error = redra("export", small, "--as", "pytest", "-o", file, *redact)
        assert code == 0, error
        assert f"the test asserts that the history does not show: violation {rule}\n" in out
        with pytest.raises(AssertionError):
            run_test(file)
    run_test(file)


@draws.in_turn("ways")
def test_violation_that_is_only_recorded_is_not_asserted_and_named(tmp_path: Path) -> None:
    """The scheduler that wrote the history had the defect, and the one that decides it has not."""
    file = tmp_path / "test_soak.py"
    with planted_soak.planted("forgets"):
        soak = write_soak(tmp_path)
    code, out, error = redra("export", soak, "--as", "pytest", "-o", file)
    assert (code, "does not show" in out) == (0, False)
    (line,) = [each for each in error.splitlines() if each.startswith("violation ")]
    assert line.startswith(
        f"violation {DEFECTS['forgets'].rule}: the history shows it as it is rec"
    )
    run_test(file)


@pytest.fixture(scope="module")
def written_soak(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundle of a sound history."""
    return write_soak(tmp_path_factory.mktemp("soak"))


@pytest.fixture
def soak(written_soak: Path, tmp_path: Path) -> Path:
    """The same beside what a test makes of it."""
    return shutil.copy(written_soak, tmp_path / written_soak.name)


@draws.in_turn("ways")
def test_sound_history_becomes_a_test_of_what_becomes_of_its_pods(
    soak: Path, tmp_path: Path
) -> None:
    file = tmp_path / "test_soak.py"
    assert redra("export", soak, "--as", "pytest", "-o", file)[0] == 0
    run_test(file)
    with planted_soak.planted("forgets"), pytest.raises(AssertionError):
        run_test(file)


@draws.in_turn("ways")
def test_names_are_gone_and_decisions_stay(soak: Path, tmp_path: Path) -> None:
    file = tmp_path / "test_soak.py"
    code, out, error = redra("export", soak, "--as", "pytest", "--redact", "-o", file)
    assert code == 0, error
    assert "every decision is the same" in out
    text = file.read_text()
    for name in ("pod-1", "node-0", "claim-", "part-1", "one"):
        assert f'"{name}' not in text, name
    run_test(file)


def test_selector_that_looks_into_a_name_is_told(tmp_path: Path) -> None:
    cluster = Cluster()
    cluster.device_class("gpu", 'device.attributes["gpu.example.com"].model.startsWith("a1")')
    cluster.node()
    cluster.slice(devices=[{"name": "gpu-0", "attributes": {"model": {"string": "a100"}}}])
    cluster.claim()
    cluster.pod(claim="claim")
    cluster.settle()
    bundle, file = tmp_path / "soak.zip", tmp_path / "test_soak.py"
    planted_soak.write(cluster, bundle)
    code, out, error = redra("export", bundle, "--as", "pytest", "--redact", "-o", file)
    assert (code, out) == (2, "")
    assert (
        "without its names the history has other decisions, the first at decision 5 of 7: " in error
    )
    assert "decision about default/l0010 Scheduled with names" in error
    assert "decision about default/l0010 Unschedulable without" in error
    assert "ObjectKey" not in error
    assert not file.exists()


@draws.in_turn("ways")
@pytest.mark.parametrize(
    "name", RECORDINGS if draws.WHOLE else [name for name in RECORDINGS if name != "i-soak-short"]
)
def test_whole_recording_is_decided_the_same_without_its_names(name: str, tmp_path: Path) -> None:
    source, made = shared_path("histories", name), tmp_path / "made"
    forms = FORMS + WHOLE
    form = forms[(draws.DAY // 7 + RECORDINGS.index(name)) % len(forms)]
    words = () if form == "bundle" else ("--as", form)
    code, out, error = redra("export", source, *words, "--redact", "-o", made)
    assert code == 0, error
    assert "every decision is the same" in out
    texts = originals.read(source / "audit.jsonl.gz")
    assert len(texts) > 50
    files = unpacked(made)
    content = "\n".join([*files, *(each.decode(errors="replace") for each in files.values())])
    assert originals.left(texts, content) == []
    plain = gzip.decompress((source / "audit.jsonl.gz").read_bytes()).decode()
    assert len(originals.left(texts, plain)) > len(texts) // 2


@draws.in_turn("ways")
def test_manifests_are_taken_by_the_api_in_their_order(soak: Path, tmp_path: Path) -> None:
    folder = tmp_path / "manifests"
    code, out, error = redra("export", soak, "--as", "manifests", "-o", folder)
    assert code == 0, error
    written = len([*folder.iterdir()])
    assert f" in {written - 1} manifests and run.sh, " in out
    cluster = Cluster()
    for file in sorted(folder.glob("*-create-*.yaml")):
        cluster.apply(yaml.safe_load(file.read_text()))
    assert len(cluster.names("pods")) == PODS
    shown = tmp_path / "kubectl.log"
    script = subprocess.run(
        ["sh", folder / "run.sh"],
        env={"KUBECTL": f"echo >>{shown}", "WAIT": "no", "PATH": "/usr/bin:/bin"},
        check=False,
        capture_output=True,
    )
    assert script.returncode == 0, script.stderr
    code, _, error = redra("export", soak, "--as", "manifests", "-o", folder)
    assert (code, "it already exists" in error) == (2, True)


def test_new_pod_has_its_status_from_the_api(soak: Path, tmp_path: Path) -> None:
    folder = tmp_path / "manifests"
    code, _, error = redra("export", soak, "--as", "manifests", "-o", folder)
    assert code == 0, error
    created = [yaml.safe_load(file.read_text()) for file in folder.glob("*-create-pods-*.yaml")]
    assert len(created) == PODS
    statuses = [yaml.safe_load(file.read_text()) for file in folder.glob("*-patch-pods-*.yaml")]
    assert all(each["status"].keys() > {"phase", "qosClass"} for each in statuses)


@draws.in_turn("ways")
def test_manifests_of_a_recording_are_taken_by_a_cluster_that_has_its_first_objects(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "manifests"
    source = shared_path("histories", "a-quickstart")
    code, out, error = redra("export", source, "--as", "manifests", "-o", folder)
    assert code == 0, error
    assert "left out, because no decision reads them (writes): apiservices 24, " in out
    cluster = Cluster(namespaces=("default",))
    for command in first_objects.commands(ServiceRanges()):
        if command.key.name != "default":
            cluster.line.submit(command, actor=USER)
    for file in sorted(folder.glob("*-create-*.yaml")):
        tree = yaml.safe_load(file.read_text())
        created = cluster.apply(tree)
        assert created["kind"] == tree["kind"]
    assert len(cluster.names("nodes")) == 2


@draws.in_turn("ways")
def test_case_is_allocated_as_it_says(soak: Path, tmp_path: Path) -> None:
    file = tmp_path / "case.json"
    for pod in ("pod-0", "pod-7", "default/pod-20"):
        code, _, error = redra(
            "export", soak, "--as", "go-allocator-case", "--pod", pod, "-o", file, "--force"
        )
        assert code == 0, error
        (case,) = json.loads(file.read_text())["cases"]
        held = case["allocatedState"]["devices"]
        allocator = Allocator(
            case["slices"],
            {each["metadata"]["name"]: each for each in case["classes"]},
            AllocatedState.of_parts(
                [(each["driver"], each["pool"], each["device"]) for each in held], [], {}
            ),
            Features.of_gates(case["features"]),
            compiler=CelCompiler(detailed_errors=True),
        )
        answer = allocator.allocate(case["node"], case["claims"])
        if case["expected"]["allocations"] is None:
            assert not isinstance(answer, Allocation)
            continue
        assert isinstance(answer, Allocation)
        assert answer.allocation_results(lambda: "") == case["expected"]["allocations"]


@draws.in_turn("refusals")
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--as", "go-allocator-case", "--pod", "nobody"), "decided nothing about pod nobody"),
        (("--as", "pytest", "--never", "evicted"), "does not show it: evicted"),
        (("--as", "pytest", "--never", "nonsense"), "is not a predicate"),
        (("--as", "pytest", "--never", "difference"), "a test cannot ask"),
        (("--as", "manifests", "--never", "evicted"), "--never: it cannot be combined with --as"),
        (("--as", "manifests", "--with-secrets"), "--with-secrets: it cannot be combined with"),
        (("--redact", "--with-secrets"), "--with-secrets: it cannot be combined with --redact"),
        ((), "without --redact, bundle is written of a stored history, and this is a file"),
        (("--as", "audit"), "audit is written of a stored history, and this is a file"),
        (("--expect", "repaired"), "--expect: it does not apply to bundles"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(
    soak: Path, tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    code, out, error = redra("export", soak, "-o", tmp_path / "made", *words)
    assert (code, out) == (2, "")
    assert said in error
    assert len(error.splitlines()) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["soak.zip"]
