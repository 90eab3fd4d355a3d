"""What documents tell people to type exists: commands, options, settings, files, examples."""

import ast
import re
import shlex
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import typer
import yaml

from app.api.identity import files
from app.api.kubernetes import first_states
from app.cli.application import program
from app.domain.controllers import batching
from app.domain.log.event import EVENTS_PAGE
from app.service.folding.projecting import FoldingBounds
from app.settings import Settings, read
from docs.site_hooks import BESIDE
from projections import objects
from tests import track_record
from tests.together import together

ROOT = Path(__file__).resolve().parent.parent.parent
GENERATED = {"commands.md"}
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "CHANGELOG.md",
    *(page for page in sorted((ROOT / "docs").rglob("*.md")) if page.name not in GENERATED),
]
FOLDERS = {"app", "docs", "tests", "bench", "examples", "migrations", "projections"}
_STOP = re.compile(r"[|&;<>]+|[0-9]?>+.*|`")


def blocks(page: Path, *languages: str) -> Iterator[str]:
    """The fenced blocks of the languages."""
    for language, body in re.findall(r"^```(\w*)\n(.*?)^```", page.read_text(), re.DOTALL | re.M):
        if language in languages:
            yield body


def lines_of(body: str) -> Iterator[str]:
    """The lines, those that go on inside quotes put together."""
    begun = ""
    for line in body.splitlines():
        begun = f"{begun} {line}" if begun else line
        if begun.count('"') % 2 == 0:
            yield begun
            begun = ""


def typed(page: Path) -> Iterator[str]:
    """Everything that a page shows as typed at a shell and that begins with redra."""
    for body in blocks(page, "sh", "console", ""):
        for line in lines_of(re.sub(r"\\\n", " ", body)):
            yield from re.findall(r"(?:^|[;&|] |\$ |=\S+ )(redra .*)", line)
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.M)
    yield from re.findall(r"`(redra [^`]+)`", text)


def words_of(text: str) -> list[str]:
    """The words of one command, up to what the shell takes."""
    words: list[str] = []
    lexer = shlex.shlex(text, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = "#"
    for word in lexer:
        if _STOP.fullmatch(word):
            break
        words.append(word)
    return words


COMMANDS = sorted({(page.name, text) for page in PAGES for text in typed(page)})


def test_pages_show_commands() -> None:
    assert len(COMMANDS) > 40


@together(COMMANDS, " ".join)
def test_command_of_a_page_is_understood(shown_command: tuple[str, str]) -> None:
    page, text = shown_command
    group = program()
    assert isinstance(group, typer.core.TyperGroup)
    name, *rest = words_of(text)[1:]
    if name == "--help":
        return
    assert name in group.commands, f"{page}: {text}"
    command = group.commands[name]
    if isinstance(command, typer.core.TyperGroup) and rest and rest[0] in command.commands:
        command = command.commands[rest[0]]
    options = {option for parameter in command.params for option in parameter.opts}
    options |= {option for parameter in command.params for option in parameter.secondary_opts}
    shown = {
        word.partition("=")[0] for word in rest if re.fullmatch(r"--?[a-z][-a-z=].*|-[a-z]", word)
    }
    assert shown <= options | {"--help"}, f"{page}: {text}"


def test_no_two_pages_make_a_history_of_the_same_name() -> None:
    """Pages that run as they stand run one after the other in one folder of data."""
    homes: dict[str, set[str]] = {}
    for page in PAGES:
        pasted = [line for body in blocks(page, "sh") for line in lines_of(body)]
        if not any("redra import examples/" in line for line in pasted):
            continue
        for line in pasted:
            if made := re.match(r"redra (?:import|fork) .*--history (\S+)", line):
                homes.setdefault(made[1], set()).add(page.name)
    assert len(homes) > 4
    assert {name: pages for name, pages in homes.items() if len(pages) > 1} == {}


def test_settings_of_pages_exist() -> None:
    known = {f"REDRA_{name.upper()}" for name in Settings.described()}
    known |= {"REDRA_SHARED", "REDRA_CONFORMANCE", "REDRA_REWRITE"}
    known |= {"REDRA_DRAWS", "REDRA_SEEDS", "REDRA_DAY"}
    named = {
        (page.name, setting)
        for page in PAGES
        for setting in re.findall(r"REDRA_[A-Z_]*[A-Z]", page.read_text())
    }
    assert [setting for setting in sorted(named) if setting[1] not in known] == []


def test_files_of_pages_exist() -> None:
    """Paths of the checkout in backquotes; those with a pattern or of a reader's own are left."""
    missing = []
    for page in PAGES:
        for text in re.findall(r"`([\w./-]+/[\w./-]*)`", page.read_text()):
            if text.split("/")[0] in FOLDERS and not (ROOT / text).exists():
                missing.append(f"{page.name}: {text}")
    assert missing == []


def test_pages_beside_the_documents_link_as_the_site_moves_them() -> None:
    """The site has them at another place: a link from where they lie would lead nowhere."""
    fits = re.compile(r"https://|mailto:|#|docs/")
    for name in BESIDE:
        links = re.findall(r"\]\(([^)\s]+)\)", (ROOT / name).read_text())
        assert [link for link in links if not fits.match(link)] == [], name


def defined(path: Path) -> set[str]:
    """What a module defines by name, and the members of its classes as `Class.member`."""
    names = {"__doc__"}
    for node in ast.parse(path.read_text()).body:
        names |= bound(node)
        if isinstance(node, ast.ClassDef):
            names |= {f"{node.name}.{member}" for each in node.body for member in bound(each)}
    return names


def bound(node: ast.stmt) -> set[str]:
    """The names that a statement binds."""
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return {name}
        case ast.Assign(targets=targets):
            return {target.id for target in targets if isinstance(target, ast.Name)}
        case ast.AnnAssign(target=ast.Name(id=name)):
            return {name}
    return set()


def test_homes_of_pages_exist() -> None:
    """What `path::name` names is defined there."""
    homes = [
        (page.name, path, symbol)
        for page in PAGES
        for path, symbol in re.findall(
            r"`((?:app|projections)/[\w/]+\.py)::([\w.]+)`", page.read_text()
        )
    ]
    assert len([home for home in homes if home[0] == "architecture.md"]) >= 10
    assert [home for home in homes if home[2] not in defined(ROOT / home[1])] == []


FLOW = {
    "reader page": f"{EVENTS_PAGE:,}",
    "first states": f"{first_states.PAGE_BYTES // 1024} KiB",
    "plans of one append": str(batching.BATCH_MAX),
    "projector's turn": str(FoldingBounds().turn_max),
    "decoded trees": f"{objects.DECODED_MAX:,}",
}
"""The bounds on the page about queues that are no settings, as the code has them."""


def test_page_about_queues_has_the_bounds_of_the_code() -> None:
    text = (ROOT / "docs" / "explanation" / "flow.md").read_text()
    rows = {row.split(" | ")[0].strip("| "): row for row in text.splitlines() if row[:1] == "|"}
    assert [name for name, bound in FLOW.items() if bound not in rows[name]] == []


SECURE = ROOT / "docs" / "how-to" / "secure.md"


def test_policy_of_the_page_is_read() -> None:
    (text,) = [body for body in blocks(SECURE, "yaml") if body.startswith("rules:")]
    policy = files.parse_policy(yaml.safe_load(text), place="policy")
    assert len(policy.bindings("default")) == 2
    assert len(policy.bindings("incident")) == 3


def test_tokens_of_the_page_are_read() -> None:
    (text,) = [body for body in blocks(SECURE, "text") if "ann" in body]
    tokens = files.parse_tokens(text.replace("…", "0123456789abcdef"), place="tokens")
    assert tokens.uids == {"ann": "7", "ci": "8"}


def test_compose_file_fits_the_program() -> None:
    tree = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    services = tree["services"]
    known = {f"REDRA_{name.upper()}" for name in Settings.described()}
    group = program()
    assert isinstance(group, typer.core.TyperGroup)
    volumes = set()
    for name, service in services.items():
        needed = service.get("depends_on", {})
        assert set(needed) <= set(services), name
        for other, how in needed.items():
            if how["condition"] == "service_healthy":
                assert "healthcheck" in services[other]
        if "build" in service:
            assert set(service.get("environment", {})) <= known, name
            executable, command, *options = service["command"]
            assert executable == "redra"
            opts = {
                opt for p in group.commands[command].params for opt in (*p.opts, *p.secondary_opts)
            }
            assert {word for word in options if word.startswith("-")} <= opts
            read({}, environment=service["environment"])
        volumes |= {text.partition(":")[0] for text in service.get("volumes", ())}
    assert volumes == set(tree["volumes"])


def test_index_of_examples_names_each_of_them() -> None:
    folder = ROOT / "examples"
    named = set(re.findall(r"^\| `([^`]+)` \|", (folder / "README.md").read_text(), re.M))
    there = {
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.is_file() and path.name != "README.md"
    }
    assert [name for name in named if not (folder / name).exists()] == []
    assert [
        name
        for name in sorted(there)
        if not any(name == each or (each[-1] == "/" and name.startswith(each)) for each in named)
    ] == []


_TEST_NAME = re.compile(r"\b(test_[a-z0-9_]+)(?![\w…*])")


def test_tests_that_the_page_about_testing_names_exist() -> None:
    """Those of the track record come twice in seven days, which a wrong name undoes unseen."""
    defined: set[str] = set()
    for path in (ROOT / "tests").rglob("*.py"):
        defined |= {path.stem, *re.findall(r"def (test_\w+)", path.read_text())}
    docs = ROOT / "docs"
    pages = [docs / "testing.md", *sorted((docs / "testing").rglob("*.md"))]
    spans = [span for page in pages for span in re.findall(r"`([^`\n]+)`", page.read_text())]
    named = {name for span in spans for name in _TEST_NAME.findall(span)}
    assert len(named) > 1_000
    assert named - defined == set()


LONG_LINE = 90
"""Commands, headings and heads of tables are shorter."""


def test_index_of_pages_leads_to_each_page() -> None:
    """Whoever opens the folder looks for a task, and names of files do not tell them apart."""
    docs = ROOT / "docs"
    links = re.findall(r"\]\(([^)#]+)", (docs / "README.md").read_text())
    named = {(docs / link).resolve() for link in links}
    beside = {docs / "README.md", *docs.glob("testing/**/*.md"), *docs.glob("explanation/d*/0*.md")}
    assert named | beside == {*docs.rglob("*.md")}


CHANGE_LENGTH = 160
"""An entry of the changelog is one sentence or two short ones."""


def written_pages() -> list[Path]:
    """The pages of all folders."""
    return [
        *ROOT.glob("*.md"),
        *(ROOT / "bench").glob("*.md"),
        *sorted((ROOT / "docs").rglob("*.md")),
    ]


def test_no_line_stands_on_two_pages() -> None:
    """What was moved to a page of its own came back with a merge, and grew apart from it."""
    pages: dict[str, set[str]] = defaultdict(set)
    for page in written_pages():
        for line in page.read_text().splitlines():
            if len(line.strip()) > LONG_LINE:
                pages[line.strip()].add(str(page.relative_to(ROOT)))
    assert len(pages) > 1_000
    assert {line: sorted(on) for line, on in pages.items() if len(on) > 1} == {}


def test_no_line_stands_twice_on_a_page() -> None:
    """A section that was moved within its page came back with a merge; options are generated."""
    twice = {
        str(page.relative_to(ROOT)): sorted(line for line, count in lines.items() if count > 1)
        for page in written_pages()
        if page.parent.name != "reference"
        for lines in [Counter(page.read_text().splitlines())]
    }
    assert len(twice) > 50
    long = {
        page: [each for each in lines if len(each) > LONG_LINE] for page, lines in twice.items()
    }
    assert {page: lines for page, lines in long.items() if lines} == {}


def test_changelog_of_what_was_never_released_tells_of_no_repairs() -> None:
    """No user has met what they mend, and hundreds of them hid what a first release does."""
    sections = (ROOT / "CHANGELOG.md").read_text().split("\n## ")[1:]
    assert [each.split("\n")[0] for each in sections] == ["Unreleased"], "a release: drop this"
    entries = [line for line in sections[0].splitlines() if line.startswith("- ")]
    assert [entry for entry in entries if len(entry) > CHANGE_LENGTH] == []
    assert [entry for entry in entries if re.search(r"\bno longer\b|; it \w+ed\b", entry)] == []


def test_rows_of_the_track_record_stand_on_the_page_of_their_area() -> None:
    """The page that leads to them had 500 kB, and its end was where everybody wrote."""
    docs = ROOT / "docs"
    _, _, record = (docs / "testing.md").read_text().partition("\n## Track record\n")
    rows = [line for line in record.splitlines() if line.startswith("| ")]
    links = [docs / link for row in rows for link in re.findall(r"\]\(([^)]+)\)", row)]
    assert rows[0] == "| area |"
    assert len(links) == len(rows) - 1
    assert set(links) == {*(docs / "testing" / "track-record").glob("*.md")}


def test_no_entry_stands_twice_in_the_changelog_or_the_track_record() -> None:
    """Nor in a shorter form, which merging leaves beside the longer one."""
    changes = (ROOT / "CHANGELOG.md").read_text().splitlines()
    entries = [line.rstrip(".") for line in changes if line.startswith("- ")]
    rows = track_record.text().splitlines()
    bugs = [line.split(" | ")[0] for line in rows if line.startswith("| ")]
    assert len(entries) > 100
    assert len(bugs) > 1_000
    for texts in (sorted(entries), sorted(bugs)):
        beside = [(one, two) for one, two in pairwise(texts) if len(one) > LONG_LINE]
        assert [one for one, two in beside if two.startswith(one)] == []
