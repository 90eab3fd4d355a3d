"""Warnings about Secrets with an unusable pair of certificate and key.

Parity: objects.md 15.1; the warnings of the API server, except those that need cryptography.
"""

import base64
import re

from app.domain.objects.kinds import secret_values
from app.domain.values import json_tree, well_known
from app.domain.values.json_tree import JsonView

_BLOCK = re.compile(rb"-----BEGIN ([A-Z0-9 ]+)-----")


def warnings(tree: JsonView) -> tuple[str, ...]:
    """Returns a warning for a pair without a certificate or without a key."""
    if tree.get("type") != well_known.TLS_TYPE:
        return ()
    data = json_tree.labels(tree, "data")
    texts = [data.get(name, "") for name in ("tls.crt", "tls.key")]
    if any(secret_values.is_unreadable(text) for text in texts):
        return ()
    certificate, key = (_blocks(text) for text in texts)
    if "CERTIFICATE" not in certificate:
        return (_missing_certificate(certificate),)
    if not any(name == "PRIVATE KEY" or name.endswith(" PRIVATE KEY") for name in key):
        return (_missing_key(key),)
    return ()


def _blocks(text: str) -> list[str]:
    """The types of the PEM blocks in a base64 string."""
    return [name.decode() for name in _BLOCK.findall(base64.b64decode(text))]


def _missing_certificate(skipped: list[str]) -> str:
    if not skipped:
        return "tls: failed to find any PEM data in certificate input"
    if len(skipped) == 1 and skipped[0].endswith("PRIVATE KEY"):
        return (
            "tls: failed to find certificate PEM data in certificate input, but did find a private "
            "key; PEM inputs may have been switched"
        )
    return (
        'tls: failed to find "CERTIFICATE" PEM block in certificate input after skipping PEM '
        f"blocks of the following types: [{' '.join(skipped)}]"
    )


def _missing_key(skipped: list[str]) -> str:
    if not skipped:
        return "tls: failed to find any PEM data in key input"
    if skipped == ["CERTIFICATE"]:
        return "tls: found a certificate rather than a key in the PEM for the private key"
    return (
        'tls: failed to find PEM block with type ending in "PRIVATE KEY" in key input after '
        f"skipping PEM blocks of the following types: [{' '.join(skipped)}]"
    )
