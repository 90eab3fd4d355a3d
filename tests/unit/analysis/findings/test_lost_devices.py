"""Devices that matched former requests: an answer for many devices and many pods is cheap."""

from collections import Counter
from dataclasses import dataclass, field

import pytest

from app.analysis.findings.outgrown import LostDevices, SelectingRequest
from app.analysis.views import LiveViews
from app.domain.devices.device_selectors import SelectorResult
from app.domain.objects.profile import Profile
from tests.cluster import Cluster


@dataclass(slots=True, kw_only=True, eq=False)
class Counting:
    """A selector that matches some devices by name, and counts how often it judges each."""

    names: frozenset[str]
    judged: Counter[str] = field(default_factory=Counter)
    published_key: None = None

    def judge(self, devices, keys=None):
        names = ["/".join(device.id[1:]) for device in devices]
        self.judged.update(names)
        return [SelectorResult(match=name in self.names) for name in names]

    def judge_like(self, device):
        return None


def request(*selectors):
    return SelectingRequest(name="r", request="r", class_name="c", selectors=selectors)


@pytest.fixture(scope="module")
def views():
    cluster = Cluster()
    for node in range(3):
        cluster.node(f"n{node}")
        cluster.slice(f"n{node}", 4)
    cluster.settle()
    views = LiveViews(Profile())
    for event in cluster.line.events:
        views.fold(event)
    return views


def published(views):
    return ["/".join(device.id[1:]) for one in views.inventory.slices() for device in one.devices]


def test_first_device_that_no_request_matches_any_more_is_the_answer(views):
    """Compared with one device after another: every pair of subsets of four devices."""
    names = published(views)
    some = [names[0], names[3], names[5], names[11]]
    subsets = [
        frozenset(name for bit, name in enumerate(some) if mask >> bit & 1) for mask in range(16)
    ]
    for own in (frozenset(names), frozenset(names) - {names[0]}):
        for before in subsets:
            for after in subsets:
                common = Counting(names=own)
                former = [request(Counting(names=before), common)]
                now = [request(Counting(names=after), common)]
                lost = [name for name in names if name in (before & own) - (after & own)]
                answer = LostDevices(views).first(former, now)
                named = None if answer is None else "/".join(answer[1].id[1:])
                assert named == next(iter(lost), None)


def test_device_that_another_request_matches_now_is_not_lost(views):
    names = published(views)
    former = [request(Counting(names=frozenset(names[:2])))]
    now = [request(Counting(names=frozenset([name]))) for name in names[:2]]
    assert LostDevices(views).first(former, now) is None
    assert LostDevices(views).first([*now, *former], now[:1])[0] == 1


def test_each_selector_judges_each_device_once_for_all_pods_that_ask_alike(views):
    everything = frozenset(published(views))
    before, after, own = (Counting(names=everything) for _ in range(3))
    devices = LostDevices(views)
    for _ in range(8):
        assert devices.first([request(before, own)], [request(after, own)]) is None
    for selector in (before, after, own):
        assert selector.judged == dict.fromkeys(everything, 1)
