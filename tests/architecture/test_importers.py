"""Which modules one other module imports, and why, in a small program and in ours."""

from collections import Counter

from tests.architecture.importers import ROOT, Reason, reasons, single_imports

MOST = {Reason.ROOM: 63, Reason.LINES: 108, Reason.NONE: 57}
"""The modules that stand alone for such a reason; a new one goes to its importer, or an old one
does. See docs/explanation/decisions/0023-modules-with-one-importer.md."""


def test_modules_with_one_importer_are_listed_with_it(tmp_path):
    for name, text in {
        "__init__": "import app.both",
        "one": "from app import both, only",
        "two": "from app.both import name\nfrom app.only_a_name import x as y",
        "only": '"""A module."""\n',
        "only_a_name": "x = 1",
        "both": "name = 1",
        "nobodys": "import json",
    }.items():
        (tmp_path / "app").mkdir(exist_ok=True)
        (tmp_path / "app" / f"{name}.py").write_text(text)
    rows = single_imports(tmp_path, ("app",))
    assert [row[:2] for row in rows] == [("app.only", "app.one"), ("app.only_a_name", "app.two")]
    assert [row.lines for row in rows] == [(1, 2), (1, 3)]


def test_reason_of_a_module_with_one_importer_is_named(tmp_path):
    texts = {
        "front/__init__": "from app.front import behind",
        "front/behind": "",
        "table": "from app.kinds import a, b\nfrom app.kinds.c import f\nALL = (a.f, (b.f, f))",
        "kinds/a": "",
        "kinds/b": "",
        "kinds/c": "def f(): ...",
        "hub": "from app import many\nfrom app.many import " + ", ".join("vwxyz"),
        **{f"many/{name}": "" for name in "vwxyz"},
        "service/asks": "from app.analysis import answer",
        "analysis/answer": "",
        "long/one": "from app.long import other",
        "long/other": "x = 1\n" * 500,
        "short/one": "from app.short import other",
        "short/other": "x = 1\n" * 499,
    }
    for name, text in texts.items():
        path = tmp_path / "app" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert reasons(single_imports(tmp_path, ("app",))) == {
        "app.front.behind": Reason.DOOR,
        **dict.fromkeys([f"app.kinds.{name}" for name in "abc"], Reason.ROW),
        **dict.fromkeys([f"app.many.{name}" for name in "vwxyz"], Reason.ROW),
        "app.analysis.answer": Reason.ROOM,
        "app.long.other": Reason.LINES,
        "app.short.other": Reason.NONE,
    }


def test_no_more_modules_stand_alone_without_a_reason():
    counts = Counter(reasons(single_imports(ROOT)).values())
    assert {reason: counts[reason] for reason in MOST if counts[reason] > MOST[reason]} == {}
