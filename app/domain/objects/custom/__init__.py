"""Kinds that a history defines itself: custom resource definitions and the objects they describe.

Belongs here: the kinds of definitions (`definitions`), validation, defaults and status of
definitions (`definition_rules`, `schema_types`, `naming`), and validation of custom objects
(`checking`, `formats`, `rule_checking`). Does not belong here: pruning and defaults of custom
objects (`schema.definition_schemas`), their tables (`printing.custom`), and rules for every kind
(metadata, patches, managed fields), which are in the lifecycle. Everything is a function of the
definition that the reader returns, so each history has its own kinds at each revision. Imported by
`objects` and by the API.
"""
