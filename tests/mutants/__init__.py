"""Mutation runs, which find changes of the code that no test notices.

Belongs here: the areas of the code with the tests that judge them, and the run of the mutation tool
over a copy of the checkout. Does not belong here: tests. Nothing imports it.
"""
