"""Histories that another process deletes while loops work for them."""

from app.domain.errors import NotFound


def is_deletion(problem: Exception) -> bool:
    """Whether a loop failed because its history is gone.

    That is no mistake of ours: the loop ends without a word, and the runtime is closed soon.
    """
    return isinstance(problem, NotFound) and problem.resource == "histories"
