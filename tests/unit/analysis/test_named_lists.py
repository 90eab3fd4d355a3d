"""What two objects differ in, down to the entries of lists that have names."""

import pytest

from app.analysis.diff import named_lists


def spec(*requests):
    return {"devices": {"requests": list(requests)}}


def gpu(**exactly):
    return {"name": "gpu", "exactly": exactly}


@pytest.mark.parametrize(
    ("a", "b", "texts"),
    [
        (spec(gpu(count=2, deviceClassName="c")), spec(gpu(deviceClassName="c")),
         ("devices.requests[gpu].exactly.count=2", "no devices.requests[gpu].exactly.count")),
        (spec(gpu(count=1), {"name": "nic"}), spec(gpu(count=3), {"name": "nic"}),
         ("devices.requests[gpu].exactly.count=1", "devices.requests[gpu].exactly.count=3")),
        (spec(gpu()), spec({"name": "card", "exactly": {}}),
         ("devices.requests=[{exactly: {}, name: gpu}]",
          "devices.requests=[{exactly: {}, name: card}]")),
        ({"a": 1, "b": [1]}, {"a": 2, "b": [2]}, ("a=1, b=[1]", "a=2, b=[2]")),
    ],
)  # fmt: skip
def test_only_what_differs_is_written(a, b, texts):
    assert named_lists.differing(a, b) == texts


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [
        ("ac", "abc", "abc"),
        ("bc", "abc", "abc"),
        ("abc", "ab", "abc"),
        ("ab", "ba", "ab"),
        ("axc", "abyc", "abyxc"),
        ("", "ab", "ab"),
    ],
)
def test_what_only_one_list_has_keeps_its_place(one: str, other: str, both: str) -> None:
    assert "".join(named_lists.merged(one, other)) == both
