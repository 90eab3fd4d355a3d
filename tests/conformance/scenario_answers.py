"""Compares answers to scenarios with recorded ones, as the conformance data requires.

Share ids are compared by presence, errors by presence, scope and the text up to the part that is
cel-go's own.
"""

import json

CEL_MARKS = ("CEL compile error:", "CEL runtime error:")


def without_share_ids(allocations: list | None) -> list | None:
    """The allocations with every share id replaced by one placeholder."""
    copied = json.loads(json.dumps(allocations))
    for allocation in copied or ():
        for result in allocation["devices"].get("results", ()):
            if "shareID" in result:
                result["shareID"] = "*"
    return copied


def comparable_error(text: str | None) -> str | None:
    """The error without the text that comes from cel-go."""
    for mark in CEL_MARKS:
        if text and mark in text:
            return text[: text.index(mark) + len(mark)]
    return text


def comparable(output: dict) -> dict:
    """The compared parts of a scenario's answer."""
    if "pods" in output:
        return {
            "pods": [
                {
                    "pod": pod["pod"],
                    "node": pod.get("node"),
                    "results": [comparable_result(found) for found in pod["results"]],
                }
                for pod in output["pods"]
            ]
        }
    return {"results": [comparable_result(found) for found in output["results"]]}


def comparable_result(result: dict) -> dict:
    """The compared parts of one node's answer."""
    return {
        "node": result["node"],
        "allocations": without_share_ids(result["allocations"]),
        "error": comparable_error(result.get("error")),
        "scope": result.get("errorScope"),
    }
