"""`redra fleet`: emulated drivers that publish known hardware, and failures of it."""

from pathlib import Path
from typing import Annotated

import typer

from app.cli import console
from app.cli.serving import DataOption


def register(root: typer.Typer) -> None:
    """Add the commands of this module."""
    root.command("fleet")(fleet)


def fleet(
    profile: Annotated[
        str,
        typer.Option(
            help="a100-mig, h100-mig, tpu-8x8, nic, cpu, shared, or a file of the same form."
        ),
    ],
    nodes: Annotated[int, typer.Option(help="Number of nodes; for meshes, whole groups.")] = 1,
    history: Annotated[
        str, typer.Option(help="History to write to [default: default].", show_default=False)
    ] = "",
    server: Annotated[str, typer.Option(help="URL of a running server to write to.")] = "",
    seed: Annotated[int, typer.Option(help="Seed of identifiers and incidents.")] = 1,
    plan: Annotated[
        Path | None,
        typer.Option(help="Taints and failures that happen afterwards (YAML)."),
    ] = None,
    speed: Annotated[float, typer.Option(min=0.001, help="Seconds of the plan per second.")] = 1.0,
    show: Annotated[
        bool, typer.Option("--show", help="Print manifests and incidents; write nothing.")
    ] = False,
    data: DataOption = None,
) -> None:
    """Create nodes with devices: hardware from a profile, published as its driver would.

    Run the command again to bring pools up to date: changes go into the next generation. With a
    plan, devices are tainted, and drivers and nodes fail and return; the same seed gives the same
    incidents.
    """
    from app.analysis.fleet import generation as generator
    from app.analysis.fleet import incidents as fleet_incidents
    from app.bootstrap import fleets, process_settings
    from app.cli.connecting.answering import DEFAULT_HISTORY

    whole = generator.build(fleets.read_profile(profile), nodes, seed)
    incidents = (
        fleet_incidents.plan(whole, fleets.read_plan(plan), seed) if plan is not None else ()
    )
    if show:
        typer.echo(fleets.manifests_text(whole), nl=False)
        for incident in incidents:
            console.say(f"# {incident.at_seconds:.0f} s: {incident.text}")
        return
    settings = process_settings.settings(data=data)

    async def write(target: fleets.FleetTarget) -> None:
        await fleets.publish(target, whole, console.say)
        await fleets.let_happen(target, whole, incidents, speed, console.say)

    async def run() -> None:
        if server:
            await write(fleets.ServerTarget(server, history))
            return
        async with fleets.history_target(settings, history or DEFAULT_HISTORY) as target:
            await write(target)

    console.run(run)
