"""Files of different clusters are named; files of one cluster are joined without a word."""

import json

import pytest

from app.adapters.history.opening import open_history
from app.adapters.history.reading import ReadOptions
from tests.unit.history.worlds import tree

NAMESPACES = ("", "v1", "namespaces", "Namespace")


def namespace(name, uid, rv=5):
    return json.dumps(tree(NAMESPACES, name, rv=rv, namespace="", metadata={"uid": uid}))


def lost(folder, **files):
    """The losses of files with these contents."""
    for name, content in files.items():
        (folder / name).write_text(content)
    with open_history([folder], ReadOptions()) as recorded:
        assert list(recorded.records())
        return recorded.refused_places


def test_another_kube_system_is_another_cluster(tmp_path):
    ((place, problem),) = lost(
        tmp_path,
        a=namespace("kube-system", "u-1"),
        b=namespace("kube-system", "u-2", 6),
        c=namespace("kube-system", "u-2", 7),
    )
    assert place == "b:1"
    assert problem == (
        "kube-system has another uid than at a:1: the files are of different clusters, whose "
        "objects are mixed up in this history; import the files of each cluster into a history of "
        "its own"
    )


@pytest.mark.parametrize(
    "other",
    [
        namespace("kube-system", "u-1", 6),
        namespace("default", "u-2", 6),
        "NAME          STATUS   AGE\nkube-system   Active   5m\n",
    ],
)
def test_files_of_one_cluster_are_not_told_apart(tmp_path, other):
    assert lost(tmp_path, a=namespace("kube-system", "u-1"), b=other) == []
