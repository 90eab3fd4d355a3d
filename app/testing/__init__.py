"""redra in the tests of other projects: the pytest plug-in.

Belongs here: fixtures and the objects that they return. Does not belong here: the construction of a
server (bootstrap). pytest imports this package in every project that has redra installed;
therefore nothing is loaded before a test requests a cluster. No other package imports it.
"""
