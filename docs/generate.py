"""Makes the reference pages from the code they describe; a test compares them."""

from collections.abc import Callable, Iterable
from dataclasses import fields
from pathlib import Path

import typer

from app.cli.application import root
from app.domain.allocation import Quirks
from app.domain.controllers import releases
from app.domain.controllers.quirks import ControllerQuirks
from app.domain.objects import profile as profiles
from app.domain.objects import registry
from app.domain.objects.profile import Profile
from app.service.metrics import FAMILIES
from app.settings import Settings
from projections import all_projections

FOLDER = Path(__file__).resolve().parent / "reference"


def settings_page() -> str:
    """Every setting with its default."""
    lines = [
        "# Settings",
        "",
        "Each is an environment variable. Command-line options win over them.",
        "",
        "| variable | default | meaning |",
        "|---|---|---|",
    ]
    for name, field in Settings.model_fields.items():
        default = "" if field.default in ("", None) else f"`{field.default}`"
        lines.append(f"| `REDRA_{name.upper()}` | {default} | {field.description} |")
    return "\n".join(lines) + "\n"


def commands_page() -> str:
    """Every command with its own help."""
    lines = ["# Commands", ""]
    group = typer.main.get_command(root)
    assert isinstance(group, typer.core.TyperGroup)
    for name in sorted(group.commands):
        command = group.commands[name]
        context = typer.Context(command, info_name=f"redra {name}", terminal_width=98)
        lines += [f"## redra {name}", "", "```text", command.get_help(context).rstrip(), "```", ""]
    return "\n".join(lines)


def views_page() -> str:
    """Every table that SQL users may read."""
    lines = [
        "# View tables",
        "",
        "Made by folding the log; every table also begins with the column `history`. Instants are",
        "microseconds since 1970 in UTC.",
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


def profiles_page() -> str:
    """What each profile stands for: gates, quirks, served versions."""
    named = {*profiles.VERSIONS, *profiles.PATCHES}
    known = [Profile(version=name) for name in sorted(named, key=lambda name: name.split("."))]
    controllers = [field.name for field in fields(ControllerQuirks)]
    allocator = [field.name for field in fields(Quirks)]
    lines = [
        "# Profiles",
        "",
        "A profile is the release that a history imitates: `redra up --profile 1.36`; the default",
        f"is {profiles.DEFAULT_VERSION}. `--gate NAME=on` and `--quirk NAME=off` deviate from it.",
        "What the numbers of quirks mean is told in [behaviours](behaviours.md).",
        "",
        "## Quirks",
        "",
        *_switches(known, controllers, lambda chosen: releases.quirks_of(chosen)),
        *_switches(known, allocator, lambda chosen: releases.allocator_quirks_of(chosen))[2:],
        "",
        "## Feature gates",
        "",
        "On by default; of patch releases as of their minor release.",
        "",
    ]
    releases_only = [chosen for chosen in known if not chosen.patch]
    lines += _table(
        ["gate", *(chosen.version for chosen in releases_only)],
        (
            [gate, *(_on(chosen.enabled(gate)) for chosen in releases_only)]
            for gate in profiles.GATES
        ),
    )
    lines += [
        "",
        "## Served versions",
        "",
        "With these gates, of kinds that are not served alike in all releases.",
        "",
    ]
    everything = [
        Profile(version=chosen.version, gates=dict.fromkeys(profiles.GATES, True))
        for chosen in releases_only
    ]
    rows = []
    for kind in sorted(registry.served_kinds(everything[-1]), key=lambda kind: kind.kind):
        served = [
            ", ".join(version for _, version in registry.served_versions(kind, chosen))
            for chosen in releases_only
        ]
        if len(set(served)) > 1 or kind.gate:
            rows.append([kind.kind, *(text or "-" for text in served)])
    lines += _table(["kind", *(chosen.version for chosen in releases_only)], rows)
    return "\n".join(lines) + "\n"


def _switches(
    known: list[Profile], names: list[str], quirks_of: Callable[[Profile], object]
) -> list[str]:
    """A row per quirk: in which profiles it is on."""
    found = [quirks_of(chosen) for chosen in known]
    return _table(
        ["quirk", *(chosen.patch or chosen.version for chosen in known)],
        ([name, *(_on(getattr(quirks, name)) for quirks in found)] for name in names),
    )


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
        "views.md": views_page(),
        "metrics.md": metrics_page(),
        "profiles.md": profiles_page(),
    }


def main() -> None:
    """Write all pages."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (FOLDER / name).write_text(text)


if __name__ == "__main__":
    main()
