"""Is this allocation right? A judge that shares no code with the search.

Belongs here: the rules of allocator.md 2 and 5 to 10, read anew from API objects: which devices a
node can use, what a request may take, and each field of an AllocationResult. Does not belong here:
how a result is found, which of several right ones is chosen, and anything that the search uses too.
Nothing below is imported but `values.json_tree`; whether a selector matches a device is asked of
the caller. A test holds these imports. Imported by the command line and by tests.

Reading order: `amounts` → `stock` → `wishes` → `results` → `judge`.
"""

from app.domain.allocation.checking.judge import Case, Finding, check, findings_tree

__all__ = ["Case", "Finding", "check", "findings_tree"]
