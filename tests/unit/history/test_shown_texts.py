"""Texts as terminals, viewers, chats, letters and trackers show them: each gives what was pasted.

The wrappings are written by hand after what the programs print, not after the readers.
"""

import html
import json

import pytest

from app.adapters.history.formats import dumps
from app.adapters.history.opening import open_history
from app.adapters.history.printouts import printed
from app.adapters.history.reading import ReadOptions
from app.bootstrap import rules
from app.domain.errors import InputError
from app.domain.log.records import Op
from app.domain.objects import profile
from tests.unit.history.test_wrapped_texts import CLAIM, keys, read

JSON = '{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": "shop"}}'
LINES = CLAIM.splitlines()
ONE = (Op.ADDED, "ResourceClaim", "shop", "one")


def indented(text, prefix):
    return "".join(f"{prefix}{line}\n" for line in text.splitlines())


def linked(text):
    """A word as a terminal links it, beside a title of its window."""
    link = "\x1b]8;;https://gpu.example.com\x1b\\gpu.example.com\x1b]8;;\x1b\\"
    return "\x1b]0;k9s\x1b\\" + text.replace("gpu.example.com", link)


def numbered(text, form):
    return "".join(form.format(at, line) for at, line in enumerate(text.splitlines(), start=1))


SHOWN = {
    "hyperlinks of a terminal": linked(CLAIM),
    "numbers of bat": numbered(CLAIM, "{:4d}   \u2502 {}\n"),
    "numbers of cat": numbered(CLAIM, "{:6d}\t{}\n"),
    "a chat's marks around the text": f"here ```{CLAIM.rstrip()}```\nthanks\n",
    "signs without width": "".join(f"{line}\u200b\n" for line in LINES),
    "a tracker's macro": f"h2. Steps\n{{code:yaml|title=x}}{CLAIM}{{code}}\n",
    "a tracker's preformatted text": f"{{noformat}}\n{CLAIM}{{noformat}}\n",
    "a wiki's macro": f"<p>a</p><ac:plain-text-body><![CDATA[{CLAIM}]]></ac:plain-text-body>",
    "a letter that quotes": f"Jane wrote:\n> Hi\n>\n{indented(CLAIM, '> ')}>\nsee there\n",
    "a letter that quotes twice": indented(f"see\n\n{CLAIM}", ">> "),
    "code by indentation": f"It is\n\n{indented(CLAIM, '    ')}\nso\n",
    "code by tabs": f"It is\n\n{indented(CLAIM, chr(9))}\nso\n",
    "a fence behind the dot of a list": f"- ```yaml\n{indented(CLAIM, '  ')}  ```\n",
    "a fence in a quote": f"> ```yaml\n{indented(CLAIM, '> ')}> ```\n",
    "a fence that nobody closed": f"```yaml\n{CLAIM}\n\nand text\n",
}


@pytest.mark.parametrize("name", SHOWN)
def test_document_is_read_as_it_was_before_it_was_shown(tmp_path, name):
    records, lost = read(tmp_path, SHOWN[name])
    assert keys(records) == [ONE]
    assert records[0].object["spec"]["devices"]["requests"][0] == {
        "name": "gpu",
        "exactly": {"deviceClassName": "gpu.example.com"},
    }
    assert lost == []


@pytest.mark.parametrize("name", SHOWN)
def test_damage_in_what_is_shown_is_named_at_its_line(tmp_path, name):
    """The line of the damage is that of the file as it lies there."""
    damaged = SHOWN[name].replace("namespace: shop", "namespace: shop: shop")
    line = next(at for at, text in enumerate(damaged.split("\n"), 1) if "shop: shop" in text)
    fence = "" if "nobody" in name else "```\n"
    _, lost = read(tmp_path, f"{damaged}\n\n{fence}{JSON}\n```\n")
    assert [place.split(":")[1] for place in lost] == [str(line)]


def test_quoting_of_another_depth_is_another_document(tmp_path):
    other = CLAIM.replace("name: one", "name: two")
    records, lost = read(tmp_path, f"> {CLAIM.replace(chr(10), chr(10) + '> ')}\n{other}")
    assert [record.name for record in records] == ["one", "two"]
    assert lost == []


def test_marks_within_a_document_end_no_fence(tmp_path):
    noted = CLAIM.replace("  name: one\n", '  name: one\n  annotations: {"note": "{code} ~~~ x"}\n')
    records, _ = read(tmp_path, f"see\n```yaml\n{noted}```\n")
    assert records[0].object["metadata"]["annotations"] == {"note": "{code} ~~~ x"}


def test_part_of_a_document_that_is_set_in_is_no_object(tmp_path):
    owners = "x\n\n    apiVersion: apps/v1\n    kind: ReplicaSet\n    name: a\n    uid: b\n"
    with pytest.raises(InputError):
        read(tmp_path, owners)
    hunk = "@@ -3,4 +3,4 @@\n\n   apiVersion: v1\n   kind: Pod\n   metadata:\n     name: a\n"
    with pytest.raises(InputError):
        read(tmp_path, hunk)


def test_new_files_in_a_patch_without_a_line_at_the_end(tmp_path):
    head = (
        "diff --git a/{0} b/{0}\nnew file mode 100644\n--- /dev/null\n+++ b/{0}\n@@ -0,0 +1,11 @@\n"
    )
    added = indented(CLAIM, "+")
    one = f"{head.format('a')}{added}\\ No newline at end of file\n"
    two = head.format("b") + added.replace("name: one", "name: two")
    records, lost = read(tmp_path, f"{one}{two}-- \n2.39.2\n")
    assert [record.name for record in records] == ["one", "two"]
    assert lost == []


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-16"])
def test_text_in_utf_16_needs_no_mark(tmp_path, encoding):
    records, lost = read(tmp_path, CLAIM.replace("\n", "\r\n").encode(encoding))
    assert keys(records) == [ONE]
    assert lost == []


@pytest.mark.parametrize(
    "words",
    [
        *("[truncated]", "... (output truncated)", "<truncated>"),
        *("… (143 lines hidden)", "[... 12 more lines omitted ...]", "<7 lines skipped>"),
    ],
)
def test_text_that_says_that_it_was_cut_has_a_loss(tmp_path, words):
    _, lost = read(tmp_path, f"see\n\n{CLAIM}{words}\n")
    assert lost == [f"text:{len(LINES) + 3}: the text says that a part was cut off here"]


def test_sections_of_helm_are_no_fields(tmp_path):
    hook = CLAIM.replace("name: one", "name: hook")
    text = (
        f"NAME: r\nSTATUS: deployed\nHOOKS:\n---\n{hook}MANIFEST:\n---\n{CLAIM}\nNOTES:\nThanks.\n"
    )
    records, lost = read(tmp_path, text)
    assert [record.name for record in records] == ["hook", "one"]
    assert lost == []


def test_table_of_watched_changes_gives_what_is_left(tmp_path):
    text = (
        "$ kubectl get resourceclaims -n shop -w --output-watch-events\n"
        "EVENT      NAME   STATE     AGE\nADDED      a      pending   5s\n"
        "ADDED      b      pending   5s\nMODIFIED   b      allocated,reserved   9s\n"
        "DELETED    a      pending   9s\n"
    )
    records, lost = read(tmp_path, text)
    ops = (Op.BASELINE, Op.MODIFIED)
    assert keys(records) == [(op, "ResourceClaim", "shop", "b") for op in ops]
    assert lost == [f"text:6: {printed.DELETED_ROW}"]


def test_table_in_which_all_is_deleted_is_refused_for_that(tmp_path):
    text = (
        "$ kubectl get pods -w --output-watch-events\n"
        "EVENT      NAME   READY   STATUS    RESTARTS   AGE\n"
        "ADDED      a      0/1     Pending   0          5s\n"
        "DELETED    a      0/1     Pending   0          9s\n"
    )
    with pytest.raises(InputError, match="its object was deleted"):
        read(tmp_path, text)


@pytest.mark.parametrize("mark", ["# ", "#", "  #   ", "    "])
def test_table_in_comments_below_its_command_is_read(tmp_path, mark):
    """Tutorials show what a command prints as comments of the script."""
    table = ("NAME    STATE                AGE", "one     pending              8m",
             "two     allocated,reserved   9m")  # fmt: skip
    text = "```bash\nkubectl get resourceclaims -n shop\n{}```\n".format(
        "".join(f"{mark}{line}\n" for line in table)
    )
    records, lost = read(tmp_path, f"{text}\nand\n\n# Two claims\n#\n")
    known = [(Op.BASELINE, "ResourceClaim", "shop", name) for name in ("one", "two")]
    assert (keys(records), lost) == (known, [])


def test_comments_that_are_no_row_end_a_table_in_comments(tmp_path):
    text = (
        "kubectl get pods -n shop\n# NAME    READY   STATUS    RESTARTS   AGE\n"
        "# web     0/1     Pending   0          8m\n# It waits for a GPU\nkubectl get nodes\n"
    )
    records, lost = read(tmp_path, text)
    assert (keys(records), lost) == ([(Op.BASELINE, "Pod", "shop", "web")], [])


def test_wide_table_of_events_names_them(tmp_path):
    text = (
        "LAST SEEN   TYPE      REASON     OBJECT   SUBOBJECT            SOURCE        MESSAGE   "
        "FIRST SEEN   COUNT   NAME\n"
        "9m          Normal    Pulled     pod/p    spec.containers{c}   kubelet, n1   got it    "
        "9m           3       p.187a5f2b\n"
    )
    records, _ = read(tmp_path, text)
    event = records[0].object
    assert event["metadata"]["name"] == "p.187a5f2b"
    assert (event["message"], event["count"]) == ("got it", 3)
    assert event["source"] == {"component": "kubelet", "host": "n1"}
    assert event["involvedObject"]["fieldPath"] == "spec.containers{c}"


def test_cell_that_is_no_count_gives_none(tmp_path):
    text = (
        "LAST SEEN   TYPE     REASON   OBJECT   MESSAGE   COUNT   NAME\n"
        "9m          Normal   Pulled   pod/p    got it    ²       p.1\n"
    )
    records, _ = read(tmp_path, text)
    assert "count" not in records[0].object


def test_folder_of_texts_is_read_the_same(tmp_path):
    (tmp_path / "letter.txt").write_text(SHOWN["a letter that quotes"])
    with open_history([tmp_path], ReadOptions()) as history:
        assert keys(history.records()) == [ONE]


@pytest.mark.parametrize("words", ["See:", "My claim:", "Note: all of it", "Claims in shop:"])
def test_words_with_a_colon_are_no_fields(tmp_path, words):
    text = f"{words}\n\n{CLAIM}\n{words}\n"
    records, lost = read(tmp_path, text, name="claim.yaml")
    assert keys(records) == [ONE]
    assert not {*records[0].object} - {"apiVersion", "kind", "metadata", "spec"}
    assert lost == []


@pytest.mark.parametrize("around", ["see\n{}thanks\n", "- ```yaml\n{}```\n", "```\n{}  ```\nso\n"])
def test_fences_in_a_text_of_an_object_are_a_part_of_it(tmp_path, around):
    readme = "# Title\n```sh\nkubectl get pods\n```\n{code}\nend\n"
    text = (
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  namespace: shop\n"
        f"  annotations:\n    readme: |\n{indented(readme, '      ')}    other: x\n"
    )
    if around.startswith("-"):
        text = indented(text, "  ")
    records, lost = read(tmp_path, around.format(text))
    assert records[0].object["metadata"]["annotations"] == {"readme": readme, "other": "x"}
    assert lost == []


def test_lines_of_an_exporter_of_events_are_events(tmp_path):
    """Such exporters write Events as clients have them, without kind and version."""
    about = {"kind": "Pod", "namespace": "shop", "name": "web", "labels": {"app": "web"}}
    event = {
        "metadata": {"name": "web.1", "namespace": "shop", "uid": "u1", "resourceVersion": "4"},
        "reason": "FailedScheduling",
        "message": "0/1 nodes are available: 1 cannot allocate all claims.",
        "lastTimestamp": "2026-01-01T00:00:07Z",
        "involvedObject": about,
        "clusterName": "prod",
    }
    second = {**event, "metadata": {**event["metadata"], "name": "web.2", "uid": "u2"}}
    records, lost = read(tmp_path, "".join(f"{json.dumps(each)}\n" for each in (event, second)))
    assert keys(records) == [
        (Op.BASELINE, "Event", "shop", "web.1"),
        (Op.BASELINE, "Event", "shop", "web.2"),
    ]
    assert records[0].object["involvedObject"]["name"] == "web"
    assert lost == []


def test_variables_of_a_script_are_no_names(tmp_path):
    script = f"cat <<EOF | kubectl apply -f -\n{CLAIM}EOF\nNAME=two\n"
    pod = CLAIM.replace("name: one", 'name: "${NAME}"')
    options = ReadOptions(rules=rules.rules_for(profile.from_settings({})))
    path = tmp_path / "demo.sh"
    path.write_text(f"{script}kubectl apply -f - <<'EOF'\n{pod}EOF\n")
    with open_history([path], options) as history:
        assert [record.name for record in history.records()] == ["one"]
        (lost,) = history.refusals
    assert lost.place == f"demo.sh:{len(script.splitlines()) + 2}"
    assert "metadata.name: Invalid value" in lost.problem


def test_parts_of_metadata_that_people_remove_from_a_copy_are_no_damage(tmp_path):
    """kubectl itself leaves out a namespace where the kind has none."""
    owner = "ownerReferences:\n  - {apiVersion: v1, kind: Node, name: worker, uid: ''}\n  name: one"
    role = (
        "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\n"
        "metadata: {name: reader, namespace: shop}\nrules: []\n"
    )
    options = ReadOptions(rules=rules.rules_for(profile.from_settings({})))
    path = tmp_path / "copied.yaml"
    path.write_text(CLAIM.replace("name: one", owner) + role)
    with open_history([path], options) as history:
        names = [(record.kind, record.name) for record in history.records()]
        assert history.refusals == ()
    assert names == [("ResourceClaim", "one"), ("ClusterRole", "reader")]


def test_damage_is_the_reason_where_nothing_else_is_in_a_text(tmp_path):
    """The line within the document is that of the file."""
    text = (
        'It logged this:\n\n{"kind": "Pod",\n"apiVersion": "v1",\n= no comment\n"metadata": {}}\n'
    )
    with pytest.raises(InputError, match=r"text:3: it is not JSON: .*, in line 5"):
        read(tmp_path, text)


def test_page_that_shows_changes_says_what_to_save(tmp_path):
    rows = "".join(
        f'<tr><td data-line-number="{at}"></td><td class="addition">+{line}</td></tr>\n'
        for at, line in enumerate(LINES, start=1)
    )
    with pytest.raises(InputError, match="save the text itself, of a page with changes the patch"):
        read(tmp_path, f"<!DOCTYPE html>\n<html><body><table>{rows}</table></body></html>\n")


STATES = {
    "a watch": "NAME   STATE                AGE\none    pending              0s\n"
    "one    allocated,reserved   6s\none    pending              9s\n",
    "a later table": "NAME   STATE                AGE\none    allocated,reserved   6s\n\n"
    "$ kubectl get resourceclaim\nNAME   STATE     AGE\none    pending   9s\n",
    "its end": "NAME   STATE                AGE\none    pending              0s\n"
    "one    allocated,reserved   6s\n",
}


@pytest.mark.parametrize("name", STATES)
def test_states_of_a_claim_are_those_that_were_printed(tmp_path, name):
    records, _ = read(tmp_path, f"$ kubectl get resourceclaim -w\n{STATES[name]}")
    words = [line.split()[1] for line in STATES[name].splitlines() if line.startswith("one ")]
    expected = [{"allocation": {}} if "allocated" in word else {} for word in words]
    assert [each.object["status"] for each in records] == expected
    assert [each.op for each in records] == [Op.BASELINE, *[Op.MODIFIED] * (len(words) - 1)]
    assert len({each.uid for each in records}) == 1


PASTED = {
    "an object": CLAIM,
    "a page": "Name:         one\nNamespace:    shop\nAPI Version:  resource.k8s.io/v1\n"
    "Kind:         ResourceClaim\nMetadata:\n  Uid:  u1\nEvents:  <none>\n",
    "tables": "$ kubectl get resourceclaims -n shop\nNAME   STATE     AGE\none    pending   9s\n",
}
WAYS = {
    "one backtick": "I use\n`{}`\nand it hangs\n",
    "a forum": "Hello,\n[code]\n{}\n[/code]\nand it hangs\n",
    "a forum, with a language": "Hello,\n[code=yaml]\n{}\n[/code]\nbye\n",
    "a forum, on one line with words": "Hello, [code]{}[/code] and it hangs\n",
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("form", PASTED)
def test_marks_of_forums_and_single_backticks_end_what_they_hold(tmp_path, form, way):
    """The last line of what is pasted ends at the mark, and is no other value for it."""
    pasted = PASTED[form].rstrip("\n")
    records, lost = read(tmp_path, WAYS[way].format(pasted), name="post.md")
    alone, _ = read(tmp_path, pasted + "\n", name="alone.md")
    shown = [(each.kind, each.namespace, each.name) for each in records]
    assert (shown, lost) == ([("ResourceClaim", "shop", "one")], [])
    assert records[0].object["metadata"].get("labels") == alone[0].object["metadata"].get("labels")
    assert records[0].object.get("spec") == alone[0].object.get("spec")


@pytest.mark.parametrize(
    "text",
    [
        "`apiVersion: v1` and `kind: Pod`\n",
        "a [code] that\nit has\n",
        "[code]\nlang = go\n",
        "[code]\n~~~\nlang = go\n~~~\n[/code]\n",
    ],
)
def test_code_within_a_line_is_a_text(tmp_path, text):
    records, lost = read(tmp_path, f"{text}\n```yaml\n{CLAIM}```\n", name="post.md")
    assert ([each.name for each in records], lost) == (["one"], [])


def test_mark_of_a_forum_in_a_value_is_a_part_of_it(tmp_path):
    noted = CLAIM.replace("  name: one\n", "  name: one\n  annotations:\n    note: see x[/code]\n")
    records, lost = read(tmp_path, f"It hangs:\n\n{noted}", name="post.md")
    (record,) = records
    assert (record.object["metadata"]["annotations"]["note"], lost) == ("see x[/code]", [])


@pytest.mark.parametrize("form", PASTED)
def test_results_of_tests_have_their_line_breaks_escaped(tmp_path, form):
    text = html.escape(PASTED[form]).replace("\n", "&#xA;")
    case = f'<testcase name="it"><failure message="x">{text}</failure></testcase>'
    for begin in ("", '<?xml version="1.0" encoding="UTF-8"?>\n'):
        page = f"{begin}<testsuites><testsuite>{case}</testsuite></testsuites>\n"
        records, lost = read(tmp_path, page, name="junit.xml")
        shown = [(each.kind, each.namespace, each.name) for each in records]
        assert (shown, lost) == ([("ResourceClaim", "shop", "one")], [])


def test_log_in_a_page_or_in_results_of_tests_is_read(tmp_path):
    """Its quotes are escaped there."""
    line = 'I0102 03:04:05.000006 1 a.go:1] "Attempting to schedule pod" pod="shop/web-1"'
    pages = (
        f"<html><body><pre>{html.escape(line)}\n</pre></body></html>\n",
        f"<testsuite><testcase><system-out>{html.escape(line)}&#xA;</system-out></testcase>"
        "</testsuite>\n",
    )
    for page in pages:
        (record,), lost = read(tmp_path, page, name="page.html")
        assert (record.op, record.namespace, record.name, lost) == (Op.CONTEXT, "shop", "web-1", [])


def test_page_directly_behind_the_marks_of_a_message_is_read(tmp_path):
    message = {"type": "message", "user": "U1", "text": f"```{PASTED['a page']}```", "ts": "1.2"}
    records, lost = read(tmp_path, json.dumps([message]), name="chat.json")
    assert ([each.name for each in records], lost) == (["one"], [])


def test_times_of_a_job_before_each_line_are_no_part_of_an_object(tmp_path):
    stamped = "".join(f"I0202 03:26:23.256] {line}\n" for line in CLAIM.splitlines())
    records, lost = read(tmp_path, stamped, name="build-log.txt")
    assert ([each.name for each in records], lost) == (["one"], [])


def test_object_whose_lines_lost_their_indentation_is_a_loss(tmp_path):
    """As a page gives it whose code is no preformatted text."""
    flat = "".join(f"{line.lstrip()}\n" for line in CLAIM.splitlines())
    other = CLAIM.replace("name: one", "name: two")
    records, lost = read(tmp_path, f"Configuration\n{flat}---\n{other}", name="page.txt")
    assert ([each.name for each in records], lost) == (["two"], [f"page.txt:2: {dumps.FLAT}"])


def test_text_without_an_object_is_refused_as_that(tmp_path):
    with pytest.raises(InputError, match="a text in which it finds no object") as refusal:
        read(tmp_path, "It hangs, and nobody knows why.\n", name="post.md")
    assert "kubectl get pods" in str(refusal.value.cure)


def test_page_of_a_version_that_is_not_read_refuses_nothing_else(tmp_path):
    options = ReadOptions(rules=rules.rules_for(profile.Profile()))
    page = PASTED["a page"].replace("resource.k8s.io/v1", "resource.k8s.io/v1alpha2")
    page = page.replace("one", "old")
    for name, text in {"a.md": f"```\n{page}```\n```yaml\n{CLAIM}```\n", "old.txt": page}.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "whole.yaml").write_text(CLAIM)
    for path in (tmp_path / "a.md", tmp_path):
        with open_history([path], options) as history:
            assert {record.name for record in history.records()} == {"one"}
            ((_, problem),) = history.refused_places
        assert "the older form" in problem
    with pytest.raises(InputError, match="the older form"):
        open_history([tmp_path / "old.txt"], options)
