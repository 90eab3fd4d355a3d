"""Mutation runs, which find changes of the code that no test notices.

Belongs here: the areas of the code with the tests that judge them, the mutants of a module, and the
runs of tests for each. Does not belong here: tests. Nothing imports it but the test of the runs.
"""
