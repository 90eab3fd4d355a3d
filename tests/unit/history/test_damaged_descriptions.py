"""Pages of kubectl describe that were cut or indented anew: what is certain is read."""

import pytest

from app.adapters.history.opening import open_history
from app.adapters.history.reading import ReadOptions
from app.bootstrap import rules
from app.domain.errors import RedraError
from app.domain.log.records import Loss
from app.domain.objects import profile

RULES = rules.rules_for(profile.from_settings({}))
PAGE = """Name:         slice-1
Namespace:
Labels:       <none>
API Version:  resource.k8s.io/v1
Kind:         ResourceSlice
Metadata:
  Creation Timestamp:  2026-01-01T00:00:00Z
  Resource Version:    7
  UID:                 uid-slice
Spec:
  Devices:
    Attributes:
      Index:
        Int:  0
    Name:     gpu-0
    Attributes:
      Index:
        Int:  1
    Name:     gpu-1
  Driver:     gpu.example.com
  Node Name:  n1
  Pool:
    Generation:            1
    Name:                  n1
    Resource Slice Count:  1
Events:                    <none>
"""
LINES = PAGE.splitlines()
COPIED = "the ... stands for a part that was left out of the copy"


def read(folder, text):
    path = folder / "issue.md"
    path.write_text(f"see\n```console\n$ kubectl describe resourceslice slice-1\n{text}```\nso\n")
    with open_history([path], ReadOptions(rules=RULES)) as history:
        (record,) = history.records()
        return record.object, [f"{lost.place}: {lost.problem}" for lost in history.refusals]


def cut(first, last, indent=""):
    """The page with dots for some of its lines, and the number of the dots in the file."""
    begin, end = LINES.index(first), LINES.index(last)
    return "\n".join([*LINES[:begin], f"{indent}...", *LINES[end + 1 :], ""]), begin + 4


def test_whole_page_is_read_whole(tmp_path):
    tree, lost = read(tmp_path, PAGE)
    assert [device["name"] for device in tree["spec"]["devices"]] == ["gpu-0", "gpu-1"]
    assert lost == []


def test_sections_besides_the_dots_are_read(tmp_path):
    text, line = cut("Metadata:", "  UID:                 uid-slice")
    tree, lost = read(tmp_path, text)
    assert [device["attributes"] for device in tree["spec"]["devices"]] == [
        {"index": {"int": 0}},
        {"index": {"int": 1}},
    ]
    assert tree["spec"]["driver"] == "gpu.example.com"
    assert lost == [f"issue.md:{line}: {COPIED}"]


@pytest.mark.parametrize("indent", ["", "  ", "      "])
def test_device_is_not_made_of_what_stands_around_dots(tmp_path, indent):
    """The attributes of one device before the dots and the name of another one after them."""
    text, line = cut("    Name:     gpu-0", "        Int:  1", indent)
    tree, lost = read(tmp_path, text)
    assert "spec" not in tree
    assert tree["metadata"]["uid"] == "uid-slice"
    assert lost == [f"issue.md:{line}: {COPIED}"]


def test_section_that_ends_with_dots_is_not_taken_for_whole(tmp_path):
    text, _ = cut("    Attributes:", "    Resource Slice Count:  1")
    tree, lost = read(tmp_path, text)
    assert "spec" not in tree
    assert len(lost) == 1


def test_dots_of_a_pod_are_said(tmp_path):
    pod = (
        "Name:         web\nNamespace:    shop\nNode:         n1/10.0.0.1\n...\nContainers:\n"
        "  one:\n    Image:  nginx\nEvents:  <none>\n"
    )
    tree, lost = read(tmp_path, pod)
    assert (tree["kind"], tree["spec"]["nodeName"]) == ("Pod", "n1")
    assert lost == [f"issue.md:7: {COPIED}"]


@pytest.mark.parametrize("end", ["Events:", "Spec:", "  Pool:"])
def test_page_that_ends_before_its_events_may_be_cut(tmp_path, end):
    """Every page of kubectl ends with the events, or says that there are none."""
    number = next(at for at, line in enumerate(LINES) if line.startswith(end))
    _, lost = read(tmp_path, "\n".join([*LINES[:number], ""]))
    ends = f"issue.md:{number + 3}: the description ends before its Events, so it may be cut here"
    assert lost[-1] == ends


def test_page_whose_indentation_an_editor_rounded_gives_its_name(tmp_path):
    """Every second level is gone, so that parents and children stand in one column."""
    deep = [(len(line) - len(line.lstrip())) // 4 * 4 * " " + line.lstrip() for line in LINES]
    tree, lost = read(tmp_path, "\n".join([*deep, ""]))
    assert set(tree) == {"apiVersion", "kind", "metadata"}
    assert tree["metadata"]["name"] == "slice-1"
    assert "creationTimestamp" not in tree["metadata"]
    assert lost == [
        "issue.md:9: the indentation of this description was changed, so its fields cannot be "
        "told apart"
    ]


def test_section_with_a_line_in_no_column_of_its_own_is_left_out(tmp_path):
    text = PAGE.replace("  Driver:     gpu", "   Driver:     gpu")
    tree, lost = read(tmp_path, text)
    assert "spec" not in tree
    line = LINES.index("  Driver:     gpu.example.com") + 4
    assert lost == [f"issue.md:{line}: this section of the description cannot be read from here on"]


TEMPLATE = """Name:         gpu
Namespace:    shop
API Version:  resource.k8s.io/v1beta1
Kind:         ResourceClaimTemplate
Metadata:
  Creation Timestamp:  2026-01-01T00:00:00Z
  UID:                 uid-template
Spec:
  Metadata:
    Creation Timestamp:  <nil>
  Spec:
    Devices:
      Requests:
        Allocation Mode:    ExactCount
        Count:              1
        Device Class Name:  gpu.example.com
        Name:               one
Events:                     <none>
"""


def test_null_is_printed_as_nil(tmp_path):
    tree, lost = read(tmp_path, TEMPLATE)
    (request,) = tree["spec"]["spec"]["devices"]["requests"]
    assert request["exactly"]["deviceClassName"] == "gpu.example.com"
    assert not tree["spec"].get("metadata", {}).get("creationTimestamp")
    assert lost == []


def test_page_in_a_version_that_is_no_longer_read_is_refused_as_that(tmp_path):
    older = TEMPLATE.replace("v1beta1", "v1alpha2")
    with pytest.raises(RedraError, match=r"v1alpha2 is the older form .* no longer read"):
        read(tmp_path, older)


KINDS = {
    "ResourceClaim": True,
    "ResourceClaimTemplate": False,
    "ResourceSlice": False,
    "DeviceClass": False,
}


@pytest.mark.parametrize("kind", KINDS)
def test_only_kinds_with_a_status_can_lack_it(tmp_path, kind):
    manifest = f"apiVersion: resource.k8s.io/v1\nkind: {kind}\nmetadata: {{name: a}}\n"
    page = f"Name:  b\nAPI Version:  resource.k8s.io/v1\nKind:  {kind}\nEvents:  <none>\n"
    (tmp_path / "manifest.yaml").write_text(manifest)
    (tmp_path / "page.txt").write_text(page)
    with open_history([tmp_path], ReadOptions()) as history:
        losses = {record.name: Loss.NO_STATUS in record.losses for record in history.records()}
    assert losses == {"a": KINDS[kind], "b": KINDS[kind]}


@pytest.mark.parametrize("command", ["$ kubectl describe resourceslices", "me@h:~$ k describe x"])
def test_page_that_is_set_in_below_its_command_is_read(tmp_path, command):
    """A list of steps sets in all of a terminal, and there no empty line stands before a page."""
    whole, _ = read(tmp_path, PAGE)
    shown = "".join(f"    {line}\n" for line in (command, *LINES, "me@h:~$ date"))
    path = tmp_path / "issue.md"
    path.write_text(f"1. See\n\n{shown}")
    with open_history([path], ReadOptions(rules=RULES)) as history:
        (record,) = history.records()
        assert record.object == whole
        assert history.refused_places == []


def states(folder, text):
    path = folder / "issue.md"
    path.write_text(text)
    with open_history([path], ReadOptions(rules=RULES)) as history:
        return list(history.records()), history.notes


TABLE = """NAME      NODE   DRIVER            POOL   AGE
slice-1   n1     gpu.example.com   n1     9m
"""


@pytest.mark.parametrize("is_page_first", [False, True])
@pytest.mark.parametrize("version", ["v1", "v1beta1", "v1beta2"])
def test_row_and_page_of_any_version_are_one_state(tmp_path, version, is_page_first):
    """A row shows no version; that of a page is no change of the object."""
    page = PAGE.replace("v1\n", f"{version}\n")
    if version == "v1beta1":
        deep = page.replace("    Attributes:", "    Basic:\n      Attributes:")
        page = deep.replace("      Index:", "        Index:").replace(
            "        Int:", "          Int:"
        )
    texts = [f"```\n{text}```\n" for text in (page, TABLE)]
    (record,), notes = states(tmp_path, "\nand\n".join(texts if is_page_first else texts[::-1]))
    whole, _ = read(tmp_path, PAGE)
    assert record.object == whole
    assert Loss.COLLAPSED not in record.losses
    assert not [note for note in notes if "unknown field" in note]


def test_later_state_of_a_kind_without_a_status_has_none(tmp_path):
    later = TABLE.replace("n1  ", "n2  ")
    text = f"```\n{TABLE}```\nand then\n```\n{later}```\n"
    records, _ = states(tmp_path, text)
    assert [record.object["spec"]["nodeName"] for record in records] == ["n1", "n2"]
    assert all("status" not in record.object for record in records)
