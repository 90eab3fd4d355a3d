"""Explanations: why an object is in its state, from the recorded decision and recomputed reasons.

Belongs here: which views and events of a history a question needs, and the order in which they are
read. Does not belong here: the sentences about them, which are pure (`app/analysis/explain`).
Imported by the API and by bootstrap, as `Explainer` and `find_key`.
"""

from app.service.explaining.explainer import Explainer, find_key

__all__ = ["Explainer", "find_key"]
