"""The order of the files of a run."""

import copy
import random

from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

from tests.order_of_files import FileScheduling, in_order


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


class Node:
    """A process of a run, which keeps the numbers of the tests that it gets."""

    def __init__(self, name):
        self.gateway = self
        self.id = name
        self.numbers = []
        self.shutting_down = False

    def send_runtest_some(self, numbers):
        self.numbers += numbers

    def shutdown(self):
        self.shutting_down = True


def given(kind, config, tests, turns):
    """The tests that each of two processes gets when they end tests by these turns."""
    config.option.tx = ["popen", "popen"]
    scheduling = kind(config, Producer("test", enabled=False))
    nodes = [Node("one"), Node("two")]
    for node in nodes:
        scheduling.add_node(node)
        scheduling.add_node_collection(node, tests)
    scheduling.schedule()
    ended = [0, 0]
    for turn in turns:
        if ended[turn] < len(nodes[turn].numbers):
            scheduling.mark_test_complete(nodes[turn], nodes[turn].numbers[ended[turn]])
            ended[turn] += 1
    return [node.numbers for node in nodes]


def test_files_are_distributed_as_xdist_does(pytestconfig):
    draw = random.Random(7)
    tests = [
        f"tests/test_{file}.py::test_{number}"
        for file in range(30)
        for number in range(draw.randint(1, 9))
    ]
    turns = draw.choices((0, 1), (3, 1), k=400)
    config = copy.copy(pytestconfig)
    config.option = copy.copy(pytestconfig.option)
    wanted = given(LoadFileScheduling, config, tests, turns)
    assert given(FileScheduling, config, tests, turns) == wanted
    assert sorted(wanted[0] + wanted[1]) == list(range(len(tests)))


def test_files_that_share_what_they_parse_are_run_by_one_process(pytestconfig):
    tests = [
        f"tests/architecture/test_{file}.py::test_{number}" for file in "ab" for number in "12"
    ]
    tests += [f"tests/unit/test_{file}.py::test_1" for file in "abc"]
    config = copy.copy(pytestconfig)
    config.option = copy.copy(pytestconfig.option)
    first, second = given(FileScheduling, config, tests, [1, 0, 1, 0, 0, 0, 0])
    assert first == [0, 1, 2, 3]
    assert second == [4, 5, 6]
