"""Why something is as it is: the recorded decision, and its reasons made again in full.

Belongs here: which views and events of a history a question needs, and the order in which they are
read. Does not belong here: what is said of them, which is pure (`app/analysis/explain`). Imported
by the API and by bootstrap, as `Explainer`.
"""

from app.service.explaining.explainer import Explainer

__all__ = ["Explainer"]
