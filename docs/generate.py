"""Makes the reference pages from the code they describe; a test compares them."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import typer

from app.adapters.history import catalogue
from app.analysis import profiles
from app.analysis.lint.linting import FAMILIES as LINT_FAMILIES
from app.analysis.metrics import FAMILIES
from app.cli import exit_codes
from app.cli.application import SECTIONS, root
from app.domain.log import doubts
from app.domain.log.records import Loss
from app.domain.objects.profile import FIXED
from app.settings import Settings
from projections import all_projections

FOLDER = Path(__file__).resolve().parent / "reference"


def settings_page() -> str:
    """Every setting with its default."""
    lines = [
        "# Settings",
        "",
        "Each is an environment variable. Command-line options win over them. Commands warn about",
        "a variable that is nearly named as one of these, such as one without a letter of it.",
        "",
        "| variable | default | meaning |",
        "|---|---|---|",
    ]
    defaults = Settings.defaults()
    for name, description in Settings.described().items():
        default = "" if defaults[name] in ("", None) else f"`{defaults[name]}`"
        lines.append(f"| `REDRA_{name.upper()}` | {default} | {description} |")
    return "\n".join(lines) + "\n"


def _all_commands(group: typer.core.TyperGroup, name: str) -> list[tuple[str, Any]]:
    """Every command of a group by its full name, and those of the groups in it."""
    found: list[tuple[str, Any]] = []
    for part, command in group.commands.items():
        found.append((f"{name} {part}", command))
        if isinstance(command, typer.core.TyperGroup):
            found += _all_commands(command, f"{name} {part}")
    return found


def commands_page() -> str:
    """Every command with its own help."""
    lines = [
        "# Commands",
        "",
        "By what they are for, as `redra --help` lists them; below that the help of each. They end",
        "with [these exit codes](exit-codes.md).",
        "",
        *_table(
            ["for", "command", "does"],
            (
                [title, f"[`{name}`](#redra-{name})", text]
                for title, texts in SECTIONS.items()
                for name, text in texts.items()
            ),
        ),
        "",
    ]
    group = typer.main.get_command(root)
    assert isinstance(group, typer.core.TyperGroup)
    for name, command in sorted(_all_commands(group, "redra")):
        context = typer.Context(command, info_name=name, terminal_width=98)
        lines += [f"## {name}", "", "```text", command.get_help(context).rstrip(), "```", ""]
    return "\n".join(lines)


def exit_codes_page() -> str:
    """Every exit code, and when each command that judges ends with 1."""
    lines = [
        "# Exit codes",
        "",
        "Every command ends with one of these, also when its reader stops early (`| head -1`).",
        "",
        "| code | meaning |",
        "|---|---|",
    ]
    lines += [f"| {code} | {text} |" for code, text in exit_codes.table()]
    lines += [
        "",
        "A script that asks a question tells the answers apart by 0, 1 and 3; 2 and 4 are none.",
        "A process that Ctrl-C reaches while it loads ends by the signal itself, which shells",
        "show as 130 too.",
        "",
        "## Commands that judge",
        "",
        "These end with 1 when",
        "",
        "| command | |",
        "|---|---|",
    ]
    lines += [f"| `redra {name}` | {text} |" for name, text in exit_codes.NEGATIVE.items()]
    lines += ["", "No other command ends with 1."]
    return "\n".join(lines) + "\n"


def views_page() -> str:
    """Every table that SQL users may read."""
    lines = [
        "# View tables",
        "",
        "Made by folding the log; every table also begins with the column `history`. Instants are",
        "`timestamptz`. `history` is the number of a history, which the table `histories` gives",
        "its name; `docs/how-to/incident.md` tells how to connect.",
        "",
        "The views `log` and `losses` show events, with the name of the history in `history`:",
        "`log` all of a history's own, `losses` gaps and those that a recording holds in part.",
        "`losses` has `revision`, `time`, `type`, `group`, `resource`, `namespace`, `name`, the",
        "`quality` of the object, `losses` as a list, and whether it leaves the content",
        "`unsure`. A gap without a name is one of its kind, one without a resource of all",
        "kinds. Joined by `revision` it tells of each row whether the event behind it was",
        "recorded whole. Kinds that were never recorded have no event: `redra sql` notes them.",
        "",
    ]
    for projection in all_projections():
        for table in projection.tables():
            lines += [
                f"## {table.name}",
                "",
                f"{table.description}. Projection `{projection.name}`,",
            ]
            lines += [f"version {projection.version}; key: {', '.join(table.key)}.", ""]
            lines += ["| column | type | meaning |", "|---|---|---|"]
            lines += [f"| {c.name} | {c.type} | {c.description} |" for c in table.columns]
            lines.append("")
    return "\n".join(lines)


def metrics_page() -> str:
    """Every metric of `/metrics`."""
    lines = [
        "# Metrics",
        "",
        "`/metrics` in Prometheus' text format. Names without `redra_` are those of the real",
        "components. Times are in seconds; counters begin with the process. `workqueue_*`,",
        "`redra_leads` and `scheduler_pending_pods` tell of controllers that this process leads.",
        "",
        "| name | kind | labels | meaning |",
        "|---|---|---|---|",
    ]
    for family in FAMILIES:
        labels = ", ".join(family.labels)
        lines.append(f"| `{family.name}` | {family.kind} | {labels} | {family.help} |")
    return "\n".join(lines) + "\n"


def lint_page() -> str:
    """Every rule of the linter."""
    lines = [
        "# Lint rules",
        "",
        "What `redra lint` looks for, by family. An error does not work, a warning works otherwise",
        "than its author will expect, a note is worth knowing. `docs/how-to/lint.md` tells how to",
        "use it in CI.",
        "",
    ]
    for family, rules in LINT_FAMILIES.items():
        lines += [f"## {family}", ""]
        for rule in rules:
            lines += [
                f"### {rule.id}",
                "",
                f"{rule.severity.value.capitalize()}. {rule.means}",
                "",
                f"- Cure: {rule.cure}",
                f"- Reads: {rule.reads}",
                f"- Reference: {rule.reference}",
                "",
            ]
    return "\n".join(lines[:-1]) + "\n"


def profiles_page() -> str:
    """What each profile stands for: gates, quirks, served versions."""
    known = [profiles.facts_of(name) for name in profiles.names()]
    minors = [facts for facts in known if facts.name == facts.release]
    default = next(facts.name for facts in known if facts.is_default)
    lines = [
        "# Profiles",
        "",
        "A profile is the release that a history imitates: `redra up --profile 1.36`; the default",
        f"is {default}. `--gate NAME=on` and `--quirk NAME=off` deviate from it.",
        "For the meaning of the numbers of quirks, see [behaviours](behaviours.md).",
        "`redra profiles` prints these tables.",
        "",
        "## Quirks",
        "",
        *_table(
            ["quirk", *(facts.name for facts in known)],
            ([quirk, *(_on(facts.quirks[quirk]) for facts in known)] for quirk in known[0].quirks),
        ),
        "",
        "## Feature gates",
        "",
        "On by default; of patch releases as of their minor release.",
        "",
        *_table(
            ["gate", *(facts.name for facts in minors)],
            ([gate, *(_on(facts.gates[gate]) for facts in minors)] for gate in known[0].gates),
        ),
        "",
        "Some keep their default: switching them is refused, because nothing here would change.",
        "",
        *_table(["gate", "why it cannot be switched"], ([*row] for row in FIXED.items())),
        "",
        "## Served versions",
        "",
        "With these gates, of kinds that are not served alike in all releases.",
        "",
        *_table(
            ["kind", *(facts.name for facts in minors)],
            (
                [kind, *(", ".join(facts.versions[kind]) or "-" for facts in minors)]
                for kind in known[0].versions
            ),
        ),
    ]
    return "\n".join(lines) + "\n"


def formats_page() -> str:
    """Every format that an import reads."""
    rows = [
        [entry.name, entry.detected_by, entry.gives, entry.lacks, _code(entry.example)]
        for entry in catalogue.ENTRIES
    ]
    lines = [
        "# Formats",
        "",
        "`redra import FILE… --history NAME` reads files, folders and archives of the formats",
        "below. What a file is, its content says, not its name. Several sources of one cluster",
        "are joined: an audit log with a dump, watch streams with a snapshot of etcd.",
        "",
        "Each import ends with a report. **Lost** is what a cluster had and what cannot be read:",
        "answers that it may touch say so. **Left out** is what holds no objects: logs of",
        "containers, texts, answers such as `APIGroupList`. A source in which nothing can be read",
        "is refused. A damaged line of a log that is named, and a named manifest that no server",
        "takes, are refused too unless `--keep-going` is given. In a folder or an archive they are",
        "lost, and the rest is read. Of a key that occurs again in one object of JSON the last",
        "value counts, as for a server; the others are lost. YAML with such a key is not read.",
        "",
        "The history imitates the release that the recording names: the user agents of components,",
        "their images, their logs, the answer of `kubectl version`, the status of nodes, and last",
        "the words of a report. The notes of the import say which. `--profile` names another.",
        "",
        "`redra export --as audit`, `watch`, `objects` and `k8shark` write four of them",
        "(`docs/how-to/incident-to-test.md`).",
        "",
        *_table(["format", "detected by", "gives", "lacks", "example"], rows),
        "",
        "## What a recording may lack",
        "",
        "The report counts these losses for each kind; the view `losses` has them for each event.",
        "A loss of *content* makes answers about the object unsure, one of *order* or *time* what",
        "rests on these; one of *nothing* changes no decision about devices. The report answers",
        "its questions with `yes`, with `in part`, if some changes are not concerned, or `no`.",
        "",
        *_table(["loss", "what is unsure", "means"], _losses()),
    ]
    return "\n".join(lines) + "\n"


_HARMLESS = {
    Loss.NO_UID: "objects came without their uid",
    Loss.NO_ACTOR: "who made the change is not recorded",
    Loss.NO_MANAGED_FIELDS: "objects came without their managed fields",
    Loss.NO_DELETE_STATE: "the last state before a deletion is not recorded",
}


def _losses() -> list[list[str]]:
    """The losses by what they make unsure, in the order of their names."""
    unsure = {
        **{loss: (affects.value, text) for loss, (affects, text) in doubts.MEANINGS.items()},
        **{loss: ("nothing", text) for loss, text in _HARMLESS.items()},
    }
    assert set(unsure) == set(Loss)
    return [[f"`{loss}`", *unsure[loss]] for loss in sorted(Loss)]


def _code(text: str) -> str:
    """Commands as code; descriptions as they are."""
    return text if text.startswith(("a ", "an ", "the ")) else f"`{text}`"


def _table(head: list[str], rows: Iterable[list[str]]) -> list[str]:
    return [
        f"| {' | '.join(head)} |",
        "|" + "---|" * len(head),
        *(f"| {' | '.join(row)} |" for row in rows),
    ]


def _on(state: bool) -> str:
    return "on" if state else "-"


def pages() -> dict[str, str]:
    """Name of each generated page and its text."""
    return {
        "settings.md": settings_page(),
        "commands.md": commands_page(),
        "exit-codes.md": exit_codes_page(),
        "views.md": views_page(),
        "metrics.md": metrics_page(),
        "profiles.md": profiles_page(),
        "formats.md": formats_page(),
        "lint.md": lint_page(),
    }


def main() -> None:
    """Write all pages."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (FOLDER / name).write_text(text)


if __name__ == "__main__":
    main()
