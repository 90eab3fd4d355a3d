"""A compiler of a few simple selectors, for tests of everything except CEL.

`true`, `false`, `device.driver == "x"`, and comparisons of one attribute joined by `&&`:
`device.attributes["dom"].id == VALUE`, with a text, a number or a boolean as value.
"""

import json
import re

from app.domain.devices.device_selectors import SelectorCompileError, SelectorResult
from app.domain.devices.model import Device

DRIVER = re.compile(r'device\.driver == ("[^"]*")')
ATTRIBUTE = re.compile(
    r'device\.attributes\["([^"]*)"\]\.(\w+) (==|!=|>=|<=|>|<) ("[^"]*"|-?\d+|true|false)'
)


class PlainSelector:
    def __init__(self, expression: str) -> None:
        self.parts = [part.strip() for part in expression.split("&&")]
        for part in self.parts:
            if part not in ("true", "false") and not (
                DRIVER.fullmatch(part) or ATTRIBUTE.fullmatch(part)
            ):
                raise SelectorCompileError(f"compilation failed: cannot read {part!r}")

    def judge(self, devices, keys=None):
        return [self.verdict(device) for device in devices]

    published_key = None

    def judge_like(self, device):
        return None

    def verdict(self, device: Device) -> SelectorResult:
        for part in self.parts:
            found = DRIVER.fullmatch(part)
            if part in ("true", "false"):
                match = part == "true"
            elif found:
                match = device.id[0] == json.loads(found.group(1))
            else:
                match = self.compares(device, ATTRIBUTE.fullmatch(part))
            if match is None:
                return SelectorResult(match=False, error="no such key")
            if not match:
                return SelectorResult(match=False)
        return SelectorResult(match=True)

    def compares(self, device: Device, found: re.Match) -> bool | None:
        domain, name, operator, text = found.groups()
        attribute = device.attributes.get(f"{domain}/{name}")
        if attribute is None and domain == device.id[0]:
            attribute = device.attributes.get(name)
        if attribute is None:
            return None
        value, wanted = next(iter(attribute.values())), json.loads(text)
        return {
            "==": value == wanted,
            "!=": value != wanted,
            ">": value > wanted,
            ">=": value >= wanted,
            "<": value < wanted,
            "<=": value <= wanted,
        }[operator]


class PlainCompiler:
    def compile(self, expression: str) -> PlainSelector:
        return PlainSelector(expression)
