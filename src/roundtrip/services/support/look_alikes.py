"""Says which listed, or older and larger, token another one looks like by its symbol or name."""

from typing import Annotated, Literal

import msgspec

from roundtrip.chain.rpc.client import Meter, RpcCall, hex_bytes
from roundtrip.chain.simulate.token_facts import BEACON_SLOT
from roundtrip.domain.base import names
from roundtrip.domain.base.confusables import list_readings
from roundtrip.domain.base.types import Address
from roundtrip.domain.market.look_alikes import COUNTED_TRADERS, ListedToken, Namesake, choose_original
from roundtrip.services.runtime.context import Context
from roundtrip.services.support.answer_fields import Sentence, says
from roundtrip.services.support.index_reader import TokenNamed, looking, present_token, quote_token
from roundtrip.store.index import cursor, tokens
from roundtrip.store.index.tokens import Label
from roundtrip.store.wallets.look_up import read_namesakes
from roundtrip.venues.base import quote_name

OriginalKind = Literal["money", "stock_token", "quote", "older"]
_WHAT: dict[OriginalKind, str] = {
    "money": "money on this chain",
    "stock_token": "a listed stock token",
    "quote": "a token that launches are paid in",
    "older": "an older and larger token",
}
_AS_LARGE = f"an older token; at least {COUNTED_TRADERS:,} wallets traded each of the two"


class LookAlikeAnswer(msgspec.Struct, frozen=True, rename="camel"):
    """The token that this one could be taken for."""

    original: Annotated[TokenNamed, says("The token that it could be taken for.")]
    kind: Annotated[
        OriginalKind,
        says(
            "Why that one is the original. money: weth or usdg. stock_token: the service lists "
            "it. quote: launches are paid in it. older: it was launched, or got its first pool, earlier, "
            f"and more wallets traded it, or at least {COUNTED_TRADERS:,} traded each."
        ),
    ]
    by: Annotated[Literal["symbol", "name"], says("What looks alike: the symbol or the name.")]
    is_equal: Annotated[bool, says("false: only by characters that look like others, such as Cyrillic A.")]
    text: Sentence


async def find_look_alike(ctx: Context, label: Label, meter: Meter) -> LookAlikeAnswer | None:
    """The token that this one could be taken for: a listed one first, else the older one that most wallets
    traded. None: none was found, it is such a token itself, or, where only an older one was found, it is of
    the issuer of the listed stock tokens. Raises ServiceFull (busy), NodeFault."""
    symbols, token_names = (list_readings(text or "") for text in (label.symbol, label.name))
    money = [ListedToken("WETH", ctx.contracts.weth), ListedToken("USDG", ctx.contracts.usdg)]
    listed = [*money, *ctx.stock_tokens]
    async with looking(ctx) as (connection, index_cursor):
        quotes = await cursor.launch_quotes(connection)
        originals = {token.address for token in listed} | quotes
        if label.address in originals:
            return None
        known = await tokens.labels_of(connection, originals)
        # Their published symbols are known without an index.
        known |= {one.address: _with_symbol(known[one.address], one.symbol) for one in listed}
        namesakes = []
        if index_cursor is not None:
            namesakes = await read_namesakes(connection, label.address, symbols, token_names)
    for address in [*(token.address for token in listed), *sorted(quotes)]:
        by = _match(known[address], symbols, token_names)
        if by is not None:
            kind: OriginalKind = "quote"
            if quote_name(address, ctx.contracts) != address:
                kind = "money"
            elif address in (token.address for token in ctx.stock_tokens):
                kind = "stock_token"
            return _present(label, known[address], kind, by)
    own = next((one for one in namesakes if one.token == label.address), None)
    own = own or Namesake(label.address, label.symbol, label.name, False, None, 0)
    original = choose_original(own, namesakes)
    if original is None or await _is_stock_token(ctx, label.address, meter):
        return None
    found = Label(original.token, original.symbol, original.name, None, None)
    what = _WHAT["older"] if original.traders > own.traders else _AS_LARGE
    return _present(label, found, "older", "symbol" if original.by_symbol else "name", what)


def _with_symbol(label: Label, symbol: str) -> Label:
    return Label(label.address, symbol, label.name, label.decimals, label.supply_raw)


def _match(
    original: Label, symbols: frozenset[str], token_names: frozenset[str]
) -> Literal["symbol", "name"] | None:
    if original.symbol is not None and names.symbol_key(original.symbol) in symbols:
        return "symbol"
    return "name" if original.name is not None and _name_key(original.name) in token_names else None


def _name_key(name: str) -> str:
    return (names.name(name) or "").casefold()


def _present(
    label: Label, original: Label, kind: OriginalKind, by: Literal["symbol", "name"], what: str = ""
) -> LookAlikeAnswer:
    if by == "symbol":
        is_equal = names.symbol_key(label.symbol or "") == names.symbol_key(original.symbol or "")
    else:
        is_equal = _name_key(label.name or "") == _name_key(original.name or "")
    text = _describe(original, what or _WHAT[kind], by, is_equal)
    return LookAlikeAnswer(present_token(original), kind, by, is_equal, text)


def _describe(original: Label, what: str, by: str, is_equal: bool) -> str:
    verb = "is" if is_equal else "looks like"
    return f"Its {by} {verb} that of {quote_token(original)}, {what}. It is not that token."


async def _is_stock_token(ctx: Context, token: Address, meter: Meter) -> bool:
    """Whether the token is a proxy with the code and the beacon of the listed stock tokens, which all share
    both: then its symbol is its issuer's. The slot alone proves nothing, as any contract can fill it. Raises
    NodeFault."""
    if not ctx.stock_tokens:
        return False
    at = {"blockHash": ctx.heads.current().block.hash}
    calls = [
        call
        for address in (token, ctx.stock_tokens[0].address)
        for call in (
            RpcCall("eth_getCode", [address, at]),
            RpcCall("eth_getStorageAt", [address, BEACON_SLOT, at]),
        )
    ]
    code, beacon, listed_code, listed_beacon = map(hex_bytes, await ctx.node.batch(calls, meter))
    return bool(code) and any(beacon) and (code, beacon) == (listed_code, listed_beacon)
