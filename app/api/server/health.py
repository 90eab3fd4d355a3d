"""Health pages: whether the process is alive, and whether it can serve. Parity: api.md 2."""

from app.api.server.messages import TEXT, Response
from app.domain.errors import RedraError
from app.service.histories import Histories

_OK = Response(b"ok", content_type=TEXT)

_WITHHELD = b"not ready: reasons withheld, see the log of the server and /redra/v1/histories\n"


class Health:
    """Answers `/healthz`, `/livez` and `/readyz`.

    The answer lists a broken history with its cause. Only the default history makes the service
    unready when it is broken, because the other histories are served. It needs no credentials, so
    names and causes are left out with `withholds`, as kube-apiserver leaves out reasons.
    """

    def __init__(self, histories: Histories, default_history: str, *, withholds: bool) -> None:
        self._histories = histories
        self._default = default_history
        self._withholds = withholds

    async def answer(self, path: str) -> Response:
        """`ok`, with a line for each harmless oddity; 503 with a line for each problem."""
        if path.startswith("/livez"):
            return _OK
        problems = [
            f"{runtime.info.name}: {runtime.problem}"
            for runtime in self._histories.open_runtimes()
            if runtime.problem is not None
        ]
        problems += [
            f"{runtime.info.name}: controller {name} failed: {trouble}"
            for runtime in self._histories.open_runtimes()
            for name, trouble in sorted(runtime.troubles.items())
        ]
        if not problems:
            try:
                await self._histories.open(self._default)
            except RedraError as problem:
                problems.append(f"{self._default}: {problem}")
        if problems:
            text = "\n".join(problems) + "\n"
            return Response(
                _WITHHELD if self._withholds else text.encode(), status=503, content_type=TEXT
            )
        if self._withholds:
            return _OK
        notes = [f"{broken.info.name}: {broken.cause}" for broken in self._histories.broken()]
        for replaced in self._histories.replaced():
            notes.append(f"{replaced.info.name}: read again because {replaced.cause}")
        notes += [str(progress.problem) for progress in self._histories.opening()]
        for runtime in self._histories.open_runtimes():
            notes += [f"{runtime.info.name}: {note}" for note in runtime.notes()]
        return Response("\n".join(("ok", *notes, "")).encode(), content_type=TEXT) if notes else _OK
