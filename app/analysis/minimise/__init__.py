"""Minimisation: the search for the smallest history that still shows something, as pure functions.

`predicates` describes what must stay, `material` the parts of a history and their dependencies.
`trees` cuts fields, `reduction` chooses the next candidate, `thinning` how much goes at once. The
service runs candidates. Does not belong here: deciding whether a candidate shows it, and anything
about files.
"""
