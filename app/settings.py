"""The settings of redra: every bound and choice by name.

Each can be set as an environment variable `REDRA_<NAME>`. Times end in their unit, bounds in
`_max`. `docs/generate.py` makes `docs/reference/settings.md` from this file. Every command imports
this module, so it imports no library.
"""

import os
from collections.abc import Mapping
from dataclasses import Field, dataclass, fields
from pathlib import Path
from typing import Any, Literal

from app import setting_texts
from app.domain.errors import InputError
from app.setting_groups import GroupedSettings, setting

PREFIX = "REDRA_"


@dataclass(frozen=True, kw_only=True)
class Settings(GroupedSettings):
    """The settings of one process, from the environment; the command line overrides them."""

    given: frozenset[str] = frozenset()
    """The names of settings from the environment or the command line; not a setting itself."""

    misspelt: tuple[tuple[str, str], ...] = ()
    """Variables without effect, each with the one that was probably meant; not a setting itself."""

    database_url: str = setting("", description="External PostgreSQL; empty: the embedded server")
    reader_url: str = setting(
        "",
        description="URL at which `redra sql` queries an external database, as a read-only role; "
        "empty: as `redra_reader`, which `redra migrate` creates if it may",
    )
    data: Path = setting(Path(".redra"), description="Folder of the embedded server and kubeconfig")
    server: str = setting(
        "auto",
        description="Server that commands query: an address, `auto` for the one that runs on the "
        "data folder, `none` to open the data",
    )
    server_token: str = setting("", description="Bearer token for a server named by its address")
    server_authority_file: Path | None = setting(
        None, description="Certificate of the authority of such a server; empty: the system's"
    )
    server_connect_seconds: float = setting(
        5.0, gt=0, description="Longest wait of a command for a connection to a server"
    )
    server_answer_seconds: float = setting(
        120.0, gt=0, description="Longest silence of a server that a command waits for"
    )
    server_answer_bytes_max: int = setting(
        256 * 1024 * 1024, ge=1, description="Longest answer of a server that a command reads"
    )
    folder_wait_seconds: float = setting(
        30.0,
        ge=0,
        description="Longest wait of commands on one data folder for each other, when they start "
        "and stop the embedded server",
    )
    postgres_bin: str = setting("", description="Folder with initdb and postgres; empty: search")
    listen: str = setting("127.0.0.1:8080", description="Address and port of the API")
    profile: str = setting("1.37", description="Kubernetes version that new histories imitate")
    gates: str = setting("", description="Feature gates of new histories: `NAME=true,NAME=false`")
    quirks: str = setting("", description="Quirks of new histories: `c8=on,q3=off`")
    controllers_off: str = setting(
        "", description="Controllers that do not run in new histories: `kubelet,jobs`"
    )
    bind_delay_millis: int = setting(
        0,
        ge=0,
        le=60_000,
        description="Duration of bindings in new histories, in which claims are in flight",
    )
    service_addresses: str = setting("10.96.0.0/12", description="Range of addresses for services")
    service_node_ports: str = setting("30000-32767", description="Range of node ports for services")
    binding_timeout_seconds: int = setting(
        600,
        ge=1,
        le=604_800,
        description="Longest wait for binding conditions of devices in new histories",
    )
    event_ttl_seconds: int = setting(
        3_600,
        ge=0,
        description="Time that Event objects of new histories are kept after their last change; "
        "0: for ever",
    )
    terminated_pods_max: int = setting(
        12_500,
        ge=0,
        le=10_000_000,
        description="Finished pods that new histories keep; the oldest are removed first; 0: all",
    )

    # Network and access
    tls: bool = setting(False, description="Serve TLS; makes certificates in the data folder's pki")
    tokens_file: Path | None = setting(
        None, description='File of bearer tokens: `token,user,uid,"group1,group2"` on each line'
    )
    authorization: Literal["", "open", "rbac"] = setting(
        "", description="`open`, or `rbac` by role objects; empty: open on loopback, else rbac"
    )
    policy_file: Path | None = setting(None, description="YAML file of rules for users and groups")
    webhooks_allowed: str = setting(
        "",
        description="Admission webhooks that are called: `https://host:port/path`, or "
        "`namespace/service=https://host:port` where a service is reached; separated by commas; "
        "empty: none",
    )
    webhook_bytes_max: int = setting(
        3 * 1024 * 1024, ge=1024, description="Largest answer of an admission webhook"
    )
    clients_max: int = setting(10_000, ge=1, description="Connections of clients at once")
    header_bytes_max: int = setting(
        64 * 1024, ge=1024, description="Request line and headers of a request"
    )
    header_seconds_max: float = setting(
        10.0, gt=0, description="Longest wait for a request's headers"
    )
    body_seconds_max: float = setting(60.0, gt=0, description="Longest wait for a request's body")

    # The log
    poll_seconds: float = setting(2.0, gt=0, description="Poll that covers lost wake-ups")
    connections_max: int = setting(8, ge=2, description="Database connections of one process")
    secrets: Literal["encrypted", "digests"] = setting(
        "encrypted",
        description="Form of the values of Secrets in the log: encrypted, or as digests, which "
        "cannot be read again",
    )
    secrets_key_file: Path | None = setting(
        None, description="Key of the Secrets; empty: `secrets.key` in the data folder"
    )
    statement_timeout_seconds: float = setting(60.0, gt=0, description="Longest database statement")
    lock_timeout_seconds: float = setting(10.0, gt=0, description="Longest wait for the head row")
    connect_timeout_seconds: float = setting(
        10.0,
        gt=0,
        description="Longest wait for a connection, and at a start for an external server that is "
        "starting up",
    )
    snapshot_every: int = setting(50_000, ge=1, description="Events between kept object states")

    # Views and followers
    rebuild_tries_max: int = setting(
        6, ge=1, description="Times a rebuild starts again after a conflict with another writer"
    )
    watch_queue_max: int = setting(20_000, ge=1, description="Events that may wait for one watcher")
    recent_max: int = setting(10_000, ge=1, description="Recent events kept in memory")
    past_views_max: int = setting(4, ge=1, description="Views of past moments kept in memory")
    past_objects_max: int = setting(1_000_000, ge=1, description="Objects in a view of the past")
    replay_changes_max: int = setting(
        20_000,
        ge=1,
        description="Objects that a paced replay changes or deletes to move to another moment",
    )

    history_idle_seconds: float = setting(
        900.0,
        gt=0,
        description="Time without use after which a history is closed, until it is used again or "
        "work is due in it; the default history stays open",
    )

    # Workers
    lease_seconds: float = setting(15.0, gt=0, description="Term of a controller's lease")
    steps_max: int = setting(64, ge=1, description="Steps a controller takes before others may run")
    projector: Literal["process", "task", "off"] = setting(
        "process",
        description="The place where `redra up` writes the view tables: in a separate process, as "
        "a task of its own process (for open histories), or nowhere",
    )
    projector_decoded_max: int = setting(
        1_500, ge=1, description="Decoded objects that the process of the view tables keeps"
    )
    objects_plain_max: int = setting(
        20_000,
        ge=0,
        description="Objects of a history from which on those not read for long are kept "
        "compressed in memory",
    )
    projector_batch_max: int = setting(5_000, ge=1, description="Events folded per written batch")

    # The API
    body_bytes_max: int = setting(3 * 1024 * 1024, ge=1024, description="Largest request body")
    list_page_max: int = setting(10_000, ge=1, description="Objects in one page of a paged list")
    watchers_max: int = setting(5_000, ge=1, description="Watches of one process")
    patch_operations_max: int = setting(10_000, ge=1, description="Operations of a JSON patch")
    yaml_depth_max: int = setting(100, ge=1, description="Depth of a JSON or YAML document")
    yaml_nodes_max: int = setting(
        1_000_000, ge=1, description="Nodes of a YAML document, aliases expanded"
    )
    watch_seconds_min: int = setting(1_800, ge=1, description="Shortest watch without a time-out")
    watch_seconds_max: int = setting(3_600, ge=1, description="Longest watch without a time-out")
    bookmark_seconds: float = setting(60.0, gt=0, description="Time between bookmarks of a watch")
    watch_frames_max: int = setting(8_192, ge=1, description="Encoded events that watchers share")
    watch_first_pages_max: int = setting(
        64, ge=1, description="Pages of objects that watches which begin at once share"
    )
    revision_wait_seconds: float = setting(
        3.0, ge=0, description="Longest wait for a revision that is still to come"
    )
    list_snapshots_max: int = setting(32, ge=1, description="Paged lists kept for their next page")
    send_seconds_max: float = setting(30.0, gt=0, description="Longest wait for a client to read")
    compress_from_bytes: int = setting(
        128 * 1024, ge=0, description="Size from which answers are compressed; 0: never"
    )
    log_page_max: int = setting(5_000, ge=1, description="Events in one page of redra's own API")
    compact_like_etcd: bool = setting(
        False, description="Answer 410 for old revisions as etcd would after compaction"
    )
    retained_revisions: int = setting(
        1_000, ge=1, description="Revisions that are still offered with REDRA_COMPACT_LIKE_ETCD"
    )

    # Import
    import_object_bytes_max: int = setting(3 * 1024 * 1024, description="Largest recorded object")
    import_bytes_max: int = setting(4 * 1024**3, description="Unpacked size of one source")
    import_ratio_max: int = setting(100, description="Unpacked to packed size of a source")
    import_entries_max: int = setting(200_000, description="Files in a folder or archive")
    import_archive_depth_max: int = setting(4, description="Archives within archives")

    # Verification
    decide_runs_max: int = setting(
        64, ge=0, le=10_000, description="Runs that prove the differences of a decide replay"
    )
    decide_proof_events_max: int = setting(
        1_000_000, ge=1, description="Events of all these runs; what is left then is unexplained"
    )
    decide_events_max: int = setting(2_000_000, ge=1, description="Events of a history made again")
    decide_shared_events_max: int = setting(
        40_000, ge=0, description="Events that runs share, also recorded ones, 10 KB each; 0: none"
    )
    second_opinion_evaluations_max: int = setting(
        10_000,
        ge=1,
        description="Pairs of an expression and a device that a second opinion evaluates, some "
        "milliseconds each; the report counts the others",
    )
    second_opinion_cost_max: int = setting(
        10_000,
        ge=1,
        description="CEL cost of an evaluation beyond which there is no second opinion; the other "
        "evaluator has no bound of its own",
    )

    # Blast radius
    blast_bytes_max: int = setting(64 * 1024 * 1024, ge=1024, description="Largest proposal file")
    blast_changes_max: int = setting(1_000, ge=1, description="Changes in one proposal")
    blast_listed_max: int = setting(10_000, ge=1, description="Entries in a list of a blast answer")
    blast_waiting_max: int = setting(
        200,
        ge=0,
        description="Waiting pods that a blast radius tries with and without the change",
    )
    blast_examples_max: int = setting(5, ge=1, description="Examples of a kind on a printed page")
    blasts_at_once_max: int = setting(1, ge=1, description="Blast radii or fits at a time")
    fit_copies_max: int = setting(1_000, ge=1, description="Copies of a claim or pod tried")
    fit_subjects_max: int = setting(50, ge=1, description="Claims, pods or classes in one question")
    fit_attempts_max: int = setting(5_000, ge=1, description="Copies tried for one question")
    fit_puts_max: int = setting(1_000, ge=1, description="Objects that accompany the copies to fit")
    capacity_moments_max: int = setting(32, ge=1, description="Moments of a capacity answer")
    capacity_at_once_max: int = setting(8, ge=1, description="New ones of these in one request")
    capacity_steps_max: int = setting(5_000, ge=1, description="Steps in search of a largest claim")

    # Differences
    diff_events_max: int = setting(500_000, ge=1, description="Events of a history in `redra diff`")
    diff_explained_max: int = setting(
        1_000, ge=0, description="Differences whose reasons are compared"
    )
    diff_nodes_max: int = setting(
        64, ge=0, description="Nodes up to which a difference is examined on all of them"
    )
    trial_events_max: int = setting(
        1_000_000,
        ge=1,
        description="Events of one run of a sweep, of a search for the smallest history, or of a "
        "test",
    )
    minimise_command_seconds: float = setting(
        600.0, gt=0, description="Longest check of one history by a command of `redra minimise`"
    )
    rehearse_runs_max: int = setting(
        64, ge=0, le=10_000, description="Runs that attribute differences to settings of a release"
    )
    rehearse_events_max: int = setting(
        200_000, ge=1, description="Events of all these runs; the rest is not attributed"
    )
    rehearse_at_once_events_max: int = setting(200, ge=0, description="More are rehearsed by jobs")
    diff_at_once_events_max: int = setting(2_000, ge=0, description="More: in a process of its own")
    diff_listed_max: int = setting(10_000, ge=1, description="Entries in a list of differences")
    diffs_at_once_max: int = setting(1, ge=1, description="Comparisons that are made at a time")
    timelines_at_once_max: int = setting(4, ge=1, description="Timelines that are read at a time")

    demo_seconds: float = setting(
        30.0,
        gt=0,
        description="Longest wait of `redra demo` for a state, for an answer of its server and for "
        "the end of that",
    )

    # Allocation and explanation
    summary_bytes_max: int = setting(4_096, ge=1024, description="Size of a decision's summary")
    summary_nodes_max: int = setting(
        512, ge=0, description="Nodes of a decision whose devices' causes are counted"
    )
    explanations_at_once_max: int = setting(
        4, ge=1, description="Explanations that a server computes at a time"
    )
    chronicles_max: int = setting(
        8, ge=1, description="Histories whose timeline a server keeps in memory, for pages"
    )
    chronicle_events_max: int = setting(
        2_000,
        ge=1_000,
        description="Events that one request for a timeline reads; the next request continues",
    )
    findings_max: int = setting(100, ge=1, description="Findings in one answer, ranked")
    findings_pods_max: int = setting(
        8, ge=0, description="Waiting pods whose device causes one answer with findings tells"
    )
    findings_former_pods_max: int = setting(
        6,
        ge=0,
        description="Pods that wait no more whose causes one answer with findings tells; for that "
        "the state at each refusal is rebuilt",
    )
    findings_former_objects_max: int = setting(
        30_000,
        ge=0,
        description="Objects of former states that one answer with findings rebuilds, in all",
    )
    timeline_rows_max: int = setting(100, ge=1, description="Entries on one page of a timeline")
    object_versions_max: int = setting(
        50, ge=2, description="Versions of an object that its page compares, the newest ones"
    )
    lanes_max: int = setting(40, ge=1, description="Lanes in one picture")
    lanes_shapes_max: int = setting(
        550, ge=10, description="States and marks in one picture of lanes"
    )
    lane_states_max: int = setting(
        16, ge=3, description="States of one lane; beyond that, short ones are shown as one"
    )
    lane_marks_max: int = setting(60, ge=1, description="Marks of one lane, the newest ones")
    map_devices_max: int = setting(120, ge=1, description="Devices on one map")
    scan_events_max: int = setting(200_000, ge=1, description="Events that a server scans at most")
    scan_at_once_events_max: int = setting(
        2_000, ge=0, description="More are not scanned for a page of findings, which says so"
    )
    scan_attempts_max: int = setting(2_000, ge=0, description="Attempts that a scan makes again")
    attempts_max: int = setting(
        100, ge=1, description="Attempts for one pod in an answer, the last ones"
    )
    pace_pods_max: int = setting(
        30, ge=1, description="Pods whose start an answer describes, the slowest ones"
    )
    live_streams_max: int = setting(
        200, ge=0, description="Pages that follow histories as they grow, at once"
    )
    live_pace_seconds: float = setting(
        1.0, gt=0, description="Shortest time between two changes of such a page"
    )
    pace_scanned_max: int = setting(
        1_000, ge=1, description="Pods whose start is read for one answer, the last ones"
    )
    report_events_max: int = setting(
        500_000, ge=1, description="Events of a history of which a server makes a report or a trace"
    )
    reports_at_once_max: int = setting(
        1, ge=1, description="Reports that a server makes at a time; others wait"
    )
    report_objects_max: int = setting(
        40, ge=0, description="Objects whose reasons and versions a report holds"
    )
    report_scan_seconds: float = setting(60.0, gt=0, description="Longest scan for a report")
    report_rows_max: int = setting(500, ge=1, description="Rows of the timeline in a report")
    report_bytes_max: int = setting(5_000_000, ge=500_000, description="Size of a report")
    trace_entries_max: int = setting(200_000, ge=1, description="Newest events in a Perfetto trace")
    timeline_scanned_max: int = setting(
        30_000, ge=1, description="Entries that are read for one page of a timeline"
    )
    sql_rows_max: int = setting(10_000, ge=1, description="Rows that `redra sql` prints")
    sql_bytes_max: int = setting(
        32_000_000, ge=1, description="Size of a result of `redra sql`; a larger one is refused"
    )
    sql_memory_bytes_max: int = setting(
        512_000_000,
        ge=64_000_000,
        description="Memory of the embedded server for a statement of `redra sql`, on Linux",
    )
    sql_compared_rows_max: int = setting(
        20_000, ge=0, description="Rows that `redra sql` compares with what was written"
    )
    sql_timeout_seconds: float = setting(60.0, gt=0, description="Longest statement of `redra sql`")
    explain_steps_max: int = setting(
        4_000, ge=0, description="Steps of a search that are followed for an explanation"
    )
    explain_followed_nodes_max: int = setting(
        8, ge=0, description="Nodes of one explanation on which a search is followed"
    )
    explain_opened_nodes_max: int = setting(
        8, ge=0, description="Closed nodes that are tried as if they were open"
    )
    explain_quirk_nodes_max: int = setting(
        8, ge=0, description="Nodes of one explanation on which upstream's defects are repaired"
    )
    explain_names_max: int = setting(5_000, ge=1, description="Names read to find a mistaken one")
    explain_names_compared_max: int = setting(200, ge=1, description="Of these, those compared")
    explain_places_max: int = setting(20, ge=1, description="Namespaces searched for a name")
    explain_histories_max: int = setting(50, ge=0, description="Other histories searched for it")

    @classmethod
    def described(cls) -> dict[str, str]:
        """The description of each setting by name, in the order of the reference page."""
        return {each.name: each.metadata["description"] for each in _settings()}

    @classmethod
    def defaults(cls) -> dict[str, object]:
        """The default of each setting by name."""
        return {each.name: each.default for each in _settings()}

    def kubeconfig(self) -> str:
        """The kubeconfig that kubectl uses: that of `KUBECONFIG`, else that in the home folder."""
        return os.environ.get("KUBECONFIG", "") or "~/.kube/config"

    def environment(self, **changes: str) -> dict[str, str]:
        """The environment that gives another process these settings with the `changes`."""
        chosen = {name: getattr(self, name) for name in self.defaults()} | changes
        named = {f"{PREFIX}{k.upper()}": str(v) for k, v in chosen.items() if v is not None}
        return {k: v for k, v in os.environ.items() if k not in dict(self.misspelt)} | named


def follow_kubeconfig() -> None:
    """Sets REDRA_DATA to the folder of the first file in KUBECONFIG, unless REDRA_DATA is set.

    A server writes `kubeconfig` or `kubeconfig-PORT`; a file with another name has no effect.
    """
    path = Path(os.environ.get("KUBECONFIG", "").split(os.pathsep)[0])
    if path.name.startswith("kubeconfig") and path.is_file():
        os.environ.setdefault("REDRA_DATA", str(path.parent))


def read(given: Mapping[str, object], *, environment: Mapping[str, str] = os.environ) -> Settings:
    """Reads the settings of an environment; values in `given` override them.

    Texts are parsed as the type of the setting: a switch is `true` or `false`, `yes`, `no`, `on`,
    `off`, `1` or `0`. Raises InputError, which names the variable, for an invalid value.
    """
    values: dict[str, Any] = {}
    for each in _settings():
        variable = f"{PREFIX}{each.name.upper()}"
        if each.name in given:
            values[each.name] = _checked(each, given[each.name], variable)
        elif variable in environment:
            values[each.name] = _checked(each, environment[variable], variable)
    misspelt = setting_texts.misspelt(environment, PREFIX, Settings.defaults())
    return Settings(given=frozenset(values), misspelt=misspelt, **values)


def _settings() -> list[Field[Any]]:
    """The settings, those of groups last."""
    declared = [each for each in fields(Settings) if each.metadata]
    return sorted(declared, key=lambda each: each.name not in Settings.__annotations__)


def _checked(one: Field[Any], value: object, variable: str) -> object:
    try:
        return setting_texts.read(value, one.type, one.metadata)
    except ValueError as problem:
        raise InputError(
            f"the value must be {problem}", place=variable, cure="see docs/reference/settings.md"
        ) from problem


def colours_wanted() -> bool:
    """True when output to a terminal may have colours: NO_COLOR is absent or empty."""
    return not os.environ.get("NO_COLOR")


def pager() -> tuple[str, dict[str, str]]:
    """The pager for long answers (REDRA_PAGER, PAGER, else less), and its environment."""
    text = os.environ.get("REDRA_PAGER", os.environ.get("PAGER", "less"))
    return text, {"LESS": "FRX", **os.environ}
