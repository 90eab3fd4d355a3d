"""The smallest history that still shows something, as pure functions.

`predicates` is what must stay, `material` what a history is made of and what needs what, `trees`
cuts fields, `reduction` says which candidate comes next. Running a candidate is the service's work.
Does not belong here: deciding whether a candidate shows it, and anything about files.
"""
