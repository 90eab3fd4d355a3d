"""`redra profiles`: the releases that can be imitated, with their gates, versions and quirks."""

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, TypeVar

import typer

from app.cli import console
from app.cli.console import Output, OutputOption

Fact = TypeVar("Fact")


def register(root: typer.Typer) -> None:
    """Add the command of this module."""
    root.command("profiles")(profiles)


def profiles(
    name: Annotated[
        str, typer.Argument(help="Only this profile, such as 1.36, or quirk, such as c15.")
    ] = "",
    output: OutputOption = Output.TEXT,
) -> None:
    """Show what each profile means: its quirks, its feature gates, the versions it serves.

    A profile is the Kubernetes release that a history imitates. Patch releases have the gates and
    versions of their minor release. A star marks the default. Given the number of a quirk, the
    command describes the quirk and lists the releases that have it.
    """
    from app.analysis import profiles as profile_facts

    quirk = name.lower()
    if quirk in profile_facts.WORDS:
        states = {one: profile_facts.facts_of(one).quirks[quirk] for one in profile_facts.names()}
        if output is Output.JSON:
            console.say_json({"quirk": quirk, "text": profile_facts.WORDS[quirk], "on": states})
            return
        console.say(f"{quirk}: {profile_facts.WORDS[quirk]}")
        having = [one for one, state in states.items() if state]
        console.say(f"on in: {', '.join(having) or 'no release unless switched on'}")
        return
    listed = [profile_facts.facts_of(one) for one in ([name] if name else profile_facts.names())]
    if output is Output.JSON:
        console.say_json(listed)
        return
    heads = [f"{facts.name}*" if facts.is_default else facts.name for facts in listed]
    _section("quirk", heads, [facts.quirks for facts in listed], _on)
    console.say()
    _section("gate", heads, [facts.gates for facts in listed], _on)
    console.say()
    _section("kind", heads, [facts.versions for facts in listed], _versions)


def _section(
    what: str,
    heads: Sequence[str],
    columns: Sequence[Mapping[str, Fact]],
    text: Callable[[Fact], str],
) -> None:
    console.table(
        (what, *heads),
        [(row, *(text(column[row]) for column in columns)) for row in columns[0]],
    )


def _on(state: bool) -> str:
    return "on" if state else "-"


def _versions(served: tuple[str, ...]) -> str:
    return ", ".join(served) or "-"
