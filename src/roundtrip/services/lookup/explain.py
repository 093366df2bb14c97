"""What a transaction did, in plain words: any transaction, whether the index knows of it or not."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated, Literal

import msgspec

from roundtrip.chain.rpc.client import Meter, RpcCall, RpcError, hex_bytes
from roundtrip.chain.wallet.transactions import (
    OUT_OF_GAS,
    BlockAround,
    MinedTransaction,
    SentTransaction,
    block_call,
    read_block,
    read_change,
    read_reason,
    read_transaction,
)
from roundtrip.domain.base.errors import CallerFault
from roundtrip.domain.base.types import ZERO_ADDRESS, Address, BlockRef, TxHash
from roundtrip.domain.base.venue import VenueKind
from roundtrip.domain.transaction.account import (
    Kind,
    MovedAsset,
    Said,
    StepKind,
    TransactionAccount,
    TransactionFacts,
    TransactionStep,
)
from roundtrip.domain.transaction.reader import account as account_of
from roundtrip.domain.transaction.sums import Nets, nets, tells_all_eth, told_eth, wrapped_once
from roundtrip.services.lookup.entities import KnownEntities, from_index, from_itself, questions
from roundtrip.services.lookup.explain_text import (
    EthBy,
    StepsText,
    WalletEffect,
    call_text,
    fee_text,
    known_call,
    sentences,
    upper,
)
from roundtrip.services.runtime.context import Context, UseCaseAnswer
from roundtrip.services.support.index_reader import IndexAnswer, TokenNamed, eth, present_token, when
from roundtrip.services.support.money import AssetAmount, amount
from roundtrip.services.support.strangers_text import WRITTEN, Sentence
from roundtrip.venues.account_events import AccountEventReader
from roundtrip.venues.decode import Decoder
from roundtrip.venues.entry_point import ENTRY_POINTS

Status = Literal["success", "failed", "pending"]


class ExplainParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which transaction."""

    hash: Annotated[str, msgspec.Meta(description="The transaction's hash.", pattern=r"^0x[0-9a-fA-F]{64}\Z")]

    def tx_hash(self) -> TxHash:
        """In lower case."""
        return TxHash(self.hash.lower())


class ExplainedStep(msgspec.Struct, frozen=True, rename="camel"):
    """One thing that happened in it."""

    kind: StepKind
    text: Sentence
    who: Annotated[str | None, msgspec.Meta(description="Who did it; null: not known.")]
    to: Annotated[
        str | None,
        msgspec.Meta(description="Whom it was done to: a recipient, a spender, who has what was bought."),
    ]
    venue: Annotated[VenueKind | None, msgspec.Meta(description="The sort of pool or curve.")]
    at: Annotated[
        str | None, msgspec.Meta(description="The pool's or curve's address, a v4 pool's id, a new contract.")
    ]
    token: TokenNamed | None
    paid: AssetAmount | None
    got: AssetAmount | None


class WalletMoves(msgspec.Struct, frozen=True, rename="camel"):
    """What another wallet or contract got and gave in it."""

    wallet: str
    paid: list[AssetAmount]
    got: list[AssetAmount]


class Explanation(IndexAnswer, frozen=True, rename="camel"):
    """What a transaction did. Token amounts are as their contracts tell; those of trades are the pools'."""

    hash: str
    status: Status
    kind: Annotated[Kind, msgspec.Meta(description="What it was, by the weightiest of its steps.")]
    tx_block: Annotated[int | None, msgspec.Meta(description="The block it is in; null while in none.")]
    tx_time: Annotated[datetime | None, msgspec.Meta(description="When that block was made.")]
    sender: Annotated[str, msgspec.Meta(description="Who sent it.")] = msgspec.field(name="from")
    to: Annotated[str | None, msgspec.Meta(description="Whom it was sent to; null: it made a contract.")]
    whose: Annotated[
        str | None,
        msgspec.Meta(
            description="Whose paid and got are told: the sender, or the account whose operation it carried; "
            "null where it carried operations of several accounts, which are told in others."
        ),
    ]
    paid: Annotated[list[AssetAmount], msgspec.Meta(description="What left that wallet, the fee not in it.")]
    got: Annotated[list[AssetAmount], msgspec.Meta(description="What came to it.")]
    eth_by: Annotated[
        EthBy,
        msgspec.Meta(
            description="How the eth in paid and got is known. balance: measured over the whole block. "
            "events: what went along and what the logs tell; eth that contracts handed out or back is not in "
            "it, unless incomplete is false."
        ),
    ]
    incomplete: Annotated[
        bool,
        msgspec.Meta(
            description="True: paid and got may lack eth, or tell more of it than was kept: contracts may "
            "have handed some out, or back, and it could not be measured."
        ),
    ]
    fee_eth: Annotated[
        float | None, msgspec.Meta(description="What the sender paid for it to be run, in eth.")
    ]
    others: Annotated[
        list[WalletMoves],
        msgspec.Meta(
            description="Whose operations it carried, who has what was bought, and out of whom money or what "
            "was traded went; ten at most. Eth that contracts handed them is not in it."
        ),
    ]
    steps: Annotated[list[ExplainedStep], msgspec.Meta(description="In order; 40 at most.")]
    more_steps: Annotated[int, msgspec.Meta(description="How many steps there are beside those.")]
    reverts: Annotated[
        str | None,
        msgspec.Meta(
            description="Why it failed, in its contracts' words; null where it did not, or nobody knows. "
            f"{WRITTEN}"
        ),
    ]


MOST_STEPS, MOST_OTHERS = 40, 10
"""Steps in the answer, and wallets beside the first."""
_LOGS_IN_A_ROW = 1_000
_NOT_FOUND = (
    "The chain knows no such transaction: it was never sent here, was dropped, or is so new that it has not "
    "come round yet."
)


@dataclass(frozen=True, slots=True)
class _ExplainFacts:
    """All that was found out."""

    sent: SentTransaction
    mined: MinedTransaction | None
    around: BlockAround | None
    said: list[tuple[int, Said]]
    known: KnownEntities
    words: StepsText
    stands: BlockRef
    to_has_code: bool


async def explain(ctx: Context, params: ExplainParams) -> UseCaseAnswer[Explanation]:
    """The account of one transaction. Raises CallerFault (not_found), and NodeFault where the chain gave no
    answer, or one that contradicts itself."""
    meter = Meter()
    found = await read_transaction(ctx.node, params.tx_hash(), ctx.chain_id, meter)
    if found is None:
        raise CallerFault("not_found", _NOT_FOUND)
    sent, mined = found
    said = await _decode_logs(ctx, mined)
    known = await from_index(ctx, said)
    from_itself(said, known, ctx.contracts)
    around, to_has_code = await _ask(ctx, sent, mined, said, known, meter)
    stands = known.stands or ctx.heads.current().block
    if around is not None and around.ref.number > stands.number:
        stands = around.ref
    words = StepsText(ctx.contracts, known)
    told = _ExplainFacts(sent, mined, around, said, known, words, stands, to_has_code)
    if mined is None or around is None:
        answer = _pending(ctx, told)
    elif not mined.succeeded:
        answer = _explain_failed(ctx, told, mined, await read_reason(ctx.node, sent, around, meter))
    else:
        answer = await _explain_mined(ctx, told, mined, around, meter)
    # What is in no block yet is in one in a moment.
    ttl_ms = ctx.policy.node_fault_ttl_ms if mined is None else ctx.policy.answer_ttl_ms
    return UseCaseAnswer(answer, ttl_ms=ttl_ms, meter=meter)


async def _decode_logs(ctx: Context, mined: MinedTransaction | None) -> list[tuple[int, Said]]:
    """What its logs tell, in order."""
    decode, beside = Decoder(ctx.contracts), AccountEventReader(ctx.contracts)
    found: list[tuple[int, Said]] = []
    for place, (index, log) in enumerate(mined.logs if mined is not None else ()):
        if place % _LOGS_IN_A_ROW == 0:
            await asyncio.sleep(0)
        found += [(index, one) for one in (decode(log), beside(log)) if one is not None]
    return wrapped_once(found, ctx.contracts.weth)


async def _ask(
    ctx: Context,
    sent: SentTransaction,
    mined: MinedTransaction | None,
    said: list[tuple[int, Said]],
    known: KnownEntities,
    meter: Meter,
) -> tuple[BlockAround | None, bool]:
    """The block it is in, whether eth was sent to something that has code, and whatever the index does not
    know, in one trip."""
    if mined is None:
        return None, True
    assert sent.block is not None
    number, block_hash, _ = sent.block
    head = ctx.heads.current().block
    # What is older than the newest block that is known of may have lost its state; what is newer is there.
    pinned = head if head.number >= number else BlockRef(number, block_hash, head.timestamp_s)
    asked = questions(ctx, said, sent.sender, known, pinned)
    code_call = RpcCall("eth_getCode", [sent.to or sent.sender, {"blockHash": pinned.hash}])
    calls = [block_call(sent), code_call, *(call for one in asked for call in one.calls)]
    block, code, *answers = await ctx.node.batch(calls, meter)
    for one in asked:
        one.read(answers[: len(one.calls)])
        answers = answers[len(one.calls) :]
    # Without an answer nobody knows.
    return read_block(block, sent), isinstance(code, RpcError) or hex_bytes(code) != b""


# --- what went through -----------------------------------------------------------------------------


async def _explain_mined(
    ctx: Context, told: _ExplainFacts, mined: MinedTransaction, around: BlockAround, meter: Meter
) -> Explanation:
    sent, contracts = told.sent, ctx.contracts
    doing = TransactionFacts(
        sender=sent.sender,
        to=sent.to,
        value_wei=sent.value_wei,
        has_data=bool(sent.data),
        created=mined.created,
        said=told.said,
        weth=contracts.weth,
        usdg=contracts.usdg,
        machinery=contracts.all_addresses(),
        permit2=contracts.permit2,
        router=contracts.launchpad_router,
        hook=contracts.launchpad_hook,
        entry_points=ENTRY_POINTS,
        to_has_code=told.to_has_code,
    )
    # Of thousands of logs it takes long: others have their turn meanwhile.
    account = await asyncio.to_thread(account_of, doing, told.known.markets)
    whose = _whose(sent, account)
    came = nets(doing.said, contracts.weth)
    moved, eth_by = await _eth_moves(ctx, told, doing, account, whose, came, mined, around, meter)
    others = [
        _wallet_moves(ctx, told, wallet, _with_eth(doing, account, wallet, came))
        for wallet in dict.fromkeys([*account.accounts, *account.losers, *account.recipients])
        if wallet != whose
    ][:MOST_OTHERS]
    incomplete = eth_by == "events" and not (whose == doing.sender and tells_all_eth(doing, account))
    actors = frozenset({sent.sender, *account.accounts, *([] if sent.to is None else [sent.to])})
    told = replace(told, words=replace(told.words, actors=actors))
    comes_to = WalletEffect(whose, moved, eth_by, incomplete)
    text = sentences(told.words, told.sent, account, comes_to, mined, around)
    return _answer(
        ctx,
        told,
        account.kind,
        text,
        whose=whose,
        moved=moved,
        eth_by=eth_by,
        incomplete=incomplete,
        others=others,
        steps=account.steps,
    )


def _whose(sent: SentTransaction, account: TransactionAccount) -> Address | None:
    """The sender, or the one account whose operation it carried."""
    if not account.accounts:
        return sent.sender
    return account.accounts[0] if len(account.accounts) == 1 else None


async def _eth_moves(
    ctx: Context,
    told: _ExplainFacts,
    doing: TransactionFacts,
    account: TransactionAccount,
    whose: Address | None,
    came: Nets,
    mined: MinedTransaction,
    around: BlockAround,
    meter: Meter,
) -> tuple[dict[Address, int], EthBy]:
    """What came to the wallet and left it, and how its eth is known."""
    if whose is None:
        return {}, "events"
    moved = came.get(whose, {})
    is_sender = whose == doing.sender
    alone = around.by_sender == 0 if is_sender else around.others == 0
    own = told.sent.is_the_chains_own()
    if alone and not own and whose != around.miner:
        least_wei = doing.value_wei + mined.fee_wei() if is_sender else 0
        change = await read_change(ctx.node, whose, least_wei, around, meter)
        if change is not None:
            wei = change + (mined.fee_wei() if is_sender else 0)
            return _put(moved, wei), "balance"
    return _put(moved, told_eth(doing, account, whose)), "events"


def _put(moved: Mapping[Address, int], wei: int) -> dict[Address, int]:
    return {**({ZERO_ADDRESS: wei} if wei else {}), **moved}


def _with_eth(
    doing: TransactionFacts, account: TransactionAccount, wallet: Address, came: Nets
) -> dict[Address, int]:
    return _put(came.get(wallet, {}), told_eth(doing, account, wallet))


def _wallet_moves(
    ctx: Context, told: _ExplainFacts, wallet: Address, moved: dict[Address, int]
) -> WalletMoves:
    return WalletMoves(wallet, *_sides(ctx, told, moved))


def _sides(
    ctx: Context, told: _ExplainFacts, moved: dict[Address, int]
) -> tuple[list[AssetAmount], list[AssetAmount]]:
    paid = [_amount(ctx, told, MovedAsset(asset, -raw)) for asset, raw in moved.items() if raw < 0]
    got = [_amount(ctx, told, MovedAsset(asset, raw)) for asset, raw in moved.items() if raw > 0]
    return paid[:MOST_STEPS], got[:MOST_STEPS]


def _amount(ctx: Context, told: _ExplainFacts, moved: MovedAsset) -> AssetAmount:
    label = told.known.label(moved.asset)
    return amount(moved.raw, moved.asset, label.decimals, present_token(label).symbol, ctx.contracts)


# --- what failed, and what is in no block ----------------------------------------------------------


def _explain_failed(
    ctx: Context, told: _ExplainFacts, mined: MinedTransaction, reason: str | None
) -> Explanation:
    sent, around = told.sent, told.around
    assert around is not None
    tried = call_text(told.words, sent, "tried")
    fee = fee_text(sent, mined, around)
    if reason == OUT_OF_GAS and mined.gas_used >= sent.gas_limit:
        why = "It used all the gas it was given: it ran out of it."
    elif reason:
        why = f'Run again on the state before its block it fails with "{reason}".'
    elif mined.gas_used >= sent.gas_limit:
        why = "It used all the gas it was given: it ran out, or hit an instruction that takes all of it."
        reason = None
    elif reason == "":
        why = "Run again on the state before its block it fails, too, and no reason is given."
        reason = None
    else:
        why = "Why cannot be told: on the state before its block it does not fail, or cannot be run."
    text = f"It failed: nothing moved but its fee. {tried} {why} {fee}"
    return _answer(ctx, told, _kind_of_call(sent), text, reverts=reason)


def _pending(ctx: Context, told: _ExplainFacts) -> Explanation:
    wants = call_text(told.words, told.sent, "wants")
    text = f"It is in no block yet: it may go through, fail, or be dropped. {wants}"
    return _answer(ctx, told, _kind_of_call(told.sent), text)


def _kind_of_call(sent: SentTransaction) -> Kind:
    """What a transaction without logs was about, by what it calls."""
    if sent.to is None:
        return "contract_made"
    if not sent.data:
        return "transfer"
    known = known_call(sent)
    return "call" if known is None else known.kind


# --- the answer ------------------------------------------------------------------------------------


def _answer(
    ctx: Context,
    told: _ExplainFacts,
    kind: Kind,
    text: str,
    whose: Address | None = None,
    moved: dict[Address, int] | None = None,
    eth_by: EthBy = "events",
    incomplete: bool = False,
    others: Sequence[WalletMoves] = (),
    steps: Sequence[TransactionStep] = (),
    reverts: str | None = None,
) -> Explanation:
    sent, mined, around = told.sent, told.mined, told.around
    is_over = mined is not None and mined.succeeded
    paid, got = _sides(ctx, told, moved or {})
    return Explanation(
        text=text,
        chain_id=ctx.chain_id,
        block=told.stands.number,
        block_time=when(told.stands.timestamp_s),
        hash=sent.hash,
        status="pending" if mined is None else "success" if is_over else "failed",
        kind=kind,
        tx_block=None if around is None else around.ref.number,
        tx_time=None if around is None else when(around.ref.timestamp_s),
        sender=sent.sender,
        to=sent.to,
        whose=whose if is_over else sent.sender,
        paid=paid,
        got=got,
        eth_by=eth_by,
        incomplete=incomplete,
        fee_eth=None if mined is None else eth(mined.fee_wei()),
        others=list(others),
        steps=[_step(ctx, told, step) for step in steps[:MOST_STEPS]],
        more_steps=max(0, len(steps) - MOST_STEPS),
        reverts=reverts,
    )


def _step(ctx: Context, told: _ExplainFacts, step: TransactionStep) -> ExplainedStep:
    return ExplainedStep(
        kind=step.kind,
        text=f"{upper(told.words.step(step))}.",
        who=step.who,
        to=step.to,
        venue=step.venue,
        at=step.at,
        token=None if step.token is None else present_token(told.known.label(step.token)),
        paid=None if step.paid is None else _amount(ctx, told, step.paid),
        got=None if step.got is None else _amount(ctx, told, step.got),
    )
