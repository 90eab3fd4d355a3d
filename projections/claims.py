"""Claims: their requests, the devices they hold, and the pods that use them.

There are two tables: one row per claim, and one row per device share that a claim holds. The row of
a claim also lists the pods that use it. A pod event touches the rows of the claims that the pod
names, and only when the node, the phase or the names changed.
"""

from collections import deque
from collections.abc import Sequence
from functools import lru_cache

import msgspec
from msgspec import Raw

from app.domain.log import Event, EventType, ObjectKey, Revision, doubts, raw_parts
from app.domain.log.pages import Page
from app.domain.log.projection import Row, RowKey, Table
from app.domain.values import api_resources
from app.domain.values.fields import dra, meta, records
from app.domain.values.fields.records import FieldRecord
from app.domain.values.identifiers import NO_UID, NamespacedName, Uid
from app.domain.values.json_tree import JsonObject
from app.domain.values.multimap import Multimap
from projections import outlines
from projections.loading import shared
from projections.packed import Packed, Packer
from projections.row_changes import NOTED_MAX, LateRows, PagedView, RowChanges
from projections.tables import CLAIM_DEVICES, CLAIMS

PLAIN_MAX = 5_000
"""Claims from which on older states are compressed."""

LATEST_MAX = 1_000
"""The states written last, which are not compressed."""


class _Claim(msgspec.Struct, gc=False, array_like=True):
    """The last stored state of a claim, and facts that this state does not contain."""

    body: bytes | Packed
    created: int
    devices: int = 0
    allocated: int | None = None
    allocated_revision: int | None = None
    doubt: str = ""

    @property
    def text(self) -> bytes:
        """The stored state."""
        return self.body if isinstance(self.body, bytes) else self.body.plain

    def unpacked(self) -> "_Claim":
        """The claim as it is in a dump."""
        if isinstance(self.body, bytes):
            return self
        return msgspec.structs.replace(self, body=self.body.plain)


class _ClaimingPod(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """The fields of a pod that the row of a claim shows."""

    uid: Uid
    node: str
    phase: str
    deleting: bool
    claims: tuple[str, ...]


_Asked = tuple[str, list[JsonObject]]
"""The name of a request, and its alternatives as rows show them."""


class _ShownMetadata(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The metadata of a claim."""

    uid: Uid = NO_UID
    deletion_timestamp: str = ""
    owner_references: Raw = raw_parts.ABSENT


class _ShownStatus(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The status of a claim."""

    allocation: Raw = raw_parts.ABSENT
    reserved_for: Raw = raw_parts.ABSENT
    devices: Raw = raw_parts.ABSENT


class _ShownClaim(msgspec.Struct, frozen=True, gc=False):
    """The parts of a claim that rows show; other parts, such as managed fields, are not decoded."""

    metadata: _ShownMetadata = _ShownMetadata()
    spec: Raw = raw_parts.ABSENT
    status: _ShownStatus = _ShownStatus()


class _Results(FieldRecord, frozen=True):
    """The devices of an allocation."""

    results: tuple[dra.DeviceResult, ...] = ()


class _Allocation(FieldRecord, frozen=True):
    """An allocation."""

    devices: _Results = _Results()
    node_selector: JsonObject = msgspec.field(default_factory=dict)


class ClaimsProjection(LateRows, PagedView):
    """Folds ResourceClaims, and the Pods that name claims.

    Example: claim `a` allocated at 5 and reserved for pod `p`, bound to `n1` at 6: its row says
    reserved, allocated_revision 5, pods `[{"name": "p", "node": "n1", …}]`.
    """

    name = "claims"
    version = 2

    def __init__(self) -> None:
        self.revision = Revision(0)
        self._claims: dict[tuple[str, str], _Claim] = {}
        self._latest: deque[tuple[tuple[str, str], _Claim]] = deque()
        self._packer = Packer()
        self._packs = False
        self._pods: dict[tuple[str, str], _ClaimingPod] = {}
        self._noted: dict[ObjectKey, tuple[Uid, outlines.SeenPod | None]] = {}
        self._users: Multimap[tuple[str, str], str] = Multimap()
        self._changes = RowChanges((CLAIMS, CLAIM_DEVICES), self._compute)
        self._touched = self._changes.touched(CLAIMS.name)
        self._touched_devices = self._changes.touched(CLAIM_DEVICES.name)

    def _take(self, page: Page) -> None:
        """Apply claims, and note the claims that pods name."""
        noted = self._noted
        for event, pod in page.read(api_resources.PODS, outlines.seen_pod):
            noted[event.key] = event.uid, pod
        if len(noted) > NOTED_MAX:
            self._catch_up()
        for event, claim in page.read(api_resources.RESOURCE_CLAIMS, outlines.seen_claim):
            self._fold_claim(event.key[2:], event, claim)

    def tables(self) -> tuple[Table, ...]:
        """Claims and the devices they hold."""
        return (CLAIMS, CLAIM_DEVICES)

    def dump(self) -> bytes:
        """All claims and the pods that name claims, sorted by key."""
        self._catch_up()
        claims = [(key, self._claims[key].unpacked()) for key in sorted(self._claims)]
        state = (self.revision, claims, sorted(self._pods.items()))
        return _encoder.encode(state)

    def load(self, state: bytes) -> None:
        """Restore a dumped state; the view must be empty."""
        self.revision, claims, pods = _snapshot.decode(state)
        for each in claims:
            key, claim = _decode_claim(each)
            key = shared(key)
            self._set_claim(key, claim)
            self._touched.add(key)
            self._touched_devices.update((*key, number) for number in range(claim.devices))
        for each in pods:
            self._set_pod(*shared(_decode_pod(each)))

    def _catch_up(self) -> None:
        """Apply the noted pods; only the last state of each pod matters."""
        pods = self._pods
        for key, (uid, seen) in self._noted.items():
            place = key[2:]
            old, pod = pods.get(place), None
            if seen is not None and seen.claims is not None:
                pod = _ClaimingPod(uid, seen.node, seen.phase, seen.deleting, seen.claims)
            if pod != old:
                if old is not None:
                    self._drop_pod(place, old)
                if pod is not None:
                    self._set_pod(place, pod)
        self._noted.clear()

    def _fold_claim(
        self, key: tuple[str, str], event: Event, seen: outlines.SeenClaim | None
    ) -> None:
        self._touched.add(key)
        old = self._claims.get(key)
        if seen is None:
            if old is not None:
                del self._claims[key]
                self._touch_devices(key, old.devices)
            return
        fresh = old is None or event.type is EventType.OBJECT_CREATED
        stamp = event.stamp
        time = stamp.time
        claim = _Claim(event.body, time if fresh or old is None else old.created)
        if stamp.origin is not None:
            claim.doubt = ",".join(doubts.of_event(event))
        if seen.held is not None:
            claim.devices = len(seen.held)
            if old is None or fresh or old.allocated is None:
                claim.allocated, claim.allocated_revision = time, event.revision
            else:
                claim.allocated = old.allocated
                claim.allocated_revision = old.allocated_revision
        self._set_claim(key, claim)
        count = claim.devices if old is None else max(claim.devices, old.devices)
        if count:
            self._touch_devices(key, count)

    def _set_claim(self, key: tuple[str, str], claim: _Claim) -> None:
        """Set a claim; of many claims, the older ones are compressed."""
        self._claims[key] = claim
        if self._packs:
            self._latest.append((key, claim))
        elif len(self._claims) > PLAIN_MAX:
            self._packs = True
            self._latest.extend(self._claims.items())
        while len(self._latest) > LATEST_MAX:
            place, older = self._latest.popleft()
            if self._claims.get(place) is older and isinstance(older.body, bytes):
                older.body = self._packer.pack(older.body)

    def _touch_devices(self, key: tuple[str, str], count: int) -> None:
        for number in range(count):
            self._touched_devices.add((*key, number))

    def _set_pod(self, key: tuple[str, str], pod: _ClaimingPod) -> None:
        self._pods[key] = pod
        namespace, name = key
        for claim in pod.claims:
            place = (namespace, claim)
            self._users.add(place, name)
            self._touched.add(place)

    def _drop_pod(self, key: tuple[str, str], pod: _ClaimingPod) -> None:
        del self._pods[key]
        namespace, name = key
        for claim in pod.claims:
            place = (namespace, claim)
            self._touched.add(place)
            self._users.discard(place, name)

    def _compute(self, table: str, key: RowKey) -> Row | None:
        namespace, name = str(key[0]), str(key[1])
        claim = self._claims.get((namespace, name))
        if claim is None or (table == CLAIM_DEVICES.name and not int(key[2]) < claim.devices):
            return None
        shown = _shown(claim.text)
        if table == CLAIM_DEVICES.name:
            return _device_row(namespace, name, int(key[2]), shown.status)
        return self._claim_row((namespace, name), claim, shown)

    def _claim_row(self, key: tuple[str, str], claim: _Claim, shown: _ShownClaim) -> Row:
        (namespace, name), metadata, status = key, shown.metadata, shown.status
        allocation = _allocation(status.allocation) if status.allocation else _NOTHING
        results = allocation.devices.results
        consumers = _consumers(status.reserved_for) if status.reserved_for else ()
        state = "pending" if claim.allocated is None else "reserved" if consumers else "allocated"
        pods = []
        for pod_name in sorted(self._users.of(key)):
            pod = self._pods[(namespace, pod_name)]
            pods.append(
                {
                    "name": pod_name,
                    "uid": pod.uid,
                    "node": pod.node,
                    "phase": pod.phase,
                    "deleting": pod.deleting,
                }
            )
        return {
            "namespace": namespace,
            "name": name,
            "uid": metadata.uid,
            "state": state,
            "deleting": metadata.deletion_timestamp != "",
            "created": claim.created,
            "owner": _owner(metadata.owner_references),
            "requests": _requests(_asked_in(bytes(shown.spec)), results),
            "devices": [result.text for result in results],
            "node": dra.selected_node({"nodeSelector": allocation.node_selector}),
            "allocated": claim.allocated,
            "allocated_revision": claim.allocated_revision,
            "reserved_for": [
                {"resource": consumer.resource, "name": consumer.name, "uid": consumer.uid}
                for consumer in consumers
            ],
            "pods": pods,
            "doubt": claim.doubt,
        }


def _device_row(namespace: str, claim: str, position: int, status: _ShownStatus) -> Row | None:
    results = _allocation(status.allocation).devices.results if status.allocation else ()
    if not 0 <= position < len(results):
        return None
    result = results[position]
    reported: JsonObject = {}
    if status.devices:
        tree = {"status": {"devices": _decoder.decode(status.devices)}}
        reports = zip(dra.device_statuses(tree), dra.device_status_trees(tree), strict=True)
        reported = next((report for known, report in reports if known.key == result.key), {})
    return {
        "namespace": namespace,
        "claim": claim,
        "position": position,
        "request": result.request,
        "driver": result.driver,
        "pool": result.pool,
        "device": result.device,
        "share_id": result.share_id,
        "admin_access": result.admin_access,
        "consumed_capacity": result.consumed_capacity,
        "tolerations": list(result.tolerations),
        "conditions": meta.conditions_of(reported),
    }


@lru_cache(maxsize=outlines.PARTS_MAX)
def _asked_in(spec: bytes) -> tuple[_Asked, ...]:
    """The requests of a spec; cached, because many claims have the spec of one template."""
    if not spec:
        return ()
    requests: list[_Asked] = []
    for request in dra.requests({"spec": _decoder.decode(spec)}):
        named_asks = [(ask.name, ask) for ask in request.first_available] or [
            ("", request.exactly or dra.RequestDetails())
        ]
        requests.append((request.name, [_ask(sub, ask) for sub, ask in named_asks]))
    return tuple(requests)


def _requests(requests: Sequence[_Asked], results: Sequence[dra.DeviceResult]) -> list[JsonObject]:
    """Each request with its devices; `chosen` is the alternative that was allocated."""
    rows: list[JsonObject] = []
    for name, asks in requests:
        received = [result for result in results if result.request.split("/")[0] == name]
        chosen = {result.request.partition("/")[2] for result in received}
        rows.append(
            {
                "name": name,
                "asks": asks,
                "chosen": max(chosen, default=""),
                "devices": [result.text for result in received],
            }
        )
    return rows


def _ask(name: str, ask: dra.RequestDetails) -> JsonObject:
    return {
        "name": name,
        "device_class": ask.device_class_name,
        "mode": ask.allocation_mode,
        "count": ask.count,
        "admin_access": ask.admin_access,
    }


def _owner(references: Raw) -> str:
    """The name of the pod that controls the claim, empty when there is none."""
    for owner in _owners(references) if references else ():
        if owner.controller and owner.kind == "Pod":
            return owner.name
    return ""


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.json.Decoder()
_shown = raw_parts.splitter(_ShownClaim)
_allocation = records.of_bytes(_Allocation)
_consumers = records.of_list_bytes(dra.Consumer)
_owners = records.of_list_bytes(meta.Owner)
_NOTHING = _Allocation()
_snapshot = msgspec.msgpack.Decoder(tuple[Revision, list[Raw], list[Raw]])
_decode_claim = msgspec.msgpack.Decoder(tuple[NamespacedName, _Claim]).decode
_decode_pod = msgspec.msgpack.Decoder(tuple[NamespacedName, _ClaimingPod]).decode
