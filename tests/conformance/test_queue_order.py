"""Refused pods that one change wakes: who comes first in the queue is placed first, or is named.

A scheduler with a planted mistake writes the whole recording, so all later lines agree with it.
"""

import random
from collections.abc import Callable
from typing import Any

import pytest

from app.bootstrap import process_settings, replays, stores
from app.domain.controllers.registry import ControllerOptions
from app.domain.controllers.scheduling.queue import hints
from app.domain.controllers.scheduling.queue.hints import Hint, Waker
from app.domain.controllers.scheduling.queue.waiting_pods import SchedulingQueue
from app.domain.objects.profile import Profile
from tests import draws
from tests.cluster import Cluster
from tests.conformance.soak_lines import retell
from tests.conformance.soak_recordings import Load, SlowControlPlane

RELEASE = "1.36"


def newest_first(monkeypatch) -> None:
    """A queue that gives the pod that failed last."""
    enter = SchedulingQueue._enter_active

    def enter_active(self: SchedulingQueue, pod: Any) -> None:
        since = pod.since
        pod.since = -since
        enter(self, pod)
        pod.since = since

    monkeypatch.setattr(SchedulingQueue, "_enter_active", enter_active)


def refuses(name: str) -> Callable[[Any], None]:
    """A scheduler that refuses one pod when it is tried again, for no reason."""

    def plant(monkeypatch) -> None:
        hold_back = SchedulingQueue._hold_back

        def holds(self: SchedulingQueue, pod: Any, now: Any) -> bool:
            if pod.spec.facts.name != name or not pod.unfit:
                return hold_back(self, pod, now)
            self.fail(pod, now, pod.plugins)
            return True

        monkeypatch.setattr(SchedulingQueue, "_hold_back", holds)

    return plant


def forgets(monkeypatch) -> None:
    """A scheduler that does not learn that a device was given back."""

    def wake(self: Waker, hint: Hint, *more: Any) -> None:
        if hint is not hints.ANY_DEVICE:
            known(self, hint, *more)

    known = Waker.wake
    monkeypatch.setattr(Waker, "wake", wake)


def right(monkeypatch) -> None:
    """A scheduler without a mistake."""


def recorded(folder, plant, monkeypatch, **world):
    """An audit log: `early` and `late` wait for the device of `first`, which ends."""
    plane = SlowControlPlane(Load(seed=21))
    options = ControllerOptions(bind_delay=plane.bind_delay, pace=plane)
    with monkeypatch.context() as patched:
        plant(patched)
        cluster = Cluster(Profile(version=RELEASE), options, seed=21, kubelet=True)
        cluster.line.followers.append(plane.follow)
        cluster.settle()
        cluster.node()
        cluster.device_class()
        cluster.slice(devices=1)
        cluster.template()
        for value in (-10, 0, 10):
            name = f"of{value}"
            cluster.create("scheduling.k8s.io/v1", "PriorityClass", name, value=value)
        cluster.wait(3).pod("first", template="gpu")
        cluster.wait(2).pod("early", template="gpu")
        cluster.wait(world.get("apart", 1.5))
        steps = (
            lambda: cluster.pod(
                "late", template="gpu", priorityClassName=f"of{world.get('priority', 0)}"
            ),
            lambda: cluster.kill("first"),
        )
        for step in reversed(steps) if world.get("is_new") else steps:
            step()
            cluster.wait(world.get("waits", 2))
        cluster.wait(60)
        plane.conclude()
        retell(cluster.line.events, plane.late, folder, random.Random(21), answers=30)
    return folder / "audit.jsonl"


PASSED_OVER = "was refused although device n1/gpu-0 fitted it"


@draws.in_turn("wrongs")
@pytest.mark.parametrize(
    ("plant", "world", "is_named"),
    [
        (right, {}, False),
        (newest_first, {}, True),
        (refuses("early"), {}, True),
        (forgets, {"is_new": True, "waits": 4}, True),
        (right, {"is_new": True, "waits": 4}, False),
        # it may not have seen the release when the pod came
        (forgets, {"is_new": True, "waits": 1}, False),
        # the order of the queue: priority, then the time of the last failure
        (right, {"priority": 10}, False),
        (newest_first, {"priority": -10}, False),
        # `early` may still be in back-off when the device comes back
        (newest_first, {"apart": 0.2, "waits": 0.3}, False),
    ],
)
async def test_pod_that_comes_first_in_the_queue_is_not_passed_over(
    plant, world, is_named, tmp_path, monkeypatch
):
    path = recorded(tmp_path, plant, monkeypatch, **world)
    settings = process_settings.settings(profile=RELEASE)
    store = stores.memory_store()
    history = await replays.load_files(store, settings, (path,))
    report = await replays.decide(store, settings, history, "", lambda *_: None)
    assert {key: PASSED_OVER in text for key, text in report.violations.items()} == (
        {"pods/default/early": True} if is_named else {}
    )
