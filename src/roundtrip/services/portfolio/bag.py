"""``my_bag``: the tokens of the key's wallet, their worth now, their cost, and what changed since."""

import contextlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Literal

import msgspec

from roundtrip.chain.blocks.heads import ChainHead
from roundtrip.chain.holders.wallet_views import UNREAD, WalletToken, WalletViews, read_views, view_calls
from roundtrip.chain.rpc.client import Meter
from roundtrip.domain.accounts.account import Account
from roundtrip.domain.base.errors import NodeFault, ServiceFull
from roundtrip.domain.base.figures import format_amount, format_count, format_eth, format_percent
from roundtrip.domain.base.policy import Policy
from roundtrip.domain.base.types import BPS, Address, plain_decimal
from roundtrip.domain.base.venue import VenueKind
from roundtrip.domain.check import canonical_json
from roundtrip.domain.check.evidence import Evidence, Missing, RefusedCall
from roundtrip.domain.check.refusals import NO_REASON
from roundtrip.domain.check.venue_code import Level
from roundtrip.domain.check.verdict import judge
from roundtrip.domain.market.profit import is_short, value_held
from roundtrip.domain.trade.text import describe_reason
from roundtrip.domain.watch.bag_guard import GUARD
from roundtrip.services.runtime.context import Context, UseCaseAnswer
from roundtrip.services.runtime.newest_block import wait_for_index
from roundtrip.services.support.answer_fields import WRITTEN, CheckedAt, CodeText, DeployerWallet, says
from roundtrip.services.support.check_answer import present as checked
from roundtrip.services.support.index_reader import (
    IndexAnswer,
    Nothing,
    TokenNamed,
    present_token,
    quote_token,
    reading,
    share_bps,
    when,
)
from roundtrip.services.support.money import ETH_DECIMALS
from roundtrip.services.valuation.holdings import HoldingToSell, PartValue, SellValue, Valued, worth_in_parts
from roundtrip.store.index import tokens
from roundtrip.store.index.cursor import Cursor
from roundtrip.store.index.tokens import Label
from roundtrip.store.server.rows import Connection
from roundtrip.store.watch import bag_changes
from roundtrip.store.watch.bag_changes import BagToken, DeployerSold, LiquidityLeft, StoredCheck

Sells = Literal["yes", "part", "refused", "unknown"]


class CheckKept(msgspec.Struct, frozen=True, rename="camel"):
    """What a check said, and the taxes that it found."""

    code: Annotated[CodeText, says("Verdict code of the check.")]
    level: Annotated[Level, says("Verdict level; treat unknown as a no.")]
    checked_at: CheckedAt
    block: Annotated[int, says("Block of the check.")]
    fees_bps: Annotated[
        int | None,
        says(
            "Measured fees and taxes of a small round trip, in hundredths of a percent. null: not measured."
        ),
    ]
    buy_tax_bps: Annotated[
        int | None,
        says(
            "A launchpad token's tax on buys, in hundredths of a percent. null: not a "
            "launchpad token, or not known."
        ),
    ]
    sell_tax_bps: Annotated[
        int | None,
        says(
            "A launchpad token's tax on sells, in hundredths of a percent. null: not a "
            "launchpad token, or not known."
        ),
    ]


class DeployerChange(msgspec.Struct, frozen=True, rename="camel"):
    """What the token's deployer sold since."""

    address: DeployerWallet
    sold_raw: Annotated[str, says("What it sold since, in base units.")]
    sold_bps: Annotated[
        int, says("The same, in hundredths of a percent of what it had then and bought since, by its trades.")
    ]


class Changes(msgspec.Struct, frozen=True, rename="camel"):
    """What is different since the wallet bought. Null: not known."""

    deployer: Annotated[
        DeployerChange | None,
        says("What the deployer sold since. null: not a launchpad token, or the deployer is not known."),
    ]
    liquidity_left_bps: Annotated[
        int | None,
        says(
            "Liquidity taken out since, of what its largest pool had then, in hundredths "
            "of a percent. null: it had none, or not every change is known."
        ),
    ]
    then: Annotated[CheckKept | None, says("Newest check at or before the first buy. null: none is stored.")]
    now: Annotated[CheckKept | None, says("Newest check. null: none is stored.")]


class BagRow(msgspec.Struct, frozen=True, rename="camel"):
    """A token that the wallet holds."""

    token: Annotated[TokenNamed, says("The token.")]
    amount: Annotated[
        str | None, says("What it holds in whole tokens, a decimal number. null: could not be read.")
    ]
    amount_raw: Annotated[str | None, says("What it holds in base units. null: could not be read.")]
    bought_raw: Annotated[
        str, says("What is left of what it bought, in base units; 0: it was only given the token.")
    ]
    sells: Annotated[
        Sells,
        says(
            "yes: a simulated sell of all of it by this wallet went through. part: of a part. "
            "refused: none did. unknown: could not be found out, which is no yes."
        ),
    ]
    part: Annotated[
        str | None, says("What sells at once, in whole tokens, where sells is part. null: not known.")
    ]
    part_raw: Annotated[str | None, says("The same in base units. null: not known.")]
    reverts: Annotated[
        str | None, says(f"Why the sell was refused. null: it was not, or gave no reason. {WRITTEN}")
    ]
    worth_eth: Annotated[
        str | None, says("What that sell brings now, in eth, a decimal number. null: not known.")
    ]
    venue: Annotated[
        VenueKind | None, says("Kind of venue where it brings that. null: no sell went through.")
    ]
    cost_eth: Annotated[
        str | None, says("What the tokens of boughtRaw cost, in eth. null: not known, or it bought none.")
    ]
    gain_eth: Annotated[
        str | None, says("Worth of boughtRaw minus costEth, in eth; below zero: a loss. null: not known.")
    ]
    gain_bps: Annotated[int | None, says("gainEth in hundredths of a percent of the cost. null: not known.")]
    realised_eth: Annotated[
        str | None,
        says("What its sells brought minus what the sold tokens had cost, in eth. null: not known."),
    ]
    since: Annotated[datetime, says("First buy of what it holds, or the first transfer to it.")]
    changes: Annotated[Changes, says("What changed since it bought.")]


class MyBag(IndexAnswer, frozen=True, rename="camel"):
    """What the key's wallet holds of tokens that the index knows."""

    wallet: Annotated[str, says("The key's wallet.")]
    at_block: Annotated[int | None, says("Block of the balances and worths. null: they could not be read.")]
    worth_eth: Annotated[
        str | None, says("Sum of the holdings' worthEth, where known, in eth. null: none is known.")
    ]
    gain_eth: Annotated[
        str | None, says("Sum of the holdings' gainEth, where known, in eth. null: none is known.")
    ]
    unvalued: Annotated[int, says("Holdings with a worth that could not be found out.")]
    gone: Annotated[int, says("Tokens that it bought and holds none of now.")]
    at_least: Annotated[bool, says("true: it may hold more; only the newest 50 are listed.")]
    holdings: Annotated[list[BagRow], says("The tokens that it holds.")]


MAX_SAID = 3
"""Tokens in the text; each has its own row."""


@dataclass(frozen=True, slots=True)
class BagRecord:
    """The wallet's tokens by the index. ``is_part``: there are more. By token id: ``sales`` by the deployer,
    ``withdrawals`` of liquidity, and the stored checks at the first buy (``then``) and ``now``."""

    index_cursor: Cursor
    held: Sequence[BagToken]
    is_part: bool
    labels: Mapping[int, Label]
    sales: Mapping[int, DeployerSold]
    withdrawals: Mapping[int, LiquidityLeft]
    then: Mapping[int, StoredCheck]
    now: Mapping[int, StoredCheck]

    def is_behind(self, head: ChainHead | None) -> bool:
        """Whether the chain may have trades of the wallet that the index has not."""
        return head is None or self.index_cursor.block.number < head.block.number


@dataclass(frozen=True, slots=True)
class NodeValues:
    """What the node answered; ``head`` None: it did not. ``values``: by id of the tokens with a balance."""

    head: ChainHead | None
    views: WalletViews
    values: Mapping[int, Valued | PartValue]


@dataclass(frozen=True, slots=True)
class _TokenValue:
    """One token in wei; None: not known."""

    worth_wei: int | None
    cost_wei: int | None
    gain_wei: int | None


def present(chain_id: int, wallet: Address, bag: BagRecord, node_values: NodeValues, policy: Policy) -> MyBag:
    """Every field of the answer. While the index is behind the balances, costs and gains are not known."""
    rows, sums, gone = [], [], 0
    is_behind = bag.is_behind(node_values.head)
    for holding in bag.held:
        label = bag.labels[holding.token_id]
        view = node_values.views.tokens.get(label.address, WalletToken())
        if view.amount_raw == 0:
            gone += 1
            continue
        token_value = _value_token(holding, view.amount_raw, node_values.values.get(holding.token_id))
        if is_behind:
            token_value = _TokenValue(token_value.worth_wei, None, None)
        rows.append(
            _present_row(
                holding, bag, label, view, node_values.values.get(holding.token_id), token_value, policy
            )
        )
        sums.append(token_value)
    worths = [token_value.worth_wei for token_value in sums if token_value.worth_wei is not None]
    gains = [token_value.gain_wei for token_value in sums if token_value.gain_wei is not None]
    block = bag.index_cursor.block
    answer = MyBag(
        text="",
        chain_id=chain_id,
        block=block.number,
        block_time=when(block.timestamp_s),
        wallet=wallet,
        at_block=None if node_values.head is None else node_values.head.block.number,
        worth_eth=_eth_or_none(sum(worths)) if worths else None,
        gain_eth=_eth_or_none(sum(gains)) if gains else None,
        unvalued=sum(row.sells == "unknown" for row in rows),
        gone=gone,
        at_least=bag.is_part,
        holdings=rows,
    )
    text = _describe(answer, sum(worths), sum(gains), bag, is_behind)
    return msgspec.structs.replace(answer, text=text)


def _value_token(holding: BagToken, amount_raw: int | None, valued: Valued | PartValue | None) -> _TokenValue:
    sold = _proceeds(valued)
    worth_wei = sold.wei if sold is not None else 0 if isinstance(valued, RefusedCall) else None
    if holding.cost_wei is None or not holding.held_raw or amount_raw is None:
        return _TokenValue(worth_wei, None, None)
    value = value_held(holding.held_raw, holding.cost_wei, amount_raw, worth_wei)
    # What the rest brings in later sales is not known: it is neither worth nothing nor as much.
    gain_wei = None if isinstance(valued, PartValue) else value.gain_wei
    return _TokenValue(worth_wei, value.cost_wei, gain_wei)


def _proceeds(valued: Valued | PartValue | None) -> SellValue | None:
    """The sell that went through, of all of it or of a part."""
    if isinstance(valued, PartValue):
        return valued.proceeds
    return valued if isinstance(valued, SellValue) else None


def _sells(valued: Valued | PartValue | None) -> Sells:
    if isinstance(valued, PartValue):
        return "part"
    if isinstance(valued, RefusedCall):
        return "refused"
    return "yes" if isinstance(valued, SellValue) else "unknown"


def _present_row(
    holding: BagToken,
    bag: BagRecord,
    label: Label,
    view: WalletToken,
    valued: Valued | PartValue | None,
    token_value: _TokenValue,
    policy: Policy,
) -> BagRow:
    decimals = view.decimals if label.decimals is None else label.decimals
    amount, part_raw = view.amount_raw, valued.part_raw if isinstance(valued, PartValue) else None
    sold, refused = _proceeds(valued), valued.refused if isinstance(valued, PartValue) else valued
    gain_bps = (
        token_value.gain_wei * BPS // token_value.cost_wei
        if token_value.gain_wei is not None and token_value.cost_wei
        else None
    )
    return BagRow(
        token=present_token(label),
        amount=None if amount is None or decimals is None else plain_decimal(amount, decimals),
        amount_raw=None if amount is None else str(amount),
        bought_raw=str(holding.held_raw),
        sells=_sells(valued),
        part=None if part_raw is None or decimals is None else plain_decimal(part_raw, decimals),
        part_raw=None if part_raw is None else str(part_raw),
        reverts=_refusal_reason(refused) if isinstance(refused, RefusedCall) else None,
        worth_eth=_eth_or_none(token_value.worth_wei),
        venue=None if sold is None else sold.venue.kind,
        cost_eth=_eth_or_none(token_value.cost_wei),
        gain_eth=_eth_or_none(token_value.gain_wei),
        gain_bps=gain_bps,
        realised_eth=_eth_or_none(holding.realised_wei),
        since=when(holding.at_s),
        changes=_present_changes(holding, bag, policy),
    )


def _refusal_reason(refused: RefusedCall) -> str | None:
    text = describe_reason(refused.reason)
    return None if text == NO_REASON else text


def _present_changes(holding: BagToken, bag: BagRecord, policy: Policy) -> Changes:
    token_id = holding.token_id
    sale, withdrawal = bag.sales.get(token_id), bag.withdrawals.get(token_id)
    deployer = None
    if sale is not None:
        bps = share_bps(sale.sold_raw, sale.had_raw) or 0
        deployer = DeployerChange(sale.deployer, str(sale.sold_raw), bps)
    return Changes(
        deployer=deployer,
        liquidity_left_bps=None if withdrawal is None else share_bps(withdrawal.gone, withdrawal.before),
        then=_present_check(bag.then.get(token_id), policy),
        now=_present_check(bag.now.get(token_id), policy),
    )


def _present_check(stored: StoredCheck | None, policy: Policy) -> CheckKept | None:
    if stored is None:
        return None
    fees_bps = buy_bps = sell_bps = None
    try:
        evidence = canonical_json.load(Evidence, stored.document)
        judged = checked(evidence, judge(evidence, policy), policy, stored.checked_at.timestamp())
    except ValueError:
        # An older version stored it in another format.
        judged = None
    if judged is not None:
        fees_bps = None if judged.trade is None else judged.trade.fees_bps
        if judged.launchpad is not None:
            buy_bps, sell_bps = judged.launchpad.buy_tax_bps, judged.launchpad.sell_tax_bps
    level, code = stored.level, stored.code
    return CheckKept(code, level, stored.checked_at, stored.block_number, fees_bps, buy_bps, sell_bps)  # type: ignore[arg-type]


def _eth_or_none(wei: int | None) -> str | None:
    return None if wei is None else plain_decimal(wei, ETH_DECIMALS)


# --- in words --------------------------------------------------------------------------------------


def _describe(answer: MyBag, worth_wei: int, gain_wei: int, bag: BagRecord, is_behind: bool) -> str:
    rows = answer.holdings
    if not bag.held and is_behind:
        return (
            f"Up to block {answer.block:,} this wallet held no token that the index knows. Later blocks are "
            "not read yet: retry in a few seconds."
        )
    if not bag.held:
        return "This wallet holds no token that the index knows. It may hold tokens that were never traded."
    count = format_count(len(rows), "token")
    sentences = [f"This wallet holds {'at least ' if answer.at_least else ''}{count} that the index knows."]
    if answer.at_block is None:
        sentences.append(
            "The chain did not answer, so we could not find out what it holds now and what that sells for."
        )
    elif answer.worth_eth is not None:
        parts = sum(row.sells == "part" for row in rows)
        in_part = f", of {format_count(parts, 'token')} only a part" if parts else ""
        sentences.append(
            f"Each sold on its own in a simulation of block {answer.at_block:,}{in_part}, they bring "
            f"{format_eth(worth_wei)} in all."
        )
    if answer.gain_eth is not None:
        gain = "a gain" if gain_wei >= 0 else "a loss"
        sentences.append(f"Against what was paid, that is {gain} of {format_eth(abs(gain_wei))}.")
    short = sum(
        row.cost_eth is not None
        and row.amount_raw is not None
        and is_short(int(row.amount_raw), int(row.bought_raw))
        for row in rows
    )
    if short:
        sentences.append(
            f"Of {format_count(short, 'token')} it holds less than it bought: given away, or kept by a tax "
            "or a pool's hook. The gain on that is not known."
        )
    if is_behind and answer.at_block is not None:
        sentences.append(
            f"Trades after block {answer.block:,} are not read yet: what the wallet paid since, its gains, "
            "and tokens that it bought since are left out."
        )
    if answer.unvalued and answer.at_block is not None:
        unknown = f"We could not find out whether {format_count(answer.unvalued, 'token')} can be sold"
        sentences.append(f"{unknown}: this is not a pass.")
    if answer.gone:
        sentences.append(f"It no longer holds {format_count(answer.gone, 'token')} that it bought.")
    labels = {label.address: label for label in bag.labels.values()}
    worse = [line for row in rows if (line := _describe_worse(row, quote_token(labels[row.token.address])))]  # type: ignore[index]
    sentences += worse[:MAX_SAID]
    if len(worse) > MAX_SAID:
        more = format_count(len(worse) - MAX_SAID, "more token")
        sentences.append(f"{more} got worse: see holdings.")
    return " ".join(sentences)


_RANK = {"ok": 0, "warn": 1, "unknown": 2, "danger": 3}


def _describe_worse(row: BagRow, name: str) -> str:
    """Says what got worse since the token was bought; empty: nothing that is known."""
    changes, worse = row.changes, list[str]()
    if row.sells == "refused":
        worse.append("you cannot sell it now")
    if row.sells == "part":
        worse.append(_describe_part(row))
    then, now = changes.then, changes.now
    if now is not None and (then is None or _RANK[now.level] > _RANK[then.level]) and now.level != "ok":
        note = "" if then is None else f"; the check at the first buy said {then.level} ({then.code})"
        worse.append(f"its newest check says {now.level} ({now.code}){note}")
    if changes.deployer is not None and changes.deployer.sold_bps:
        worse.append(f"its deployer sold {format_percent(changes.deployer.sold_bps)} of its holding")
    if changes.liquidity_left_bps:
        worse.append(f"{format_percent(changes.liquidity_left_bps)} of its liquidity was withdrawn")
    old_bps = None if then is None else then.fees_bps
    new_bps = None if now is None else now.fees_bps
    if old_bps is not None and new_bps is not None and new_bps > old_bps + BPS // 100:
        worse.append(
            f"the fees of a round trip rose from {format_percent(old_bps)} to {format_percent(new_bps)}"
        )
    return f"{name}: {'; '.join(worse)}." if worse else ""


def _describe_part(row: BagRow) -> str:
    """How much sells at once of a token that is refused as a whole, and for what."""
    share_bps = int(row.part_raw or 0) * BPS // max(1, int(row.amount_raw or 0))
    share = f"{share_bps / 100:g} %" if share_bps < BPS - 1 else "all but a few base units"
    tokens = "" if row.part is None else f" ({_shorten(row.part)} tokens)"
    brings = "" if row.worth_eth is None else f", for {_shorten(row.worth_eth)} eth"
    return f"only a part sells at once, of those tried at most {share} of it{tokens}{brings}"


def _shorten(text: str) -> str:
    """A decimal number with the digits of a sentence."""
    whole, _, fraction = text.partition(".")
    return format_amount(int(whole + fraction), len(fraction))


MAX_HELD = GUARD.most_held
BagValuation = Callable[
    [Context, ChainHead, Sequence[HoldingToSell], Meter], Awaitable[Sequence[Valued | PartValue]]
]
"""The signature of ``worth_in_parts``."""


async def my_bag(ctx: Context, params: Nothing, account: Account) -> UseCaseAnswer[MyBag]:
    """The tokens that the account's wallet holds by the index. Fields that the node does not answer are null,
    and the text says so. Raises ServiceFull (busy)."""
    return await bag_of(ctx, account.wallet, worth_in_parts)


async def bag_of(ctx: Context, wallet: Address, values: BagValuation) -> UseCaseAnswer[MyBag]:
    """The same for any wallet. Raises ServiceFull (busy)."""
    meter = Meter()
    head: ChainHead | None = None
    with contextlib.suppress(NodeFault, ServiceFull):
        head = await ctx.heads.read_now()
        await wait_for_index(ctx, head.block.number)
    async with reading(ctx) as (connection, index_cursor):
        bag = await _read_bag(connection, wallet, index_cursor)
    node_values = await _read_node(ctx, head, wallet, bag, values, meter)
    answer = present(ctx.chain_id, wallet, bag, node_values, ctx.policy)
    return UseCaseAnswer(answer, counted=node_values.head is not None or not bag.held, meter=meter)


async def _read_bag(connection: Connection, wallet: Address, index_cursor: Cursor) -> BagRecord:
    # 0 is the id of no address: a wallet in no indexed fact gets empty results.
    wallet_id = await tokens.id_of(connection, wallet) or 0
    held = await bag_changes.list_held(connection, wallet_id, MAX_HELD + 1)
    shown = held[:MAX_HELD]
    then, now = await bag_changes.checks(connection, shown)
    now_s = index_cursor.block.timestamp_s
    return BagRecord(
        index_cursor=index_cursor,
        held=shown,
        is_part=len(held) > MAX_HELD,
        labels=await tokens.labels(connection, [holding.token_id for holding in shown]),
        sales=await bag_changes.deployers_sold(connection, shown),
        withdrawals=await bag_changes.liquidity_left(connection, shown, index_cursor.start_number, now_s),
        then=then,
        now=now,
    )


async def _read_node(
    ctx: Context, head: ChainHead | None, wallet: Address, bag: BagRecord, values: BagValuation, meter: Meter
) -> NodeValues:
    """Reads balances and values at the head; empty if the node does not answer."""
    if head is None or not bag.held:
        return NodeValues(head, UNREAD, {})
    try:
        views = await _read_views(ctx, wallet, bag, head, meter)
    except (NodeFault, ServiceFull):
        return NodeValues(None, UNREAD, {})
    held = [holding for holding in bag.held if views.tokens[bag.labels[holding.token_id].address].amount_raw]
    return NodeValues(head, views, await _value_holdings(ctx, wallet, bag, views, head, held, values, meter))


async def _read_views(
    ctx: Context, wallet: Address, bag: BagRecord, head: ChainHead, meter: Meter
) -> WalletViews:
    labels = [bag.labels[holding.token_id] for holding in bag.held]
    token_addresses = [label.address for label in labels]
    unread = {label.address for label in labels if label.decimals is None or label.supply_raw is None}
    calls = view_calls(wallet, token_addresses, unread, ctx.contracts, head.block, ctx.policy.read_gas_limit)
    return read_views(await ctx.node.batch(calls, meter=meter), token_addresses, unread, ctx.chain_id)


async def _value_holdings(
    ctx: Context,
    wallet: Address,
    bag: BagRecord,
    views: WalletViews,
    head: ChainHead,
    held: Sequence[BagToken],
    values: BagValuation,
    meter: Meter,
) -> dict[int, Valued | PartValue]:
    holdings = []
    for holding in held:
        token = bag.labels[holding.token_id].address
        amount_raw = views.tokens[token].amount_raw
        assert amount_raw is not None
        holdings.append(HoldingToSell(token, amount_raw, seller=wallet))
    if not holdings:
        return {}
    results: Sequence[Valued | PartValue]
    try:
        results = await values(ctx, head, holdings, meter)
    except (NodeFault, ServiceFull) as error:
        results = [Missing("node", str(error))] * len(holdings)
    return {holding.token_id: valued for holding, valued in zip(held, results, strict=True)}
