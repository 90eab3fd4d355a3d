"""`redra sql`: SQL queries of the view tables."""

import sys
from typing import Annotated

import msgspec
import typer

from app.cli import console
from app.cli.console import Output, OutputOption
from app.cli.serving import DataOption
from app.domain.errors import InputError


def register(root: typer.Typer) -> None:
    """Add the commands of this module."""
    root.command("sql")(sql)


def sql(
    statement: Annotated[str, typer.Argument(help="One SQL statement; - reads stdin.")] = "",
    url: Annotated[
        bool, typer.Option("--url", help="Print the database URL for other clients.")
    ] = False,
    history: Annotated[str, typer.Option(help="Only rows of this history, in every table.")] = "",
    data: DataOption = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Query the view tables in SQL, as a database role that can only read them.

    docs/reference/views.md lists the tables. The tables of an imported history are filled by `redra
    rebuild`, or while `redra up` runs.
    """
    from app.bootstrap import process_settings, questions, stores

    settings = process_settings.settings(data=data)
    if url:
        console.say(stores.address(settings))
        return
    text = sys.stdin.read() if statement == "-" else statement
    if not text.strip():
        raise InputError("there is no statement", cure="give a statement, - for stdin, or --url")
    answer = console.run(lambda: questions.ask(settings, text, history))
    columns, rows = answer.rows.columns, answer.rows.rows
    if output is Output.JSON:
        twice = [name for place, name in enumerate(columns) if name in columns[:place]]
        if twice:
            raise InputError(
                f"two columns are named {twice[0]!r}, and an object has each name once",
                place="SQL",
                cure="give them other names with AS, or leave out -o",
            )
        console.say_json([dict(zip(columns, row, strict=True)) for row in rows])
    elif columns:
        console.table(columns, [[_cell(value) for value in row] for row in rows])
    for note in answer.notes:
        console.note(f"note: {note}")


def _cell(value: object) -> object:
    """Lists and maps as JSON on one line."""
    if isinstance(value, list | dict):
        return msgspec.json.encode(value).decode()
    return value
