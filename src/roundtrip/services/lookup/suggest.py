"""What a query may become: tokens whose symbol, name or address begins so, each with its newest verdict."""

import re
from datetime import datetime

import msgspec

from roundtrip.domain.base import names
from roundtrip.services.runtime.context import Context, UseCaseAnswer
from roundtrip.services.support.index_reader import present_token, reading, when
from roundtrip.services.support.shown_verdict import SHARED_MS, present_stored
from roundtrip.services.support.token_states import TokenState
from roundtrip.store.boards.newest_checks import read_shown_checks
from roundtrip.store.index.tokens import labels_of
from roundtrip.store.wallets.look_up import find_by_address, find_by_text

from .look_up_answer import MAX_CHARACTERS

MAX_SHOWN = 8
_DIGITS = re.compile(r"0x(?P<digits>[0-9a-fA-F]{3,40})")
_NAME_LENGTH = 64


class SuggestParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What somebody has typed so far."""

    query: str


class TokenSuggestion(TokenState, frozen=True, rename="camel"):
    """``launched_at`` None: no launchpad launched it."""

    launched_at: datetime | None


class TokenSuggestions(msgspec.Struct, frozen=True, rename="camel"):
    """Those with the very symbol first, the oldest before its copies; then the newest launches."""

    rows: list[TokenSuggestion]


async def suggest(ctx: Context, params: SuggestParams) -> UseCaseAnswer[TokenSuggestions]:
    """The suggestions; none for an empty query. Raises ServiceFull."""
    query = shared_as(params)
    if not query:
        return UseCaseAnswer(TokenSuggestions([]), ttl_ms=SHARED_MS)
    address = _DIGITS.fullmatch(query)
    async with reading(ctx) as (connection, _):
        if address is not None:
            found = await find_by_address(connection, address["digits"], MAX_SHOWN)
        else:
            name = query[:_NAME_LENGTH]
            found = await find_by_text(connection, _symbol_key(query), name, MAX_SHOWN)
        tokens = [one.token for one in found]
        checks = await read_shown_checks(connection, tokens)
        labels = await labels_of(connection, tokens)
    now_s = ctx.now_s()
    rows = [
        TokenSuggestion(
            present_token(labels[token]),
            present_stored(checks[token], now_s),
            None if launched_s is None else when(launched_s),
        )
        for token, launched_s in found
    ]
    return UseCaseAnswer(TokenSuggestions(rows), ttl_ms=SHARED_MS)


def shared_as(params: SuggestParams) -> str:
    """The query as it is looked for."""
    return names.clean(params.query, MAX_CHARACTERS)


def _symbol_key(query: str) -> str:
    return query.removeprefix("$").casefold()
