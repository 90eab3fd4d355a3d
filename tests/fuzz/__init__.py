"""Fuzzers: seeded programs that send or build unexpected input, and judge the result.

Each module with a function `run(cases, seed)` is a fuzzer; `python -m tests.fuzz NAME` starts it,
and `make fuzz` starts all. A small part of each runs with the tests. Belongs here: making and
judging cases. Does not belong here: claims about single rules, which are unit tests.
"""
