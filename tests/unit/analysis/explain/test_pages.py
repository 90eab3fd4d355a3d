"""A question about many nodes is answered on one page, with exact counts."""

import random
from collections.abc import Iterator

import pytest

from app.analysis.explain import pages
from app.analysis.explain.node_answers import NodeAnswer
from app.analysis.explain.node_reasons import NodeReason, node_reason
from app.analysis.explain.reasons import Reason
from app.analysis.explain.trees import merge_nodes
from app.domain.allocation.reasons import explanation
from tests import draws
from tests.worlds.builders import (
    allocator,
    claim,
    device,
    device_class,
    holding,
    node,
    request,
    resource_slice,
    result,
    taint,
)

DEVICES = 128
MODEL = 'device.attributes["gpu.example.com"].model == "h100"'
INDEX = 'device.attributes["gpu.example.com"].index > 3'


def hardware(nodes: int, *, mixed: bool) -> Iterator[tuple[str, list[dict], list[int]]]:
    """The name of each node, its devices, and the numbers of those in use."""
    drawn = random.Random(7)
    for number in range(nodes):
        devices = []
        for index in range(DEVICES):
            taints = []
            if mixed and drawn.random() < 0.2:
                taints = [taint(key=drawn.choice(["xid", "ecc", "maintenance"]))]
            model = drawn.choice(["a100", "h100", "l4"]) if mixed else "h100"
            devices.append(device(f"gpu-{index}", index=index, model=model, taints=taints))
        used = drawn.sample(range(DEVICES), 60) if mixed else list(range(DEVICES))
        yield f"node-{number:03}", devices, used


def refused(nodes: int, *, mixed: bool) -> list[NodeReason]:
    """Nodes that refuse a claim: devices in use, not selected, tainted."""
    slices, held = [], []
    for name, devices, used in hardware(nodes, mixed=mixed):
        slices.append(resource_slice(f"s-{name}", *devices, pool=name, node=name))
        held.append(
            holding(*(result(f"gpu-{index}", pool=name) for index in used), name=f"held-{name}")
        )
    asked = allocator(*slices, held=held)
    wanted = [claim(request("r0", 31, MODEL, INDEX))]
    found = []
    for number in range(nodes):
        answer = asked.allocate(node(f"node-{number:03}"), wanted)
        said = NodeAnswer(
            node=answer.node.name, text=explanation.event_reason(answer), answer=answer
        )
        found.append(node_reason(said, effort_steps=100))
    return found


@pytest.fixture(scope="module")
def worst() -> list[NodeReason]:
    return refused(500, mixed=True)


@pytest.fixture(scope="module")
def bad() -> list[NodeReason]:
    """A tenth of the worst case, whose first nodes are the same."""
    return refused(50, mixed=True)


def leaves(reason: Reason) -> Iterator[Reason]:
    if not reason.children:
        yield reason
    for child in reason.children:
        yield from leaves(child)


@draws.in_turn(
    "ways",
    each_day="unit/analysis/explain/test_pages.py::test_branches_that_do_not_fit_are_counted",
)
@pytest.mark.parametrize("width", [100, 80, 60])
def test_worst_case_fits_a_page(worst: list[NodeReason], width: int) -> None:
    lines = pages.page("pod default/p", merge_nodes(worst), width=width)
    assert len(lines) <= 50
    assert not any("more lines" in line for line in lines)
    # Only a word that is wider than the terminal stands out.
    assert all(len(line) <= width or " " not in line.lstrip("│ └├─") for line in lines)


def test_counts_of_a_bad_case_are_those_of_all_devices(bad: list[NodeReason]) -> None:
    (group,) = merge_nodes(bad)
    assert group.count == 50
    assert sum(leaf.count for leaf in leaves(group)) == 50 * DEVICES
    held = next(leaf for leaf in leaves(group) if "allocated to" in leaf.text)
    # Who holds a device that the selectors leave out does not matter.
    assert held.count == sum(
        index > 3 and devices[index]["attributes"]["model"] == {"string": "h100"}
        for _, devices, used in hardware(50, mixed=True)
        for index in used
    )


def test_complete_answer_names_every_device_once(bad: list[NodeReason]) -> None:
    for reason in bad[:20]:
        (asked,) = reason.to_json()["claims"][0]["requests"]
        names = [
            f"{pool}/{name}"
            for group in asked["devices"]
            for pool, names in group["devices"].items()
            for name in names
        ]
        assert sorted(names) == sorted(
            f"gpu.example.com/{reason.node}/gpu-{index}" for index in range(DEVICES)
        )
        assert sum(group["count"] for group in asked["devices"]) == DEVICES


@pytest.mark.parametrize("nodes", [1, 12])
def test_devices_of_another_class_come_after_those_of_the_class(nodes: int) -> None:
    slices = [
        resource_slice(
            f"{driver}-{number}", *devices, driver=f"{driver}.test", pool="p", node=f"n{number}"
        )
        for number in range(nodes)
        # A driver that comes first, with more devices.
        for driver, devices in (
            ("a", [device(f"d{index}", index=index) for index in range(9)]),
            ("gpu", [device("only", index=number % 2)]),
        )
    ]
    asked = allocator(*slices, classes=[device_class("gpu", 'device.driver == "gpu.test"')])
    wanted = [claim(request("r0", 1, 'device.attributes["gpu.test"].index > 3'))]
    reasons = []
    for number in range(nodes):
        answer = asked.allocate(node(f"n{number}"), wanted)
        text = explanation.event_reason(answer)
        made = NodeAnswer(node=f"n{number}", text=text, answer=answer)
        reasons.append(node_reason(made, effort_steps=100))
    for group in merge_nodes(reasons):
        (of_request,) = group.children
        near, far = (child.text for child in of_request.children)
        assert "selector #0 of the request" in near
        assert "selector #0 of class gpu" in far


@pytest.mark.parametrize("near", [0, 1, 3])
def test_nodes_without_a_device_of_the_class_are_told_briefly_beside_others(near: int) -> None:
    names = [f"n{number}" for number in range(6)]
    drivers = ["gpu.test"] * near + ["a.test"] * (6 - near)
    devices = [device("one", index=1), device("two", index=2)]
    asked = allocator(
        *(
            resource_slice(f"s-{name}", *devices, driver=driver, pool="p", node=name)
            # The nodes with a device of the class come last.
            for name, driver in zip(names, reversed(drivers), strict=True)
        ),
        classes=[device_class("gpu", 'device.driver == "gpu.test"')],
    )
    wanted = [claim(request("r0", 1, 'device.attributes["gpu.test"].index > 3'))]
    reasons = []
    for name in names:
        answer = asked.allocate(node(name), wanted)
        made = NodeAnswer(node=name, text=explanation.event_reason(answer), answer=answer)
        reasons.append(node_reason(made, effort_steps=100))
    groups = merge_nodes(reasons)
    assert sum(group.count for group in groups) == 6
    *others, last = groups
    (of_request,) = last.children
    if not near:
        # What they have is all that tells why nobody fits.
        assert "selector #0 of class gpu" in of_request.children[0].text
        return
    assert sum(group.count for group in others) == near
    assert all("selector #0 of the request" in str(group) for group in others)
    assert of_request.text == "request r0 wants 1 device, and these nodes see none of class gpu"
    assert not of_request.children
    # The complete answer has them.
    assert reasons[0].to_json()["claims"][0]["requests"][0]["devices"]


def test_end_of_a_reason_that_is_kept_is_not_cut() -> None:
    decisive = "it " + "seems " * 30 + "to be the label zone"
    reasons = [
        Reason(text=decisive, is_kept=True),
        *(Reason(text=f"{number}: " + "much " * 60) for number in range(40)),
    ]
    lines = pages.page("pod default/p", reasons)
    text = " ".join(" ".join(line.strip("│├└─ ") for line in lines).split())
    assert len(lines) <= pages.LINES_MAX
    assert decisive in text
    assert "much …" in text


def test_equal_nodes_are_told_once() -> None:
    (group,) = merge_nodes(refused(20, mixed=False))
    assert group.text == (
        "20 nodes (node-000, node-001, node-002 and 17 more): cannot allocate all claims"
    )
    (asked,) = group.children
    assert [child.count for child in asked.children] == [20 * (DEVICES - 4), 20 * 4]
    assert asked.children[0].text == (
        "2480 devices on 20 nodes, such as gpu-4, gpu-5, gpu-6 of node-000: allocated to "
        "other/held-node-000, other/held-node-001, other/held-node-002 and 17 more claims"
    )


def test_ids_of_one_pool_are_not_repeated() -> None:
    (group,) = merge_nodes(refused(1, mixed=False))
    (asked,) = group.children
    assert asked.text.endswith("(devices of gpu.example.com/node-000)")
    texts = [child.text for child in asked.children]
    assert any(
        text.startswith("124 devices, such as gpu-4, gpu-5, gpu-6: allocated") for text in texts
    )


def test_long_text_is_cut_between_words_before_branches_are() -> None:
    words = " ".join(f"word{number}" for number in range(60))
    reasons = [Reason(text=words) for _ in range(20)]
    lines = pages.page("head", reasons, width=100, lines_max=50)
    assert len(lines) <= 50
    assert sum(line.startswith(("├─ ", "└─ ")) for line in lines) == 20
    assert all(line.rstrip(" …").rpartition(" ")[2][:4] == "word" for line in lines[1:])


@pytest.mark.parametrize("width", range(40, 101))
def test_revision_is_on_a_line_with_its_instant_where_both_fit(width: int) -> None:
    text = "node zz is tainted maintenance=fan:NoSchedule, by system:anonymous at "
    text += "2026-11-30T16:47:20.677245Z (revision 70)"
    lines = pages.page("head", [Reason(text=text)], width=width)
    if width >= 50:
        assert {"(revision 70)", "70)"}.isdisjoint(line.strip(" │├└─") for line in lines)
    assert " ".join(line.strip(" │├└─") for line in lines[1:]) == text
    assert max(map(len, lines)) <= width


def test_branches_that_do_not_fit_are_counted() -> None:
    reasons = [Reason(text=f"reason {number}") for number in range(500)]
    lines = pages.page("head", reasons, width=100, lines_max=50)
    assert len(lines) <= 50
    assert lines[-1] == "└─ … 460 more; -o json has all of them"


def test_word_longer_than_the_line_is_not_broken() -> None:
    name = "a-very-long-name." * 10
    lines = pages.page("head", [Reason(text=f"claim {name} waits")], width=60)
    assert sum(name in line for line in lines) == 1


@pytest.mark.parametrize("width", [100, 60])
def test_last_of_several_deep_branches_is_on_the_page_and_what_is_left_out_is_counted(width):
    def branch(name: str, levels: int) -> Reason:
        below = tuple(branch(f"{name}.{one}", levels - 1) for one in range(3 if levels else 0))
        return Reason(text=f"reason {name}", children=below, is_kept="." not in name)

    reasons = [branch(name, 4) for name in "abcd"]
    lines = pages.page("head", reasons, width=width, lines_max=50)
    assert len(lines) <= 50
    outer = [line.partition("reason ")[2] for line in lines if line[:1] in "├└"]
    assert outer == list("abcd")
    whole = 1 + 4 * (1 + 3 + 9 + 27 + 81)
    assert lines[-1] == f"… {whole - len(lines) + 1} lines more; -o json has all of them"


def test_kept_reason_below_others_is_on_the_page_when_the_innermost_are_not():
    kept = Reason(text="kept", is_kept=True)
    many = Reason(text="many", children=tuple(Reason(text=f"one {each}") for each in range(3)))
    deep = Reason(text="deep", children=(many, many, Reason(text="above", children=(kept,))))
    lines = pages.page("head", [deep, deep, deep], lines_max=20)
    assert sum(line.endswith("kept") for line in lines) == 3
    assert not any("one 0" in line for line in lines)
