"""The Kubernetes release that files name outside of objects.

`kubectl version` names the release of the server in its text, its JSON and its YAML, bundles of
support tools keep the server's answer in a file, components log their release when they start, and
people write it into their reports. Only the beginning of each file is searched.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from app.adapters.history import line_marks
from app.adapters.history.detection import Format
from app.analysis.recordings.releases import CLUSTER

SEARCHED_BYTES = 1024 * 1024
"""Bytes at the beginning of a file that are searched; components log their release first."""

NAMED_MAX = 20
"""Statements about the release that are read from one file."""

VERSION, LOG, REPORT = "its version", "its log", "words of a report"

_RELEASE = r"v?(?P<release>1\.\d{1,3}\.\d{1,3})"
_SAID = (
    ("kube-apiserver", VERSION, "Server Version", r"Server Version[*`|: \t]{1,9}" + _RELEASE),
    (
        "kube-apiserver",
        VERSION,
        "version.Info",
        r'Server Version: version\.Info\{[^}\n]{0,300}?GitVersion:"' + _RELEASE,
    ),
    (
        "kube-apiserver",
        VERSION,
        "serverVersion",
        r'"serverVersion"\s{0,9}:\s{0,9}\{[^}]{0,800}?"gitVersion"\s{0,9}:\s{0,9}"' + _RELEASE,
    ),
    (
        "kube-apiserver",
        VERSION,
        "serverVersion",
        r"^serverVersion:[ \t]*\n(?:[ \t]+\w+:.*\n){0,20}?[ \t]+gitVersion:[ \t]+\"?" + _RELEASE,
    ),
    # The metadata of a k8shark capture.
    (
        "kube-apiserver",
        VERSION,
        "kubernetes_version",
        r'"kubernetes_version"\s{0,9}:\s{0,9}"' + _RELEASE,
    ),
    (
        "kube-apiserver",
        VERSION,
        "gitVersion",
        r'^[ \t]{0,9}\{\s{0,9}(?:"info"\s{0,9}:\s{0,9}\{\s{0,9})?"(?:major|emulationMajor)"'
        r'[^}]{0,800}?"gitVersion"\s{0,9}:\s{0,9}"' + _RELEASE,
    ),
    (
        "kube-scheduler",
        LOG,
        "Starting Kubernetes Scheduler",
        r"Starting Kubernetes Scheduler[^\n]{0,80}?version[^\w\n]{1,9}" + _RELEASE,
    ),
    (
        "kube-controller-manager",
        LOG,
        "controllermanager.go",
        r"controllermanager\.go[^\n]{0,60}Starting\W[^\n]{0,60}?version[^\w\n]{1,9}" + _RELEASE,
    ),
    (
        "kubelet",
        LOG,
        "kubeletVersion",
        r"Kubelet version[^\n]{0,60}?kubeletVersion[^\w\n]{1,9}" + _RELEASE,
    ),
)
VERSION_FILE = re.compile(r"(?:.*/)?kubernetes-version\.txt")
"""The file that `kind export logs` writes for each node, with nothing but the release in it."""

_BY_PEOPLE = (
    # Example: - **Kubernetes version** (use `kubectl version`): v1.34.1
    r"^[^\w\n]{0,12}(?:cluster |server )?(?:kubernetes|k8s)(?: cluster| server)?(?: version)?"
    r"[^\w\n]{1,9}(?:\(?use[^\n]{0,40}?version`?\W{1,9})?" + _RELEASE,
    r"\bkindest/node:" + _RELEASE,
)
_PATTERNS = [(who, how, word, re.compile(text, re.MULTILINE)) for who, how, word, text in _SAID]
"""Component, kind, a word without which the pattern matches nothing, and the pattern."""

_WORDS = [re.compile(text, re.MULTILINE | re.IGNORECASE) for text in _BY_PEOPLE]


class NamedRelease(NamedTuple):
    """A statement about the release: the component, the release, its form, and the line."""

    component: str
    release: str
    kind: str
    line: int


def said_in(name: str, head: bytes, format: Format) -> Iterator[NamedRelease]:
    """The statements in the beginning of a named file, each release of a component once.

    Words of people count only in texts: objects quote all kinds of texts.
    """
    text = line_marks.decoded(head)
    if VERSION_FILE.fullmatch(name) and (match := re.fullmatch(rf"{_RELEASE}\S*\s*", text)):
        yield NamedRelease("kubelet", match["release"], VERSION, 1)
    seen: set[tuple[str, str, str]] = set()
    patterns = [(who, how, pattern) for who, how, word, pattern in _PATTERNS if word in text]
    if format in (Format.MIXTURE, Format.UNKNOWN):
        patterns += [(CLUSTER, REPORT, each) for each in _WORDS]
    for component, kind, pattern in patterns:
        for match in pattern.finditer(text):
            said = (component, match["release"], kind)
            if said not in seen and len(seen) < NAMED_MAX:
                seen.add(said)
                yield NamedRelease(*said, text.count("\n", 0, match.start("release")) + 1)
