"""Finds real trades of plain wallets to compare a verdict with: from the index, and confirmed by their
receipts. A plain wallet is no contract and has nothing to do with the people behind the token."""

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
from roundtrip.services.engine.holder_sells import insiders
from roundtrip.services.runtime.context import Context
from roundtrip.store.boards import moving
from roundtrip.store.index.tokens import id_of
from roundtrip.store.scorecard import real_trades as store
from roundtrip.store.scorecard.real_trades import IndexedTrade
from roundtrip.store.scorecard.scorecard import StoredVerdict
from roundtrip.store.server.rows import Connection
from roundtrip.venues.decode import Decoder

MAX_WALLETS = 6
"""The most trades that a verdict is compared with; of more, the first and the last half of this number."""
MAX_LOOKED = 200
"""The most trades in a verdict's period that are searched for plain wallets; half of them the first ones."""
MAX_FILLERS = 50
"""The first senders of liquidity to a token's pools that count as people behind it."""
_MAX_RAW = 10**77
_MAX_TAXED = 10
"""A sell is still found by the pool's amount if at least one part in ``_MAX_TAXED`` reached the pool."""
_PRICE_AGE_S = 86_400
"""How old the trade may be that gives the price before a sell."""


@dataclass(frozen=True, slots=True)
class PlainTrade:
    """A plain wallet's trade, by the index. ``held_before``: the wallet had bought the token by the verdict's
    block. ``new_place``: the pool opened, or was filled, only after that. ``prior``: the pool's last trade
    before it, which gives the price; None: it is not needed, or there is none."""

    trade: IndexedTrade
    held_before: bool
    new_place: bool
    prior: TxHash | None


@dataclass(frozen=True, slots=True)
class Token:
    """A token with verdicts. ``behind``: the ids of the wallets behind it."""

    address: Address
    id: int
    behind: frozenset[int]


async def token_of(connection: Connection, evidence: Evidence) -> Token | None:
    """The token of an evidence; None if the index has no fact with it, so that it was never traded."""
    token_id = await id_of(connection, evidence.token)
    if token_id is None:
        return None
    behind = await store.behind(connection, token_id, insiders(evidence), MAX_FILLERS)
    return Token(evidence.token, token_id, frozenset(behind))


async def find_trades(
    ctx: Context, connection: Connection, token: Token, verdict: StoredVerdict, claim: VerdictClaim
) -> list[PlainTrade]:
    """Trades of plain wallets in a verdict's period and about its size: the first of each wallet and side, in
    chain order."""
    # True: buys.
    sides = {"no_buy": (True,), "no_market": (True, False)}.get(claim.claim, (False,))
    raw_range = (1, _MAX_RAW)
    if claim.sizes_raw:
        raw_range = (max(1, claim.sizes_raw[0] // (SIZE * _MAX_TAXED)), claim.sizes_raw[-1] * SIZE)
    trades = await store.read_trades(
        connection, token.id, verdict.block_number, (claim.from_s, claim.until_s), raw_range, sides,
        (ZERO_ADDRESS, ctx.contracts.weth), MAX_LOOKED,
    )  # fmt: skip
    if not claim.sizes_raw:
        trades = [t for t in trades if t.worth_wei is not None and claim.fits(t.worth_wei)]
    first: dict[tuple[int, bool], IndexedTrade] = {}
    for trade in trades:
        first.setdefault((trade.wallet_id, trade.buys), trade)
    plain = await _keep_plain(connection, token, list(first.values()))
    if len(plain) > MAX_WALLETS:
        plain = plain[: MAX_WALLETS // 2] + plain[-MAX_WALLETS // 2 :]
    return [await _add_history(connection, token, verdict, claim, trade) for trade in plain]


async def _keep_plain(
    connection: Connection, token: Token, trades: Sequence[IndexedTrade]
) -> list[IndexedTrade]:
    """The trades by wallets that are not related to the people behind the token, and that bought in the
    market what they sell."""
    purses = await moving.read_origins(connection, {trade.wallet_id for trade in trades} | token.behind)
    plain = []
    for trade in trades:
        if any(purses.is_kin(trade.wallet_id, insider_id) for insider_id in token.behind):
            continue
        if not await store.is_alone(connection, token.id, trade):
            continue
        history = await store.own_before(connection, token.id, trade)
        if trade.buys or history.had_raw() >= trade.token_raw:
            plain.append(trade)
    return plain


async def _add_history(
    connection: Connection, token: Token, verdict: StoredVerdict, claim: VerdictClaim, trade: IndexedTrade
) -> PlainTrade:
    history = await store.own_before(connection, token.id, trade)
    is_new_place = trade.opened_number > verdict.block_number
    if claim.claim == "no_market" and not is_new_place:
        is_new_place = await store.filled_after(connection, trade, verdict.block_number, claim.from_s)
    prior = None
    if not trade.buys and not is_curve(trade.kind) and not acts_in_swaps(trade.kind, trade.hook):
        prior = await store.trade_before(connection, trade, trade.at_s - _PRICE_AGE_S)
    held_before = history.older_raw > 0 or (
        history.first_number is not None and history.first_number <= verdict.block_number
    )
    return PlainTrade(trade, held_before, is_new_place, prior)


# --- receipts --------------------------------------------------------------------------------------


async def confirm_by_receipt(
    ctx: Context, token: Address, plain: PlainTrade, meter: Meter
) -> RealTrade | None:
    """The trade by its receipt; None if the receipt shows that it is not a plain wallet's. Raises NodeFault,
    also when the node does not have the receipt."""
    trade = plain.trade
    sender, mined, number = await _read_mined(ctx, trade.tx_hash, meter)
    if not mined.succeeded or number != trade.block_number:
        raise NodeFault("it returned a receipt that does not fit the trade")
    if sender != trade.wallet or await has_code(ctx, sender, meter):
        return None
    decode = Decoder(ctx.contracts)
    received_raw = 0
    for _, log in mined.logs:
        event = decode(log)
        if isinstance(event, Transferred) and event.token == token and event.sender != event.recipient:
            received_raw += event.amount_raw * ((event.recipient == sender) - (event.sender == sender))
    if trade.buys:
        return _real_trade(plain, received_raw, None) if received_raw > 0 else None
    sold_raw = -received_raw
    # Less than the trade: the tokens came from another wallet or a contract.
    if sold_raw < trade.token_raw:
        return None
    return _real_trade(plain, sold_raw, await _cost_bps(ctx, token, plain, sold_raw, meter))


async def _read_mined(ctx: Context, tx_hash: TxHash, meter: Meter) -> tuple[Address, MinedTransaction, int]:
    """Sender, receipt and block number of a transaction. Raises NodeFault if the node does not have it."""
    answer = await read_transaction(ctx.node, tx_hash, ctx.chain_id, meter)
    if answer is None or answer[1] is None or answer[0].block is None:
        raise NodeFault("a transaction that the index knows not returned")
    return answer[0].sender, answer[1], answer[0].block[0]


async def has_code(ctx: Context, wallet: Address, meter: Meter) -> bool:
    """Whether the address is a contract, or a wallet that delegates to one (EIP-7702). Raises NodeFault."""
    head = ctx.heads.current().block
    (answer,) = await ctx.node.batch([RpcCall("eth_getCode", [wallet, {"blockHash": head.hash}])], meter)
    if isinstance(answer, RpcError):
        raise NodeFault("the code of a wallet not returned")
    return hex_bytes(answer) != b""


async def _cost_bps(
    ctx: Context, token: Address, plain: PlainTrade, sold_raw: int, meter: Meter
) -> int | None:
    """The sell's loss against the price before it, or the fee that a curve took; None if unknown."""
    trade = plain.trade
    if is_curve(trade.kind):
        kept_raw = trade.kept_raw or 0
        gross_raw = trade.quote_raw + kept_raw
        fee_bps = -(-kept_raw * BPS // gross_raw) if gross_raw else BPS
        return max(fee_bps, tax_bps(sold_raw, trade.token_raw))
    if plain.prior is None:
        return None
    price = await _price_after(ctx, token, plain.prior, trade, meter)
    return cost_bps(sold_raw, trade.quote_raw, price)


async def _price_after(
    ctx: Context, token: Address, tx_hash: TxHash, trade: IndexedTrade, meter: Meter
) -> Fraction | None:
    _, mined, _ = await _read_mined(ctx, tx_hash, meter)
    decode = Decoder(ctx.contracts)
    events = [decode(log) for _, log in mined.logs]
    swaps = [event for event in events if isinstance(event, Swapped) and event.at == trade.at]
    return pool_price(swaps[-1].sqrt_price_x96, token < trade.quote) if swaps else None


def _real_trade(plain: PlainTrade, token_raw: int, lost_bps: int | None) -> RealTrade:
    trade = plain.trade
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
        held_before=plain.held_before,
        new_place=plain.new_place,
    )
