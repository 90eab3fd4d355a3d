"""The order of the files of a run."""

from tests.order_of_files import in_order


def test_files_that_wait_come_evenly_among_those_that_compute_and_small_ones_last():
    waiting = [f"tests/web/test_{number}.py" for number in range(2)]
    computing = [f"tests/conformance/test_{number}.py" for number in range(4)]
    small = ["tests/unit/test_a.py", "tests/api/test_b.py"]
    files = in_order([*small, *waiting, *computing])
    assert files == [
        computing[0], waiting[0], computing[1], computing[2], waiting[1], computing[3], *small,
    ]  # fmt: skip


def test_one_file_is_all_of_its_run():
    assert in_order(["tests/unit/test_a.py"]) == ["tests/unit/test_a.py"]
