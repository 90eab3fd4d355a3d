"""Documents that were copied out of a terminal, which broke their lines at its edge.

At each width the verdict is fixed: what comes out is the object itself, or its loss is named. It
comes out whenever JSON was broken twice or more within texts.
"""

import json

import pytest
import yaml

from app.adapters.history import mixtures
from app.adapters.history.limits import ImportLimits

WIDTHS = range(48, 260, 3)
APPLIED = json.dumps(
    {"kind": "Pod", "metadata": {"name": "web"}, "a": ["1.5Gi", "c\td", 'e"f'] * 9}
)
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "annotations": {"kubectl.kubernetes.io/last-applied-configuration": APPLIED + "\n"},
        "name": "web",
        "namespace": "shop",
    },
    "spec": {"containers": [{"name": "c", "image": "registry.example.com/" + "a" * 70}]},
    "status": {
        "conditions": [
            {
                "type": "PodScheduled",
                "status": "False",
                "message": "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) had untolerated "
                "taint {example.com/dedicated: training}. preemption: 0/3 nodes are available: "
                "3 Preemption is not helpful for scheduling.",
            }
        ],
        "number": 1234567890123,
    },
}


def at_width(text, width):
    """The text as a terminal of a width shows it."""
    lines = text.split("\n")
    cut = [line[at : at + width] for line in lines for at in range(0, max(1, len(line)), width)]
    return "\n".join(cut)


def read(text):
    content = f"$ kubectl get pod web\n{text}\n$ exit\n".encode()
    return mixtures.take_apart(content, "notes.txt", ImportLimits())


def is_kept_or_named(mixture):
    values = [part.value for part in mixture.parts]
    return values == [POD] or (POD not in values and bool(mixture.damaged))


@pytest.mark.parametrize("indent", [4, 0, None])
def test_json_comes_out_whole_or_is_named(indent):
    text = json.dumps(POD, indent=indent)
    joined = 0
    for width in WIDTHS:
        mixture = read(at_width(text, width))
        assert is_kept_or_named(mixture), width
        joined += mixture.joined_lines > 0
    assert joined > len(WIDTHS) / 2


def test_yaml_comes_out_whole_or_is_named():
    text = yaml.safe_dump(POD, width=10_000)
    joined = 0
    for width in WIDTHS:
        mixture = read(at_width(text, width))
        assert is_kept_or_named(mixture), width
        joined += mixture.joined_lines > 0
    assert joined > len(WIDTHS) / 4


@pytest.mark.parametrize("form", [json.dumps, yaml.safe_dump])
def test_text_behind_a_document_is_not_taken_into_it(form):
    tree = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a" * 60}}
    text = form(tree, **({"indent": 2} if form is json.dumps else {}))
    longest = max(map(len, text.splitlines()))
    mixture = read(f"{text.strip()}\n{'so it was. ' * 20}"[: len(text) + longest])
    assert [part.value for part in mixture.parts] == [tree]
    assert not mixture.joined_lines


def test_single_break_stays_a_loss():
    text = json.dumps(POD, indent=2).replace("available: 1", "available:\n1", 1)
    mixture = read(text)
    assert mixture.damaged[0].problem.startswith("it is not JSON")
    assert not any(part.value.get("kind") == "Pod" for part in mixture.parts)


@pytest.mark.parametrize("form", ["fenced", "alone", "before a prompt"])
def test_yaml_whose_last_line_was_broken_comes_out_whole_or_is_named(form):
    text = yaml.safe_dump(POD, width=10_000, sort_keys=False).partition("  number:")[0].rstrip()
    whole = {**POD, "status": {"conditions": POD["status"]["conditions"]}}
    joined = 0
    # A single break is suspected at widths that terminals have.
    for width in (width for width in WIDTHS if width >= 60):
        shown = at_width(text, width)
        shown = f"```yaml\n{shown}\n```\n" if form == "fenced" else shown
        if form == "before a prompt":
            shown = f"$ kubectl get pod web\n{shown}\n$ exit\n"
        mixture = mixtures.take_apart(shown.encode(), "notes.txt", ImportLimits())
        values = [part.value for part in mixture.parts]
        assert values == [whole] or mixture.damaged, width
        joined += mixture.joined_lines > 0
    # What stands below it could be the rest of its last line.
    assert form == "before a prompt" or joined > len(WIDTHS) / 4
