"""`redra migrate`, `redra rebuild`: the schema of the database, and its views."""

from typing import Annotated

import typer

from app.cli import console, exit_codes, managing
from app.cli.console import NamelessOutputOption, Output, ProgressBar
from app.cli.exit_codes import ExitCode
from app.cli.serving import DataOption

NAMES_MAX = 10
"""Histories that the confirmation lists before all are deleted."""


def register(root: typer.Typer) -> None:
    """Add the commands of this module."""
    root.command("migrate")(migrate)
    root.command("rebuild")(rebuild)


def migrate(
    revision: Annotated[str, typer.Argument(help="Schema revision to go to.")] = "head",
    yes: Annotated[
        bool,
        typer.Option(
            "--yes-delete-all-histories",
            help="Do not ask for confirmation before everything is deleted (base).",
        ),
    ] = False,
    data: DataOption = None,
) -> None:
    """Migrate the schema of the database to this program's version, or to another one.

    `base` is the empty database: every history is deleted.
    """
    from app.bootstrap import process_settings, stores

    settings = process_settings.settings(data=data)

    def allow(names: list[str]) -> None:
        listed = ", ".join(names[:NAMES_MAX]) + (", …" if len(names) > NAMES_MAX else "")
        managing.confirm(
            f"delete all {len(names)} histories ({listed}) for good?",
            cure="add --yes-delete-all-histories",
        )

    async def run() -> str:
        return await stores.migrate(
            settings, revision, note=console.note, allow=(lambda names: None) if yes else allow
        )

    console.say(f"the schema is at {console.run(run)}")


def rebuild(
    history: Annotated[str, typer.Argument(help="Name of the history.")],
    data: DataOption = None,
    output: NamelessOutputOption = Output.TEXT,
) -> None:
    """Drop the materialised views of a history, fold the log again and compare the state hashes.

    The exit code is 1 if a view differs from the dropped one.
    """
    from app.bootstrap import process_settings, recordings, stores

    settings = process_settings.settings(data=data)

    async def run() -> list[dict[str, object]]:
        async with stores.open_store(settings) as store:
            with ProgressBar(f"folding {history}") as progress:
                return await recordings.rebuild(store, settings, history, progress.to)

    rows = console.run(run)
    if not all(row["same"] for row in rows):
        exit_codes.conclude(ExitCode.NO)
    if output is Output.JSON:
        console.say_json(rows)
    else:
        console.table(
            ("view", "version", "revision", "before", "after", "same"),
            [
                (
                    row["projection"],
                    row["version"],
                    row["revision"],
                    _short(row["before"]),
                    _short(row["after"]),
                    "yes" if row["same"] else "NO",
                )
                for row in rows
            ],
        )


def _short(state_hash: object) -> str:
    return str(state_hash)[:19] if state_hash else "-"
