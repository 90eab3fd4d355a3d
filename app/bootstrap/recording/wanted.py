"""What to record and where to, as the command line says it."""

from collections.abc import Sequence
from dataclasses import dataclass

from app.domain.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What to record and where to: a context of a kubeconfig, in all namespaces or in one."""

    history: str
    kubeconfig: str = ""
    context: str = ""
    namespace: str = ""
    include: tuple[str, ...] = ()
    without: tuple[str, ...] = ()


def wanted_of(attached: Sequence[str], kubeconfig: str) -> tuple[Wanted, ...]:
    """What `HISTORY` or `HISTORY=CONTEXT` mean. Raises InputError for a name that comes twice."""
    wanted: list[Wanted] = []
    for text in attached:
        history, _, context = text.partition("=")
        if history in [each.history for each in wanted]:
            raise InputError(
                f"{history!r} is there twice", place="--attach", cure="name each history once"
            )
        wanted.append(Wanted(history=history, kubeconfig=kubeconfig, context=context))
    return tuple(wanted)
