"""Cells of jobs and of kinds that are only stored."""

import pytest

from tests.unit.printing.test_printing import HOUR_AGO, cells

RBAC = "rbac.authorization.k8s.io"
CONTAINERS = {"containers": [{"name": "c", "image": "i"}]}


def ended(kind):
    return {"conditions": [{"type": kind, "status": "True"}]}


@pytest.mark.parametrize(
    ("metadata", "status", "phase"),
    [
        ({}, {}, "Running"),
        ({}, ended("Complete"), "Complete"),
        ({}, ended("Failed"), "Failed"),
        ({}, ended("Suspended"), "Suspended"),
        ({"deletionTimestamp": HOUR_AGO}, {}, "Terminating"),
        ({"deletionTimestamp": HOUR_AGO}, ended("Complete"), "Complete"),
    ],
)
def test_phase_of_a_job(metadata, status, phase):
    tree = {"metadata": metadata, "spec": {}, "status": status}
    assert cells("batch", "jobs", tree)["Status"] == phase


@pytest.mark.parametrize(
    ("spec", "shown"),
    [
        ({"completions": 3}, "1/3"),
        ({}, "1/1"),
        ({"parallelism": 4}, "1/1 of 4"),
    ],
)
def test_completions_of_a_job(spec, shown):
    tree = {"spec": spec, "status": {"succeeded": 1}}
    assert cells("batch", "jobs", tree)["Completions"] == shown


def test_duration_of_a_job_ends_with_it():
    times = {"startTime": "2026-01-01T20:00:00Z", "completionTime": "2026-01-01T20:01:30Z"}
    assert cells("batch", "jobs", {"spec": {}, "status": times})["Duration"] == "90s"
    del times["completionTime"]
    assert cells("batch", "jobs", {"spec": {}, "status": times})["Duration"] == "4h"


def test_row_of_a_cron_job():
    tree = {
        "spec": {
            "schedule": "* * * * *",
            "suspend": True,
            "jobTemplate": {"spec": {"template": {"spec": CONTAINERS}}},
        },
        "status": {"active": [{}], "lastScheduleTime": HOUR_AGO},
    }
    assert cells("batch", "cronjobs", tree) == {
        "Name": "x",
        "Schedule": "* * * * *",
        "Timezone": "<none>",
        "Suspend": "True",
        "Active": 1,
        "Last Schedule": "60m",
        "Age": "60m",
        "Containers": "c",
        "Images": "i",
        "Selector": "<none>",
    }


def test_row_of_a_role_and_of_its_binding():
    assert cells(RBAC, "roles", {}) == {"Name": "x", "Created At": HOUR_AGO}
    tree = {
        "roleRef": {"kind": "Role", "name": "r"},
        "subjects": [
            {"kind": "User", "name": "u"},
            {"kind": "Group", "name": "g"},
            {"kind": "ServiceAccount", "name": "s", "namespace": "n"},
        ],
    }
    assert cells(RBAC, "rolebindings", tree) == {
        "Name": "x",
        "Role": "Role/r",
        "Age": "60m",
        "Users": "u",
        "Groups": "g",
        "ServiceAccounts": "n/s",
    }


def test_row_of_a_priority_class():
    row = cells("scheduling.k8s.io", "priorityclasses", {"value": 7})
    assert (row["Value"], row["Global-Default"]) == (7, False)


def test_row_of_a_quota_separates_limits():
    status = {
        "hard": {"pods": "3", "limits.cpu": "2", "configmaps": "9"},
        "used": {"pods": "1"},
    }
    row = cells("", "resourcequotas", {"status": status})
    assert (row["Request"], row["Limit"]) == ("configmaps: 0/9, pods: 1/3", "limits.cpu: 0/2")


@pytest.mark.parametrize(
    ("spec", "status", "shown"),
    [
        ({"type": "ClusterIP"}, {}, "<none>"),
        ({"type": "ClusterIP", "externalIPs": ["1.2.3.4"]}, {}, "1.2.3.4"),
        ({"type": "LoadBalancer"}, {}, "<pending>"),
        ({"type": "LoadBalancer"}, {"loadBalancer": {"ingress": [{"ip": "5.6.7.8"}]}}, "5.6.7.8"),
        ({"type": "ExternalName", "externalName": "example.com"}, {}, "example.com"),
    ],
)
def test_where_a_service_is_reached(spec, status, shown):
    assert cells("", "services", {"spec": spec, "status": status})["External-IP"] == shown


def test_row_of_a_volume_claim():
    spec = {"volumeName": "v", "storageClassName": "fast"}
    status = {"phase": "Bound", "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]}
    row = cells("", "persistentvolumeclaims", {"spec": spec, "status": status})
    assert [row[name] for name in ("Status", "Volume", "Capacity", "Access Modes")] == [
        "Bound", "v", "1Gi", "RWO",
    ]  # fmt: skip


def test_endpoints_show_three_and_count_the_rest():
    addresses = [{"ip": f"10.0.0.{number}"} for number in range(5)]
    subsets = [{"addresses": addresses, "ports": [{"port": 80}]}]
    shown = cells("", "endpoints", {"subsets": subsets})["Endpoints"]
    assert shown == "10.0.0.0:80,10.0.0.1:80,10.0.0.2:80 + 2 more..."


def test_owner_of_a_controller_revision():
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "controller": True}
    tree = {"metadata": {"ownerReferences": [owner]}, "revision": 2}
    row = cells("apps", "controllerrevisions", tree)
    assert (row["Controller"], row["Revision"]) == ("daemonset.apps/d", 2)
