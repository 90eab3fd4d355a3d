"""How controllers that use server-side apply send their part of an object."""

from app.domain.objects.commands import PatchType

APPLY = PatchType.STRATEGIC
"""A strategic merge writes the fields of upstream's apply; only `managedFields` differ."""
