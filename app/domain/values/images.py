"""Names of images as the kubelet reads them: `registry/path:tag@digest`.

Parity: objects.md 15.1; the grammar of image references; a name without a registry belongs to the
public registry.
"""

import re

NAME_BYTES_MAX = 255
_PART = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_DOMAIN_PART = r"(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])"
_DOMAIN = rf"(?:{_DOMAIN_PART}(?:\.{_DOMAIN_PART})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?"
_REFERENCE = re.compile(
    rf"(?P<name>(?P<domain>{_DOMAIN}/)?(?P<path>{_PART}(?:/{_PART})*))"
    r"(?::(?P<tag>\w[\w.-]{0,127}))?"
    r"(?P<digest>@[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,})?",
    re.ASCII,
)
_IDENTIFIER = re.compile(r"[a-f0-9]{64}")


def tag(image: str) -> str:
    """The tag of an image: `latest` when it has neither tag nor digest, empty when unreadable."""
    if _IDENTIFIER.fullmatch(image):
        return ""
    match = _REFERENCE.fullmatch(_with_registry(image))
    if match is None or len(match["name"]) > NAME_BYTES_MAX:
        return ""
    return match["tag"] or ("" if match["digest"] else "latest")


def _with_registry(image: str) -> str:
    first, slash, _ = image.partition("/")
    is_registry = slash and (
        "." in first or ":" in first or first == "localhost" or first != first.lower()
    )
    if is_registry:
        return image
    return f"docker.io/{image}" if slash else f"docker.io/library/{image}"
