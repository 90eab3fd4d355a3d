"""Importing: an audit log of 100,000 writes, then the same history as a native bundle."""

import json
import time
from pathlib import Path
from typing import Any

import anyio

from app.bootstrap.process_settings import settings
from app.bootstrap.recordings import RecordingFiles, export_history, import_history
from app.bootstrap.stores import open_store
from bench.folder import temporary_data

EVENTS = 100_000


def audit_line(number: int) -> dict[str, Any]:
    """A create (even) or a status update (odd) of a claim, as an API server logs it."""
    is_create = number % 2 == 0
    name = f"claim-{number // 2}"
    second = number // 1000
    metadata = {
        "name": name,
        "namespace": "default",
        "uid": f"00000000-0000-4000-8000-{number // 2:012d}",
        "resourceVersion": str(number + 10),
        "creationTimestamp": "2026-01-01T00:00:00Z",
    }
    exactly = {"deviceClassName": "gpu", "count": 1, "allocationMode": "ExactCount"}
    request = {"name": "gpu", "exactly": exactly}
    claim: dict[str, Any] = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": metadata,
        "spec": {"devices": {"requests": [request]}},
        "status": {},
    }
    if not is_create:
        result = {"request": "gpu", "driver": "d.example.com", "pool": f"n-{number % 500}"}
        claim["status"] = {"allocation": {"devices": {"results": [result | {"device": name}]}}}
    path = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
    return {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": "RequestResponse",
        "auditID": str(number),
        "stage": "ResponseComplete",
        "requestURI": path if is_create else f"{path}/{name}/status",
        "verb": "create" if is_create else "update",
        "user": {"username": "system:kube-scheduler"},
        "objectRef": {
            "resource": "resourceclaims",
            "namespace": "default",
            "name": name,
            "apiGroup": "resource.k8s.io",
            "apiVersion": "v1",
        }
        | ({} if is_create else {"subresource": "status"}),
        "responseStatus": {"code": 201 if is_create else 200},
        "requestObject": claim,
        "responseObject": claim,
        "stageTimestamp": f"2026-01-01T00:{second // 60:02d}:{second % 60:02d}.000000Z",
    }


async def measure() -> None:
    """Events per second of both imports, durable."""
    with temporary_data() as folder:
        folder.mkdir()
        log = Path(folder) / "audit.log"
        with log.open("w") as lines:
            for number in range(EVENTS):
                lines.write(json.dumps(audit_line(number)) + "\n")
        chosen = settings(data=folder)
        async with open_store(chosen, migrate=True) as store:

            def silent(_done: int, _total: int) -> None:
                pass

            started = time.perf_counter()
            wanted = RecordingFiles(paths=(log,))
            found = await import_history(store, chosen, wanted, "audit", silent)
            took = time.perf_counter() - started
            print(f"audit log: {found.events} events in {took:.1f} s, {found.events / took:.0f}/s")
            bundle = Path(folder) / "bundle.zip"
            started = time.perf_counter()
            await export_history(store, chosen, "audit", "", bundle, silent)
            took = time.perf_counter() - started
            print(f"export:    {found.events} events in {took:.1f} s, {found.events / took:.0f}/s")
            started = time.perf_counter()
            await import_history(store, chosen, RecordingFiles(paths=(bundle,)), "bundle", silent)
            took = time.perf_counter() - started
            print(f"bundle:    {found.events} events in {took:.1f} s, {found.events / took:.0f}/s")


def main() -> None:
    """Run the measurement."""
    anyio.run(measure, backend_options={"use_uvloop": True})


if __name__ == "__main__":
    main()
