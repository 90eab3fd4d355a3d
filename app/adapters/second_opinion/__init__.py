"""A second opinion about device selectors: cel-python with the CEL library for devices.

Belongs here: the code that lets cel-python evaluate a selector for a device, written from the
specification. Does not belong here: code of `app.domain`, because it is what this package judges,
and the handling of disagreements (`app.service.replays.second_opinion`). `bootstrap.opinions`
imports this package when a command asks for it; no other command loads cel-python.

Reading order: `optional_syntax` → `amounts` and `versions` → `values` → `functions` → `evaluator` →
`asking`.
"""

from app.adapters.second_opinion.asking import CelPython

__all__ = ["CelPython"]
