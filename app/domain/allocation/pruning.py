"""Cutting branches that provably fail without a trace."""

from app.domain.allocation.problem import Problem, Row
from app.domain.allocation.usage import Usage


class Pruner:
    """Placeholder until the literal search is proven."""

    def __init__(self, problem: Problem, usage: Usage) -> None:
        self._problem = problem
        self._usage = usage

    def prepare(self, row: Row, number: int, pending: int, start: int) -> tuple[int, object] | None:
        """The devices worth trying, or None when none can lead to success."""
        return pending, None

    def after_failure(self, row: Row, device: int, pending: int) -> int:
        """The devices worth trying after `device` failed."""
        return pending

    def failed(self, key: object) -> None:
        """Remember a failure."""
