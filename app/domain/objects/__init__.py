"""API objects of every kind: their schemas, and the rules by which they change.

Belongs here: registry of kinds, structural schema tables, admission (decode, convert, default,
validate, prune), managed fields, lifecycle (`decide`). Does not belong here: what a device or an
allocation is. Imported by devices, allocation, controllers and everything outside the domain.
"""
