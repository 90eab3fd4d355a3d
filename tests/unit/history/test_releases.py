"""The release of a recording is taken from the recording, and what says so is told."""

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
    store = memory_store()
    wanted = recordings.RecordingFiles(paths=(write_lines(folder / "audit.log", lines),))
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
