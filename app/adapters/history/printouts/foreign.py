"""Lines about objects in forms that redra does not read: each is a loss, and is named.

&Pod{ObjectMeta:{web-1  shop …}}                    %v in Go
class V1Pod {                                       the client for Java
Pod(apiVersion=v1, kind=Pod, metadata=…)            fabric8
V1Pod {                                             the client for JavaScript
POD ID          CREATED        STATE   NAME         crictl

A container runtime keeps pods that the API server has deleted, and gives static pods other uids, so
what it lists is no state of a cluster.
"""

import re

RUNTIME = "a table of crictl: pods and containers as a node's runtime keeps them, which is not read"
OBJECT = "an object as a program prints it in a form that redra does not read"

_KINDS = (
    r"(?:Pod|Node|ResourceClaim|ResourceClaimTemplate|ResourceSlice|DeviceClass|DeviceTaintRule)"
    r"(?:List)?"
)
_OBJECT = re.compile(
    rf"&(?:\w+\.)*{_KINDS}\{{(?:TypeMeta|ObjectMeta|ListMeta):"
    rf"|^\s*(?:class )?V\d(?:(?:alpha|beta)\d)?{_KINDS} \{{\s*$"
    rf"|(?:^|\W){_KINDS}\(apiVersion="
)
_RUNTIME = re.compile(r"(?:POD ID|CONTAINER(?: ID)?) {2,}(?:CREATED|IMAGE) {2,}(?:STATE|CREATED)\b")
_MARKS = ("{", "(apiVersion=")


def problem(line: str) -> str:
    """The loss that a line is; empty for other lines."""
    if _RUNTIME.match(line) is not None:
        return RUNTIME
    is_shown = any(mark in line for mark in _MARKS) and _OBJECT.search(line) is not None
    return OBJECT if is_shown else ""
