"""What a reader may rely on everywhere: sizes, charters, names, bans with advice."""

import ast
import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from projections.tables import OF_PROJECTIONS
from tests.architecture.syntax import nodes, tree

ROOT = Path(__file__).resolve().parent.parent.parent
OURS = ("app", "projections")
MODULE_LINES_MAX = 500
FUNCTION_LINES_MAX = 70
PARAMETERS_MAX = 9
FOLDER_MODULES_MAX = 24
SERVICE_MODULES_MAX = 22
"""Modules of app/service itself, which orders effects and does nothing else."""
PREFIX_FILES_MAX = 2
BAD_NAMES = {"utils", "helpers", "common", "misc", "base", "manager", "util", "helper"}

TOP_LEVEL = {
    *("app", "bench", "docs", "examples", "migrations", "projections", "tests"),
    *("CHANGELOG.md", "CONTRIBUTING.md", "Dockerfile", "LICENSE", "Makefile", "README.md"),
    *("docker-compose.yml", "mkdocs.yml", "pyproject.toml", "uv.lock"),
    *("build", "dist"),  # made by targets, and never kept
}

BANS: dict[str, tuple[str, tuple[str, ...]]] = {
    # pattern: (what to use instead, files that are its one home)
    r"\bdatetime\.(now|utcnow|today)\(": (
        "ask the Clock port",
        ("app/adapters/clock.py",),
    ),
    r"\btime\.(time|time_ns)\(": ("ask the Clock port", ("app/adapters/clock.py",)),
    r"\buuid[14]\(": ("ask the UidSource port", ("app/adapters/uids.py",)),
    r"\bcreate_task\(": ("start it in an AnyIO task group, which owns it", ()),
    r"\brandom\.\w+\(": (
        "ask the UidSource port, or derive it from a seed",
        ("app/adapters/uids.py",),
    ),
    r"\bos\.environ\b": (
        "read it in app/settings.py",
        (
            "app/adapters/postgres/server.py",
            "app/adapters/cluster/exec_plugins.py",  # a plug-in's, to which it adds
            "app/adapters/postgres/guardian.py",  # the child's environment, which it passes on
            "app/bootstrap/executors.py",  # the environment of the server of forks
            "app/settings.py",
        ),
    ),
    r"(?<!def )(?<![\w.])id\(": (
        "hang facts on a value that has an owner: a key by address outlives what it stands for",
        (
            # Each within one question, by a dictionary that is handed on with it.
            "app/domain/allocation/reasons/causes.py",
            "app/domain/allocation/reasons/explanation.py",
            "app/domain/cel/library/quantities.py",
            # Within one dump, which holds the objects.
            "app/analysis/keeping/graphs.py",
        ),
    ),
    r"^\s*print\(": (
        "write through the console of the command line",
        ("app/adapters/postgres/guardian.py",),  # a process of its own, which tells its parent
    ),
}


def sources(*folders: str) -> Iterator[Path]:
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.py")):
            if "__pycache__" not in path.parts:
                yield path


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def code_of(path: Path) -> str:
    """The source with comments and strings blanked, so that prose is not taken for code."""
    text = path.read_text()
    lines = text.splitlines()
    for node in nodes(path):
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
            continue
        last = node.end_lineno or node.lineno
        for number in range(node.lineno - 1, last if last > node.lineno else 0):
            lines[number] = ""
    return "\n".join(line.split("  #")[0] for line in lines)


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in nodes(path):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def test_modules_fit_a_few_screens() -> None:
    long = [
        name(path)
        for path in sources(*OURS)
        if len(path.read_text().splitlines()) > MODULE_LINES_MAX
    ]
    assert not long, f"a noun is missing: split {long}"


def test_functions_fit_a_screen() -> None:
    long = [
        f"{name(path)}: {node.name}"
        for path in sources(*OURS)
        for node in functions(path)
        if (node.end_lineno or node.lineno) - node.lineno + 1 > FUNCTION_LINES_MAX
    ]
    assert not long, long


def parameters(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    named = [each for each in arguments if each.arg not in ("self", "cls")]
    return len(named) + sum(map(bool, (node.args.vararg, node.args.kwarg)))


def is_command(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """The parameters of a command are its options: each is annotated with its help."""
    arguments = [*node.args.args, *node.args.kwonlyargs]
    shown = [ast.unparse(each.annotation) for each in arguments if each.annotation is not None]
    return any("typer." in each for each in shown)


def test_functions_have_no_more_parameters_than_a_reader_holds() -> None:
    many = [
        f"{name(path)}: {node.name} has {parameters(node)}"
        for path in sources(*OURS)
        for node in functions(path)
        if parameters(node) > PARAMETERS_MAX
        and not (name(path).startswith("app/cli/") and is_command(node))
    ]
    assert not many, f"make one value with a name of those that go together: {many}"


def test_modules_begin_with_what_they_are_for() -> None:
    silent = [
        name(path) for path in sources(*OURS, "migrations") if not ast.get_docstring(tree(path))
    ]
    assert not silent, silent


def test_modules_that_docstrings_name_exist() -> None:
    """A path such as `app/service/importing`, with or without `app`, by dots or slashes."""
    room = r"adapters|analysis|api|bootstrap|cli|domain|service|web|workers"
    written = re.compile(rf"`(?:app[./])?((?:{room})(?:[./][a-z_]+)+)`")
    missing = []
    for path in sources(*OURS):
        for named in written.findall(ast.get_docstring(tree(path)) or ""):
            place = ROOT / "app" / re.sub(r"[.]py$", "", named).replace(".", "/")
            # The last part may be a name in the module.
            homes = (place, place.with_suffix(".py"), place.parent.with_suffix(".py"))
            if not any(home.exists() for home in homes):
                missing.append(f"{name(path)}: {named}")
    assert not missing, missing


def test_the_pure_part_keeps_nothing_in_its_modules() -> None:
    """A value has an owner. Memos of pure functions (`lru_cache`) are no such state, and modules of
    CEL's library register the names of their types while they are loaded.
    """
    registering = "app/domain/cel/values/value.py"
    changing = {"append", "add", "update", "pop", "clear", "setdefault", "extend", "remove"}
    kept = []
    for path in sources("app/domain", "app/analysis", "projections"):
        own = {
            target.id
            for node in tree(path).body
            if isinstance(node, ast.Assign | ast.AnnAssign)
            for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
            if isinstance(target, ast.Name)
        }
        for function in functions(path):
            local = {
                node.id
                for node in ast.walk(function)
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
            } | {node.arg for node in ast.walk(function) if isinstance(node, ast.arg)}
            for node in ast.walk(function):
                match node:
                    case ast.Subscript(value=ast.Name(id=held), ctx=ast.Store() | ast.Del()):
                        pass
                    case ast.Call(func=ast.Attribute(value=ast.Name(id=held), attr=act)) if (
                        act in changing
                    ):
                        pass
                    case ast.Global():
                        held = node.names[0]
                        local.discard(held)
                    case _:
                        continue
                if held in own - local and name(path) != registering:
                    kept.append(f"{name(path)}:{node.lineno} {held}")
    assert not kept, f"give these an owner: {kept}"


def test_names_say_what_is_inside() -> None:
    vague = [
        name(path)
        for path in sources(*OURS)
        if BAD_NAMES & {path.stem, *path.relative_to(ROOT).parent.parts}
    ]
    assert not vague, vague


def test_banned_calls_stay_in_their_one_home() -> None:
    breaches = [
        f"{name(path)}: {match.group()!r}: {advice}"
        for path in sources(*OURS)
        for code in (code_of(path),)
        for pattern, (advice, homes) in BANS.items()
        if name(path) not in homes
        for match in re.finditer(pattern, code, re.MULTILINE)
    ]
    assert not breaches, breaches


def test_public_functions_say_what_they_promise() -> None:
    missing = [
        f"{name(path)}: {node.name}"
        for path in sources(*OURS)
        for node in tree(path).body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        and not node.name.startswith("_")
        and not ast.get_docstring(node)
    ]
    assert not missing, missing


def test_docstrings_begin_with_what_they_are_about() -> None:
    """ "The devices of a pool", not "What is there"."""
    question = re.compile(r"(What|Which|Who|Whose|Whom|How|When|Where|Why|There|Something)\b")
    questions = [
        f"{name(path)}:{getattr(node, 'lineno', 1)}: {text.splitlines()[0]}"
        for path in sources(*OURS)
        for node in nodes(path)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        if (text := ast.get_docstring(node)) and question.match(text)
    ]
    assert not questions, f"begin with the noun of the thing: {questions}"


def test_every_test_folder_answers_a_known_question() -> None:
    known = {
        "unit",
        "properties",
        "contracts",
        "scenarios",
        "conformance",
        "simulation",
        "crash",
        "mutants",
        "fuzz",
        "api",
        "acceptance",
        "migrations",
        "architecture",
        "web",
        "worlds",
        "recording",
        "adversary",
        "plane",
        "truth",
    }
    folders = {
        path.name
        for path in (ROOT / "tests").iterdir()
        if path.is_dir() and path.name[0] not in "._"
    }
    assert folders <= known, folders - known


def test_tests_do_not_sleep_for_time() -> None:
    sleeping = [
        f"{name(path)}:{number}"
        for path in sources("tests")
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if re.search(r"\b(time|anyio|asyncio)\.sleep\((?!0\))", line) and "# waits:" not in line
    ]
    assert not sleeping, f"time is a parameter; a wait on a real process says why: {sleeping}"


def test_ignored_types_say_why() -> None:
    silent = [
        f"{name(path)}:{number}"
        for path in sources(*OURS, "tests", "bench", "docs", "migrations")
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if re.search(r"# type: ignore(?!\[[a-z-]+\]  # \w)", line) and path.name != "test_tidy.py"
    ]
    assert not silent, f"name the error, and behind it the reason: {silent}"


def test_nothing_speaks_of_the_place_where_it_was_made() -> None:
    words = ("/work" + "/", "/tmp/" + "brief")
    mentions = [
        name(path)
        for folder in (*OURS, "tests", "docs", "bench", "migrations", "examples")
        if (ROOT / folder).exists()
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and path.suffix in {".py", ".md", ".yaml", ".yml", ".toml", ".txt"}
        if any(word in path.read_text(errors="replace") for word in words)
    ]
    assert not mentions, mentions


def test_no_page_keeps_both_sides_of_a_conflict() -> None:
    marks = tuple(sign * 7 for sign in "<>")
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    assert len(pages) > 20
    assert [
        f"{page.relative_to(ROOT)}:{number}"
        for page in sorted(pages)
        for number, line in enumerate(page.read_text().splitlines(), 1)
        if line.startswith(marks)
    ] == []


def test_the_top_level_holds_only_what_is_known() -> None:
    """A command that a test ran with a relative folder leaves keys there, and they get kept."""
    found = {path.name for path in ROOT.iterdir() if not path.name.startswith(".")}
    unknown = {each for each in found - TOP_LEVEL if not each.endswith(".egg-info")}
    assert not unknown, f"who made these? {sorted(unknown)}"


def test_folders_hold_no_families_of_files() -> None:
    """Three files with one prefix are a package; more than FOLDER_MODULES_MAX are several."""
    families = []
    for folder in sorted({path.parent for path in sources(*OURS)}):
        modules = [path.stem for path in folder.glob("*.py") if path.stem != "__init__"]
        most = SERVICE_MODULES_MAX if name(folder) == "app/service" else FOLDER_MODULES_MAX
        if len(modules) > most:
            families.append(f"{name(folder)}: {len(modules)} modules")
        prefixes = Counter(module.split("_")[0] for module in modules)
        families += [
            f"{name(folder)}: {count} files {prefix}…"
            for prefix, count in prefixes.items()
            if count > PREFIX_FILES_MAX
        ]
    assert not families, f"make packages of these: {families}"


def test_every_projection_is_kept_from_the_others():
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    (kept,) = [each for each in contracts["contracts"] if each["type"] == "independence"]
    assert kept["modules"] == [f"projections.{view}" for view in OF_PROJECTIONS]


def test_no_target_hides_that_a_program_failed():
    """Of a pipe, make sees the status of the last program alone."""
    pipes = re.findall(r"^\t@?\$\(BIN\)/[^|\n]*\|(?!\|).*", (ROOT / "Makefile").read_text(), re.M)
    assert not pipes, pipes
