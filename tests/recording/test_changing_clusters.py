"""A cluster that is upgraded, or gets new kinds, while it is recorded."""

import pytest

from app.domain.log import EventType
from tests.api.serving import CLAIMS, claim
from tests.recording.recording import check_same, recording_of
from tests.recording.source import Writer, serving_source
from tests.recording.test_following import last_version

DEVICES = "resource.k8s.io"
OLDER, NEWER = ("v1beta1", "v1beta2"), ("v1",)
CRONTABS = "crontabs.stable.example.com"
CRONTAB = "/apis/stable.example.com/v1/namespaces/default/crontabs"
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": CRONTABS},
    "spec": {
        "group": "stable.example.com",
        "scope": "Namespaced",
        "names": {"plural": "crontabs", "singular": "crontab", "kind": "CronTab"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "x-kubernetes-preserve-unknown-fields": True,
                    }
                },
            }
        ],
    },
}


def without(versions):
    """The refusals of a server that has none of these versions of the group of devices."""
    kinds = ("resourceclaims", "resourceclaimtemplates", "resourceslices", "deviceclasses")
    refused = {f"/apis/{DEVICES}/{version}": 404 for version in versions}
    return refused | {f"/{DEVICES}/{version}/{kind}": 404 for version in versions for kind in kinds}


def versions_read(source):
    """The versions in which claims of all namespaces were read."""
    paths = [path.split("/") for _, path in source.requests]
    return {path[3] for path in paths if len(path) == 5 and path[4] == "resourceclaims"}


async def test_upgrade_that_takes_a_version_away_loses_nothing(tmp_path):
    async with serving_source(tmp_path) as source:
        writer = Writer(source, 5)
        source.refusals |= without(NEWER)
        await writer.write(20)
        recording = recording_of(source)
        async with recording.going():
            await writer.write(20)
            await recording.wait_for_version(await last_version(source))
            assert versions_read(source) == {"v1beta2"}
            source.refusals.clear()
            source.refusals |= without(OLDER)
            await source.restart()
            await writer.write(30)
            async with source.client() as client:
                made = await client.post(CLAIMS, json=claim("made-after-the-upgrade"))
            assert made.status_code == 201
            await recording.wait_for_version(await last_version(source))
            assert versions_read(source) == {"v1beta2", "v1"}
        assert not check_same(await source.events(), await recording.log())
        assert not await recording.gaps()


async def test_version_that_goes_away_without_another_one_is_a_gap(tmp_path):
    async with serving_source(tmp_path) as source:
        source.refusals |= without(NEWER)
        await Writer(source, 6).write(10)
        recording = recording_of(source)
        async with recording.going():
            source.refusals |= without(OLDER)
            await source.restart()
            await recording.wait_for(
                lambda events: any(
                    event.type is EventType.GAP_OBSERVED and event.key.resource == "resourceclaims"
                    for event in events
                )
            )


@pytest.mark.parametrize("is_away", [False, True], ids=["installed later", "its server is away"])
async def test_kind_that_is_served_later_is_recorded_from_then_on(tmp_path, is_away):
    async with serving_source(tmp_path) as source, source.client() as client:

        async def make(path, tree):
            made = await client.post(path, json=tree)
            assert made.status_code == 201, made.text
            return made.json()

        definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        if is_away:
            await make(definitions, DEFINITION)
            source.refusals["/apis/stable.example.com/v1"] = 503
        recording = recording_of(source, include=(CRONTABS,))
        async with recording.going():
            report = (await recording.log())[-1].object["report"]
            assert f"not served by the cluster: {CRONTABS}" in report["notes"]
            source.refusals.clear()
            if not is_away:
                await make(definitions, DEFINITION)
            tree = {"apiVersion": "stable.example.com/v1", "kind": "CronTab"}
            for name in ("one", "two"):
                made = await make(CRONTAB, {**tree, "metadata": {"name": name}})
                await recording.wait_for(
                    lambda events, uid=made["metadata"]["uid"]: any(e.uid == uid for e in events)
                )
        (gap,) = await recording.gaps()
        assert gap[0] == "crontabs"
        assert gap[1].startswith("the cluster began to serve it amid the recording; changes of")
        assert not any(
            note.startswith("not served")
            for note in (await recording.log())[-1].object["report"]["notes"]
        )
        async with recording.going():
            made = await make(CRONTAB, {**tree, "metadata": {"name": "three"}})
            await recording.wait_for(lambda events: events[-1].uid == made["metadata"]["uid"])
        assert len(await recording.gaps()) == 1
