"""docs/tour.md, from a walk. Pure."""

from collections.abc import Sequence

from .redact import (
    Placeholders,
    format_json,
    mask,
    mask_fields,
    mask_text,
    one_line_json,
    shorten,
    shorten_lines,
)
from .walk import WalkedStep

BASE_URL = "http://127.0.0.1:8463"
CALL = f"""\
call() {{
  curl -s {BASE_URL}/mcp -H 'content-type: application/json' ${{KEY:+-H "x-api-key: $KEY"}} \\
    -d '{{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {{"name": "'"$1"'", "arguments": '"$2"'}}}}'
}}"""  # noqa: E501
"""A function of the shell that calls a tool: its name, and its arguments as JSON."""
_ABOUT = f"""# A tour of every tool

See each tool once, called over the Model Context Protocol on the local chain that `make run` starts.
`roundtrip tour` writes this page, so do not edit it by hand; a test runs the tour again.

The calls and answers are real, and shortened: `…` stands for more rows, lines or text. A tool's sentences are
above its answer instead of in it. A word in `<>` replaces what differs from run to run. Each real answer also
begins with a note that strangers wrote the names and symbols. The service is at `{BASE_URL}`, and
`$KEY` is a key of the local chain's eighth account ([how to make one](keys.md)). The [glossary](glossary.md)
explains the words. Paste this once; each call below then works as it stands:

```bash
{CALL}
```
"""


def page(walked: Sequence[WalkedStep], placeholders: Placeholders) -> str:
    """The whole page."""
    return "\n".join([_ABOUT, *(section(walked_step, placeholders) for walked_step in walked)])


def section(walked: WalkedStep, placeholders: Placeholders) -> str:
    """One step: its heading, the reason, the call and the answer."""
    text = mask_text(mask_fields(walked.text, walked.answer, walked.step.varies), placeholders)
    masked = mask(walked.answer, placeholders, walked.step.varies)
    answer = shorten(masked, mask_text(walked.text, placeholders))
    return "\n".join(
        [
            heading(walked),
            "",
            walked.step.why,
            "",
            "```bash",
            curl_command(walked, placeholders),
            "```",
            "",
            *(["```text", shorten_lines(text), "```", ""] if text else []),
            "```json",
            format_json(answer),
            "```",
            "",
        ]
    )


def heading(walked: WalkedStep) -> str:
    """The heading of a step, in Markdown."""
    return f"## {walked.tool.title}: `{walked.tool.name}`"


def curl_command(walked: WalkedStep, placeholders: Placeholders) -> str:
    """The call as typed into a shell, with the function ``CALL``."""
    quoted = one_line_json(mask(walked.arguments, placeholders)).replace("'", "'\\''")
    return f"call {walked.tool.name} '{quoted}'{'  # needs $KEY' if walked.tool.key else ''}"
