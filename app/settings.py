"""Every limit and choice by name. Each can be set as an environment variable `REDRA_<NAME>`.

Times end in their unit, bounds end in `_max`. `docs/reference/settings.md` is made from this file.
"""

import os
from pathlib import Path
from typing import Literal

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict


class Settings(BaseSettings):
    """Choices of one process, read from the environment; the command line overrides them."""

    model_config = SettingsConfigDict(env_prefix="REDRA_", extra="ignore", frozen=True)

    database_url: str = Field("", description="External PostgreSQL; empty: the embedded server")
    reader_url: str = Field(
        "",
        description="Address at which `redra sql` asks an external database, as a role that may "
        "only read; empty: as `redra_reader`, which `redra migrate` makes where it may",
    )
    data: Path = Field(Path(".redra"), description="Folder of the embedded server and kubeconfig")
    postgres_bin: str = Field("", description="Folder with initdb and postgres; empty: search")
    listen: str = Field("127.0.0.1:8080", description="Address and port of the API")
    profile: str = Field("1.37", description="Kubernetes version that new histories imitate")
    gates: str = Field("", description="Feature gates of new histories: `NAME=true,NAME=false`")
    quirks: str = Field("", description="Quirks of new histories: `c8=on,q3=off`")
    controllers_off: str = Field(
        "", description="Controllers that do not run in new histories: `kubelet,jobs`"
    )
    bind_delay_millis: int = Field(
        0,
        ge=0,
        le=60_000,
        description="How long bindings take in new histories: claims are in flight meanwhile",
    )

    service_addresses: str = Field(
        "10.96.0.0/12", description="Range from which services get their addresses"
    )
    service_node_ports: str = Field(
        "30000-32767", description="Range from which services get ports of the nodes"
    )
    binding_timeout_seconds: int = Field(
        600,
        ge=1,
        le=604_800,
        description="How long binding conditions of devices may take to hold in new histories",
    )
    event_ttl_seconds: int = Field(
        3_600,
        ge=0,
        description="How long Event objects of new histories stay after their last change; 0: for "
        "ever",
    )
    terminated_pods_max: int = Field(
        12_500,
        ge=0,
        le=10_000_000,
        description="Finished pods that new histories keep, the oldest go first; 0: all",
    )

    # Who may reach it
    tls: bool = Field(False, description="Serve TLS; makes certificates in the data folder's pki")
    tokens_file: Path | None = Field(
        None, description='File of bearer tokens: `token,user,uid,"group1,group2"` on each line'
    )
    authorization: Literal["", "open", "rbac"] = Field(
        "", description="`open`, or `rbac` by role objects; empty: open on loopback, else rbac"
    )
    policy_file: Path | None = Field(None, description="YAML file of rules for users and groups")
    webhooks_allowed: str = Field(
        "",
        description="Admission webhooks that are called: `https://host:port/path`, or "
        "`namespace/service=https://host:port` where a service is reached; separated by commas; "
        "empty: none",
    )
    webhook_bytes_max: int = Field(
        3 * 1024 * 1024, ge=1024, description="Largest answer of an admission webhook"
    )
    clients_max: int = Field(10_000, ge=1, description="Connections of clients at once")
    header_bytes_max: int = Field(
        64 * 1024, ge=1024, description="Request line and headers of a request"
    )
    header_seconds_max: float = Field(
        10.0, gt=0, description="Longest wait for a request's headers"
    )
    body_seconds_max: float = Field(60.0, gt=0, description="Longest wait for a request's body")

    # The log
    batch_max: int = Field(256, ge=1, description="Commands decided and committed together")
    write_queue_max: int = Field(10_000, ge=1, description="Writes that may wait in one process")
    write_retries_max: int = Field(20, ge=1, description="Times a batch is decided again")
    object_bytes_max: int = Field(
        3 * 1024 * 1024, ge=1024, description="Largest object that clients may store"
    )
    poll_seconds: float = Field(2.0, gt=0, description="Poll that covers lost wake-ups")
    connections_max: int = Field(8, ge=2, description="Database connections of one process")
    secrets: Literal["encrypted", "digests"] = Field(
        "encrypted",
        description="How values of Secrets stand in the log: encrypted, or as digests that nobody "
        "can read again",
    )
    secrets_key_file: Path | None = Field(
        None, description="Key of the Secrets; empty: `secrets.key` in the data folder"
    )
    statement_timeout_seconds: float = Field(60.0, gt=0, description="Longest database statement")
    lock_timeout_seconds: float = Field(10.0, gt=0, description="Longest wait for the head row")
    connect_timeout_seconds: float = Field(
        10.0,
        gt=0,
        description="Longest wait for a connection, and at a start for an external server that is "
        "starting up",
    )
    snapshot_every: int = Field(50_000, ge=1, description="Events between kept object states")

    # Views and followers
    watch_queue_max: int = Field(20_000, ge=1, description="Events that may wait for one watcher")
    recent_max: int = Field(10_000, ge=1, description="Recent events kept in memory")
    past_views_max: int = Field(4, ge=1, description="Views of past moments kept in memory")
    past_objects_max: int = Field(1_000_000, ge=1, description="Objects in a view of the past")

    history_idle_seconds: float = Field(
        900.0,
        gt=0,
        description="A history that nobody uses for so long is closed until it is used again or "
        "something is due in it; the default one stays open",
    )

    # Workers
    lease_seconds: float = Field(15.0, gt=0, description="Term of a controller's lease")
    steps_max: int = Field(64, ge=1, description="Steps a controller takes before others may run")
    projector: Literal["process", "task", "off"] = Field(
        "process",
        description="Where `redra up` writes the view tables: in a process beside it, as a task "
        "of its own process (of open histories), or not at all",
    )
    projector_decoded_max: int = Field(
        1_500, ge=1, description="Decoded objects that the process of the view tables keeps"
    )
    projector_batch_max: int = Field(5_000, ge=1, description="Events folded per written batch")

    # The API
    body_bytes_max: int = Field(3 * 1024 * 1024, ge=1024, description="Largest request body")
    list_page_max: int = Field(10_000, ge=1, description="Objects in one page of a paged list")
    watchers_max: int = Field(5_000, ge=1, description="Watches of one process")
    patch_operations_max: int = Field(10_000, ge=1, description="Operations of a JSON patch")
    yaml_depth_max: int = Field(100, ge=1, description="Depth of a JSON or YAML document")
    yaml_nodes_max: int = Field(
        1_000_000, ge=1, description="Nodes of a YAML document, aliases expanded"
    )
    watch_seconds_min: int = Field(1_800, ge=1, description="Shortest watch without a time-out")
    watch_seconds_max: int = Field(3_600, ge=1, description="Longest watch without a time-out")
    bookmark_seconds: float = Field(60.0, gt=0, description="Time between bookmarks of a watch")
    watch_frames_max: int = Field(8_192, ge=1, description="Encoded events that watchers share")
    revision_wait_seconds: float = Field(
        3.0, ge=0, description="Longest wait for a revision that is still to come"
    )
    list_snapshots_max: int = Field(32, ge=1, description="Paged lists kept for their next page")
    send_seconds_max: float = Field(30.0, gt=0, description="Longest wait for a client to read")
    compress_from_bytes: int = Field(
        128 * 1024, ge=0, description="Size from which answers are compressed; 0: never"
    )
    log_page_max: int = Field(5_000, ge=1, description="Events in one page of redra's own API")
    compact_like_etcd: bool = Field(
        False, description="Answer 410 for old revisions as etcd would after compaction"
    )
    retained_revisions: int = Field(
        1_000, ge=1, description="Revisions that are still offered with REDRA_COMPACT_LIKE_ETCD"
    )

    # Import
    import_object_bytes_max: int = Field(3 * 1024 * 1024, description="Largest recorded object")
    import_bytes_max: int = Field(4 * 1024**3, description="Unpacked size of one source")
    import_ratio_max: int = Field(100, description="Unpacked to packed size of a source")
    import_entries_max: int = Field(200_000, description="Files in a folder or archive")

    # Verification
    verify_processes: int = Field(
        0,
        ge=0,
        le=64,
        description="Processes that verify a long history together; 0: as many as there are "
        "processors",
    )
    decide_runs_max: int = Field(
        64,
        ge=0,
        le=10_000,
        description="Runs that a decide replay makes to prove the classes of differences; what is "
        "not tried by then is unexplained",
    )
    verify_spool_bytes_max: int = Field(
        4 * 1024**3,
        ge=1,
        description="Temporary file of events for these processes; where it would be larger, or "
        "there is no room, one process does all",
    )
    second_opinion_evaluations_max: int = Field(
        10_000,
        ge=1,
        description="Pairs of an expression and a device that a second opinion is asked about, "
        "some milliseconds each; the report counts those beyond",
    )
    second_opinion_cost_max: int = Field(
        10_000,
        ge=1,
        description="CEL cost of an evaluation beyond which no second opinion is asked for; the "
        "other evaluator has no bound of its own",
    )

    # Blast radius
    blast_bytes_max: int = Field(64 * 1024 * 1024, ge=1024, description="Largest proposal file")
    blast_changes_max: int = Field(1_000, ge=1, description="Changes in one proposal")
    blast_listed_max: int = Field(10_000, ge=1, description="Entries in a list of a blast answer")
    blast_waiting_max: int = Field(
        200,
        ge=0,
        description="Waiting pods that a blast question tries with and without the change",
    )
    blast_examples_max: int = Field(5, ge=1, description="Examples of a kind on a printed page")
    blasts_at_once_max: int = Field(1, ge=1, description="Blast questions answered at a time")

    # Allocation and explanation
    summary_bytes_max: int = Field(4_096, ge=1024, description="Size of a decision's summary")
    summary_nodes_max: int = Field(
        512, ge=0, description="Nodes of a decision whose devices' causes are counted"
    )
    explanations_at_once_max: int = Field(
        4, ge=1, description="Questions why that a server answers at a time"
    )
    sql_rows_max: int = Field(10_000, ge=1, description="Rows that `redra sql` prints")
    sql_timeout_seconds: float = Field(60.0, gt=0, description="Longest statement of `redra sql`")
    explain_steps_max: int = Field(
        4_000, ge=0, description="Steps of a search that are followed to tell what it tried"
    )
    explain_followed_nodes_max: int = Field(
        8, ge=0, description="Nodes of one question on which a search is followed"
    )
    explain_quirk_nodes_max: int = Field(
        8, ge=0, description="Nodes of one question on which upstream's defects are repaired"
    )
    help_nodes_max: int = Field(20, ge=1, description="Nodes on which helpful changes are tried")
    help_changes_max: int = Field(2, ge=1, le=4, description="Changes that are tried together")
    help_tries_max: int = Field(300, ge=1, description="Changes tried on one node")

    def environment(self, **changes: str) -> dict[str, str]:
        """The environment of a process that is to have these settings, but for the `changes`."""
        chosen = self.model_dump(mode="json", exclude_none=True) | changes
        return {**os.environ, **{f"REDRA_{name.upper()}": str(chosen[name]) for name in chosen}}
