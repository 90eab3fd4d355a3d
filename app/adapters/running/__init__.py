"""A server of redra that runs: how it is noticed, and requests to it.

Belongs here: the notice that a server leaves in its data folder, credentials by which it is
reached, requests over HTTP. Does not belong here: what is asked. A command that asks a server is to
be quick, so these modules load little more than the standard library; contexts of kubeconfigs that
redra did not write are read by `app/adapters/cluster`. Imported by bootstrap.
"""
