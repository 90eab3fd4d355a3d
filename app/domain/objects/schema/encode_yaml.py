"""YAML texts that kubectl and API servers read as what they were made of.

Readers of YAML disagree about texts without quotes: `n` is false for kubectl, `1e3` and `08` are
numbers. A text that any of them reads as another value is quoted, as the API server does.
"""

from collections.abc import Iterable
from typing import Any

import yaml

from app.domain.objects.schema import decode

_TEXT_TAG = "tag:yaml.org,2002:str"


class _JsonDumper(yaml.CSafeDumper):
    """A dumper of JSON values, without anchors: shared parts are written out each time."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def encode_yaml(value: Any, *, sort_keys: bool = False, allow_unicode: bool = False) -> str:
    """Returns a JSON value as one YAML document."""
    text: str = yaml.dump(
        value, Dumper=_JsonDumper, sort_keys=sort_keys, allow_unicode=allow_unicode
    )
    return text


def encode_yaml_documents(values: Iterable[Any]) -> str:
    """Returns JSON values as YAML documents, each behind `---`."""
    return "".join(f"---\n{encode_yaml(value)}" for value in values)


def _represent_text(dumper: _JsonDumper, text: str) -> yaml.ScalarNode:
    style = None
    if "\n" in text:
        style = "|"
    elif not decode.is_text(text) or _resolved_tag(dumper, text) != _TEXT_TAG:
        style = '"'
    return dumper.represent_scalar(_TEXT_TAG, text, style=style)


def _resolved_tag(dumper: Any, text: str) -> Any:
    """The tag that a reader of YAML 1.1 gives to the text without quotes."""
    return dumper.resolve(yaml.ScalarNode, text, (True, False))


_JsonDumper.add_representer(str, _represent_text)
