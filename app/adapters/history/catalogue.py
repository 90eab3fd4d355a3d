"""The catalogue of formats that an import reads.

The reference page is generated from this table.
"""

from dataclasses import dataclass

from app.adapters.history.detection import Format


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogueEntry:
    """One format: its detection, its contents and gaps, and a command that produces a file."""

    name: str
    formats: tuple[Format, ...]
    detected_by: str
    gives: str
    lacks: str
    example: str


_OBJECTS = (Format.DUMP,)
_AUDIT = (Format.AUDIT,)
_MOMENT = "the changes before, who made them; one moment"

ENTRIES = (
    CatalogueEntry(
        name="Audit log",
        formats=_AUDIT,
        detected_by="JSON lines or a list with `apiVersion: audit.k8s.io/…`",
        gives="every write, who made it, when; refused requests",
        lacks="what was there before, but for listed kinds; bodies below level `RequestResponse`",
        example="kube-apiserver --audit-log-path=audit.log",
    ),
    CatalogueEntry(
        name="Batches of an audit webhook",
        formats=_AUDIT,
        detected_by="`kind: EventList` of `audit.k8s.io`",
        gives="as an audit log",
        lacks="as an audit log",
        example="kube-apiserver --audit-webhook-config-file=…",
    ),
    CatalogueEntry(
        name="Audit log without bodies",
        formats=_AUDIT,
        detected_by="as an audit log; its events have level `Metadata`",
        gives="which object was written, by whom, when: gaps of known objects",
        lacks="every object",
        example="the policy of most managed clusters",
    ),
    CatalogueEntry(
        name="CloudWatch",
        formats=_AUDIT,
        detected_by="audit events as text in `message`, below `events` or `logEvents`",
        gives="as an audit log",
        lacks="what the service cut off",
        example="aws logs filter-log-events --log-group-name /aws/eks/NAME/cluster",
    ),
    CatalogueEntry(
        name="CloudWatch subscription",
        formats=_AUDIT,
        detected_by="the same, packed with gzip",
        gives="as an audit log",
        lacks="what the service cut off",
        example="a file of the delivery stream",
    ),
    CatalogueEntry(
        name="Azure resource logs",
        formats=_AUDIT,
        detected_by="audit events as text in `properties.log`",
        gives="as an audit log",
        lacks="what the service cut off",
        example="the container insights-logs-kube-audit",
    ),
    CatalogueEntry(
        name="Azure tables",
        formats=_AUDIT,
        detected_by="columns `AuditId`, `Verb`, `ObjectRef` (AKSAudit, AKSAuditAdmin)",
        gives="as an audit log",
        lacks="objects that were too big for the table",
        example="az monitor log-analytics query --analytics-query AKSAudit",
    ),
    CatalogueEntry(
        name="Azure tables as CSV",
        formats=_AUDIT,
        detected_by="columns `AuditId`, `Verb`, `ObjectRef`; times of the portal that say UTC",
        gives="as an audit log",
        lacks="as Azure tables",
        example="Export, CSV, in the portal's logs",
    ),
    CatalogueEntry(
        name="Azure diagnostics as CSV",
        formats=_AUDIT,
        detected_by="audit events in the cells of a column, such as `log_s`",
        gives="as an audit log",
        lacks="what the service cut off",
        example="AzureDiagnostics | where Category == 'kube-audit'",
    ),
    CatalogueEntry(
        name="CloudWatch Insights as CSV",
        formats=_AUDIT,
        detected_by="audit events in the cells of a column, such as `@message`",
        gives="as an audit log",
        lacks="what the service cut off",
        example="fields @timestamp, @message | filter @logStream like 'audit'",
    ),
    CatalogueEntry(
        name="Google audit log",
        formats=_AUDIT,
        detected_by="`protoPayload` of type `google.cloud.audit.AuditLog`",
        gives="every write with its answer, who made it, when",
        lacks="groups of users, refused requests in part",
        example="gcloud logging read 'resource.type=k8s_cluster' --format json (or yaml)",
    ),
    CatalogueEntry(
        name="Google audit log as CSV",
        formats=_AUDIT,
        detected_by="columns `protoPayload.…`",
        gives="as a Google audit log",
        lacks="as a Google audit log; fields that were not chosen as columns",
        example="Download, CSV, in the logs explorer",
    ),
    CatalogueEntry(
        name="Elasticsearch",
        formats=_AUDIT,
        detected_by="audit events anywhere in a hit, also with one field for each path",
        gives="as an audit log",
        lacks="what the index does not keep",
        example="the answer of a search",
    ),
    CatalogueEntry(
        name="Splunk and other envelopes",
        formats=_AUDIT,
        detected_by="audit events anywhere in a JSON line, as object or as text",
        gives="as an audit log",
        lacks="as an audit log",
        example="an export as JSON",
    ),
    CatalogueEntry(
        name="Lines of syslog",
        formats=(*_AUDIT, Format.MIXTURE),
        detected_by="audit events in JSON behind other text of a line",
        gives="as an audit log",
        lacks="as an audit log",
        example="journalctl -u kube-apiserver",
    ),
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
        detected_by="`kind: Table`, whose rows hold whole objects",
        gives="the objects",
        lacks="the changes before, who made them; one moment",
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
        lacks=_MOMENT,
        example="kubectl get --raw /apis/batch/v1/cronjobs",
    ),
    CatalogueEntry(
        name="Text with documents in it",
        formats=(Format.MIXTURE, *_OBJECTS),
        detected_by=(
            "JSON at a bracket, YAML at a field of an object; without colours and links of a "
            "terminal, numbers of lines, the `>` of letters, the plus signs of a new file, the "
            "marks of HTML around `<pre>`, files and changes of GitHub"
        ),
        gives="the documents at their lines; of a damaged list its other items",
        lacks=(
            "the text, which is counted; damaged documents, dots for fields and words such as "
            "`[truncated]`, which are named"
        ),
        example="script -c 'kubectl get …' notes.txt",
    ),
    CatalogueEntry(
        name="Structured log",
        formats=(Format.MIXTURE, *_OBJECTS),
        detected_by="lines of JSON or OpenTelemetry with objects below fields; those with a uid",
        gives="the objects as they were logged",
        lacks="the lines without objects, which are counted; when they were logged",
        example="kubectl -n gpu-operator logs deploy/controller > manager.log",
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
        detected_by="`{code}` and `{noformat}`, CDATA, `<pre>`",
        gives="the documents at their lines",
        lacks="the text, which is counted",
        example="the description of an issue in Jira",
    ),
    CatalogueEntry(
        name="Documents with texts in them",
        formats=(Format.MIXTURE, *_OBJECTS),
        detected_by="texts with `apiVersion` and `kind` in fields of a file that is named itself",
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
        name="Closed files",
        formats=_OBJECTS,
        detected_by="the first bytes of 7z, RAR, cabinets, lz4, PDF, age, PGP and office programs",
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
        detected_by="tar and zip; gzip, bzip2, xz and zstandard, also several, around them",
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
        detected_by="their titles, and the command above them; rows may stand beside the titles",
        gives="names, nodes, phases, whether claims are allocated: parts of objects (`printed`)",
        lacks="everything that a table does not show; the namespace, where no command tells it; "
        "what a watch shows as `DELETED`",
        example="kubectl get pods -A -o wide > terminal.txt",
    ),
    CatalogueEntry(
        name="kubectl describe",
        formats=(Format.PRINTED, Format.MIXTURE),
        detected_by="`Name:` at the beginning and the fields of its kind",
        gives="of kinds of resource.k8s.io all fields; of pods and nodes names, labels, nodes, "
        "containers, taints: parts of objects (`printed`)",
        lacks="annotations, managed fields; of pods and nodes everything else",
        example="kubectl describe pod web-1 > described.txt",
    ),
    CatalogueEntry(
        name="kwok recording",
        formats=(Format.KWOK,),
        detected_by="`kind: ResourcePatch` of `action.kwok.x-k8s.io`",
        gives="every change as a patch, with offsets of time",
        lacks="resource versions, who made them, the start (`--at`)",
        example="kwokctl snapshot record --path recording.yaml",
    ),
    CatalogueEntry(
        name="k8shark capture",
        formats=(Format.KSHRK,),
        detected_by="records with `api_path` and `response_body`, in an archive or as lines",
        gives="lists at moments and the differences between them; watched changes",
        lacks="changes between two lists, who made them",
        example="kshrk capture",
    ),
    CatalogueEntry(
        name="Scheduler simulator, record",
        formats=(Format.SIMULATOR_RECORD,),
        detected_by="JSON lines with `time`, `event` and `resource`",
        gives="every change with its time",
        lacks="who made them; the last state of what was deleted",
        example="the recorder of kube-scheduler-simulator",
    ),
    CatalogueEntry(
        name="Scheduler simulator, export",
        formats=(Format.SIMULATOR_EXPORT,),
        detected_by="arrays by the name of their resource",
        gives="the objects",
        lacks=_MOMENT,
        example="the export of kube-scheduler-simulator",
    ),
    CatalogueEntry(
        name="Scheduler snapshot",
        formats=(Format.SCHEDULER_SNAPSHOT,),
        detected_by="`rawObjects`, in a zip archive or not",
        gives="the objects that a scheduler saw",
        lacks=_MOMENT,
        example="the snapshot of a batch scheduler",
    ),
    CatalogueEntry(
        name="Autoscaler snapshot",
        formats=(Format.SCHEDULER_SNAPSHOT,),
        detected_by="`NodeList`, each node with its pods",
        gives="nodes and pods",
        lacks=_MOMENT + "; claims and slices",
        example="the debugging snapshot of the cluster autoscaler",
    ),
    CatalogueEntry(
        name="Kubernetes History Inspector",
        formats=(Format.KHI,),
        detected_by="the letters KHI and a version; version 6 is read",
        gives="the revisions of objects that it made from audit logs, who made them, when",
        lacks="refused requests; what it worked out from patches is `reconstructed`",
        example="the download of an inspection in its menu",
    ),
    CatalogueEntry(
        name="SimKube trace",
        formats=(Format.SIMKUBE,),
        detected_by="MessagePack or JSON with `version`, `events`, `config`",
        gives="specifications as they were applied and deleted, to the second",
        lacks="status, uids, resource versions",
        example="skctl export",
    ),
    CatalogueEntry(
        name="etcd snapshot",
        formats=(Format.ETCD,),
        detected_by="the pages of its database",
        gives="every write since the last compaction, and the state before",
        lacks="who made them, times; encrypted values",
        example="etcdctl snapshot save snapshot.db",
    ),
    CatalogueEntry(
        name="etcd data folder",
        formats=(Format.ETCD,),
        detected_by="the database in `member/snap`",
        gives="as an etcd snapshot",
        lacks="as an etcd snapshot; writes that stand in the write-ahead log only",
        example="cp -r /var/lib/etcd copy",
    ),
    CatalogueEntry(
        name="Answer of etcdctl",
        formats=(Format.ETCDCTL,),
        detected_by="`header` and `kvs`, keys and values in base64",
        gives="the objects with their revisions",
        lacks="the changes before, who made them; one moment; encrypted values",
        example="etcdctl get --prefix /registry/ -w json > registry.json",
    ),
    CatalogueEntry(
        name="Answer of etcdctl, fields",
        formats=(Format.ETCDCTL,),
        detected_by='lines of fields, `"ClusterID" : …` first',
        gives="the objects with their revisions",
        lacks="the changes before, who made them; one moment; encrypted values",
        example="etcdctl get --prefix /registry/ -w fields > registry.txt",
    ),
    CatalogueEntry(
        name="kine table",
        formats=(Format.KINE,),
        detected_by="a table `kine` in SQLite, or an export with its columns",
        gives="every write since the last compaction, and the state before",
        lacks="who made them, times",
        example="cp /var/lib/rancher/k3s/server/db/state.db .",
    ),
    CatalogueEntry(
        name="kube-scheduler log",
        formats=(Format.SCHEDULER_LOG,),
        detected_by=(
            "lines of klog, also behind other words (`--prefix`, stern, a journal), in a cell of a "
            "table or in any field of JSON or YAML, on one line or over many (gcloud, Loki, "
            "Elasticsearch); lines of `--logging-format=json`"
        ),
        gives="attempts to place pods and what came of them, as observed requests",
        lacks="every object; the year, unless `--at` names it",
        example="kubectl -n kube-system logs kube-scheduler-master-1",
    ),
    CatalogueEntry(
        name="Native bundle",
        formats=(Format.BUNDLE,),
        detected_by="a zip archive with `manifest.json` and `events.jsonl`",
        gives="the history as it was, with its hashes",
        lacks="nothing",
        example="redra export prod -o prod.redra",
    ),
)
