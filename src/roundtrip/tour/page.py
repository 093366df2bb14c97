"""docs/tour.md, of what a walk was told. Pure."""

from collections.abc import Sequence

from .redact import Placeholders, lines, one_line_json, shorten, stable, stable_text, without
from .walk import WalkedStep, request

BASE_URL = "http://127.0.0.1:8463"
_ABOUT = f"""# A tour of every tool

Each tool once, called over the Model Context Protocol on the local chain that `make run` starts. Written by
`roundtrip tour`, do not edit by hand; a test walks it again.

The calls are as they were made, and the answers as they came, shortened: lists after two rows and long texts
are cut with `…`, and what a tool says in plain sentences stands above its answer instead of in it. What
differs from run to run is a word in `<>`. Each answer also opens with a note that names and symbols were
written by strangers, which is left out here. The service is at `{BASE_URL}`, and `$KEY` is a key of the
local chain's eighth account ([how to have one](keys.md)).
"""


def page(told: Sequence[WalkedStep], known: Placeholders) -> str:
    """All of it."""
    return "\n".join([_ABOUT, *(section(one, known) for one in told)])


def section(one: WalkedStep, known: Placeholders) -> str:
    """One step: its heading, why, the call and the answer."""
    said = stable_text(without(one.said, one.answer, one.step.varies), known)
    answer = shorten(stable(one.answer, known, one.step.varies), stable_text(one.said, known))
    return "\n".join(
        [
            heading(one),
            "",
            one.step.why,
            "",
            "```bash",
            call(one, known),
            "```",
            "",
            *(["```text", said, "```", ""] if said else []),
            "```json",
            lines(answer),
            "```",
            "",
        ]
    )


def heading(one: WalkedStep) -> str:
    return f"## {one.tool.title}: `{one.tool.name}`"


def call(one: WalkedStep, known: Placeholders) -> str:
    """As it is typed into a shell."""
    key = """ -H "x-api-key: $KEY\"""" if one.tool.key else ""
    body = one_line_json(request(one.tool.name, stable(one.arguments, known))).replace("'", "'\\''")
    return f"curl -s {BASE_URL}/mcp -H 'content-type: application/json'{key} \\\n  -d '{body}'"
