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
    statement: Annotated[str, typer.Argument(help="One statement; - reads stdin.")] = "",
    url: Annotated[
        bool, typer.Option("--url", help="Print the address at which other clients may ask.")
    ] = False,
    history: Annotated[
        str, typer.Option(help="Just the rows of this history, in every table.")
    ] = "",
    data: DataOption = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Ask the view tables in SQL, as a role of the database that can do nothing but read them.

    docs/reference/views.md has the tables. Those of an imported history are filled by
    `redra rebuild`, or while `redra up` runs.
    """
    from app.bootstrap import process_settings, questions, stores

    settings = process_settings.settings(data=data)
    if url:
        console.say(stores.address(settings))
        return
    text = sys.stdin.read() if statement == "-" else statement
    if not text.strip():
        raise InputError("nothing is asked", cure="give a statement, - for stdin, or --url")
    answer = console.run(lambda: questions.ask(settings, text, history))
    columns, rows = answer.found.columns, answer.found.rows
    if output is Output.JSON:
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
