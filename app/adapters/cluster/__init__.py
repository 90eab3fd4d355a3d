"""The API of a real cluster, which redra reads and never writes to.

Belongs here: the kubeconfig, requests, discovery, lists and watches, and the records made from
their answers. The package uses only the HTTP method GET, so that it cannot change a cluster. Does
not belong here: the use of the records. Credentials, exec plug-ins, TLS and proxies are handled by
`kubernetes-asyncio` (docs/explanation/decisions/0006-client-library.md); no other package imports
it. Imported by bootstrap.
"""
