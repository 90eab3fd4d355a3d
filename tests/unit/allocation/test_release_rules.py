"""Rules of the allocator that differ between releases, without a switch of their own."""

import pytest

from app.analysis.views import compiler_of, features_of
from app.domain.allocation import Failure
from app.domain.allocation.allocator import FailureScope
from app.domain.objects.profile import VERSIONS, Profile
from tests.worlds.builders import allocator, claim, device, node, request, resource_slice


def failure(release: str, slices: list, wanted: dict) -> Failure:
    """The failure of an attempt in the release."""
    profile = Profile(version=release)
    made = allocator(*slices, features=features_of(profile), compiler=compiler_of(profile))
    found = made.allocate(node(), [claim(wanted)])
    assert isinstance(found, Failure)
    return found


@pytest.mark.parametrize("release", [*VERSIONS, "1.36.0", "1.36.1", "1.36.2"])
def test_selector_errors_name_the_device_and_give_advice_since_1_37(release: str) -> None:
    expression = 'device.attributes["gpu.example.com"].y == 1'
    slices = [resource_slice("s", device("d0"))]
    text = failure(release, slices, request("r", 1, expression)).text
    named = "claim ns/claim: selector #0 on device gpu.example.com/pool/d0: CEL runtime error: "
    plain = "claim ns/claim: selector #0: CEL runtime error: no such key: y"
    if release == "1.37":
        assert text.startswith(f"{named}no such key: y. consider using CEL optional chaining")
    else:
        assert text == plain


@pytest.mark.parametrize("release", [*VERSIONS, "1.36.0", "1.36.1", "1.36.2"])
def test_pool_that_all_cannot_use_rejects_its_node_only_since_1_37(release: str) -> None:
    slices = [resource_slice("s", device("d0"), count=2)]
    found = failure(release, slices, request("r", 0))
    assert found.text.endswith("resource pool gpu.example.com/pool is currently being updated")
    assert found.scope is (FailureScope.NODE if release == "1.37" else FailureScope.FATAL)
