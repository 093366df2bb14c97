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
from .walk import WalkedStep, request

BASE_URL = "http://127.0.0.1:8463"
_ABOUT = f"""# A tour of every tool

See each tool once, called over the Model Context Protocol on the local chain that `make run` starts.
`roundtrip tour` writes this page, so do not edit it by hand; a test runs the tour again.

The calls and answers are real, and shortened: `…` stands for more rows, lines or text. A tool's sentences are
above its answer instead of in it. A word in `<>` replaces what differs from run to run. Each real answer also
begins with a note that strangers wrote the names and symbols. The service is at `{BASE_URL}`, and
`$KEY` is a key of the local chain's eighth account ([how to make one](keys.md)). The [glossary](glossary.md)
explains the words.
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
    """The call as typed into a shell."""
    key = """ -H "x-api-key: $KEY\"""" if walked.tool.key else ""
    body = one_line_json(request(walked.tool.name, mask(walked.arguments, placeholders)))
    quoted = body.replace("'", "'\\''")
    return f"curl -s {BASE_URL}/mcp -H 'content-type: application/json'{key} \\\n  -d '{quoted}'"
