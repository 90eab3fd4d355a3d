"""Validation of CertificateSigningRequests, without parsing the request."""

import base64
import binascii

from app.domain.objects.field_errors import FieldError, invalid
from app.domain.objects.validation.context import Context
from app.domain.values import json_tree
from app.domain.values.json_tree import JsonView

_BEGIN = b"-----BEGIN CERTIFICATE REQUEST-----"


def create(tree: JsonView, _context: Context) -> list[FieldError]:
    """Checks that a new CertificateSigningRequest holds a request in PEM."""
    request = json_tree.text(tree, "spec", "request")
    try:
        text = base64.b64decode(request)
    except binascii.Error:
        text = b""
    if _BEGIN in text:
        return []
    return [invalid("spec.request", request, "PEM block type must be CERTIFICATE REQUEST")]
