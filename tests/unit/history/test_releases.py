"""The release of a recording is taken from the recording, and the evidence is named."""

import json

import pytest

from app.bootstrap import process_settings, recordings
from app.bootstrap.stores import memory_store
from app.domain.errors import InputError
from tests.unit.history.worlds import CLAIMS, PODS, audit, tree, write_lines

NODES = ("", "v1", "nodes", "Node")
SILENT = (
    "the recording does not name its release: the history imitates 1.37; --profile names another"
)


def asked_by(*agents):
    """A claim made by each of the user agents."""
    return [
        audit("create", tree(CLAIMS, f"c{number}", rv=number), agent=agent, second=number)
        for number, agent in enumerate(agents, start=1)
    ]


def node(name, version, rv=50):
    status = {"nodeInfo": {"kubeletVersion": version}}
    return audit("create", tree(NODES, name, rv=rv, namespace="", status=status), type_=NODES)


def static_pod(image, rv=60):
    spec = {"containers": [{"name": "c", "image": image}]}
    return audit("create", tree(PODS, "kube-scheduler-a", rv=rv, spec=spec), type_=PODS)


async def imported(folder, lines, profile=None):
    return await imported_folder(write_lines(folder / "audit.log", lines), profile)


async def imported_folder(path, profile=None):
    store = memory_store()
    wanted = recordings.RecordingFiles(paths=(path,))
    settings = process_settings.settings(profile=profile)
    done = await recordings.import_history(store, settings, wanted, "h", lambda _a, _b: None)
    info = await store.log.find_history("h")
    assert done.to_json()["profile"] == info.settings["profile"]
    said = [note for note in done.report.notes if "imitates" in note or "against it" in note]
    return info.settings["profile"], said


SCHEDULER = "kube-scheduler/v1.36.2 (linux/amd64) kubernetes/8e16b12/scheduler"


@pytest.mark.parametrize(
    ("lines", "profile", "notes"),
    [
        (
            asked_by(SCHEDULER),
            "1.36.2",
            [
                "the history imitates 1.36.2: kube-scheduler was v1.36.2 "
                "(user agents, once, at audit.log:1)"
            ],
        ),
        (
            asked_by("kubectl/v1.35.0", "kube-scheduler/v1.36.9", "kube-scheduler/v1.36.9 (a)"),
            "1.36",
            [
                "the history imitates 1.36: kube-scheduler was v1.36.9 "
                "(user agents, 2 times, first at audit.log:2)"
            ],
        ),
        (
            [*asked_by("kubectl/v1.36.1"), static_pod("registry.k8s.io/kube-scheduler:v1.35.4")],
            "1.35",
            [
                "the history imitates 1.35: kube-scheduler was v1.35.4 "
                "(images of its pods, once, at audit.log:2)"
            ],
        ),
        (
            [node("n1", "v1.35.4+k3s1"), node("n2", "v1.36.5", 51), node("n3", "kwok-v0.7.0", 52)],
            "1.36",
            [
                "the history imitates 1.36: kubelet was v1.36.5 "
                "(status of nodes, once, at audit.log:2)"
            ],
        ),
        (
            [*asked_by(SCHEDULER), node("n1", "v1.35.4")],
            "1.36.2",
            [
                "the history imitates 1.36.2: kube-scheduler was v1.36.2 "
                "(user agents, once, at audit.log:1)"
            ],
        ),
        (
            asked_by(
                "kube-scheduler/v1.36.2", "kube-scheduler/v1.37.0", "kube-scheduler/v1.37.0 x",
                "kube-controller-manager/v1.36.2",
            ),
            "1.37",
            [
                "the history imitates 1.37: kube-scheduler was v1.37.0 "
                "(user agents, 2 times, first at audit.log:2)",
                "against it: kube-scheduler was v1.36.2 (user agents, once, at audit.log:1)",
                "against it: kube-controller-manager was v1.36.2 "
                "(user agents, once, at audit.log:4)",
            ],
        ),
        (
            asked_by("kube-scheduler/v1.31.0"),
            "1.34",
            [
                "the history imitates 1.34: kube-scheduler was v1.31.0 (user agents, once, at "
                    "audit.log:1), which no profile imitates; the nearest is used"
            ],
        ),
        (asked_by("kubectl/v1.35.0"), "1.37", [SILENT]),
    ],
)  # fmt: skip
async def test_release_is_taken_from_what_the_recording_says(tmp_path, lines, profile, notes):
    assert await imported(tmp_path, lines) == (profile, notes)


@pytest.mark.parametrize(
    ("agents", "given", "notes"),
    [
        (
            [SCHEDULER],
            "1.37",
            [
                "the history imitates 1.37, but kube-scheduler was v1.36.2 "
                "(user agents, once, at audit.log:1); --profile 1.36.2 imitates that one"
            ],
        ),
        (
            ["kube-apiserver/v1.36.5 (linux)", "kube-controller-manager/v1.35.1 (linux)"],
            "1.36",
            [
                "the history imitates 1.36, but kube-controller-manager was v1.35.1 "
                "(user agents, once, at audit.log:2); --profile 1.35 imitates that one"
            ],
        ),
        (
            ["kube-scheduler/v1.31.0 (linux)"],
            "1.34",
            [
                "the history imitates 1.34, but kube-scheduler was v1.31.0 (user agents, "
                "once, at audit.log:1); no profile imitates it"
            ],
        ),
        (["kube-scheduler/v1.36.9 (linux)"], "1.36", []),
        (["kube-scheduler/v1.36.9", "kube-scheduler/v1.37.0"], "1.37", []),
        (["kubectl/v1.35.0"], "1.37", []),
    ],
)
async def test_profile_that_was_given_counts_and_objections_are_told(
    tmp_path, agents, given, notes
):
    assert await imported(tmp_path, asked_by(*agents), given) == (given, notes)


async def test_environment_gives_a_profile_too(tmp_path, monkeypatch):
    monkeypatch.setenv("REDRA_PROFILE", "1.35")
    profile, _ = await imported(tmp_path, asked_by(SCHEDULER))
    assert profile == "1.35"


async def test_profile_that_is_none_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"there is no profile '1\.2'"):
        await imported(tmp_path, asked_by(SCHEDULER), "1.2")


POD = json.dumps(
    tree(PODS, "a", rv=7) | {"spec": {"containers": [{"name": "c", "image": "example.com/a"}]}}
)
SERVER = '{"major": "1", "minor": "35", "gitVersion": "v1.35.3+k3s1"}'
SCHEDULER_LINE = 'I1128 10:00:00.1 1 server.go:163] "Starting Kubernetes Scheduler" version='


@pytest.mark.parametrize(
    ("name", "text", "profile", "said"),
    [
        ("serverversion.json", SERVER, "1.35", "kube-apiserver was v1.35.3 (its version"),
        (
            "cluster_version.json",
            f'{{"info": {SERVER}, "string": "v1.35.3+k3s1"}}',
            "1.35",
            "kube-apiserver was v1.35.3 (its version",
        ),
        (
            "version.json",
            f'{{"clientVersion": {{"gitVersion": "v1.36.0"}}, "serverVersion": {SERVER}}}',
            "1.35",
            "kube-apiserver was v1.35.3 (its version",
        ),
        (
            "version.yaml",
            "clientVersion:\n  gitVersion: v1.36.0\nserverVersion:\n  buildDate: x\n"
            "  gitVersion: v1.35.3\n",
            "1.35",
            "kube-apiserver was v1.35.3 (its version, once, at version.yaml:5)",
        ),
        (
            "version.txt",
            "Client Version: v1.36.0\nKustomize Version: v5.7.1\nServer Version: v1.35.3-gke.100\n",
            "1.35",
            "kube-apiserver was v1.35.3 (its version, once, at version.txt:3)",
        ),
        (
            "old.txt",
            'Server Version: version.Info{Major:"1", Minor:"35+", GitVersion:"v1.35.3"}\n',
            "1.35",
            "kube-apiserver was v1.35.3 (its version",
        ),
        ("s.log", f'{SCHEDULER_LINE}"v1.36.2"\n', "1.36.2", "kube-scheduler was v1.36.2 (its log"),
        (
            "s.json",
            '{"caller":"app/server.go:163","msg":"Starting Kubernetes Scheduler","v":0,'
            '"version":"v1.36.2"}\n',
            "1.36.2",
            "kube-scheduler was v1.36.2 (its log",
        ),
        (
            "c.log",
            'I1128 10:00:00.1 1 controllermanager.go:201] "Starting" version="v1.36.9"\n',
            "1.36",
            "kube-controller-manager was v1.36.9 (its log",
        ),
        (
            "k.log",
            'I1128 10:00:00.1 9 server.go:212] "Kubelet version" kubeletVersion="v1.35.1"\n',
            "1.35",
            "kubelet was v1.35.1 (its log",
        ),
        (
            "report.md",
            "- **Kubernetes version** (use `kubectl version`): v1.35.1\n- Cloud: none\n",
            "1.35",
            "Kubernetes was v1.35.1 (words of a report, once, at report.md:1)",
        ),
        (
            "metadata.json",
            '{"capture_id": "1", "kubernetes_version": "v1.35.2", "record_count": 4}',
            "1.35",
            "kube-apiserver was v1.35.2 (its version",
        ),
        ("kubernetes-version.txt", "v1.35.1\n", "1.35", "kubelet was v1.35.1 (its version"),
        ("steps.md", "kind create cluster --image kindest/node:v1.35.1\n", "1.35", "v1.35.1"),
    ],
)
async def test_release_is_taken_from_files_beside_the_objects(tmp_path, name, text, profile, said):
    (tmp_path / "objects.json").write_text(POD)
    (tmp_path / name).write_text(text)
    release, notes = await imported_folder(tmp_path)
    assert release == profile
    assert said in notes[0]


@pytest.mark.parametrize(
    "text",
    [
        "Client Version: v1.35.0\n",
        '{"clientVersion": {"major": "1", "gitVersion": "v1.35.0"}}',
        "see the pages of kubernetes 1.35.0\n",
        f'{SCHEDULER_LINE}"1.35"\n',
    ],
)
async def test_other_versions_in_files_are_not_that_of_the_cluster(tmp_path, text):
    (tmp_path / "objects.json").write_text(POD)
    (tmp_path / "other.txt").write_text(text)
    assert await imported_folder(tmp_path) == ("1.37", [SILENT])


async def test_words_of_people_count_after_those_of_components(tmp_path):
    (tmp_path / "objects.json").write_text(POD)
    (tmp_path / "a.md").write_text("Kubernetes version: v1.35.1\n\nServer Version: v1.36.9\n")
    release, notes = await imported_folder(tmp_path)
    assert release == "1.36"
    assert notes[1] == "against it: Kubernetes was v1.35.1 (words of a report, once, at a.md:1)"
