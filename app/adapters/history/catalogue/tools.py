"""Files of tools: recorders, simulators, stores, logs of components."""

from app.adapters.history.catalogue.entry import CatalogueEntry
from app.adapters.history.detection import Format

_OBJECTS = (Format.DUMP,)
_MOMENT = "the changes before, who made them; one moment"

ENTRIES = (
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
        detected_by="MessagePack or JSON, `events` with `ts` and `applied_objs` (versions 1 to 3)",
        gives="specifications as they were applied and deleted, to the second; the initial state",
        lacks="status in general, uids, resource versions",
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
        detected_by="the database in `member/snap`, with the write-ahead log in `member/wal`",
        gives="as an etcd snapshot; also the writes that stand in the log only",
        lacks="as an etcd snapshot; requests of which the log does not say that they were decided",
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
        name="Answer of etcdctl, simple",
        formats=(Format.ETCDCTL,),
        detected_by="a line with a key (`/registry/…`), and a stored value behind it",
        gives="the objects",
        lacks="their revisions; the changes before, who made them; one moment; encrypted values",
        example="etcdctl get --prefix /registry/ > registry.txt",
    ),
    CatalogueEntry(
        name="Objects in protobuf",
        formats=_OBJECTS,
        detected_by="`k8s` and a byte of zero first",
        gives="the objects",
        lacks=_MOMENT + "; kinds whose fields redra does not know, which are refused",
        example="etcdctl get /registry/namespaces/shop --print-value-only > shop.bin",
    ),
    CatalogueEntry(
        name="Recorded terminal",
        formats=(Format.MIXTURE, *_OBJECTS),
        detected_by="a line of JSON with `version` and `width` or `term`, then arrays (asciinema)",
        gives="what the terminal showed, as a text",
        lacks="what such a text lacks",
        example="asciinema rec bug.cast",
    ),
    CatalogueEntry(
        name="Watch of etcdctl",
        formats=(Format.ETCDCTL,),
        detected_by=(
            "answers with `Header` and `Events`, fields with `Type`, or `PUT` and `DELETE` in a "
            "line before each key"
        ),
        gives="every write and deletion, with revisions but in the simple form",
        lacks="the state before, but with `--prev-kv`; who made them, times; encrypted values",
        example="etcdctl watch --prefix /registry/ --prev-kv -w json > registry.json",
    ),
    CatalogueEntry(
        name="kine table",
        formats=(Format.KINE,),
        detected_by=(
            "a table `kine` in SQLite, also with its write-ahead log beside it (`state.db-wal`), "
            "in a dump of SQL (sqlite3, mysqldump, pg_dump), or an export with its columns (CSV, "
            "also with tabs, bars, frames or a cell a line, as mysql, psql and sqlite3 show "
            "tables, JSON, COPY), its values in digits, base64 or JSON; all nine columns also "
            "without titles"
        ),
        gives="every write since the last compaction, and the state before",
        lacks="who made them, times",
        example="cp /var/lib/rancher/k3s/server/db/state.db .",
    ),
    CatalogueEntry(
        name="kube-scheduler log",
        formats=(Format.SCHEDULER_LOG,),
        detected_by=(
            "lines of klog, also behind other words (`--prefix`, stern, a journal, `journalctl -o "
            "export`), in a cell of a table or in any field of JSON or YAML, on one line or over "
            "many (gcloud, Loki, Elasticsearch); lines of `--logging-format=json`; sentences of "
            "releases up to 1.19; also where the head of the line is shortened or cut off"
        ),
        gives="attempts to place pods and what came of them, as observed requests",
        lacks="every object; the year, unless `--at` names it",
        example="kubectl -n kube-system logs kube-scheduler-master-1",
    ),
    CatalogueEntry(
        name="kubelet log",
        formats=(Format.SCHEDULER_LOG,),
        detected_by=(
            "lines of klog about a pod, as for kube-scheduler: what failed (`Error syncing pod`, "
            "`Failed to prepare dynamic resources`, containers that did not start, volumes), "
            "`SyncLoop`, containers that started and ended; lines in JSON, also behind the name of "
            "a node; sentences of releases up to 1.19"
        ),
        gives="failures and reports of a kubelet about pods, as observed requests",
        lacks="every object; lines about no pod; the year, unless `--at` names it",
        example="journalctl -u kubelet --no-pager > kubelet.log",
    ),
    CatalogueEntry(
        name="Events in logs of components",
        formats=(Format.SCHEDULER_LOG,),
        detected_by=(
            "`Event occurred` or `Event(v1.ObjectReference{…})` in lines of klog, as for "
            "kube-scheduler; lines of managers with the logger `events`, in JSON or for people; "
            "`At TIME - event for NAME` in the output of Kubernetes' end-to-end tests"
        ),
        gives="Events, equal ones once with their count: parts of objects (`printed`)",
        lacks=(
            "their names, who wrote them, the year unless `--at` names it; lines that are cut; of "
            "end-to-end tests the types, and Events of other components than kubelets and "
            "kube-scheduler"
        ),
        example="journalctl -u kubelet --no-pager > kubelet.log",
    ),
    CatalogueEntry(
        name="Events of collectors for Loki",
        formats=(Format.SCHEDULER_LOG,),
        detected_by=(
            "the field `objectAPIversion` in lines of logfmt or JSON, also in answers of Loki, "
            "in output of logcli and in downloads of Grafana, whose labels tell the namespace"
        ),
        gives="Events, equal ones once with their count: parts of objects (`printed`)",
        lacks="their names and uids, and those of their subjects; namespaces where no label tells",
        example="logcli query '{job=\"loki.source.kubernetes_events\"}' > events.txt",
    ),
    CatalogueEntry(
        name="Events in a workspace of Azure",
        formats=(Format.PRINTED,),
        detected_by=(
            "rows with `ObjectKind`, `KubeEventType` and `Reason` (KubeEvents), in JSON, in CSV or "
            "in an answer of the query API (`tables` with `columns` and `rows`)"
        ),
        gives="Events, equal ones once: parts of objects (`printed`)",
        lacks="their names and uids, and those of their subjects",
        example="az monitor log-analytics query --analytics-query KubeEvents",
    ),
    CatalogueEntry(
        name="Events of Metricbeat",
        formats=(Format.PRINTED,),
        detected_by="`kubernetes.event` with `involved_object` and `reason`, in lines of JSON, "
        "also below `_source`",
        gives="Events with their names and uids: parts of objects (`printed`)",
        lacks="their sources; states of pods and nodes as metrics, which are left out",
        example="metricbeat with the metricset `event` and `output.file`",
    ),
    CatalogueEntry(
        name="Checkpoint of a kubelet",
        formats=(Format.PRINTED,),
        detected_by="`ClaimInfoStateList`, also as a text in `Data` (`dra_manager_state`)",
        gives="claims that were prepared on the node, which were allocated: parts of objects "
        "(`printed`)",
        lacks="everything else of the claims; the devices are those that a driver prepared, which "
        "need not be those of the allocation, and are not read",
        example="cp /var/lib/kubelet/dra_manager_state .",
    ),
    CatalogueEntry(
        name="Answers of Rancher",
        formats=(Format.DUMP, Format.MIXTURE),
        detected_by=(
            "`id`, `type` and `links` of Rancher beside an object, alone, in a collection (`data`) "
            "or in a message of a change"
        ),
        gives="the objects as the API server stores them, without the fields that Rancher adds",
        lacks="the changes before, who made them; one moment; messages of removals",
        example="GET /k8s/clusters/c-1/v1/pods",
    ),
    CatalogueEntry(
        name="Resources of Argo CD",
        formats=(Format.MIXTURE, *_OBJECTS),
        detected_by="`liveState` and `targetState` in one object",
        gives="the live objects",
        lacks="the changes before, who made them; the states that are wanted or expected, which "
        "are left out",
        example="GET /api/v1/applications/NAME/managed-resources",
    ),
    CatalogueEntry(
        name="State of Terraform",
        formats=(Format.MIXTURE, *_OBJECTS),
        detected_by="`terraform_version` and `resources`",
        gives="the objects of `kubernetes_manifest` as they were after the last apply, and "
        "manifests in texts",
        lacks="the changes before, who made them; resources such as `kubernetes_pod_v1`, which are "
        "named",
        example="terraform state pull > state.json",
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
