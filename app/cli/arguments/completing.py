"""Shell completion of histories, objects, releases and incidents.

The names come from the named server or the server that runs on the data folder, else from the names
that commands have stored in the folder. Completion starts no database, and offers nothing on any
error.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app.domain.errors import RedraError

if TYPE_CHECKING:
    from app.bootstrap.asking.servers import AskedServer
    from app.settings import Settings

SHOWN_MAX = 500
"""Words that are offered in one completion."""

_PLAIN = re.compile(r"[A-Za-z0-9._:/@~+-]+")
"""Words without special characters of any shell.

Names come from recordings and can be any text, and completion scripts of shells evaluate the
offered words.
"""

KINDS = {
    "pod": "pods",
    "claim": "resourceclaims",
    "node": "nodes",
    "slice": "resourceslices",
    "class": "deviceclasses",
    "template": "resourceclaimtemplates",
    "rule": "devicetaintrules",
    "patch": "resourceslicepatches",
}
"""The words for kinds whose objects are offered, with the plurals."""


def attach(command: Any, group: str = "") -> None:
    """Attach completers to the parameters of a command and of its subcommands."""
    for parameter in command.params:
        complete = _completer(parameter, group)
        if complete is not None:
            parameter.shell_complete = partial(_offered, complete)
    for below in getattr(command, "commands", {}).values():
        attach(below, str(command.name))


def _completer(parameter: Any, group: str) -> "Callable[[Any, str], Iterator[str]] | None":
    """The completer of a parameter; None for parameters that are completed by their type."""
    if group and parameter.name in ("name", "names"):
        return _incidents if group == "incidents" else _histories
    shown = str(parameter.metavar or "")
    names = {*parameter.opts}
    if "--profile" in names and "Kubernetes" in (parameter.help or ""):
        return _releases
    if names & {"--history", "--attach", "--watch-over"}:
        return _histories
    if "KIND/" in shown:
        return _objects
    if "HISTORY" in shown or (parameter.name in ("history", "source") and not shown):
        return _histories
    if "NODE" in shown or "--node" in names:
        return _nodes
    return None


def _offered(complete: "Callable[[Any, str], Iterator[str]]", ctx: Any, incomplete: str) -> Any:
    from typer._click.shell_completion import CompletionItem

    words: list[str] = []
    # Nothing is offered when a server is gone, a folder is not readable or a setting is invalid.
    with suppress(RedraError, OSError, ValueError, LookupError, TypeError):
        for word in complete(ctx, incomplete):
            if word.startswith(incomplete) and _PLAIN.fullmatch(word):
                words.append(word)
            if len(words) == SHOWN_MAX:
                break
    return [CompletionItem(word) for word in words]


def _histories(ctx: Any, incomplete: str) -> Iterator[str]:
    settings, server = _source(ctx)
    if server is None:
        from app.adapters.running import known_names

        yield from known_names.read(settings.data)
        return
    yield from (str(one["name"]) for one in server.histories())


def _objects(ctx: Any, incomplete: str) -> Iterator[str]:
    """Histories where the argument takes them, kinds, and objects of the matching kinds."""
    takes_history = any("[HISTORY]" in str(each.metavar) for each in ctx.command.params)
    if takes_history and "/" not in incomplete:
        yield from _histories(ctx, incomplete)
    word, slash, _ = incomplete.partition("/")
    kinds = [kind for kind in KINDS if kind == word or (not slash and kind.startswith(word))]
    yield from (f"{kind}/" for kind in kinds)
    if not word:
        return
    known = _known(ctx, [KINDS[kind] for kind in kinds], incomplete)
    namespace = str(ctx.params.get("namespace") or "") if _is_given(ctx, "namespace") else ""
    for kind in kinds:
        for name in known.get(KINDS[kind], ()):
            place, within, short = name.rpartition("/")
            if not namespace or not within:
                yield f"{kind}/{name}"
            elif place == namespace:
                yield f"{kind}/{short}"


def _nodes(ctx: Any, incomplete: str) -> Iterator[str]:
    yield from _known(ctx, ["nodes"], incomplete).get("nodes", ())


def _releases(ctx: Any, incomplete: str) -> Iterator[str]:
    from app.analysis import profiles

    yield from profiles.names()


def _incidents(ctx: Any, incomplete: str) -> Iterator[str]:
    from app.bootstrap.gallery import incident_files

    yield from incident_files.names()


def _is_given(ctx: Any, name: str) -> bool:
    """True if the parameter is given on the command line."""
    source = ctx.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _known(ctx: Any, plurals: Sequence[str], incomplete: str) -> Mapping[str, list[str]]:
    """The names of objects of some kinds in the selected history, by plural."""
    from app.adapters.running import known_names

    settings, server = _source(ctx)
    words = ctx.params.get("words") or ()
    named = ctx.params.get("history") or ctx.params.get("named") or next(iter(words), "")
    history = (
        str(named).partition("@")[0] or (server.history if server is not None else "") or "default"
    )
    known = known_names.read(settings.data).get(history, {})
    if server is None:
        return known
    from app.bootstrap.asking.queries import ServedQuery

    kept = {plural: {*names} for plural, names in known.items()}
    _, slash, name = incomplete.rpartition("/")
    for plural in plurals:
        # The server bounds its answer to the best matches.
        text = f"{plural}/{name if slash else ''}"
        query = ServedQuery(history=history, part="find", parameters={"q": text})
        for one in json.loads(server.ask(query))["items"]:
            if one["resource"] == plural:
                place = f"{one['namespace']}/" if one["namespace"] else ""
                kept.setdefault(plural, set()).add(f"{place}{one['name']}")
    return {plural: sorted(names) for plural, names in kept.items()}


def _source(ctx: Any) -> "tuple[Settings, AskedServer | None]":
    """The settings and the server that the words so far select; None without a server."""
    from app.bootstrap.asking import servers
    from app.settings import read

    chosen = ctx.meta.get("app.cli.connecting.reading", {})
    data = ctx.params.get("data")
    # Not as commands read them: a warning would stand in the middle of the typed line.
    settings = read({"data": Path(data)} if data else {})
    return settings, servers.find(settings, servers.Aim(**chosen))
