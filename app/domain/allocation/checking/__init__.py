"""The checker of allocations, an independent judge that shares no code with the search.

Belongs here: the rules of allocator.md 2 and 5 to 10, read anew from API objects: which devices a
node can use, what a request may take, and each field of an AllocationResult. Does not belong here:
how a result is found, which of several right results is chosen, and any code that the search uses.
Of the layers below, only `values.json_tree` is imported; the caller decides whether a selector
matches a device. A test enforces these imports. Imported by the command line, by verification and
by tests.

Reading order: `amounts` → `stock` → `claim_requests` → `capacities` → `results` → `judge`.
"""

from app.domain.allocation.checking.judge import Case, Finding, check, findings_tree

__all__ = ["Case", "Finding", "check", "findings_tree"]
