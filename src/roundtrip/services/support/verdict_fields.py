"""The verdict of a check, as every answer that has one shows it."""

from typing import Annotated, Literal, get_args

import msgspec

from roundtrip.domain.check.flags import FLAGS
from roundtrip.domain.check.venue_code import Level
from roundtrip.services.support.answer_fields import says

from .strangers_text import Sentence

CheckCode = Literal[
    "ok", "cannot_sell", "cannot_buy", "toll_pool", "thin_pool", "high_fees", "heavy_fees",
    "no_pool", "empty_pool", "no_contract", "not_a_token", "quote_asset", "unproven",
]  # fmt: skip
CodeText = Annotated[str, msgspec.Meta(extra_json_schema={"enum": list(get_args(CheckCode))})]
LevelText = Annotated[str, msgspec.Meta(extra_json_schema={"enum": list(get_args(Level))})]
"""A stored check's code and level: in a schema the closed lists, in Python the text that was stored."""
Flags = Annotated[
    list[Annotated[str, msgspec.Meta(extra_json_schema={"enum": list(FLAGS)})]],
    says("Worth knowing beside the verdict; empty: none."),
]


class VerdictAnswer(msgspec.Struct, frozen=True):
    """Code, level and a plain sentence."""

    code: Annotated[CheckCode, says("What decided. unproven means that the check could not find out.")]
    level: Annotated[Level, says("How good that is. unknown is not a pass; treat it as a no.")]
    text: Sentence
