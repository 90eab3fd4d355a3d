"""`scan` names exactly the defects of a history: planted by machine, and in recordings.

The steps of each incident are played in the middle of a seeded life of other pods, with the defect
and repaired, and as another control plane's audit log. The same life without an incident shows
nothing. What is shown of an incident, and where, does not depend on the life around it.

Incidents that are planted come by day.
"""

import json
import random
import re
from dataclasses import dataclass
from pathlib import Path

import anyio
import msgspec
import pytest

from app.adapters.history.writers import AuditWriter
from app.analysis.incidents.incident import Incident, IncidentStep, IncidentVariant
from app.analysis.scan import attempts
from app.analysis.scan.scanning import LOOKED_FOR
from app.analysis.scan.sightings import Certainty, IncidentSighting, ScanReport
from app.bootstrap import process_settings, replays, stores
from app.bootstrap.gallery import incident_files, playing
from app.domain.log import Event, ObjectKey, Revision
from app.service import exporting
from app.settings import Settings
from tests import draws
from tests.conformance import scanning
from tests.imports import load_once
from tests.shared_data import shared_path
from tests.unit.history.worlds import NAMESPACES, audit, tree

DRIVER = "life.example.com"

ALSO = {
    "alternative-that-is-never-reached": {"all-mode-while-a-pool-changes"},
    "alternatives-leave-traces": {"counters-stay-booked"},
    "selector-fails-on-a-broken-device": {"one-error-ends-all"},
}
"""Incidents that show another one, too: what the scheduler says of both is the same, or repairing
either one alone places the pod."""

UNSEEN = {"admin-access-needs-a-label", "tolerated-taint-is-cancelled"}
"""What a history of redra's own cannot show: a request that was refused leaves nothing in it, and
nothing tells whether somebody meant to lift a taint before its time was over."""

OF_EVERYBODY = {"empty-selector-evicts-everything"}
"""Incidents that concern the pods around them, too."""

LIKELY = {"counters-by-pool-name", "distinct-remembers-the-last", "driver-is-lost"}
"""Incidents that something else may explain."""

SEEN_REPAIRED = {"pool-disappears-while-it-changes": {"all-mode-while-a-pool-changes"}}
"""Incidents whose repair is that the scheduler says what it did not say."""


def setup(devices: int) -> IncidentStep:
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
    return IncidentStep(apply=[node, device_class, published])


def life(rng: random.Random, names: str) -> list[IncidentStep]:
    """Pods with claims of their own that come and go, more of them than there are devices."""
    steps: list[IncidentStep] = []
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
        steps.append(IncidentStep(apply=[claim, pod]))
        alive.append(name)
        if rng.random() < 0.4:
            steps.append(IncidentStep(wait=rng.randint(1, 40)))
        if rng.random() < 0.4:
            gone = alive.pop(rng.randrange(len(alive)))
            steps.append(IncidentStep(delete=f"pod/{gone}"))
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


async def stored(incident: Incident, variant: IncidentVariant) -> stores.Store:
    """A store with the played history."""
    events = playing.play(incident, variant).events
    store = stores.memory_store()
    info = await store.log.create_history(
        "played",
        seed=playing.SEED,
        settings=incident.cluster_of(variant).settings(),
        created=events[0].stamp.time,
    )
    await store.log.append(info.id, expected=await store.log.head(info.id), events=events)
    return store


@dataclass(frozen=True)
class Shown:
    """A sighting: the event of its first revision, and the objects that it names."""

    certainty: Certainty
    event: tuple[str, str, str]
    objects: frozenset[tuple[str, str]]


def scanned(incident: Incident, variant: IncidentVariant) -> dict[str, Shown]:
    """What a scan of the played history names."""

    async def made() -> tuple[ScanReport, list[Event]]:
        store = await stored(incident, variant)
        report = await scanning.scan(store, process_settings.settings(), "played", "")
        info = await store.log.find_history("played")
        assert info is not None
        return report, await store.log.read(info.id, after=Revision(0), limit=100_000)

    report, events = anyio.run(made)
    assert report.attempts_left_out == 0
    by_revision = {event.revision: event for event in events}
    return {each.incident: shown_by(each, by_revision[each.revision]) for each in report.sightings}


def shown_by(sighting: IncidentSighting, event: Event) -> Shown:
    return Shown(
        certainty=sighting.certainty,
        event=(event.type.value, *bare(event.key)),
        objects=frozenset(map(bare, sighting.objects)),
    )


def bare(key: ObjectKey) -> tuple[str, str]:
    """Resource and name, without what the API or an Event's author adds to the name."""
    name = key.name.partition(".")[0] if key.resource == "events" else key.name
    return key.resource, re.sub(r"-[a-z0-9]{5}$", "", name)


def shown(incident: Incident, variant: IncidentVariant) -> set[str]:
    return set(scanned(incident, variant))


def test_what_is_looked_for_is_in_the_gallery() -> None:
    assert len(set(LOOKED_FOR)) == len(LOOKED_FOR)
    assert set(incident_files.names()) - set(LOOKED_FOR) == {"tolerated-taint-is-cancelled"}


@draws.BY_DAY
@pytest.mark.parametrize("name", incident_files.names())
def test_planted_incident_is_named_and_nothing_else(name: str) -> None:
    incident = planted(incident_files.read(name).incident, seed=len(name))
    expected = set() if name in UNSEEN else {name} | ALSO.get(name, set())
    around = scanned(incident, IncidentVariant.BROKEN)
    assert set(around) == expected
    assert {each for each in expected if around[each].certainty is not Certainty.CERTAIN} <= LIKELY
    alone = scanned(lasting(incident_files.read(name).incident), IncidentVariant.BROKEN)
    for each in expected:
        if each in OF_EVERYBODY:
            assert around[each].objects > alone[each].objects
        else:
            assert around[each] == alone[each]
    assert shown(incident, IncidentVariant.REPAIRED) == SEEN_REPAIRED.get(name, set())


@pytest.mark.parametrize("seed", range(6))
def test_life_without_an_incident_shows_nothing(seed: int) -> None:
    nothing = Incident(title="life", kind="trap")
    assert shown(planted(nothing, seed), IncidentVariant.BROKEN) == set()


def audit_log(incident: Incident, variant: IncidentVariant, path: Path) -> None:
    """The played history as another control plane's audit log, which has no decisions."""

    async def export() -> None:
        store = await stored(incident, variant)
        info = await store.log.find_history("played")
        assert info is not None
        await exporting.export_history(
            store.log, info, AuditWriter(path), program="tests", file=path.name
        )

    anyio.run(export)


async def scan_files(path: Path, incident: Incident) -> ScanReport:
    """The findings of a scan in an audit log; the release is given, as with `import --profile`."""
    store = stores.memory_store()
    settings = process_settings.settings(
        profile=incident.cluster.profile,
        gates=[f"{name}={str(on).lower()}" for name, on in incident.cluster.gates.items()],
    )
    history = await replays.load_files(store, settings, (path,))
    return await scanning.scan(store, settings, history, "")


def lasting(incident: Incident) -> Incident:
    """The incident, and something else two minutes later: some show by what they last."""
    steps = [*incident.steps, IncidentStep(wait=120), setup(1)]
    return msgspec.structs.replace(incident, steps=steps)


def check_audit_log(incident: Incident, name: str, folder: Path) -> None:
    for variant, expected in (
        (IncidentVariant.BROKEN, {name} | ALSO.get(name, set())),
        (IncidentVariant.REPAIRED, SEEN_REPAIRED.get(name, set())),
    ):
        path = folder / f"{variant}.log"
        audit_log(incident, variant, path)
        report = anyio.run(scan_files, path, incident)
        assert {each.incident for each in report.sightings} == expected


LASTING = {"claim-waits-for-a-pod", "extended-resources-stay", "no-preemption-for-devices"}
"""What shows only after a minute, which an audit log that ends with its last line does not have."""


@draws.in_turn("rows of ways")
@pytest.mark.parametrize("name", sorted(set(attempts.LOOKED_FOR) - LASTING))
def test_attempts_of_another_control_plane_are_made_again(name: str, tmp_path: Path) -> None:
    check_audit_log(incident_files.read(name).incident, name, tmp_path)


@draws.BY_DAY
@pytest.mark.parametrize("name", sorted({*LOOKED_FOR} - {*attempts.LOOKED_FOR} - UNSEEN - LASTING))
def test_audit_log_shows_what_the_history_of_its_cluster_shows(name: str, tmp_path: Path) -> None:
    check_audit_log(incident_files.read(name).incident, name, tmp_path)


@pytest.mark.parametrize("name", sorted(LASTING))
def test_what_lasts_shows_in_an_audit_log_that_lasts(name: str, tmp_path: Path) -> None:
    check_audit_log(lasting(incident_files.read(name).incident), name, tmp_path)


def test_what_is_seen_after_a_quiet_second_is_certain(tmp_path: Path) -> None:
    # Everything of an incident that is played comes at one instant, as in a race.
    incident = incident_files.read("counters-stay-booked").incident
    slow = [each for step in incident.steps for each in (step, IncidentStep(wait=2))]
    for steps, certainty in ((incident.steps, Certainty.LIKELY), (slow, Certainty.CERTAIN)):
        path = tmp_path / f"{certainty}.log"
        audit_log(msgspec.structs.replace(incident, steps=steps), IncidentVariant.BROKEN, path)
        report = anyio.run(scan_files, path, incident)
        assert {each.certainty for each in report.sightings} == {certainty}


def test_refused_request_stands_in_an_audit_log(tmp_path: Path) -> None:
    incident = incident_files.read("admin-access-needs-a-label").incident
    (refusal,) = playing.play(incident, IncidentVariant.BROKEN).refusals
    created = audit("create", tree(NAMESPACES, "default"), type_=NAMESPACES, name="default")
    refused = audit("create", name="watch", code=422, second=1)
    refused["responseStatus"] = {"status": "Failure", "code": 422, "message": refusal}
    other = audit("create", name="other", code=422, second=2)
    other["responseStatus"] = {"status": "Failure", "code": 422, "message": "spec: Required value"}
    for lines, expected in (((refused, other), {"admin-access-needs-a-label"}), ((other,), set())):
        path = tmp_path / f"audit-{len(lines)}.log"
        path.write_text("".join(f"{json.dumps(each)}\n" for each in (created, *lines)))
        report = anyio.run(scan_files, path, incident)
        assert {each.incident for each in report.sightings} == expected


def test_attempts_beyond_the_bound_are_counted() -> None:
    async def made(most: int) -> ScanReport:
        incident = incident_files.read("counters-stay-booked").incident
        store = await stored(incident, IncidentVariant.BROKEN)
        settings = Settings(scan_attempts_max=most)
        return await scanning.scan(store, settings, "played", "")

    none, all_ = anyio.run(made, 0), anyio.run(made, 100)
    assert (len(none.sightings), len(all_.sightings)) == (0, 1)
    assert none.attempts_left_out > 0 == all_.attempts_left_out


RECORDED = {
    "a-quickstart": {"one-error-ends-all": (1, Certainty.CERTAIN)},
    "b-mig-partitions": {},
    "c-multihost-tpu": {},
    "e-taints": {
        "placed-to-be-evicted": (1, Certainty.CERTAIN),
        "toleration-without-effect": (2, Certainty.CERTAIN),
    },
    "e-taints-rules-ignored": {
        "placed-to-be-evicted": (1, Certainty.CERTAIN),
        "rules-not-seen": (7, Certainty.CERTAIN),
        "toleration-without-effect": (2, Certainty.CERTAIN),
    },
    "i-soak-short": {},
    "j-api-versions": {},
}
"""What the recordings show: a claim with a failing selector, two pods that tolerate a taint without
an effect and are evicted, a pod (`late-12`) that is evicted 13 ms after it was placed, because its
tolerated time was over before, and in one of them the scheduler that does not see rules."""


CALM_AND_LONG = {"i-soak-short"}
"""Its scan takes longer than those of all others; three further ones show nothing, too."""


@draws.in_turn("ways")
@pytest.mark.parametrize(
    "name", [name for name in RECORDED if draws.WHOLE or name not in CALM_AND_LONG]
)
async def test_recording_shows_what_happened_in_it(name: str) -> None:
    store = stores.memory_store()
    settings = process_settings.settings()
    history = await load_once(store, shared_path("histories", name))
    report = await scanning.scan(store, settings, history, "")
    shows = {each.incident: (each.times, each.certainty) for each in report.sightings}
    assert shows == RECORDED[name]
