"""Fuzzers: seeded programs that send or build what nobody meant, and judge what comes of it.

Each module with a function `run(cases, seed)` is one of them; `python -m tests.fuzz NAME` starts
it, `make fuzz` starts all. A small part of each runs with the tests. Belongs here: making and
judging cases. Does not belong here: claims about single rules, which are unit tests.
"""
