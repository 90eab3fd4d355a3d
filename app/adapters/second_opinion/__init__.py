"""A second opinion about device selectors: cel-python, with the library of devices registered.

Belongs here: everything that makes cel-python able to answer a selector about a device, written
from the specification. Does not belong here: anything of `app.domain`, because it is what is
judged, nor what becomes of a disagreement (`service.second_opinion`). `bootstrap.opinions` imports
this package when a command asks for it; no other command loads cel-python.

Reading order: `optional_syntax` → `amounts` and `versions` → `values` → `functions` → `evaluator` →
`asking`.
"""

from app.adapters.second_opinion.asking import CelPython

__all__ = ["CelPython"]
