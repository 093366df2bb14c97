"""Many checks in one request: which tokens, and one line of the answer."""

from typing import Annotated

import msgspec

from roundtrip.domain.base.errors import STATUS_BY_CODE
from roundtrip.services.check.schema import Check
from roundtrip.services.runtime.context import Context, UseCaseAnswer
from roundtrip.services.support.answer_fields import says
from roundtrip.services.support.strangers_text import QUOTED

MAX_CHECKS = 50
_MAX_TEXT = 100


class ManyChecksParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which tokens."""

    addresses: Annotated[
        list[Annotated[str, msgspec.Meta(max_length=_MAX_TEXT)]],
        msgspec.Meta(
            min_length=1,
            max_length=MAX_CHECKS,
            description=f"The tokens' addresses, 1 to {MAX_CHECKS}. A repeated address is answered once and "
            "counts once.",
        ),
    ]


class TokensToCheck(msgspec.Struct, frozen=True):
    """The tokens that a request names, without repeats."""

    addresses: Annotated[list[str], says("Addresses as the caller wrote them.")]


class LineError(msgspec.Struct, frozen=True, rename="camel"):
    """Why one token was not checked."""

    code: Annotated[
        str,
        msgspec.Meta(
            description="The error code that GET /v1/check/{address} would answer with.",
            extra_json_schema={"enum": list(STATUS_BY_CODE)},
        ),
    ]
    message: Annotated[str, says(f"What is wrong, for people. {QUOTED}")]
    retry_after_s: Annotated[int | None, says("Seconds to wait before asking again. null: no time is known.")]


class CheckLine(msgspec.Struct, frozen=True):
    """One token of the request: its check, or why there is none."""

    address: Annotated[str, says("The address as the request has it.")]
    check: Annotated[Check | None, says("The answer of GET /v1/check/{address}. null: see error.")]
    error: Annotated[LineError | None, says("null: the token was checked.")]


async def list_tokens(ctx: Context, params: ManyChecksParams) -> UseCaseAnswer[TokensToCheck]:
    """The tokens to check, each once, in the request's order. Counts as no call: each check counts."""
    by_address = {address.lower(): address for address in reversed(params.addresses)}
    addresses = [by_address[address] for address in dict.fromkeys(map(str.lower, params.addresses))]
    return UseCaseAnswer(TokensToCheck(addresses), counted=False)
