"""redra in the tests of other projects: the pytest plug-in.

Belongs here: fixtures and what they hand out. Does not belong here: how a server is made
(bootstrap). pytest imports this package in every project that has redra installed, so that nothing
is loaded before a test asks for a cluster. Nobody else imports it.
"""
