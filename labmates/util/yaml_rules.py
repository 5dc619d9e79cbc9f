"""YAML 1.2's rules for plain values (core schema), which PyYAML, of YAML 1.1, lacks.

``1e-3`` is a number, ``010`` is ten, and ``no``, ``on``, ``12:30`` and ``2026-01-31`` are text.
"""

from __future__ import annotations

import re
from typing import Final

import yaml

_RULES: Final = (
    ("null", r"~|null|Null|NULL", "~nN"),
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", "-+0123456789"),
    ("float", r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", "-+.0123456789"),
    ("float", r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)", "-+."),
    ("merge", r"<<", "<"),  # of YAML 1.1; much used
)
"""Tags, the values that have them, and the characters with which these begin."""


class Loader(yaml.SafeLoader):
    """Reads YAML with the plain values of YAML 1.2."""

    yaml_implicit_resolvers: Final = {}  # type: ignore[misc]

    def construct_yaml_int(self, node: yaml.ScalarNode) -> int:
        """The integer of a scalar."""
        text = str(self.construct_scalar(node))
        try:
            return int(text, 0) if text[:2] in ("0o", "0x") else int(text)
        except ValueError:
            fault = f"'{text:.40}' is not a whole number, or has too many digits"
            raise yaml.MarkedYAMLError(problem=fault, problem_mark=node.start_mark) from None


for _tag, _values, _first in _RULES:
    Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(rf"(?:{_values})\Z"), list(_first))
Loader.add_implicit_resolver("tag:yaml.org,2002:null", re.compile(r"\Z"), [""])
Loader.add_constructor("tag:yaml.org,2002:int", Loader.construct_yaml_int)
