"""Access to a running redra server: its detection, and requests to it.

Belongs here: the notice of a server in its data folder, credentials for the server, requests over
HTTP. Does not belong here: the content of requests. A command that uses a server must be fast, so
these modules load little more than the standard library; contexts of kubeconfigs that redra did not
write are read by `app/adapters/cluster`. Imported by bootstrap.
"""
