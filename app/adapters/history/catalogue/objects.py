"""Objects and what is printed of them: dumps, texts, archives."""

from app.adapters.history.catalogue.entry import CatalogueEntry
from app.adapters.history.detection import Format

_OBJECTS = (Format.DUMP,)
_MOMENT = "the changes before, who made them; one moment"

ENTRIES = (
    CatalogueEntry(
        name="Watch stream",
        formats=(Format.WATCH,),
        detected_by="documents of `type` and `object`",
        gives="every change of a kind while it was watched, deletions",
        lacks="who made them; times, but for those in objects",
        example="kubectl get pods -A --watch --output-watch-events -o json",
    ),
    CatalogueEntry(
        name="Objects as JSON",
        formats=_OBJECTS,
        detected_by="`apiVersion`, `kind` and `metadata`, or a list of such",
        gives="the objects",
        lacks=_MOMENT,
        example="kubectl get pods,resourceclaims,resourceslices -A -o json",
    ),
    CatalogueEntry(
        name="Table with objects",
        formats=_OBJECTS,
        detected_by="`kind: Table`; its rows hold whole objects, their metadata or nothing",
        gives="the objects; without them what the cells show, with the metadata: parts of objects "
        "(`printed`)",
        lacks="the changes before, who made them; one moment; without objects, tables whose kind "
        "neither the request (`selfLink`) nor the titles tell",
        example="GET …/pods?includeObject=Object, with Accept: …;as=Table",
    ),
    CatalogueEntry(
        name="Objects as YAML",
        formats=_OBJECTS,
        detected_by="as JSON; in UTF-8, or in UTF-16 with its mark",
        gives="the objects",
        lacks=_MOMENT,
        example="kubectl get pods,nodes -A -o yaml",
    ),
    CatalogueEntry(
        name="Several YAML documents",
        formats=_OBJECTS,
        detected_by="as YAML, between lines of `---`",
        gives="the objects",
        lacks=_MOMENT,
        example="kubectl get … -o yaml >> all.yaml",
    ),
    CatalogueEntry(
        name="Objects in UTF-16",
        formats=(*_OBJECTS, Format.MIXTURE),
        detected_by="its byte order mark, or the zeros of its letters",
        gives="the objects",
        lacks=_MOMENT,
        example="kubectl get pods -o json > pods.json (in PowerShell)",
    ),
    CatalogueEntry(
        name="Typed lists",
        formats=_OBJECTS,
        detected_by="a kind that ends in `List`; items need no kind and may be null",
        gives="the objects; answers that are not objects (`APIGroupList`) are left out",
        lacks=f"{_MOMENT}; the next page of a list (`metadata.continue`), which is named",
        example="kubectl get --raw /apis/batch/v1/cronjobs",
    ),
    CatalogueEntry(
        name="Text with documents in it",
        formats=(Format.MIXTURE, *_OBJECTS),
        detected_by=(
            "JSON and KYAML at a bracket, stored objects in JSON also between quotes in a line of "
            "a log or over many lines behind its time, YAML at a field of an object or "
            "below its type as a test in Go shows it (`<*v1.Pod | 0x…>:`, `<[]v1.Pod | len:2>:`), "
            "also several behind each other without `---`; without colours and links "
            "of a terminal, the times and names that jobs and runtimes write before lines, numbers "
            "of lines, the `>` of letters, the plus signs of a new file, the line breaks of a "
            "terminal at its edge, the frame of a terminal program around lines that end before "
            "it, the marks of HTML around `<pre>`, also in a part of a page such as a comment, "
            "files and changes of GitHub"
        ),
        gives="the documents at their lines; of a damaged list its other items",
        lacks=(
            "the text, which is counted; damaged documents, dots for fields and words such as "
            "`[truncated]` or `12 lines hidden`, which are named"
        ),
        example="script -c 'kubectl get …' notes.txt",
    ),
    CatalogueEntry(
        name="Structured log",
        formats=(Format.MIXTURE, *_OBJECTS),
        detected_by="lines of JSON or OpenTelemetry with objects below fields; those with a uid",
        gives="the objects as they were logged; pods, nodes, claims, templates and slices also "
        "without a kind, which clients in Go leave out",
        lacks="the lines without objects, which are counted; when they were logged",
        example="kubectl -n gpu-operator logs deploy/controller > manager.log",
    ),
    CatalogueEntry(
        name="Lines of a container runtime",
        formats=(Format.MIXTURE, *_OBJECTS),
        detected_by=(
            "a time and `stdout F` before each line (containerd, CRI-O), or each line in JSON as "
            "`log` beside `stream` (Docker), also with parts of long lines"
        ),
        gives="what the container wrote: documents over many lines, rows of kine, answers of "
        "etcdctl, and logs, which keep the times of their lines",
        lacks="what that text lacks",
        example="cp /var/lib/docker/containers/ID/ID-json.log driver.log",
    ),
    CatalogueEntry(
        name="Admission reviews",
        formats=(Format.MIXTURE, *_OBJECTS),
        detected_by=(
            "`operation`, `userInfo`, `resource` and `oldObject` in one object, also as a text in "
            "a line of a log"
        ),
        gives=(
            "the stored object (`oldObject`); behind it a gap: which write was asked for, and by "
            "whom; refused and dry requests"
        ),
        lacks=(
            "what became of the request, and so what it asked for; times; requests with odd "
            "fields, which are named"
        ),
        example="kubectl logs deploy/webhook > webhook.log",
    ),
    CatalogueEntry(
        name="Log of a client in Go",
        formats=(Format.MIXTURE, *_OBJECTS),
        detected_by=(
            "`Response Body` in lines of klog, with JSON, with a text between quotes, or with a "
            "hexdump of protobuf below it"
        ),
        gives="the objects of the answers",
        lacks=(
            "bodies of requests, which need not have been stored, and are counted; bodies that "
            "the level of the log cuts, which are named"
        ),
        example="kubectl get pods -v=10 2> kubectl.log",
    ),
    CatalogueEntry(
        name="Objects as Python prints them",
        formats=(Format.MIXTURE, *_OBJECTS),
        detected_by=(
            "`{'apiVersion': …` in a text, on one line or as `pprint` breaks it; `{'api_version': "
            "…` and `api_version='…' kind='…' metadata={…}` of clients that are generated for "
            "Python, whose names and times are those of the API again, also where `to_dict()` is "
            "written as JSON or YAML; changes with `raw_object`"
        ),
        gives="the objects, with None, escapes and both quotes as Python has them",
        lacks=(
            "objects with values that are no plain ones, and items of a list of a client that are "
            "printed one by one, which have no kind: they are named"
        ),
        example="print(pod), or print(api.sanitize_for_serialization(pod))",
    ),
    CatalogueEntry(
        name="JSON with comments",
        formats=(Format.MIXTURE, *_OBJECTS),
        detected_by=(
            "`//`, `#` and `/* */` in a document of JSON, commas before its brackets, names "
            "without quotes as in JSON5, dots for what somebody left out"
        ),
        gives="the objects without them",
        lacks=f"{_MOMENT}; what dots or a comment say is left out, which is named",
        example="a manifest out of an editor, or out of a conversation",
    ),
    CatalogueEntry(
        name="Events that a server sends",
        formats=(Format.MIXTURE, *_OBJECTS),
        detected_by="`data:` before each document, in paragraphs of such lines (text/event-stream)",
        gives="the objects, or the changes of a watch in them",
        lacks="what the documents in it lack; the names and numbers of the events",
        example="curl -H 'Accept: text/event-stream' https://dashboard.example.com/pods",
    ),
    CatalogueEntry(
        name="Text in Windows-1252",
        formats=(Format.MIXTURE, *_OBJECTS),
        detected_by="bytes that are not UTF-8",
        gives="what the text gives, and a note",
        lacks="what the text lacks",
        example="a manifest saved by an editor of Windows",
    ),
    CatalogueEntry(
        name="Text out of a chat",
        formats=(Format.MIXTURE, *_OBJECTS),
        detected_by=(
            "“ and ” where JSON and YAML have quotes, spaces that do not break, fences directly "
            "around what is pasted"
        ),
        gives="the documents at their lines",
        lacks="the text, which is counted; damaged documents, which are named",
        example="copied from a conversation",
    ),
    CatalogueEntry(
        name="Markdown",
        formats=(Format.MIXTURE, *_OBJECTS),
        detected_by="blocks between fences, indented or not, and code by indentation",
        gives="the documents at their lines",
        lacks="the text, which is counted",
        example="the text of a bug report",
    ),
    CatalogueEntry(
        name="Text of a tracker or wiki",
        formats=(Format.MIXTURE, *_OBJECTS),
        detected_by=(
            "`{code}` and `{noformat}`, CDATA, `<pre>`, `<pre><code>`, `[code]` of forums, single "
            "backticks around several lines"
        ),
        gives="the documents at their lines",
        lacks="the text, which is counted",
        example="the description of an issue in Jira",
    ),
    CatalogueEntry(
        name="Documents with texts in them",
        formats=(Format.MIXTURE, *_OBJECTS),
        detected_by=(
            "texts with `apiVersion` and `kind`, or with output of kubectl for people, in fields "
            "of a file that is named itself, or of files beside which nothing is recorded, such as "
            "the export of a chat; of a notebook's cells with their commands; in cells of a CSV "
            "over several lines"
        ),
        gives="the documents in the texts, at the line of the document around them",
        lacks="the text; damaged documents, which are named",
        example="gh issue view 4711 --json body,comments > issue.json",
    ),
    CatalogueEntry(
        name="Letter",
        formats=_OBJECTS,
        detected_by="fields such as `From:` and `MIME-Version:`; also several letters (mbox)",
        gives="what its texts and attachments give, joined",
        lacks="the second form of a text, such as HTML beside plain text",
        example="redra import report.eml --history bug",
    ),
    CatalogueEntry(
        name="Text in base64",
        formats=_OBJECTS,
        detected_by="letters of base64 alone, also between the lines of certutil and uuencode",
        gives="what the text or the packed file in it gives",
        lacks="what that lacks",
        example="gzip -c all.json | base64 > all.txt",
    ),
    CatalogueEntry(
        name="Export in XML",
        formats=(Format.MIXTURE, *_OBJECTS),
        detected_by=(
            "`<?xml`, and JSON or `<pre>` in it that is escaped; results of tests whose line "
            "breaks are (`&#xA;`)"
        ),
        gives="the documents at their lines, as in a text or a page",
        lacks="the text, which is counted",
        example="the XML of an issue in Jira, or of a search in Splunk",
    ),
    CatalogueEntry(
        name="Closed files",
        formats=_OBJECTS,
        detected_by=(
            "the first bytes of 7z, RAR, cabinets, lz4, zlib, PDF, age, PGP, CBOR, Parquet, "
            "Avro, journals and office programs; the names of files of dqlite"
        ),
        gives="nothing: they are lost, and named as what they are",
        lacks="everything",
        example="7z x logs.7z -ologs && redra import logs/ --history bug",
    ),
    CatalogueEntry(
        name="Folder",
        formats=_OBJECTS,
        detected_by="each file by its content",
        gives="what its files give, joined",
        lacks="files in no format, which are named",
        example="redra import bug-4711/ --history bug",
    ),
    CatalogueEntry(
        name="Support bundle (troubleshoot.sh)",
        formats=_OBJECTS,
        detected_by="arrays of objects whose kind stands in the name of the folder or file",
        gives="the objects",
        lacks=_MOMENT,
        example="kubectl support-bundle spec.yaml",
    ),
    CatalogueEntry(
        name="sonobuoy",
        formats=_OBJECTS,
        detected_by="lists named `GROUP_VERSION_PLURAL.json`",
        gives="the objects",
        lacks=_MOMENT,
        example="sonobuoy retrieve",
    ),
    CatalogueEntry(
        name="must-gather",
        formats=_OBJECTS,
        detected_by="its files, in a folder or an archive",
        gives="the objects",
        lacks=_MOMENT + "; kinds of devices, unless they were asked for",
        example="oc adm must-gather",
    ),
    CatalogueEntry(
        name="OpenShift insights",
        formats=_OBJECTS,
        detected_by="its files, one object each",
        gives="the objects",
        lacks=_MOMENT + "; Events, which are cut to a few fields",
        example="the archive of the insights operator",
    ),
    CatalogueEntry(
        name="cluster-info dump, folder",
        formats=_OBJECTS,
        detected_by="its lists; logs of containers are left out",
        gives="the objects",
        lacks=_MOMENT + "; kinds of devices",
        example="kubectl cluster-info dump -A --output-directory dump",
    ),
    CatalogueEntry(
        name="cluster-info dump, stream",
        formats=(Format.MIXTURE, *_OBJECTS),
        detected_by="JSON documents between `==== START logs` and `==== END logs`",
        gives="the objects",
        lacks=_MOMENT + "; kinds of devices",
        example="kubectl cluster-info dump -A > cluster-info.txt",
    ),
    CatalogueEntry(
        name="Velero backup",
        formats=_OBJECTS,
        detected_by="its files, one object each",
        gives="the objects",
        lacks=_MOMENT,
        example="velero backup download NAME",
    ),
    CatalogueEntry(
        name="Archives within archives",
        formats=_OBJECTS,
        detected_by="tar and zip; gzip, bzip2, xz, lzma and zstandard, also several, around them",
        gives="what the files in them give",
        lacks="what lies deeper than `REDRA_IMPORT_ARCHIVE_DEPTH_MAX`",
        example="redra import bundle.tar.xz --history bug",
    ),
    CatalogueEntry(
        name="Archive with unsafe entries",
        formats=_OBJECTS,
        detected_by="names that are absolute or climb out, links",
        gives="the other entries",
        lacks="the unsafe entries, which are named",
        example="an archive that somebody sent",
    ),
    CatalogueEntry(
        name="Tables of kubectl get",
        formats=(Format.PRINTED, Format.MIXTURE),
        detected_by=(
            "their titles, and the command above them or in the name of the file; "
            "also between bars or commas, in tables of HTML, in screens that k9s keeps (CSV), and "
            "in tables of pods that a page in a browser shows; rows may stand beside the titles; "
            "rows of pods, claims, nodes and Events also without them; columns that somebody "
            "chose by the fields in the command above (`custom-columns`); names below a command "
            "with `-o name`"
        ),
        gives="names, nodes, phases, what a container waits for, whether claims are allocated, "
        "what is being deleted: parts of objects (`printed`)",
        lacks="everything that a table does not show; the namespace, where no command tells it; "
        "rows that are cut, the output of templates (`jsonpath`) and that of crictl, which are "
        "named; "
        "what a watch shows as `DELETED`",
        example="kubectl get pods -A -o wide > terminal.txt",
    ),
    CatalogueEntry(
        name="kubectl describe",
        formats=(Format.PRINTED, Format.MIXTURE),
        detected_by="`Name:` at the beginning and the fields of its kind",
        gives="of kinds of resource.k8s.io all fields; of pods and nodes names, labels, nodes, "
        "containers and their states, taints, conditions, whether a node is cordoned, its creation "
        "and release; of workloads names, labels, creation and numbers of pods; Events, also of a "
        "table that stands alone if it or the command above names its object: parts of objects "
        "(`printed`)",
        lacks="annotations, managed fields; of pods, nodes and workloads everything else; messages "
        "of containers on several lines; the times of Events",
        example="kubectl describe pod web-1 > described.txt",
    ),
)
