"""Audit logs, as servers write them and services hand them out."""

from app.adapters.history.catalogue.entry import CatalogueEntry
from app.adapters.history.detection import Format

_AUDIT = (Format.AUDIT,)

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
        gives="as an audit log; beside them lines of kube-scheduler and kubelets",
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
        gives="as an audit log; beside them lines of kube-scheduler and kubelets",
        lacks="what the service cut off",
        example="the container insights-logs-kube-audit",
    ),
    CatalogueEntry(
        name="Azure tables",
        formats=_AUDIT,
        detected_by=(
            "columns `AuditId`, `Verb`, `ObjectRef` (AKSAudit, AKSAuditAdmin), also in an answer "
            "of the query API (`tables` with `columns` and `rows`)"
        ),
        gives="as an audit log",
        lacks="objects that were too big for the table",
        example="az monitor log-analytics query --analytics-query AKSAudit",
    ),
    CatalogueEntry(
        name="Azure tables as CSV",
        formats=_AUDIT,
        detected_by="columns `AuditId`, `Verb`, `ObjectRef`, also in a text",
        gives="as an audit log",
        lacks="as Azure tables; times of the portal that do not say UTC",
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
        name="Google audit log in BigQuery",
        formats=_AUDIT,
        detected_by="the column `protopayload_auditlog`, whose bodies are text",
        gives="as a Google audit log",
        lacks="as a Google audit log",
        example="bq query --format json 'SELECT * FROM …cloudaudit_googleapis_com_activity'",
    ),
    CatalogueEntry(
        name="Elasticsearch",
        formats=_AUDIT,
        detected_by=(
            "audit events anywhere in a hit, also with one field for each path, or with `fields` "
            "as lists"
        ),
        gives="as an audit log",
        lacks=(
            "what the index does not keep; bodies, where fields are lists; hits that the answer "
            "does not hold, which are named"
        ),
        example="the answer of a search",
    ),
    CatalogueEntry(
        name="Splunk and other envelopes",
        formats=_AUDIT,
        detected_by=(
            "audit events anywhere in a JSON line, as object or as text, also with texts as parts; "
            "fields of events by their paths, in JSON or CSV; the typed values of OpenTelemetry"
        ),
        gives="as an audit log",
        lacks="as an audit log; what is no field, or no column, of the export",
        example="an export as JSON",
    ),
    CatalogueEntry(
        name="Alerts of Falco",
        formats=_AUDIT,
        detected_by="`output_fields` with `ka.verb` and `ka.target.resource`, in JSON",
        gives="as an audit log without bodies, for the requests that a rule matched",
        lacks="every object; fields that the rule does not show; alerts that name no request",
        example="kubectl logs -l app.kubernetes.io/name=falco > falco.log",
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
        name="Records of collectors, texts of queries",
        formats=_AUDIT,
        detected_by=(
            "audit events in records with `=>`, as fluent-bit and fluentd show them, also over "
            "many lines (rubydebug of Logstash), and as texts "
            "in an array or on lines"
        ),
        gives="as an audit log",
        lacks="records with a quote in a field, which fluent-bit does not escape",
        example="aws logs filter-log-events --query 'events[].message' > audit.json",
    ),
)
