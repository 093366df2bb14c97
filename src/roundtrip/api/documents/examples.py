"""One real answer for each operation, recorded from a demo by ``roundtrip tour``.

``examples.json`` has them by operation name; keys and secrets in it are replaced.
"""

from pathlib import Path
from typing import Any

import msgspec

from roundtrip.api.operations.operation import AnyOperation

PATH = Path(__file__).with_name("examples.json")

EXAMPLES: dict[str, dict[str, Any]] = msgspec.json.decode(PATH.read_bytes())
"""The recorded answers; where HTTP answers a part of the tool's answer, the tool's."""


def example_of(row: AnyOperation) -> dict[str, Any]:
    """The example of an operation's HTTP answer; empty until the tour has recorded one."""
    example = EXAMPLES.get(row.name, {})
    if row.path_answer is None:
        return example
    return {name: example[name] for name in row.path_answer.__struct_encode_fields__ if name in example}
