"""A real cluster's API, read and never written to.

Belongs here: the kubeconfig, requests, discovery, lists and watches, and records made of what they
give. The only HTTP method of the package is GET, so that nothing in it can change a cluster. Does
not belong here: what is done with the records. Credentials, exec plug-ins, TLS and proxies are the
matter of `kubernetes-asyncio` (docs/explanation/decisions/0006-client-library.md); nobody else
imports it. Imported by bootstrap.
"""
