"""What a transaction did, in plain words: any transaction, indexed or not. Also the answer for a
transaction's page: the explanation, what each asset was worth then, and what checks said of its tokens."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated, Literal

import msgspec

from roundtrip.chain.rpc.client import Meter, RpcCall, RpcError, hex_bytes
from roundtrip.chain.simulate.block_dependence import DELEGATED
from roundtrip.chain.wallet.transactions import (
    BlockAround,
    MinedTransaction,
    SentTransaction,
    block_call,
    read_block,
    read_change,
    read_reason,
    read_transaction,
)
from roundtrip.domain.base.errors import CallerFault, ServiceFull
from roundtrip.domain.base.types import WEI_PER_ETH, ZERO_ADDRESS, Address, BlockRef, TxHash
from roundtrip.domain.base.venue import VenueKind
from roundtrip.domain.check.price import USDG_UNIT
from roundtrip.domain.transaction.account import (
    DecodedLog,
    Kind,
    MovedAsset,
    NetChanges,
    StepKind,
    TransactionFacts,
    TransactionStep,
    TransactionSummary,
    logs_all_eth,
    merge_wraps,
    sum_logged_eth,
    sum_net_changes,
)
from roundtrip.domain.transaction.reader import interpret_transaction
from roundtrip.domain.verdicts.changes import PastVerdict
from roundtrip.services.lookup.entities import KnownEntities, add_from_logs, build_questions, load_from_index
from roundtrip.services.lookup.explain_text import (
    EthBy,
    StepsText,
    WalletEffect,
    capitalize,
    describe_call,
    describe_failure,
    describe_fee,
    describe_transaction,
)
from roundtrip.services.runtime.context import Context, UseCaseAnswer
from roundtrip.services.support.answer_fields import WRITTEN, Sentence, Symbol, says
from roundtrip.services.support.index_reader import IndexAnswer, TokenNamed, eth, looking, present_token, when
from roundtrip.services.support.money import AssetAmount, amount
from roundtrip.store.check import evidence as evidence_store
from roundtrip.store.check.evidence import MAX_COMPARED
from roundtrip.store.index.prices import PastPrices, TradedWorth, past_prices, traded_worths
from roundtrip.store.server.connections import DATABASE_FAULTS
from roundtrip.venues.account_events import AccountEventReader
from roundtrip.venues.decode import Decoder
from roundtrip.venues.entry_point import ENTRY_POINTS
from roundtrip.venues.known_calls import find_known_call

Status = Literal["success", "failed", "pending"]


class ExplainParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which transaction."""

    hash: Annotated[
        str,
        msgspec.Meta(
            description="The transaction's hash, 0x and 64 hex digits.", pattern="^0x[0-9a-fA-F]{64}\\Z"
        ),
    ]

    def tx_hash(self) -> TxHash:
        """In lower case."""
        return TxHash(self.hash.lower())


class ExplainedStep(msgspec.Struct, frozen=True, rename="camel"):
    """One step of the transaction."""

    kind: Annotated[StepKind, says("Kind of step.")]
    text: Sentence
    who: Annotated[str | None, says("The address that did it. null: not known.")]
    to: Annotated[
        str | None, says("The recipient, the spender, or the holder of what was bought. null: none.")
    ]
    venue: Annotated[VenueKind | None, says("Kind of pool or curve. null: none involved.")]
    at: Annotated[
        str | None,
        says("Address of the pool or curve, id of a v4 pool, or address of a new contract. null: none."),
    ]
    token: Annotated[TokenNamed | None, says("The token concerned. null: none.")]
    paid: Annotated[AssetAmount | None, says("What was given. null: nothing, or not known.")]
    got: Annotated[AssetAmount | None, says("What was received. null: nothing, or not known.")]


class WalletMoves(msgspec.Struct, frozen=True, rename="camel"):
    """What another wallet or contract gave and received."""

    wallet: Annotated[str, says("The wallet or contract.")]
    paid: Annotated[list[AssetAmount], says("What it gave.")]
    got: Annotated[list[AssetAmount], says("What it received.")]


class Explanation(IndexAnswer, frozen=True, rename="camel"):
    """What a transaction did. Token amounts are as their contracts tell; those of trades are the pools'."""

    hash: Annotated[str, says("The transaction's hash.")]
    status: Annotated[Status, says("success, failed, or pending: in no block yet.")]
    kind: Annotated[Kind, says("The most important thing that it did.")]
    tx_block: Annotated[int | None, says("Block of the transaction. null: in none yet.")]
    tx_time: Annotated[datetime | None, says("Time of that block. null: in none yet, or not known.")]
    sender: Annotated[str, says("The wallet that sent it.")] = msgspec.field(name="from")
    to: Annotated[str | None, says("The address that it was sent to. null: it creates a contract.")]
    whose: Annotated[
        str | None,
        says(
            "The wallet that paid and got are about: the sender, or the account whose operation it carried. "
            "null: it carried operations of several accounts, see others."
        ),
    ]
    paid: Annotated[list[AssetAmount], says("What left that wallet, without the fee.")]
    got: Annotated[list[AssetAmount], says("What that wallet received.")]
    eth_by: Annotated[
        EthBy,
        says(
            "How the eth in paid and got is known. balance: measured over the whole block. events: from the "
            "value sent and the logs; eth that contracts handed out or back is missing."
        ),
    ]
    incomplete: Annotated[
        bool,
        says(
            "true: the eth in paid and got may be wrong, because contracts may have handed "
            "some out or back and it could not be measured."
        ),
    ]
    fee_eth: Annotated[float | None, says("Fee that the sender paid, in eth. null: not known.")]
    others: Annotated[
        list[WalletMoves],
        says(
            "Other wallets and contracts that paid, or got what was bought, at most ten. "
            "Eth that contracts handed them is not included."
        ),
    ]
    steps: Annotated[list[ExplainedStep], says("What happened in order, at most 40 steps.")]
    more_steps: Annotated[int, says("Steps that are not listed.")]
    reverts: Annotated[
        str | None,
        says(
            "Why it failed, as its contracts say. null: it did not fail, or the reason is not known. "
            f"{WRITTEN}"
        ),
    ]


MAX_STEPS, MAX_OTHERS = 40, 10
"""Limits of steps in the answer, and of wallets besides the first."""
_LOGS_IN_A_ROW = 1_000
"""Logs that are decoded before other tasks get a turn."""
_NOT_FOUND = (
    "The chain does not know this transaction: it was never sent here, was dropped, or is too new. Check the "
    "hash, or ask again in a few seconds."
)


@dataclass(frozen=True, slots=True)
class _TransactionRecord:
    """What was read of the transaction. ``mined`` and ``around`` (its block): None: it is pending.
    ``index_block``: the newest block that the answer knows of."""

    sent: SentTransaction
    mined: MinedTransaction | None
    around: BlockAround | None
    logs: list[tuple[int, DecodedLog]]
    entities: KnownEntities
    texts: StepsText
    index_block: BlockRef
    to_has_code: bool


async def explain(ctx: Context, params: ExplainParams) -> UseCaseAnswer[Explanation]:
    """Explains one transaction. Raises CallerFault (not_found), and NodeFault when the node gives no answer,
    or one that contradicts itself."""
    meter = Meter()
    sent, mined = await find_transaction(ctx, params, meter)
    logs = await _decode_logs(ctx, mined)
    entities = await load_from_index(ctx, logs)
    add_from_logs(logs, entities, ctx.contracts)
    around, code = await _read_entities(ctx, sent, mined, logs, entities, meter)
    index_block = entities.index_block or ctx.heads.current().block
    if around is not None and around.ref.number > index_block.number:
        index_block = around.ref
    is_contract = bool(code) and not (code or b"").startswith(DELEGATED)
    texts = StepsText(ctx.contracts, entities, is_contract=is_contract)
    # Without an answer it counts as having code.
    transaction = _TransactionRecord(sent, mined, around, logs, entities, texts, index_block, code != b"")
    if mined is None or around is None:
        answer = _explain_pending(ctx, transaction)
    elif not mined.succeeded:
        answer = _explain_failed(ctx, transaction, mined, await read_reason(ctx.node, sent, around, meter))
    else:
        answer = await _explain_mined(ctx, transaction, mined, around, meter)
    # A pending transaction may be in a block a moment later.
    ttl_ms = ctx.policy.node_fault_ttl_ms if mined is None else ctx.policy.answer_ttl_ms
    return UseCaseAnswer(answer, ttl_ms=ttl_ms, meter=meter)


async def find_transaction(
    ctx: Context, params: ExplainParams, meter: Meter
) -> tuple[SentTransaction, MinedTransaction | None]:
    """The transaction and its receipt; None: pending. Raises CallerFault (not_found) and NodeFault."""
    ctx.heads.current()  # Raises where the node has not answered for a while, so that nobody waits for it.
    found = await read_transaction(ctx.node, params.tx_hash(), ctx.chain_id, meter)
    if found is None:
        raise CallerFault("not_found", _NOT_FOUND)
    return found


async def _decode_logs(ctx: Context, mined: MinedTransaction | None) -> list[tuple[int, DecodedLog]]:
    """Its decoded logs, in order."""
    decode, beside = Decoder(ctx.contracts), AccountEventReader(ctx.contracts)
    logs: list[tuple[int, DecodedLog]] = []
    for place, (index, log) in enumerate(mined.logs if mined is not None else ()):
        if place % _LOGS_IN_A_ROW == 0:
            await asyncio.sleep(0)
        logs += [(index, decoded) for decoded in (decode(log), beside(log)) if decoded is not None]
    return merge_wraps(logs, ctx.contracts.weth)


async def _read_entities(
    ctx: Context,
    sent: SentTransaction,
    mined: MinedTransaction | None,
    logs: list[tuple[int, DecodedLog]],
    entities: KnownEntities,
    meter: Meter,
) -> tuple[BlockAround | None, bytes | None]:
    """Reads in one batch: its block, its target's code (None: not known), and the entities that are not
    indexed. Of a pending transaction the code alone."""
    head = ctx.heads.current().block
    if mined is None:
        (code,) = await ctx.node.batch([_code_call(sent, head)], meter)
        return None, _read_code(code)
    assert sent.block is not None
    number, block_hash, _ = sent.block
    # The node may have pruned the state of a block before the head; a newer block's state is there.
    pinned = head if head.number >= number else BlockRef(number, block_hash, head.timestamp_s)
    questions = build_questions(ctx, logs, sent.sender, entities, pinned)
    asked = [call for question in questions for call in question.calls]
    calls = [block_call(sent), _code_call(sent, pinned), *asked]
    block, code, *answers = await ctx.node.batch(calls, meter)
    for question in questions:
        question.read(answers[: len(question.calls)])
        answers = answers[len(question.calls) :]
    return read_block(block, sent), _read_code(code)


def _code_call(sent: SentTransaction, pinned: BlockRef) -> RpcCall:
    return RpcCall("eth_getCode", [sent.to or sent.sender, {"blockHash": pinned.hash}])


def _read_code(answer: msgspec.Raw | RpcError) -> bytes | None:
    return None if isinstance(answer, RpcError) else hex_bytes(answer)


# --- a successful transaction ----------------------------------------------------------------------


async def _explain_mined(
    ctx: Context, transaction: _TransactionRecord, mined: MinedTransaction, around: BlockAround, meter: Meter
) -> Explanation:
    sent, contracts = transaction.sent, ctx.contracts
    facts = TransactionFacts(
        sender=sent.sender,
        to=sent.to,
        value_wei=sent.value_wei,
        has_data=bool(sent.data),
        created=mined.created,
        logs=transaction.logs,
        weth=contracts.weth,
        usdg=contracts.usdg,
        machinery=contracts.all_addresses(),
        permit2=contracts.permit2,
        router=contracts.launchpad_router,
        hook=contracts.launchpad_hook,
        entry_points=ENTRY_POINTS,
        to_has_code=transaction.to_has_code,
    )
    # Thousands of logs take long: a thread keeps the event loop free.
    summary = await asyncio.to_thread(interpret_transaction, facts, transaction.entities.markets)
    wallet = _find_wallet(sent, summary)
    changes = sum_net_changes(facts.logs, contracts.weth)
    moved, eth_by = await _net_with_eth(
        ctx, transaction, facts, summary, wallet, changes, mined, around, meter
    )
    others = [
        _present_moves(ctx, transaction, other, _add_logged_eth(facts, summary, other, changes))
        for other in dict.fromkeys([*summary.accounts, *summary.losers, *summary.recipients])
        if other != wallet
    ][:MAX_OTHERS]
    incomplete = eth_by == "events" and not (wallet == facts.sender and logs_all_eth(facts, summary))
    actors = frozenset({sent.sender, *summary.accounts, *([] if sent.to is None else [sent.to])})
    transaction = replace(transaction, texts=replace(transaction.texts, actors=actors))
    effect = WalletEffect(wallet, moved, eth_by, incomplete)
    text = describe_transaction(transaction.texts, transaction.sent, summary, effect, mined, around)
    return _build_answer(
        ctx,
        transaction,
        summary.kind,
        text,
        wallet=wallet,
        moved=moved,
        eth_by=eth_by,
        incomplete=incomplete,
        others=others,
        steps=summary.steps,
    )


def _find_wallet(sent: SentTransaction, summary: TransactionSummary) -> Address | None:
    """The sender, or the only account with an operation in it; None: there are several."""
    if not summary.accounts:
        return sent.sender
    return summary.accounts[0] if len(summary.accounts) == 1 else None


async def _net_with_eth(
    ctx: Context,
    transaction: _TransactionRecord,
    facts: TransactionFacts,
    summary: TransactionSummary,
    wallet: Address | None,
    changes: NetChanges,
    mined: MinedTransaction,
    around: BlockAround,
    meter: Meter,
) -> tuple[dict[Address, int], EthBy]:
    """The wallet's net changes by asset, and how its eth is known."""
    if wallet is None:
        return {}, "events"
    moved = changes.get(wallet, {})
    is_sender = wallet == facts.sender
    alone = around.by_sender == 0 if is_sender else around.others == 0
    is_chains_own = transaction.sent.is_the_chains_own()
    if alone and not is_chains_own and wallet != around.miner:
        least_wei = facts.value_wei + mined.fee_wei() if is_sender else 0
        change = await read_change(ctx.node, wallet, least_wei, around, meter)
        if change is not None:
            wei = change + (mined.fee_wei() if is_sender else 0)
            return _add_eth(moved, wei), "balance"
    return _add_eth(moved, sum_logged_eth(facts, summary, wallet)), "events"


def _add_eth(moved: Mapping[Address, int], wei: int) -> dict[Address, int]:
    return {**({ZERO_ADDRESS: wei} if wei else {}), **moved}


def _add_logged_eth(
    facts: TransactionFacts, summary: TransactionSummary, wallet: Address, changes: NetChanges
) -> dict[Address, int]:
    return _add_eth(changes.get(wallet, {}), sum_logged_eth(facts, summary, wallet))


def _present_moves(
    ctx: Context, transaction: _TransactionRecord, wallet: Address, moved: dict[Address, int]
) -> WalletMoves:
    return WalletMoves(wallet, *_split_moves(ctx, transaction, moved))


def _split_moves(
    ctx: Context, transaction: _TransactionRecord, moved: dict[Address, int]
) -> tuple[list[AssetAmount], list[AssetAmount]]:
    paid = [
        _present_amount(ctx, transaction, MovedAsset(asset, -raw)) for asset, raw in moved.items() if raw < 0
    ]
    got = [
        _present_amount(ctx, transaction, MovedAsset(asset, raw)) for asset, raw in moved.items() if raw > 0
    ]
    return paid[:MAX_STEPS], got[:MAX_STEPS]


def _present_amount(ctx: Context, transaction: _TransactionRecord, moved: MovedAsset) -> AssetAmount:
    label = transaction.entities.label(moved.asset)
    return amount(moved.raw, moved.asset, label.decimals, present_token(label).symbol, ctx.contracts)


# --- failed and pending transactions ---------------------------------------------------------------


def _explain_failed(
    ctx: Context, transaction: _TransactionRecord, mined: MinedTransaction, reason: str | None
) -> Explanation:
    sent, around = transaction.sent, transaction.around
    assert around is not None
    tried = describe_call(transaction.texts, sent, "tried")
    why, fee = describe_failure(sent, mined, reason), describe_fee(sent, mined, around)
    text = f"It failed: only its fee was paid. {tried} {why} {fee}"
    return _build_answer(ctx, transaction, _classify_call(sent), text, reverts=reason or None)


def _explain_pending(ctx: Context, transaction: _TransactionRecord) -> Explanation:
    wants = describe_call(transaction.texts, transaction.sent, "wants")
    text = f"It is not in a block yet: it may go through, fail, or be dropped. {wants}"
    return _build_answer(ctx, transaction, _classify_call(transaction.sent), text)


def _classify_call(sent: SentTransaction) -> Kind:
    """The kind of a transaction without logs, by its call."""
    if sent.to is None:
        return "contract_made"
    if not sent.data:
        return "transfer"
    known = find_known_call(sent.data)
    return "call" if known is None else known.kind


# --- the answer ------------------------------------------------------------------------------------


def _build_answer(
    ctx: Context,
    transaction: _TransactionRecord,
    kind: Kind,
    text: str,
    wallet: Address | None = None,
    moved: dict[Address, int] | None = None,
    eth_by: EthBy = "events",
    incomplete: bool = False,
    others: Sequence[WalletMoves] = (),
    steps: Sequence[TransactionStep] = (),
    reverts: str | None = None,
) -> Explanation:
    sent, mined, around = transaction.sent, transaction.mined, transaction.around
    is_over = mined is not None and mined.succeeded
    paid, got = _split_moves(ctx, transaction, moved or {})
    return Explanation(
        text=text,
        chain_id=ctx.chain_id,
        block=transaction.index_block.number,
        block_time=when(transaction.index_block.timestamp_s),
        hash=sent.hash,
        status="pending" if mined is None else "success" if is_over else "failed",
        kind=kind,
        tx_block=None if around is None else around.ref.number,
        tx_time=None if around is None else when(around.ref.timestamp_s),
        sender=sent.sender,
        to=sent.to,
        whose=wallet if is_over else sent.sender,
        paid=paid,
        got=got,
        eth_by=eth_by,
        incomplete=incomplete,
        fee_eth=None if mined is None else eth(mined.fee_wei()),
        others=list(others),
        steps=[_present_step(ctx, transaction, step) for step in steps[:MAX_STEPS]],
        more_steps=max(0, len(steps) - MAX_STEPS),
        reverts=reverts,
    )


def _present_step(ctx: Context, transaction: _TransactionRecord, step: TransactionStep) -> ExplainedStep:
    return ExplainedStep(
        kind=step.kind,
        text=f"{capitalize(transaction.texts.describe(step))}.",
        who=step.actor,
        to=step.to,
        venue=step.venue,
        at=step.at,
        token=None if step.token is None else present_token(transaction.entities.label(step.token)),
        paid=None if step.paid is None else _present_amount(ctx, transaction, step.paid),
        got=None if step.got is None else _present_amount(ctx, transaction, step.got),
    )


_MAX_TOKENS = 4
"""The tokens whose verdicts are read for one page."""
_READ_S = 5.0


class AssetChange(msgspec.Struct, frozen=True, rename="camel"):
    """What the wallet gave or got of one asset. ``amount``: in whole units. ``usd``: its worth then: of
    money by the index's price before that block, of a token by its trades in this very transaction; None: not
    known."""

    asset: str
    symbol: Symbol
    amount: str
    is_in: bool
    usd: float | None


class VerdictAtBlock(msgspec.Struct, frozen=True, rename="camel"):
    """What a stored check found."""

    code: str
    level: str
    block: int
    checked_at: datetime


class TokenVerdicts(msgspec.Struct, frozen=True, rename="camel"):
    """``then``: of the last check at or before the transaction's block; None: none is stored. ``newest``: of
    the last check at all."""

    token: str
    symbol: Symbol
    then: VerdictAtBlock | None
    newest: VerdictAtBlock


class TransactionPage(msgspec.Struct, frozen=True, rename="camel"):
    """``changes``: what left the wallet first. ``verdicts``: of the tokens among them that were ever
    checked; None: they could not be read."""

    told: Explanation
    changes: list[AssetChange]
    fee_usd: float | None
    verdicts: list[TokenVerdicts] | None


async def transaction_page(ctx: Context, params: ExplainParams) -> UseCaseAnswer[TransactionPage]:
    """Raises as ``explain``. Without an index no worth is known."""
    answered = await explain(ctx, params)
    told = answered.answer
    value = await _read_values(ctx, told)
    changes = [_present_change(moved, False, value) for moved in told.paid]
    changes += [_present_change(moved, True, value) for moved in told.got]
    fee_usd = None if told.fee_eth is None else value("eth", round(told.fee_eth * WEI_PER_ETH))
    page = TransactionPage(told, changes, fee_usd, await _read_verdicts(ctx, told))
    return UseCaseAnswer(page, answered.ttl_ms, meter=answered.meter)


async def _read_verdicts(ctx: Context, told: Explanation) -> list[TokenVerdicts] | None:
    if told.tx_block is None:
        return []
    tokens = {moved.asset: moved.symbol for moved in (*told.paid, *told.got) if moved.asset.startswith("0x")}
    found = []
    try:
        async with ctx.pool.acquire(timeout=_READ_S) as connection:
            for token, symbol in [*tokens.items()][:_MAX_TOKENS]:
                past = await evidence_store.past_verdicts(connection, Address(token), MAX_COMPARED)
                if past:
                    then = find_verdict(past, told.tx_block)
                    found.append(TokenVerdicts(token, symbol, then, _present_verdict(past[0])))
    except DATABASE_FAULTS:
        return None
    return found


def find_verdict(newest_first: Sequence[PastVerdict], block: int) -> VerdictAtBlock | None:
    """The last verdict at ``block`` or before it."""
    return next((_present_verdict(past) for past in newest_first if past.block <= block), None)


def _present_verdict(past: PastVerdict) -> VerdictAtBlock:
    return VerdictAtBlock(past.code, past.level, past.block, past.checked_at)


Valuer = Callable[[str, int], float | None]
"""The dollars that so many base units of an asset were worth; None: not known."""


def _present_change(moved: AssetAmount, is_in: bool, value: Valuer) -> AssetChange:
    return AssetChange(moved.asset, moved.symbol, moved.amount, is_in, value(moved.asset, int(moved.raw)))


async def _read_values(ctx: Context, told: Explanation) -> Valuer:
    if told.tx_block is None or told.tx_time is None:
        return lambda asset, raw: None
    number, at_s = told.tx_block, int(told.tx_time.timestamp())
    try:
        async with looking(ctx) as (connection, _):
            prices = await past_prices(connection, ctx.contracts, {ctx.contracts.weth}, {number: at_s})
            traded = await traded_worths(connection, number, at_s, told.hash)
    except ServiceFull:
        return lambda asset, raw: None
    return lambda asset, raw: value_asset(asset, raw, number, prices, traded)


def value_asset(
    asset: str, raw: int, number: int, prices: PastPrices, traded: dict[Address, TradedWorth]
) -> float | None:
    """The dollars that ``raw`` base units were worth in the block ``number``. ``asset``: as in
    ``AssetAmount``. None: not known."""
    money = {"eth": ZERO_ADDRESS, "weth": prices.weth, "usdg": prices.usdg}
    if asset in money:
        micro_usd = prices.worth(money[asset], raw, number)
    else:
        trade = traded.get(Address(asset))
        micro_usd = None if trade is None else trade.micro_usd * raw // trade.token_raw
    return None if micro_usd is None else micro_usd / USDG_UNIT
