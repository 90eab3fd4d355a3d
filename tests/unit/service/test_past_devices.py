"""The devices of a past moment, which are read without its pods and claims."""

import random
from collections.abc import Sequence
from functools import partial

import pytest

from app.adapters.memory import MemoryLog, MemoryWakeUp
from app.adapters.uids import DerivedUids
from app.analysis.explain.questions import Question
from app.analysis.views import LiveViews, compiler_of
from app.bootstrap.rules import rules_of
from app.domain.errors import InputError
from app.domain.log import EventType, HistoryInfo, ObjectKey, Revision
from app.domain.objects.profile import RULES_GATE, Profile
from app.domain.objects.write.commands import CreateObject
from app.domain.values.json_tree import JsonObject
from app.ports import RuntimePorts
from app.service.explaining import Explainer
from app.service.explaining.evidence import PastMoments
from app.service.histories import Histories
from app.service.runtime import RuntimeBounds
from tests import draws
from tests.cluster import DRIVER, T0, Cluster
from tests.unit.service.builders import ALICE
from tests.unit.service.test_explaining import texts, views_up_to
from tests.unit.service.test_forking import world
from tests.unit.service.test_replaying import history_of
from tests.virtual_clock import VirtualClock

NAMES = ("x", "y", "z")
PROFILE = Profile(version="1.37", gates={RULES_GATE: True})


def histories_of(log: MemoryLog, objects_max: int = 10_000) -> Histories:
    return Histories(
        ports=RuntimePorts(
            log=log, wake_up=MemoryWakeUp(), clock=VirtualClock(T0), uids=DerivedUids(1)
        ),
        rules=rules_of,
        bounds=RuntimeBounds(),
        past_views_max=4,
        objects_max=objects_max,
    )


def shown(views: LiveViews) -> tuple[object, ...]:
    """All that an inventory says of devices, rules, patches and classes."""
    inventory = views.inventory
    slices = {
        pool: [
            (
                one.key,
                one.generation,
                [(each.id, each.attributes, each.capacity, each.taints, each.patches)
                 for each in one.devices],
            )
            for one in inventory.slices_of(pool)
        ]
        for pool in sorted(inventory.pool_ids())
    }  # fmt: skip
    classes = {
        key.name: views.objects.get(key)
        for key in views.objects.keys("resource.k8s.io", "deviceclasses")
    }
    return slices, inventory.rules(), inventory.patches(), classes


def devices(*names: str) -> list[JsonObject]:
    serials = {"serial": "sn", "kind": "card"}
    return [
        {"name": name, "attributes": {key: {"string": f"{text}-{name}"} for key, text in
                                      serials.items()}}
        for name in names
    ]  # fmt: skip


class Drawn:
    """A cluster in which drawn writes publish, withdraw, taint, patch and use devices."""

    def __init__(self, seed: int, writes: int = 30) -> None:
        self.rng = random.Random(seed)
        self.cluster = Cluster(PROFILE)
        self._count = 0
        for node in ("n0", "n1"):
            self.cluster.node(node)
            self.cluster.slice(node, devices(*NAMES))
        self.cluster.device_class()
        self.cluster.template()
        for write in (self._pod, self._patch, self._rule, self._patch):
            write()
        self.cluster.settle()
        writes_of = (
            self._publish, self._withdraw, self._patch, self._rule, self._class, self._pod,
            self._pod, self._end,
        )  # fmt: skip
        for _ in range(writes):
            self.rng.choice(writes_of)()
            if self.rng.random() < 0.6:
                self.cluster.settle()
        self._lose()

    def _publish(self, *names: str) -> None:
        node = self.rng.choice(("n0", "n1"))
        self._withdraw(node)
        names = tuple(self.rng.sample(NAMES, self.rng.randint(1, 3)))
        self.cluster.slice(node, devices(*names), generation=self._number())

    def _withdraw(self, node: str = "") -> None:
        name = f"{node or self.rng.choice(('n0', 'n1'))}-slice"
        if self.cluster.get("resourceslices", name):
            self.cluster.delete("resourceslices", name)

    def _patch(self) -> None:
        name = self.rng.choice(("a", "b", "c"))
        if self.cluster.get("resourceslicepatches", name):
            self.cluster.delete("resourceslicepatches", name, version="v1alpha3")
            return
        # Equal priorities in one second: the revision of the creation decides.
        spec = {
            "filter": {"driver": DRIVER}, "priority": self.rng.randint(1, 2),
            "attributes": {f"{DRIVER}/speed": {"int": self._number()}},
        }  # fmt: skip
        self.cluster.create(
            "resource.k8s.io/v1alpha3", "ResourceSlicePatch", name, spec={"devices": spec}
        )

    def _rule(self) -> None:
        name = self.rng.choice(("r", "s"))
        if self.cluster.get("devicetaintrules", name):
            self.cluster.delete("devicetaintrules", name)
        else:
            selector = {"driver": DRIVER, "device": self.rng.choice(NAMES)}
            self.cluster.rule(name, "NoSchedule", selector, value=f"v{self._number()}")

    def _class(self) -> None:
        name = f"other-{self.rng.randint(0, 1)}"
        if self.cluster.get("deviceclasses", name):
            self.cluster.delete("deviceclasses", name)
        else:
            self.cluster.device_class(name, f"device.driver == 'd{self._number()}.test'")

    def _pod(self) -> None:
        self.cluster.pod(f"p{self._number()}", template="gpu")

    def _end(self) -> None:
        names = self.cluster.names("pods")
        if names:
            self.cluster.kill(self.rng.choice(names))

    def _lose(self) -> None:
        """Withdraw a device that a pod has; its driver publishes it under another name."""
        for name in self.cluster.names("resourceslicepatches"):
            self.cluster.delete("resourceslicepatches", name, version="v1alpha3")
        for name in self.cluster.names("devicetaintrules"):
            self.cluster.delete("devicetaintrules", name)
        self._withdraw("n0")
        self._withdraw("n1")
        self.cluster.slice("n1", devices(*NAMES), generation=self._number())
        for name in self.cluster.names("pods"):
            # The others may have all devices of the node, or wait for them.
            if self.cluster.must("pods", name)["spec"].get("nodeName") != "n0":
                self.cluster.kill(name)
        self.cluster.pod("last", template="gpu", nodeSelector={"kubernetes.io/hostname": "n1"})
        self.cluster.settle()
        (held,) = self.cluster.devices_of(self.cluster.claim_of("last"))
        lost = held.rpartition("/")[2]
        made = [{**each, "name": "new" if each["name"] == lost else each["name"]}
                for each in devices(*NAMES)]  # fmt: skip
        self._withdraw("n1")
        self.cluster.slice("n1", made, generation=self._number())
        self.cluster.settle()

    def _number(self) -> int:
        self._count += 1
        return self._count


async def both(
    histories: Histories,
    log: MemoryLog,
    info: HistoryInfo,
    views: LiveViews,
    keys: Sequence[ObjectKey],
) -> list[tuple[JsonObject, JsonObject]]:
    """The answers about objects, from whole views of past moments and from their devices."""
    answers: list[tuple[JsonObject, JsonObject]] = []
    whole = Explainer(
        log, info, views, compiler_of(views.profile), views.profile,
        past=PastMoments(partial(histories.at, info.name), partial(histories.at, info.name)),
    )  # fmt: skip
    # In views that were kept as whole ones, no object would be missing.
    other = histories_of(log)
    few = Explainer(
        log, info, views, compiler_of(views.profile), views.profile,
        past=PastMoments(partial(other.at, info.name), partial(other.devices_at, info.name)),
    )  # fmt: skip
    for key in keys:
        question = Question(kind=key.resource.removesuffix("s"), namespace="default", name=key.name)
        answers.append(((await whole.why(question)).to_json(), (await few.why(question)).to_json()))
    return answers


@pytest.mark.parametrize("seed", draws.seeds(2))
async def test_devices_of_a_moment_are_those_of_all_events_up_to_it(seed: int) -> None:
    made = Drawn(seed)
    events = made.cluster.line.events
    log, info = await history_of(events, PROFILE.settings())
    histories = histories_of(log)
    moments = made.rng.sample(range(1, len(events) + 1), 12)
    states = set()
    for moment in moments:
        views = await histories.devices_at(info.name, Revision(moment))
        assert views.revision == moment
        assert shown(views) == shown(views_up_to(events, moment, PROFILE)), (seed, moment)
        states.add(str(shown(views)))
    assert len(states) > 3, "moments of one state say little"


@pytest.mark.parametrize("seed", draws.seeds(2, first=50))
async def test_answers_have_the_same_bytes_with_devices_alone(seed: int) -> None:
    made = Drawn(seed)
    events = made.cluster.line.events
    log, info = await history_of(events, PROFILE.settings())
    views = views_up_to(events, len(events), PROFILE)
    kinds = (("", "pods"), ("resource.k8s.io", "resourceclaims"))
    keys = [key for kind in kinds for key in views.objects.keys(*kind)]
    answers = await both(histories_of(log), log, info, views, keys)
    assert all(one == other for one, other in answers), seed
    said = str(answers)
    assert "-slice, which had" in said
    assert "/new is published with the same kind" in said


@pytest.fixture
def crowd() -> Cluster:
    """Many pods, one of which has a device that is withdrawn later."""
    cluster = Cluster()
    cluster.node()
    cluster.slice(devices=devices("x"))
    cluster.device_class()
    cluster.template()
    for number in range(20):
        cluster.pod(f"p{number}")
    cluster.pod("uses", template="gpu")
    cluster.settle()
    cluster.delete("resourceslices", "n1-slice")
    return cluster.settle()


async def test_many_objects_of_a_moment_hinder_no_answer_about_its_devices(crowd) -> None:
    events = crowd.line.events
    log, info = await history_of(events, crowd.profile.settings())
    views = views_up_to(events, len(events))
    histories = histories_of(log, objects_max=10)
    with pytest.raises(InputError, match="more than 10 objects exist"):
        await histories.at(info.name, views.revision)
    explainer = Explainer(
        log, info, views, compiler_of(views.profile), views.profile,
        past=PastMoments(
            partial(histories.at, info.name), partial(histories.devices_at, info.name)
        ),
    )  # fmt: skip
    answer = await explainer.why(Question(kind="pod", namespace="default", name="uses"))
    assert f"slice n1-slice, which had {DRIVER}/n1/x, was deleted" in str(texts(answer.reason))


async def test_devices_of_a_moment_are_bounded_together() -> None:
    cluster = Cluster()
    for number in range(4):
        cluster.device_class(f"c{number}")
        cluster.slice(f"n{number}")
    log, info = await history_of(cluster.line.events, cluster.profile.settings())
    end = Revision(len(cluster.line.events))
    await histories_of(log, objects_max=8).devices_at(info.name, end)
    with pytest.raises(InputError, match="more than 7 objects exist"):
        await histories_of(log, objects_max=7).devices_at(info.name, end)


async def test_devices_before_a_fork_are_those_of_its_source() -> None:
    """The fork ignores rules; the rule counts in what it shares with its source."""
    published = Cluster(PROFILE)
    published.slice()
    published.rule("broken", "NoSchedule")
    trees = [
        event for event in published.line.events
        if event.type is EventType.OBJECT_CREATED and event.key.group == "resource.k8s.io"
    ]  # fmt: skip
    async with world(profile="1.37", gates={RULES_GATE: True}) as here:
        source = await here.histories.open("cluster")
        for event in trees:
            tree = {key: each for key, each in event.object.items() if key != "status"}
            tree["metadata"] = {"name": event.key.name}
            version = str(tree["apiVersion"]).rpartition("/")[2]
            command = CreateObject(key=event.key, version=version, tree=tree)
            await source.submit(command, actor=ALICE)
        last = source.head.revision
        fork = await here.fork("fork", gates={RULES_GATE: False})
        await here.histories.open("fork")
        end = (await here.log.head(fork.id)).revision
        tainted = {}
        for moment in range(last - 2, end + 1):
            few = await here.histories.devices_at("fork", str(moment))
            whole = await here.histories.at("fork", str(moment))
            assert few is not whole
            assert few.profile == whole.profile
            assert shown(few) == shown(whole)
            tainted[moment] = any(
                each.taints
                for pool in few.inventory.pool_ids()
                for one in few.inventory.slices_of(pool)
                for each in one.devices
            )
        assert tainted[last]
        assert not tainted[end]


async def test_devices_are_read_anew_after_their_history_was_closed() -> None:
    async with world() as here:
        await here.histories.open("cluster")
        first = await here.histories.devices_at("cluster", "3")
        assert await here.histories.devices_at("cluster", "3") is first
        await here.histories.rename("cluster", "other")
        assert await here.histories.devices_at("other", "3") is not first
