"""The second opinion for commands; the only place that loads cel-python."""

from app.adapters.second_opinion import CelPython
from app.ports import SecondOpinion


def second_opinion() -> SecondOpinion:
    """Another evaluator of device selectors."""
    return CelPython()
