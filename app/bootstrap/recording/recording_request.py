"""The request for a recording, from the command line."""

from collections.abc import Sequence
from dataclasses import dataclass

from app.domain.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """The cluster to record and the history: a kubeconfig's context, one namespace or all."""

    history: str
    kubeconfig: str = ""
    context: str = ""
    namespace: str = ""
    include: tuple[str, ...] = ()
    without: tuple[str, ...] = ()


def wanted_of(attached: Sequence[str], kubeconfig: str) -> tuple[Wanted, ...]:
    """Parse `HISTORY` or `HISTORY=CONTEXT`. Raises InputError for a history given twice."""
    wanted: list[Wanted] = []
    for text in attached:
        history, _, context = text.partition("=")
        if history in [each.history for each in wanted]:
            raise InputError(
                f"{history!r} is there twice", place="--attach", cure="name each history once"
            )
        wanted.append(Wanted(history=history, kubeconfig=kubeconfig, context=context))
    return tuple(wanted)
