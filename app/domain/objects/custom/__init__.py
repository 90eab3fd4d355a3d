"""Kinds that a history defines itself: custom resource definitions and the objects they describe.

Belongs here: what a definition means (`definitions`), its own defaults, rules and status
(`naming`, `definition_rules`), and how its objects are pruned, filled, checked and printed
(`structure`, `checking`, `columns`). Does not belong here: what holds for every kind (metadata,
patches, managed fields), which stays in the lifecycle. Everything is a function of the definition
that the reader returns, so each history has its own kinds at each revision. Imported by `objects`
and by the API.
"""
