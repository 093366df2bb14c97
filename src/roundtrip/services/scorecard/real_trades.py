"""Real trades of plain wallets that a verdict is held against: those that the index has, and what their own
receipts say of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from roundtrip.chain.rpc.client import Meter, RpcCall, RpcError, hex_bytes
from roundtrip.chain.wallet.transactions import MinedTransaction, read_transaction
from roundtrip.domain.base.errors import NodeFault
from roundtrip.domain.base.events import Swapped, Transferred
from roundtrip.domain.base.types import BPS, ZERO_ADDRESS, Address, TxHash
from roundtrip.domain.base.venue import acts_in_swaps, is_curve
from roundtrip.domain.check.evidence import Evidence
from roundtrip.domain.check.price import pool_price
from roundtrip.domain.scorecard.scorecard import SIZE, RealTrade, VerdictClaim, cost_bps, tax_bps
from roundtrip.services.check.holder_sells import insiders
from roundtrip.services.runtime.context import Context
from roundtrip.store.boards import moving
from roundtrip.store.index.addresses import id_of
from roundtrip.store.scorecard import real_trades as store
from roundtrip.store.scorecard.real_trades import IndexedTrade
from roundtrip.store.scorecard.scorecard import StoredVerdict
from roundtrip.store.server.rows import Connection
from roundtrip.venues.decode import Decoder

MOST_WALLETS = 6
"""So many plain wallets' trades are held against a verdict: of more the first half and the last half."""
MOST_LOOKED = 200
"""Among so many trades of a token in a verdict's time, half of them its first, plain wallets are sought."""
MOST_FILLERS = 50
_MOST_RAW = 10**77
_MOST_TAXED = 10
"""A sell of which so large a part, and no larger, reached the pool is still found by what the pool had."""
_PRICE_AGE_S = 86_400


@dataclass(frozen=True, slots=True)
class PlainTrade:
    """A plain wallet's trade, as far as the index tells that it is one. ``prior``: the last trade of its pool
    before it, which tells the price."""

    trade: IndexedTrade
    held_before: bool
    new_place: bool
    prior: TxHash | None


@dataclass(frozen=True, slots=True)
class Token:
    """A token that verdicts are of, and the numbers of who is behind it."""

    address: Address
    id: int
    behind: frozenset[int]


async def token_of(connection: Connection, evidence: Evidence) -> Token | None:
    """None: it stands in no fact, so nobody traded it."""
    token_id = await id_of(connection, evidence.token)
    if token_id is None:
        return None
    behind = await store.behind(connection, token_id, insiders(evidence), MOST_FILLERS)
    return Token(evidence.token, token_id, frozenset(behind))


async def found_by_index(
    ctx: Context,
    connection: Connection,
    token: Token,
    verdict: StoredVerdict,
    said: VerdictClaim,
    tx_hash: TxHash | None = None,
) -> list[PlainTrade]:
    """Trades of plain wallets in a verdict's time and about its size, in their order. ``tx_hash``: only those
    of that transaction."""
    sides = {"no_buy": (True,), "no_market": (True, False)}.get(said.claim, (False,))
    raw = (1, _MOST_RAW)
    if said.sizes_raw:
        raw = (max(1, said.sizes_raw[0] // (SIZE * _MOST_TAXED)), said.sizes_raw[-1] * SIZE)
    rows = await store.read_trades(
        connection, token.id, verdict.block_number, (said.from_s, said.until_s), raw, sides,
        (ZERO_ADDRESS, ctx.contracts.weth), MOST_LOOKED, tx_hash,
    )  # fmt: skip
    if not said.sizes_raw:
        rows = [one for one in rows if one.worth_wei is not None and said.fits(one.worth_wei)]
    first = list({(one.wallet_id, one.buys): one for one in reversed(rows)}.values())[::-1]
    plain = await _plain(connection, token, first)
    if len(plain) > MOST_WALLETS:
        plain = plain[: MOST_WALLETS // 2] + plain[-MOST_WALLETS // 2 :]
    return [await _read_prior(connection, token, verdict, said, one) for one in plain]


async def _plain(connection: Connection, token: Token, rows: Sequence[IndexedTrade]) -> list[IndexedTrade]:
    """Those whose wallet is nobody's behind the token, and bought in the market what it sells."""
    purses = await moving.purses_of(connection, {one.wallet_id for one in rows} | token.behind)
    found = []
    for one in rows:
        if any(purses.is_kin(one.wallet_id, other) for other in token.behind):
            continue
        if not await store.is_alone(connection, token.id, one):
            continue
        own = await store.own_before(connection, token.id, one)
        if one.buys or own.had_raw() >= one.token_raw:
            found.append(one)
    return found


async def _read_prior(
    connection: Connection,
    token: Token,
    verdict: StoredVerdict,
    said: VerdictClaim,
    one: IndexedTrade,
) -> PlainTrade:
    own = await store.own_before(connection, token.id, one)
    new = one.opened_number > verdict.block_number
    if said.claim == "no_market" and not new:
        new = await store.filled_after(connection, one, verdict.block_number, said.from_s)
    prior = None
    if not one.buys and not is_curve(one.kind) and not acts_in_swaps(one.kind, one.hook):
        prior = await store.trade_before(connection, one, one.at_s - _PRICE_AGE_S)
    held_before = own.older_raw > 0 or (
        own.first_number is not None and own.first_number <= verdict.block_number
    )
    return PlainTrade(one, held_before, new, prior)


# --- what receipts say -----------------------------------------------------------------------------


async def by_receipt(ctx: Context, token: Address, found: PlainTrade, meter: Meter) -> RealTrade | None:
    """What its own receipt says of it; None: it is none of a plain wallet. Raises NodeFault, also where the
    node does not have it."""
    trade = found.trade
    mined = await _read_mined(ctx, trade.tx_hash, meter)
    sender, done, number = mined
    if not done.succeeded or number != trade.block_number:
        raise NodeFault("its receipt is not that of the trade")
    if sender != trade.wallet or await has_code(ctx, sender, meter):
        return None
    decode = Decoder(ctx.contracts)
    moved = 0
    for _, log in done.logs:
        told = decode(log)
        if isinstance(told, Transferred) and told.token == token and told.sender != told.recipient:
            moved += told.amount_raw * ((told.recipient == sender) - (told.sender == sender))
    if trade.buys:
        return _real(found, moved, None) if moved > 0 else None
    left_raw = -moved
    # What came out of another wallet, or a contract, was not its own to sell.
    if left_raw < trade.token_raw:
        return None
    return _real(found, left_raw, await _cost(ctx, token, found, left_raw, meter))


async def _read_mined(ctx: Context, tx_hash: TxHash, meter: Meter) -> tuple[Address, MinedTransaction, int]:
    told = await read_transaction(ctx.node, tx_hash, ctx.chain_id, meter)
    if told is None or told[1] is None or told[0].block is None:
        raise NodeFault("it does not have a transaction that the index knows")
    return told[0].sender, told[1], told[0].block[0]


async def has_code(ctx: Context, wallet: Address, meter: Meter) -> bool:
    """Whether it is a contract, or a wallet that lets one act for it. Raises NodeFault."""
    head = ctx.heads.current().block
    (answer,) = await ctx.node.batch([RpcCall("eth_getCode", [wallet, {"blockHash": head.hash}])], meter)
    if isinstance(answer, RpcError):
        raise NodeFault("it did not tell whether a wallet has code")
    return hex_bytes(answer) != b""


async def _cost(ctx: Context, token: Address, found: PlainTrade, left_raw: int, meter: Meter) -> int | None:
    """What the sell lost against the price before it; on a curve what was taken of it. None: it cannot be
    told."""
    trade = found.trade
    if is_curve(trade.kind):
        kept_raw = trade.kept_raw or 0
        gross = trade.quote_raw + kept_raw
        taken = -(-kept_raw * BPS // gross) if gross else BPS
        return max(taken, tax_bps(left_raw, trade.token_raw))
    if found.prior is None:
        return None
    price = await _price_after(ctx, token, found.prior, trade, meter)
    return cost_bps(left_raw, trade.quote_raw, price)


async def _price_after(
    ctx: Context, token: Address, tx_hash: TxHash, trade: IndexedTrade, meter: Meter
) -> Fraction | None:
    """The price that the pool was left at by a transaction."""
    _, done, _ = await _read_mined(ctx, tx_hash, meter)
    decode = Decoder(ctx.contracts)
    told = [decode(log) for _, log in done.logs]
    swaps = [one for one in told if isinstance(one, Swapped) and one.at == trade.at]
    return pool_price(swaps[-1].sqrt_price_x96, token < trade.quote) if swaps else None


def _real(found: PlainTrade, token_raw: int, lost_bps: int | None) -> RealTrade:
    trade = found.trade
    return RealTrade(
        buys=trade.buys,
        at=trade.at,
        block_number=trade.block_number,
        at_s=trade.at_s,
        tx_hash=trade.tx_hash,
        wallet=trade.wallet,
        token_raw=token_raw,
        worth_wei=trade.worth_wei,
        cost_bps=lost_bps,
        held_before=found.held_before,
        new_place=found.new_place,
    )
