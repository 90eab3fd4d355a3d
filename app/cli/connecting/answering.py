"""The answers for commands, from a running or named server, else from the data folder."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, TypeVar

from app.cli import console
from app.cli.connecting import reading
from app.domain.errors import (
    InputError,
    NotFound,
    RedraError,
    ServerUnreachable,
    TooLarge,
)
from app.domain.values import moments, timestamps
from app.domain.values.moments import HistoryEnd, Resolved
from app.domain.values.timestamps import Instant

if TYPE_CHECKING:  # heavy: not needed for a command that a server answers
    from app.bootstrap.asking.queries import ServedQuery
    from app.bootstrap.asking.servers import AskedServer
    from app.bootstrap.stores import Store
    from app.settings import Settings

DEFAULT_HISTORY = "default"

ASKED_AGAIN_SECONDS = 2
"""The time that one request waits for a log that a server has not read to its end."""

UNREAD = "not complete"
"""The beginning of a note that the same question has a fuller answer after a while."""

Answer = TypeVar("Answer")
Other = TypeVar("Other")


class AnswerSource:
    """The source of the answers of one command."""

    def __init__(self, data: Path | None) -> None:
        from app.bootstrap import process_settings
        from app.bootstrap.asking import servers

        aim = servers.Aim(**reading.chosen())
        # A folder on the command line takes precedence over a server in the environment.
        local = servers.AUTO if data is not None and not aim.server else None
        self.settings: Settings = process_settings.settings(data=data, server=local)
        self.server: AskedServer | None = servers.find(self.settings, aim, note=console.note)

    def history(self, name: str) -> str:
        """The selected history: the named one, that of the context, or the default.

        Raises InputError for a path.
        """
        if name:
            _check_no_path(name)
            return name
        return (self.server.history if self.server is not None else "") or DEFAULT_HISTORY

    def moment(self, at: str, name: str) -> str:
        """The selected moment: the given one, or that of the context if it is of this history."""
        server = self.server
        if at or server is None or (name and name != server.history):
            return at
        return server.moment

    def ask(
        self,
        part: str,
        *,
        history: str = "",
        at: str = "",
        parameters: Mapping[str, str] | None = None,
        body: object | None = None,
        is_page: bool = False,
        is_quiet: bool = False,
    ) -> bytes:
        """The answer of redra's own API. Raises InputError, Rejected, ServerUnreachable.

        The instant that a relative moment names is printed on standard error, unless `is_quiet`.
        """
        from app.bootstrap.asking.queries import ServedQuery

        query = ServedQuery(
            history=self.history(history),
            part=part,
            at=self.moment(at, history),
            parameters=parameters or {},
            body=body,
            is_page=is_page,
        )

        def here() -> bytes:
            from app.bootstrap import stores
            from app.bootstrap.answers import direct

            async def work() -> bytes:
                async with stores.open_store(self.settings) as store:
                    return await direct.ask(store, self.settings, query)

            return console.run(work)

        try:
            answer = self.answer(lambda server: server.ask(query), here)
        except NotFound:
            if not is_quiet:
                self._note_moment_of(query)
            raise
        if not is_quiet:
            note_moment(query.at, answer)
        return answer

    def _note_moment_of(self, query: "ServedQuery") -> None:
        """Say which instant the relative moment of a query names that was not answered."""
        if not moments.needs_end(query.at):
            return
        # The missing object may be the history itself.
        with suppress(RedraError):
            if self.server is not None:
                served_moments(self.server, query.history, query.at)
                return
            from app.bootstrap import stores

            async def work() -> None:
                async with stores.open_store(self.settings) as store:
                    await stored_moments(store, query.history, query.at)

            console.run(work)

    def _read_on(self, server: "AskedServer", query: "ServedQuery") -> bytes:
        """The answer from the whole log, or from what was read of it when the time is over."""
        import msgspec

        wait = {"wait": str(ASKED_AGAIN_SECONDS)}
        patient = replace(query, parameters={**query.parameters, **wait})
        ends = monotonic() + self.settings.findings_wait_seconds
        with console.ProgressBar("reading the log") as bar:
            while True:
                answer = server.ask(patient)
                shown = msgspec.json.decode(answer)
                read, last = shown.get("examined", 0), shown.get("revision", 0)
                is_whole = read >= last and not shown.get("knownDefectsNote", "").startswith(UNREAD)
                if is_whole or monotonic() >= ends:
                    return answer
                bar.to(read, last)

    def ask_whole(
        self, part: str, *, history: str, at: str, parameters: Mapping[str, str]
    ) -> bytes:
        """An answer about a whole log.

        A server that has not read it to its end yet is asked again until it has, while a bar shows
        how far it is, or until the time is over that findings wait.
        """
        from app.bootstrap.asking.queries import ServedQuery

        query = ServedQuery(
            history=self.history(history),
            part=part,
            at=self.moment(at, history),
            parameters=parameters,
        )

        def here() -> bytes:
            from app.bootstrap import stores
            from app.bootstrap.answers import served

            async def work() -> bytes:
                async with stores.open_store(self.settings) as store:
                    return await served.ask(store, self.settings, query)

            return console.run(work)

        answer = self.answer(lambda server: self._read_on(server, query), here)
        note_moment(query.at, answer)
        return answer

    def answer(
        self, of_server: "Callable[[AskedServer], Answer]", here: Callable[[], Other]
    ) -> Answer | Other:
        """The answer of the server, else of this process from the data.

        A server that the user did not name may fail to answer: it may just have ended, and some
        requests are too large for a server.
        """
        if self.server is not None:
            try:
                reading.note_asked(self.server.connection.url)
                return of_server(self.server)
            except (ServerUnreachable, TooLarge):
                if self.server.is_named:
                    raise
        reading.note_asked("")
        return here()

    def lines(
        self, part: str, *, history: str = "", at: str = "", parameters: Mapping[str, str]
    ) -> Iterator[bytes] | None:
        """The lines of a server's answer as they arrive; None if the caller must open the data.

        After the first line, a stream that ends early is an error.
        """
        from app.bootstrap.asking.queries import ServedQuery

        query = ServedQuery(
            history=self.history(history),
            part=part,
            at=self.moment(at, history),
            parameters=parameters,
        )

        def begun(server: "AskedServer") -> Iterator[bytes]:
            lines = server.lines(self._pinned(server, query))
            first = next(lines, None)
            return iter(()) if first is None else chain((first,), lines)

        return self.answer(begun, lambda: None)

    def _pinned(self, server: "AskedServer", query: "ServedQuery") -> "ServedQuery":
        """The query with its relative moments as instants, which a line could not explain."""
        names = [name for name in _OF_MOMENTS if query.parameters.get(name)]
        texts = (query.at, *(query.parameters[name] for name in names))
        at, *others = self.resolved(server, query.history, *texts).moments
        pinned = dict(zip(names, others, strict=True))
        return replace(query, at=at, parameters={**query.parameters, **pinned})

    def resolved(self, server: "AskedServer", name: str, *texts: str) -> Resolved:
        """Moments of a server's history in absolute form; the relative ones are explained."""
        return served_moments(server, name, *texts)

    @property
    def named_server(self) -> "AskedServer | None":
        """The server, if the user names one; for answers that need no data."""
        server = self.server
        if server is None or not server.is_named:
            return None
        reading.note_asked(server.connection.url)
        return server

    def refuse_server(self, what: str) -> None:
        """Raise InputError if the user names a server for an answer that only the data can give."""
        if self.server is not None and self.server.is_named:
            raise InputError(
                f"{what} is computed from the data, and no server computes it",
                place="--server",
                cure="leave it out, and run the command on the machine that has the data",
            )


def served_moments(server: "AskedServer", name: str, *texts: str) -> Resolved:
    """Moments of a server's history in absolute form; the relative ones are explained."""
    if not moments.are_relative(texts):
        return Resolved(moments=texts)
    from app.service.moments import resolved

    facts = server.facts(name)
    last = facts["moments_end"]
    end = timestamps.parse(last) if last else Instant(0)
    made = resolved(texts, HistoryEnd(instant=end, is_now=facts["moments_end_now"]))
    note_meanings(made)
    return made


async def stored_moments(store: "Store", name: str, *texts: str) -> Resolved:
    """Moments of a history of the data folder in absolute form; the relative ones are explained."""
    from app.bootstrap.answers import relative

    made = await relative.resolved(store, name, *texts)
    note_meanings(made)
    return made


def note_meanings(resolved: Resolved) -> None:
    """Say on standard error which instants relative moments name."""
    for meaning in resolved.meanings:
        console.note(meaning)


def as_of(answer: bytes) -> dict[str, str]:
    """The field of an answer that says which instant a relative moment names; empty without it."""
    if not answer.startswith(_WITH_MEANING):
        return {}
    import msgspec

    return {moments.AS_OF: msgspec.json.decode(answer)[moments.AS_OF]}


def note_moment(at: str, answer: bytes) -> None:
    """Print which instant a relative moment names, as the answer states it."""
    if moments.needs_end(at):
        for meaning in as_of(answer).values():
            console.note(meaning)


_OF_MOMENTS = ("since", "after", "from", "until")
"""The parameters of a request that hold moments, beside `at`."""

_WITH_MEANING = b'{"asOf":'


def _check_no_path(name: str) -> None:
    """A name of a history contains no slash: this is a file that is not imported yet."""
    if "/" not in name:
        return
    path = Path(name)
    if not path.exists():
        raise InputError("there is no such file, and no history has a name with /", place=name)
    noun = "folder" if path.is_dir() else "file"
    raise InputError(
        f"this is a {noun}, and a history is asked for",
        place=name,
        cure=f"make one of it with `redra import {name} --history NAME`",
    )
