"""Lines about objects in forms that redra does not read: each is a loss, and is named.

&Pod{ObjectMeta:{web-1  shop …}}                    %v in Go
{TypeMeta:{Kind: APIVersion:} ObjectMeta:{Name:web-1 …  %+v in Go
map[apiVersion:v1 kind:Pod metadata:map[name:web-1 …]]  %v of an unstructured object
(*v1.Pod)(0xc000a1c000)({                           spew in Go
  &v1.Pod{                                          the differences that go-cmp shows
<[]v1.Pod | len:1, cap:1>: [                        the structures that Gomega shows
class V1Pod {                                       the client for Java
Pod(apiVersion=v1, kind=Pod, metadata=…)            fabric8
V1Pod {                                             the client for JavaScript
POD ID          CREATED        STATE   NAME         crictl
{"state": "SANDBOX_READY", …}                       crictl, with -o json
json.items[0].kind = "Pod";                         gron
Name  Namespace  Containers  …  Age  Status         Lens, one cell a line or with tabs
shop  web-1  n1  Running                            jq with @tsv or @csv, without titles
NAME↑         PF READY STATUS    RESTARTS          the screen of k9s
# apiVersion: v1                                    a manifest of comments alone
diff -u -N /tmp/LIVE-1/v1.Pod.shop.web-1 …          kubectl diff
@@ -8,7 +8,7 @@ spec:                               git diff
{"level": "INFO", "message": …}                     a log of any program

A container runtime keeps pods that the API server has deleted, and gives static pods other uids, so
what it lists is no state of a cluster.
"""

import re
from collections.abc import Sequence

_KEPT = "pods and containers as a node's runtime keeps them, which is not read"
RUNTIME = f"a table of crictl: {_KEPT}"
RUNTIME_JSON = f"output of crictl: {_KEPT}"
SCREEN = "the screen of k9s, which redra does not read"
CHANGE = "a change of a manifest (a diff), which shows a part of it"
AUDIT = "an audit event in YAML that does not begin the file"
OBJECT = "an object as a program prints it in a form that redra does not read"

_REJECTED = "Server rejected event "
"""Words of components of Kubernetes before an Event that is in no cluster."""

_KINDS = (
    r"(?:Pod|Node|Event|ResourceClaim|ResourceClaimTemplate|ResourceSlice|DeviceClass"
    r"|DeviceTaintRule)"
    r"(?:List)?"
)
_OBJECT = re.compile(
    rf"[&.]{_KINDS}\{{(?:TypeMeta|ObjectMeta|ListMeta):"
    rf"|\((?:\*?(?:\w+\.)+{_KINDS})\) ?(?:\(0x[0-9a-f]+\))?\(?\{{"
    rf"|&(?:\w+\.)+{_KINDS}\{{\s*$"
    rf"|<(?:\[\])?\*?v\d\w{{0,9}}\.{_KINDS}(?: \| [^>\n]{{1,40}})?>: [\[{{]\s*$"
    rf"|\{{TypeMeta:\{{Kind:|map\[apiVersion:\S+ kind:"
    rf"|^\s*(?:class )?V\d(?:(?:alpha|beta)\d)?{_KINDS} \{{\s*$"
    rf"|(?:^|\W){_KINDS}\(apiVersion="
)
_RUNTIME = re.compile(r"(?:POD ID|CONTAINER(?: ID)?) {2,}(?:CREATED|IMAGE) {2,}(?:STATE|CREATED)\b")
_RUNTIME_STATE = re.compile(rb'"state"\s*:\s*"(?:SANDBOX|CONTAINER)_[A-Z]+"')
_GRON = re.compile(rb"json(?:[.\[][^\n=]{0,400})? = [^\n]{1,400};\s*(?:\n|$)")
_WINDOW = re.compile(
    rb"\s*+Name {0,40}[\t\n]\s*+(?:[A-Z][A-Za-z ]{0,40}[\t\n]\s*+){1,20}?Age {0,40}[\t\n]"
)
"""The titles of a table in a window: words as people write them, where kubectl has capitals."""

_SCREEN = re.compile(
    r"^[ \t\u2502]*(?:NAMESPACE[\u2191\u2193]? +)?NAME[\u2191\u2193]? +PF +READY ", re.MULTILINE
)
"""The titles of pods in k9s: an arrow shows by what they are sorted, PF is for forwarded ports."""

_AUDIT = re.compile(r"(?:- )?auditID: ['\"]?[\w-]{8,64}['\"]?$")

_PICTURES = (b"\x89PNG", b"\xff\xd8\xff", b"GIF8")
_PACKETS = (b"\xd4\xc3\xb2\xa1", b"\x0a\x0d\x0d\x0a")
_PROGRAM = b"\x7fELF"
_CHANGE = re.compile(rb"(?:diff --git |--- [^\n]{1,400}\n\+\+\+ |Index: [^\n]{1,400}\n=|@@ -\d)")
_JSON = re.compile(rb"\s*(?:\{\s*\"|\[\s*[\[{])")
_COMMENT = re.compile(
    rb"^[ \t]*(?P<mark>#+|//+|--+|;+|REM|::)[ \t]*(?:- )?"
    rb"(?P<quote>[\"']?)apiVersion(?P=quote)[ \t]*:",
    re.MULTILINE,
)
_PART = re.compile(rb"(?:\A|\n)(?:metadata|spec|status|allocation|devices):[ \t]*\r?\n")
_OUTPUTS = (
    (re.compile(rb"NAME +CPU\(cores\)"), "output of kubectl top, which shows no object"),
    (re.compile(rb"NAME +SHORTNAMES +API"), "output of kubectl api-resources, which are kinds"),
    (re.compile(rb"(?:GROUP: +\S+\s+)?KIND: +\S+\s+VERSION: "), "output of kubectl explain"),
    (re.compile(rb"(?:Client|Server) Version: "), "output of kubectl version"),
    (re.compile(rb"NAME\s+NAMESPACE\s+REVISION\s"), "output of helm list"),
    (re.compile(rb"# (?:HELP|TYPE) \w"), "metrics of Prometheus, which show no object"),
    (
        re.compile(rb"/(?:registry|kubernetes\.io)/\S{1,400}\s+(?:/\S|\Z)"),
        "keys of etcd without their values (--keys-only)",
    ),
    (re.compile(rb"No resources found"), "output of kubectl that shows no object"),
    (
        re.compile(rb"(?:NAMESPACE +)?NAME +(?:[A-Z][A-Z()-]{0,40} +){1,20}AGE[^\n]{0,200}\s*\Z"),
        "a table of kubectl without rows: there is nothing to import",
    ),
    (re.compile(rb"Name: +\S+\s+Project: +\S+\s"), "output of argocd, which shows no object"),
)
_COMMAND = re.compile(rb"[^\n]{0,80}?\b(?:kubectl|oc) [a-z][^\n]{0,400}\r?\n")
_COMMAND_WITHIN = re.compile(rb"(?:^[ \t]{0,40}|[$#>`] ?)(?:kubectl|oc) [a-z]", re.MULTILINE)
_DIFF = re.compile(rb"diff -\S[^\n]{0,400} /\S{0,400}/LIVE-\d")
_LEVEL = rb"(?i:(?:debug|info|warn|error|fatal|level)[a-z]*)"
_LOG_LINE = re.compile(
    rb'\{(?=[^\n]*"(?:level|severity|lvl)"\s*:)(?=[^\n]*"(?:msg|message)"\s*:)'
    rb'|time="?\d[^\n]{1,60} level='
    + _LEVEL
    + rb"|\s{0,9}\d{4}-\d\d-\d\dT\S{1,40}\t"
    + _LEVEL
    + rb"\b"
)
"""A line in JSON, in logfmt, or for people with tabs between its parts."""

_MARKED_LINES_MIN = 3
"""Lines that must end with the same mark before it counts as one."""

_CELL = r'(?:"(?:[^"\n]|"")*"|-?\d[\d.eE+-]*|true|false|null|)'
_CSV_ROW = re.compile(rf'(?=[^\n]*"){_CELL}(?:,{_CELL})+')
_ROWS_SEEN_MAX = 50
"""Rows without titles that are compared with each other."""

OBJECTS = "give the objects (kubectl get pods -A -o yaml), or what kubectl get prints"
CURES = {
    SCREEN: f"{OBJECTS}, or the file that k9s saves",
    RUNTIME: "give what the API server has (kubectl get pods -A -o wide)",
    RUNTIME_JSON: "give what the API server has (kubectl get pods -A -o json)",
    CHANGE: "give the manifest itself",
    AUDIT: "give the list of the events alone in a file, or JSON",
    OBJECT: "print it as JSON or YAML, or give the objects (kubectl get pods -A -o yaml)",
}
"""What to give instead, by the problem."""

_HUNK = re.compile(r"@@ -(?P<old>\d+(?:,\d+)?) \+\d+(?:,\d+)? @@ ?(?P<heading>.*)")
_NEW_NAME = re.compile(r"\+\+\+ (?:\S*\.(?:ya?ml|json)\b|/\S*/MERGED-\d)")
_OF_MANIFEST = re.compile(r"[ +-]?(?:apiVersion|kind|metadata|spec|status):")
_ADDED = "0,0"
HUNK_LINES_MAX = 200
"""Lines of a change that are searched for fields of a manifest."""

_MARKS = ("{", "(apiVersion=", "map[", ">: [")


def problem(line: str) -> str:
    """The loss that a line is; empty for other lines."""
    if _RUNTIME.match(line) is not None:
        return RUNTIME
    if _SCREEN.match(line) is not None:
        return SCREEN
    if _AUDIT.match(line) is not None:
        return AUDIT
    is_shown = any(mark in line for mark in _MARKS) and _OBJECT.search(line) is not None
    # What a server rejected was never an object of the cluster.
    return OBJECT if is_shown and _REJECTED not in line else ""


def is_change(lines: Sequence[str], at: int) -> bool:
    """True where a line begins a change of a manifest in a diff, which shows a part of it.

    Only files that a diff adds are read. A change of another file, such as code, is a text.
    """
    hunk = _HUNK.match(lines[at])
    if hunk is None or hunk["old"] == _ADDED:
        return False
    if (at and _NEW_NAME.match(lines[at - 1])) or _OF_MANIFEST.match(hunk["heading"]):
        return True
    for line in lines[at + 1 : at + 1 + HUNK_LINES_MAX]:
        if not line.startswith((" ", "+", "-")):
            return False
        if _OF_MANIFEST.match(line):
            return True
    return False


def is_of_runtime(state: str) -> bool:
    """True for the state of a sandbox or container, which no object of an API server has."""
    return state.startswith(("SANDBOX_", "CONTAINER_"))


def of_bytes(head: bytes) -> tuple[str, str]:
    """The kind of a file that is no text, from its first bytes, and the cure; or empty."""
    if head.startswith(_PICTURES):
        return "a picture, of which redra reads nothing", "give what it shows as text"
    if head.startswith(_PACKETS):
        return "a capture of network packets, which redra does not read", OBJECTS
    if head.startswith(_PROGRAM):
        return "a program, which redra does not read", OBJECTS
    return "", ""


def marked(head: bytes) -> tuple[str, str]:
    """The kind of a text that a program shows with a mark at each end of a line, and the cure."""
    lines = head.split(b"\n")
    # The last line of a beginning may be cut.
    whole = lines[:-1] if len(lines) > _MARKED_LINES_MIN else []
    if not whole or not all(line.endswith(b"$") for line in whole):
        return "", ""
    return "each line ends with $, as cat -A and cat -e show texts", "give the file itself (cat)"


def is_commented(head: bytes) -> bool:
    """True for a text in which a version of an object stands behind a mark of comments."""
    return _COMMENT.search(head) is not None


def of_file(head: bytes) -> tuple[str, str]:
    """The kind of a foreign text, from its beginning, and the cure; empty for any other."""
    commented = _COMMENT.search(head)
    if commented is not None:
        mark = commented["mark"].decode()
        return (
            f"objects as comments alone, behind {mark}",
            f"take {mark} and the space behind it from the beginning of each line of the objects",
        )
    if _RUNTIME_STATE.search(head) is not None:
        return RUNTIME_JSON, CURES[RUNTIME_JSON]
    if _GRON.match(head) is not None:
        return "output of gron, which redra does not read", "give JSON (gron --ungron)"
    if _WINDOW.match(head) is not None:
        return (
            "a table of a program with windows, such as Lens, which redra does not read",
            OBJECTS,
        )
    if _SCREEN.search(head.decode("utf-8", "replace")) is not None:
        return SCREEN, CURES[SCREEN]
    if _DIFF.match(head) is not None:
        return "output of kubectl diff, which shows parts of objects", OBJECTS
    command = _COMMAND.match(head)
    for begin, name in _OUTPUTS:
        if begin.match(head, 0 if command is None else command.end()) is not None:
            return name, OBJECTS
    if _CHANGE.match(head) is not None:
        return (
            "changes of files (a diff), which show parts of objects; only files that they add are "
            "read",
            "give the files themselves",
        )
    if _LOG_LINE.match(head) is not None:
        return (
            "a log of a program with no object, event or attempt that redra knows",
            "give the log of a kube-scheduler or a kubelet, or the objects",
        )
    if _is_untitled(head):
        return "rows of cells without titles, which do not say what they are about", OBJECTS
    if _JSON.match(head) is not None and b'"apiVersion"' not in head:
        return (
            "JSON in which nothing has an apiVersion, a kind and metadata, as an object has; a "
            "filter such as jq may have left them out",
            OBJECTS,
        )
    if _PART.search(head) is not None:
        return "parts of objects, without the apiVersion and kind of any", OBJECTS
    if command is not None or _COMMAND_WITHIN.search(head) is not None:
        return "commands or output of kubectl that show no object", OBJECTS
    return "", ""


def _is_untitled(head: bytes) -> bool:
    """True for rows with equally many cells, of which the first is no row of titles."""
    rows = head.decode("utf-8", "replace").rstrip("\n").split("\n")[:_ROWS_SEEN_MAX]
    # The last row of a beginning may be cut.
    rows = rows[:-1] or rows
    if all(_CSV_ROW.fullmatch(row) is not None for row in rows):
        return True
    tabs = rows[0].count("\t")
    is_title = rows[0].isupper()
    return bool(tabs) and not is_title and all(row.count("\t") == tabs for row in rows)
