"""The pytest plug-in: `redra_cluster` is a Kubernetes API with controllers for one test.

    def test_controller_publishes(redra_cluster):
        run_controller(kubeconfig=redra_cluster.kubeconfig)
        redra_cluster.advance(300)

`@pytest.mark.redra(profile="1.36", gates="DRAConsumableCapacity=true", without=["scheduling"])`
chooses the release, the gates, the quirks, and the controllers that do not run. `redra_history`
runs the inputs of a test that was exported from a history.
"""

import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from app.bootstrap.handover.stories import StoryRun
    from app.testing.clusters import Cluster, Server

NAME_LENGTH_MAX = 40
"""The most characters of a test's name in the name of its cluster."""

MARKED = ("profile", "gates", "quirks", "without")
"""The arguments of the marker."""

_made = 0


def pytest_configure(config: pytest.Config) -> None:
    """Registers the marker `redra`."""
    config.addinivalue_line(
        "markers",
        "redra(profile, gates, quirks, without): release, gates and quirks of the cluster that "
        "redra_cluster is, and the controllers that do not run in it",
    )


def pytest_assertrepr_compare(op: str, left: object, right: object) -> "Sequence[str] | None":
    """Explains which outcomes of a history differ, in the order of the history.

    pytest itself shows entries of dicts in an order that changes from run to run, and cuts them.
    """
    # A test without an exported history does not load the module.
    module = sys.modules.get("app.analysis.handover.outcomes")
    if module is None or op != "==" or not isinstance(right, Mapping):
        return None
    return left.differences(right) if isinstance(left, module.Outcomes) else None


@pytest.fixture(scope="session")
def redra_server(request: pytest.FixtureRequest) -> "Iterator[Server]":
    """The server of the session; every cluster is a history of it."""
    with _as_installed(request.config):
        from app.testing import clusters

    with clusters.running() as server:
        yield server


@pytest.fixture
def redra_cluster(
    redra_server: "Server", request: pytest.FixtureRequest, tmp_path: Path
) -> "Iterator[Cluster]":
    """A cluster of this test's own, with the controllers of Kubernetes and emulated kubelets."""
    from app.settings import read

    with ExitStack() as stack:
        with _in_one_sentence():
            chosen = _chosen(request)
            without = chosen.pop("without", ())
            without = without.split(",") if isinstance(without, str) else without
            cluster = stack.enter_context(
                redra_server.cluster(
                    _name_of(request.node.name), tmp_path, read(chosen), without=tuple(without)
                )
            )
        yield cluster


@pytest.fixture
def redra_history(request: pytest.FixtureRequest) -> "Callable[[object], StoryRun]":
    """Decides again what came from outside of a history that `redra export --as pytest` wrote."""
    with _as_installed(request.config):
        from app.bootstrap.handover import stories

    with _in_one_sentence():
        changes = _changes(_chosen(request))

    def run(story: object) -> "StoryRun":
        return stories.run(story, changes)

    return run


@contextmanager
def _as_installed(config: pytest.Config) -> Iterator[None]:
    """Loads modules as they are, and not with assertions that pytest rewrites.

    pytest rewrites all modules of a distribution that has a plug-in: the first session would
    compile redra anew, though its installation has done so.
    """
    hook = getattr(config.pluginmanager, "rewrite_hook", None)
    before = sys.meta_path[:]
    sys.meta_path[:] = [finder for finder in before if finder is not hook]
    try:
        yield
    finally:
        sys.meta_path[:] = before


@contextmanager
def _in_one_sentence() -> "Iterator[None]":
    """Fails the test without a traceback for a marker with arguments that redra does not take."""
    from app.domain.errors import InputError

    try:
        yield
    except InputError as problem:
        pytest.fail(f"redra: {problem}", pytrace=False)


def _changes(chosen: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that a marker names; the others stay those of the history."""
    from app.bootstrap.history_settings import history_settings
    from app.settings import read

    if not chosen:
        return {}
    default = history_settings(read({})).get("controllers", {})
    changes = history_settings(read(chosen))
    if "profile" not in chosen:
        changes.pop("profile", None)
    controllers = changes.get("controllers", {}).items()
    changes["controllers"] = {
        name: value for name, value in controllers if default.get(name) != value
    }
    return changes


def _chosen(request: pytest.FixtureRequest) -> dict[str, Any]:
    """The arguments of a test's marker, with gates and quirks each as one text for the settings.

    They may also be given as `["q9=off"]` or `{"q9": False}`. Raises InputError for arguments
    without a name, and for unknown ones.
    """
    from app.domain.errors import InputError

    marker = request.node.get_closest_marker("redra")
    if marker is not None and marker.args:
        raise InputError(
            f"the argument {marker.args[0]!r} of the marker redra has no name",
            cure='name it, as in redra(profile="1.36")',
        )
    chosen: dict[str, Any] = dict(marker.kwargs) if marker is not None else {}
    if unknown := sorted(chosen.keys() - set(MARKED)):
        raise InputError(
            f"the marker redra has no argument {unknown[0]!r}", cure=f"it has {', '.join(MARKED)}"
        )
    for name, words in (("gates", ("false", "true")), ("quirks", ("off", "on"))):
        switches = chosen.get(name)
        if isinstance(switches, Mapping):
            switches = [
                f"{each}={words[is_on] if isinstance(is_on, bool) else is_on}"
                for each, is_on in switches.items()
            ]
        if isinstance(switches, list | tuple):
            chosen[name] = ",".join(map(str, switches))
    return chosen


def _name_of(test: str) -> str:
    """A valid name for the history of a test, which is unique in this process."""
    global _made
    _made += 1
    plain = re.sub(r"[^a-z0-9]+", "-", test.lower()).strip("-")[:NAME_LENGTH_MAX].strip("-")
    return f"{plain or 'test'}-{_made}"
