"""`scan` names what a history shows and nothing else: planted by machine, and in recordings.

The steps of each incident are played in the middle of a seeded life of other pods, with the defect
and repaired. The same life without an incident shows nothing.
"""

import random

import msgspec
import pytest

from app.analysis.incidents.incident import Incident, Step, Variant
from app.analysis.scan.scanning import LOOKED_FOR, Scan
from app.analysis.scan.sightings import Certainty
from app.bootstrap import process_settings, replays, stores
from app.bootstrap.gallery import exhibits, playing, scanning
from tests.shared_data import shared_path

DRIVER = "life.example.com"

SIBLINGS = {
    "alternative-that-is-never-reached": {"all-mode-while-a-pool-changes"},
    "selector-fails-on-a-broken-device": {"one-error-ends-all"},
}
"""Incidents that are not looked for by name, and show as another one that is also there."""

SEEN_REPAIRED = {"pool-disappears-while-it-changes": {"all-mode-while-a-pool-changes"}}
"""Incidents whose repair is that the scheduler says what it did not say."""


def setup(devices: int) -> Step:
    """A node of another kind with devices of another driver."""
    capacity = {"cpu": "32", "memory": "64Gi", "pods": "110"}
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "life", "labels": {"life": "yes"}},
        "status": {"allocatable": capacity, "capacity": capacity},
    }
    device_class = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": "life"},
        "spec": {"selectors": [{"cel": {"expression": f"device.driver == '{DRIVER}'"}}]},
    }
    published = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": "life"},
        "spec": {
            "driver": DRIVER,
            "nodeName": "life",
            "pool": {"name": "life", "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": f"d-{number}"} for number in range(devices)],
        },
    }
    return Step(apply=[node, device_class, published])


def life(rng: random.Random, names: str) -> list[Step]:
    """Pods with claims of their own that come and go, more of them than there are devices."""
    steps: list[Step] = []
    alive: list[str] = []
    for number in range(rng.randint(4, 9)):
        name = f"{names}-{number}"
        claim = {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {
                "devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "life"}}]}
            },
        }
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {
                "nodeSelector": {"life": "yes"},
                "containers": [{"name": "main", "image": "busybox:1"}],
                "resourceClaims": [{"name": "c", "resourceClaimName": name}],
            },
        }
        steps.append(Step(apply=[claim, pod]))
        alive.append(name)
        if rng.random() < 0.4:
            steps.append(Step(wait=rng.randint(1, 40)))
        if rng.random() < 0.4:
            gone = alive.pop(rng.randrange(len(alive)))
            steps.append(Step(delete=f"pod/{gone}"))
    return steps


def planted(incident: Incident, seed: int) -> Incident:
    """The incident in the middle of a life."""
    rng = random.Random(seed)
    steps = [
        setup(rng.randint(2, 5)),
        *life(rng, "before"),
        *incident.steps,
        *life(rng, "after"),
    ]
    return msgspec.structs.replace(incident, steps=steps)


def shown(incident: Incident, variant: Variant) -> set[str]:
    scan = Scan()
    scan.follow(list(playing.play(incident, variant).events))
    return {sighting.incident for sighting in scan.found()}


def test_what_is_looked_for_is_in_the_gallery() -> None:
    assert len(set(LOOKED_FOR)) == len(LOOKED_FOR) >= 20
    assert set(LOOKED_FOR) <= set(exhibits.names())


@pytest.mark.parametrize("name", exhibits.names())
def test_planted_incident_is_named_and_nothing_else(name: str) -> None:
    incident = planted(exhibits.read(name).incident, seed=len(name))
    expected = {name} if name in LOOKED_FOR else SIBLINGS.get(name, set())
    assert shown(incident, Variant.BROKEN) == expected
    assert shown(incident, Variant.REPAIRED) == SEEN_REPAIRED.get(name, set())


@pytest.mark.parametrize("seed", range(6))
def test_life_without_an_incident_shows_nothing(seed: int) -> None:
    nothing = Incident(title="life", kind="trap")
    assert shown(planted(nothing, seed), Variant.BROKEN) == set()


RECORDED = {
    "a-quickstart": {"one-error-ends-all": (1, Certainty.CERTAIN)},
    "c-multihost-tpu": {},
    "e-taints": {"toleration-without-effect": (2, Certainty.CERTAIN)},
    "e-taints-rules-ignored": {
        "rules-not-seen": (7, Certainty.CERTAIN),
        "toleration-without-effect": (2, Certainty.CERTAIN),
    },
    "j-api-versions": {},
}
"""What the recordings show: a claim with a failing selector, two pods that tolerate a taint without
an effect and are evicted, and in one of them the scheduler that does not see rules."""


@pytest.mark.parametrize("name", RECORDED)
async def test_recording_shows_what_happened_in_it(name: str) -> None:
    store = stores.memory_store()
    settings = process_settings.settings()
    history = await replays.load_files(store, settings, (shared_path("histories", name),))
    sightings = await scanning.scan(store, history, "")
    assert {each.incident: (each.times, each.certainty) for each in sightings} == RECORDED[name]
