"""Exports of chats and notebooks, in which objects are texts: their folders, archives and cells."""

import csv
import html
import io
import json
import zipfile

import pytest
import yaml

from app.adapters.history.opening import open_history
from app.adapters.history.reading import ReadOptions
from tests.unit.history.worlds import CLAIMS, PODS, tree

POD = tree(PODS, name="web", namespace="shop", rv=5)
CLAIM = tree(CLAIMS, name="gpu", namespace="shop", rv=6)
TABLE = "NAME     READY   STATUS    RESTARTS   AGE\nlate-1   0/1     Pending   0          5m\n"
QUOTES = "documents in texts, which are read only if the file itself is named"


def export_of_a_chat():
    """The files of an export: the days of each channel are a folder, the channels a file."""
    said = f"it waits:\n```{yaml.safe_dump(POD)}```"
    more = f"and\n```{json.dumps(CLAIM)}```\n```$ kubectl get pods -n shop\n{TABLE}```"
    day = [
        {"type": "message", "user": "U1", "ts": "1.0", "text": text.replace(">", "&gt;")}
        for text in (said, "hm", more)
    ]
    return {
        "channels.json": [{"id": "C1", "name": "incident"}],
        "incident/2026-01-02.json": day,
        "users.json": [{"id": "U1", "name": "ann"}],
    }


def written(folder, files):
    for name, value in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(value, indent=1))
    return folder


def packed(folder):
    path = folder.parent / "export.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for file in sorted(folder.rglob("*.json")):
            archive.write(file, file.relative_to(folder))
    return path


def read(path):
    """The objects, what is left out by file, and the losses."""
    with open_history([path], ReadOptions()) as history:
        keys = sorted(
            (record.resource, record.namespace, record.name) for record in history.records()
        )
        return keys, dict(history.left_out), list(history.refusals)


IN_THE_CHAT = [
    ("pods", "shop", "late-1"),
    ("pods", "shop", "web"),
    ("resourceclaims", "shop", "gpu"),
]


@pytest.mark.parametrize("pack", [lambda folder: folder, packed])
def test_export_of_a_chat_gives_what_was_pasted(tmp_path, pack):
    folder = written(tmp_path / "export", export_of_a_chat())
    keys, left_out, lost = read(pack(folder))
    assert keys == IN_THE_CHAT
    assert not [reason for reason in left_out.values() if reason.startswith(QUOTES)]
    assert lost == []


def test_texts_are_passed_over_beside_a_recording(tmp_path):
    recording = {"dump.json": {"apiVersion": "v1", "kind": "List", "items": [CLAIM]}}
    keys, left_out, _ = read(written(tmp_path / "bug", export_of_a_chat() | recording))
    assert keys == [("resourceclaims", "shop", "gpu")]
    assert left_out["incident/2026-01-02.json"].startswith(QUOTES)


def cell(source, *outputs):
    return {"cell_type": "code", "metadata": {}, "source": source, "outputs": list(outputs)}


def stream(text):
    return {"output_type": "stream", "name": "stdout", "text": text.splitlines(keepends=True)}


def result(text):
    return {"output_type": "execute_result", "data": {"text/plain": text}, "metadata": {}}


@pytest.mark.parametrize(
    "source",
    [
        ["!kubectl get pods -n shop\n", "print(1)"],
        "%%bash\nkubectl get pods -n shop",
        "  !kubectl get pods -n shop",
    ],
)
def test_cell_of_a_notebook_gives_what_its_command_printed(tmp_path, source):
    cells = [
        {"cell_type": "markdown", "metadata": {}, "source": ["# look\n", "at this"]},
        cell("!kubectl get pod web -o yaml", stream(yaml.safe_dump(POD))),
        cell(source, stream(TABLE)),
        cell("claim", result(json.dumps(CLAIM))),
    ]
    files = {"look.ipynb": {"cells": cells, "metadata": {}, "nbformat": 4}}
    keys, _, lost = read(written(tmp_path, files) / "look.ipynb")
    assert keys == IN_THE_CHAT
    assert lost == []


BOTH = [("pods", "shop", "web"), ("resourceclaims", "shop", "gpu")]
TEXTS = [yaml.safe_dump(POD), yaml.safe_dump(CLAIM)]
FENCED = [f"```yaml\n{text}```\n\nthanks" for text in TEXTS]
SHOWN = [f"<p>Hi</p>\n<pre><code>{html.escape(text)}</code></pre>" for text in TEXTS]


def csv_of(rows):
    out = io.StringIO()
    csv.writer(out).writerows(rows)
    return out.getvalue()


def in_notion(text, size=97):
    """A block of code, as its API answers with it: in pieces of a length."""
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    rich = [{"type": "text", "text": {"content": each}, "plain_text": each} for each in pieces]
    return {"type": "code", "code": {"caption": [], "language": "yaml", "rich_text": rich}}


def in_an_editor(text):
    """A block of code, each line a piece or two, as editors that keep a tree have it."""
    pieces = []
    for line in text.split("\n"):
        begin, colon, end = line.partition(": ")
        styled = [{"type": "text", "text": begin + colon, "marks": [{"type": "strong"}]}]
        pieces += [*styled, {"type": "text", "text": end}] if colon else styled
        pieces.append({"type": "hardBreak"})
    return {"type": "codeBlock", "content": pieces}


EXPORTS = {
    "pieces of Notion": json.dumps({"results": [in_notion(text) for text in TEXTS]}),
    "pieces of an editor": json.dumps({"content": [in_an_editor(text) for text in TEXTS]}),
    "pieces of an answer": json.dumps(
        {"said": [{"type": "text", "text": text} for text in (TEXTS[0].rstrip(), TEXTS[1])]}
    ),
    "one piece": json.dumps([{"results": [in_notion(text, 9999)]} for text in TEXTS]),
    "answers of a search": json.dumps({"total": 2, "items": [{"body": text} for text in FENCED]}),
    "parts of pages": json.dumps({"posts": [{"cooked": text} for text in SHOWN]}),
    "texts in an array": json.dumps(TEXTS),
    "cells of a table": csv_of([["id", "body"], *enumerate(TEXTS)]),
    "cells with Markdown": csv_of([["id", "body"], *enumerate(FENCED)]),
    "results of tests": '<?xml version="1.0"?>\n<tests><failure>'
    f"{html.escape(json.dumps(POD, indent=1))}</failure>\n"
    f"<out><![CDATA[\n{TEXTS[1]}]]></out></tests>\n",
    "log of a pipeline": "".join(f"[dump : run] {line}\n" for line in "\n".join(TEXTS).split("\n")),
}


@pytest.mark.parametrize("name", EXPORTS)
def test_texts_in_other_exports(tmp_path, name):
    path = tmp_path / "export"
    path.write_text(EXPORTS[name])
    keys, _, lost = read(path)
    assert keys == BOTH
    assert lost == []


@pytest.mark.parametrize("end", ["  stat", "stat", "status:\n  phase: Runn"])
def test_text_that_ends_in_an_object_is_still_cut(tmp_path, end):
    path = tmp_path / "export.json"
    path.write_text(json.dumps([{"body": TEXTS[1]}, {"body": f"see\n\n{TEXTS[0]}{end}"}]))
    keys, _, lost = read(path)
    assert keys == BOTH[1:]
    assert len(lost) == 1
