"""Which modules one other module imports, in a small program."""

from tests.architecture.importers import single_imports


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
