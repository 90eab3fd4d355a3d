"""Deletions of a history, done again: the log does not say in which version they were asked for."""

import pytest

from app.analysis.replay.inputs import as_served
from app.domain.log import ObjectKey
from app.domain.objects.profile import Profile
from app.domain.objects.write.commands import DeleteObject
from app.domain.values import api_resources


@pytest.mark.parametrize(
    ("release", "asked", "version"),
    [("1.36", "v1", "v1beta2"), ("1.36", "v1alpha3", "v1alpha3"), ("1.36", "", "v1beta2")],
)
def test_deletion_is_done_in_a_version_that_is_served(
    release: str, asked: str, version: str
) -> None:
    key = ObjectKey(*api_resources.DEVICE_TAINT_RULES, "", "rule")
    profile = Profile(version=release, gates={"DRADeviceTaintRules": True})
    assert as_served(DeleteObject(key=key, version=asked), profile).version == version


def test_deletion_of_a_kind_that_nobody_serves_is_left_as_it_is() -> None:
    command = DeleteObject(key=ObjectKey("example.com", "things", "", "one"), version="v1")
    assert as_served(command, Profile()) is command
