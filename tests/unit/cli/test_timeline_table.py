"""The table of `redra timeline`."""

import pytest

from app.cli.console import Output
from app.cli.timelines import TimelinePrinter


def row(name: str, text: str) -> dict[str, object]:
    return {
        "revision": 7, "time": "2026-01-02T03:00:00Z", "kind": "PodCreated", "resource": "pods",
        "namespace": "lab", "name": name, "actor": "alice", "text": text, "doubt": "",
    }  # fmt: skip


def test_long_name_moves_no_other_line(capsys: pytest.CaptureFixture[str]) -> None:
    long = "certificates.k8s.io:kube-apiserver-client-kubelet-approver"
    printer = TimelinePrinter(Output.TEXT, is_followed=False)
    printer.print_rows([row("short", "first"), row(long, "second"), row("shorter", "third")])
    head, first, second, third = capsys.readouterr().out.splitlines()
    assert f"pods lab/{long}   alice   second" in second
    assert first.index("first") == third.index("third") == head.index("TEXT")
    assert head.index("TEXT") < second.index("second")
    assert len(first) < 80
