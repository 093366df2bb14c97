"""What the key's wallet holds: what it would bring now, what it cost, and what has changed since."""

from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Literal, Protocol

import msgspec

from roundtrip.chain.blocks.heads import ChainHead
from roundtrip.chain.holders.wallet_views import UNREAD, WalletToken, WalletViews, read_views, view_calls
from roundtrip.chain.rpc.client import Meter
from roundtrip.domain.accounts.account import Account
from roundtrip.domain.base import names
from roundtrip.domain.base.errors import NodeFault, ServiceFull
from roundtrip.domain.base.policy import Policy
from roundtrip.domain.base.types import BPS, Address, plain_decimal
from roundtrip.domain.base.venue import VenueKind
from roundtrip.domain.check import canonical_json
from roundtrip.domain.check.evidence import Evidence, Missing, RefusedCall
from roundtrip.domain.check.venue_code import Level
from roundtrip.domain.check.verdict import judge
from roundtrip.domain.watch.bag_guard import GUARD
from roundtrip.services.check.schema import present as checked
from roundtrip.services.runtime.context import Context, UseCaseAnswer
from roundtrip.services.support.index_reader import (
    IndexAnswer,
    Nothing,
    TokenNamed,
    eth_text,
    present_token,
    quote_token,
    reading,
    share_bps,
    when,
)
from roundtrip.services.support.money import ETH_DECIMALS
from roundtrip.services.support.strangers_text import WRITTEN
from roundtrip.services.valuation.holdings import HoldingToSell, SellValue, Valued, worth
from roundtrip.store.index import addresses, tokens
from roundtrip.store.index.cursor import Cursor
from roundtrip.store.index.tokens import Label
from roundtrip.store.server.rows import Connection
from roundtrip.store.watch import bag_changes
from roundtrip.store.watch.bag_changes import BagToken, DeployerSold, LiquidityLeft, StoredCheck

Sells = Literal["yes", "refused", "unknown"]


class CheckKept(msgspec.Struct, frozen=True, rename="camel"):
    """What a check said, and which taxes it found. Null: it found none out."""

    code: str
    level: Level
    checked_at: datetime
    block: int
    fees_bps: Annotated[
        int | None, msgspec.Meta(description="Taxes and fees of a small round trip, measured.")
    ]
    buy_tax_bps: Annotated[int | None, msgspec.Meta(description="Of launchpad tokens, as a check has it.")]
    sell_tax_bps: int | None


class DeployerChange(msgspec.Struct, frozen=True, rename="camel"):
    """What the token's deployer sold since."""

    address: str
    sold_raw: Annotated[str, msgspec.Meta(description="In base units.")]
    sold_bps: Annotated[
        int,
        msgspec.Meta(
            description="Of what he had then and bought since, as far as his trades tell, in hundredths of a "
            "percent."
        ),
    ]


class Changes(msgspec.Struct, frozen=True, rename="camel"):
    """What is different since the wallet bought. Null: not known."""

    deployer: Annotated[
        DeployerChange | None, msgspec.Meta(description="null: no launchpad's token, nobody knows who.")
    ]
    liquidity_left_bps: Annotated[
        int | None,
        msgspec.Meta(
            description="What was taken out since of the liquidity that its largest pool had then, in "
            "hundredths of a percent; null: it had none, or not every change is known."
        ),
    ]
    then: Annotated[
        CheckKept | None, msgspec.Meta(description="The newest check at the first buy or before; null: none.")
    ]
    now: Annotated[CheckKept | None, msgspec.Meta(description="The newest check; null: none is kept.")]


class BagRow(msgspec.Struct, frozen=True, rename="camel"):
    """A token that the wallet holds."""

    token: TokenNamed
    amount: Annotated[
        str | None, msgspec.Meta(description="By the token itself, whole tokens; null: could not be read.")
    ]
    amount_raw: Annotated[str | None, msgspec.Meta(description="The same in base units.")]
    bought_raw: Annotated[
        str,
        msgspec.Meta(description="What is left of what it bought, by its trades; 0: it was only given it."),
    ]
    sells: Annotated[
        Sells,
        msgspec.Meta(
            description="yes: a simulated sell of all of it by this wallet went through; refused: none did; "
            "unknown: could not be found out, which is no yes."
        ),
    ]
    reverts: Annotated[str | None, msgspec.Meta(description=f"Why it was refused; null: not told. {WRITTEN}")]
    worth_eth: Annotated[
        str | None,
        msgspec.Meta(description="What that sell brings now, in eth, a plain decimal; null: not known."),
    ]
    venue: Annotated[VenueKind | None, msgspec.Meta(description="Where it brings that.")]
    cost_eth: Annotated[
        str | None,
        msgspec.Meta(
            description="What the tokens cost that it bought and still holds, in eth; null: not known, or it "
            "was given them."
        ),
    ]
    gain_eth: Annotated[
        str | None,
        msgspec.Meta(
            description="The share of worthEth that is of what it bought, less costEth; below zero: a loss."
        ),
    ]
    gain_bps: Annotated[
        int | None, msgspec.Meta(description="The same in hundredths of a percent of the cost.")
    ]
    realised_eth: Annotated[
        str | None,
        msgspec.Meta(description="What its sales of it brought over what was sold had cost; null: unknown."),
    ]
    since: Annotated[
        datetime, msgspec.Meta(description="The first buy of what it holds, or the first transfer to it.")
    ]
    changes: Changes


class MyBag(IndexAnswer, frozen=True, rename="camel"):
    """What the key's wallet holds of tokens that the index knows."""

    wallet: str
    at_block: Annotated[
        int | None, msgspec.Meta(description="Balances and worths are of this block; null: not read.")
    ]
    worth_eth: Annotated[
        str | None, msgspec.Meta(description="Of those of which it is known, together; null: of none.")
    ]
    gain_eth: Annotated[
        str | None, msgspec.Meta(description="Of those of which it is known, together; null: of none.")
    ]
    unvalued: Annotated[int, msgspec.Meta(description="Tokens of which the worth could not be found out.")]
    gone: Annotated[
        int, msgspec.Meta(description="Tokens that it bought and, by the token itself, holds nothing of now.")
    ]
    at_least: Annotated[bool, msgspec.Meta(description="true: it may hold more; the newest 50 are listed.")]
    holdings: list[BagRow]


MOST_SAID = 3
"""So many tokens stand in the text; each has its own row."""


@dataclass(frozen=True, slots=True)
class BagRecord:
    """By the index. ``is_part``: there is more. By token: ``then``, ``now``: checks that are kept."""

    stands: Cursor
    held: Sequence[BagToken]
    is_part: bool
    labels: Mapping[int, Label]
    sold: Mapping[int, DeployerSold]
    left: Mapping[int, LiquidityLeft]
    then: Mapping[int, StoredCheck]
    now: Mapping[int, StoredCheck]


@dataclass(frozen=True, slots=True)
class NodeValues:
    """By the node; ``head`` None: it did not answer. ``values``: by token, of those it holds some of."""

    head: ChainHead | None
    views: WalletViews
    values: Mapping[int, Valued]


@dataclass(frozen=True, slots=True)
class _TokenSum:
    """One token in wei; None: not known."""

    worth_wei: int | None
    cost_wei: int | None
    gain_wei: int | None


def present(chain_id: int, wallet: Address, known: BagRecord, read: NodeValues, policy: Policy) -> MyBag:
    """Every field of the answer."""
    rows, sums, gone = [], [], 0
    for one in known.held:
        label = known.labels[one.token_id]
        seen = read.views.tokens.get(label.address, WalletToken())
        if seen.amount_raw == 0:
            gone += 1
            continue
        own = _sum(one, seen.amount_raw, read.values.get(one.token_id))
        rows.append(_row(one, known, label, seen, read.values.get(one.token_id), own, policy))
        sums.append(own)
    worths = [own.worth_wei for own in sums if own.worth_wei is not None]
    gains = [own.gain_wei for own in sums if own.gain_wei is not None]
    block = known.stands.block
    answer = MyBag(
        text="",
        chain_id=chain_id,
        block=block.number,
        block_time=when(block.timestamp_s),
        wallet=wallet,
        at_block=None if read.head is None else read.head.block.number,
        worth_eth=_eth(sum(worths)) if worths else None,
        gain_eth=_eth(sum(gains)) if gains else None,
        unvalued=sum(row.sells == "unknown" for row in rows),
        gone=gone,
        at_least=known.is_part,
        holdings=rows,
    )
    text = _text(answer, sum(worths), sum(gains), known)
    return msgspec.structs.replace(answer, text=text)


def _sum(one: BagToken, amount_raw: int | None, valued: Valued | None) -> _TokenSum:
    worth_wei = (
        valued.wei if isinstance(valued, SellValue) else 0 if isinstance(valued, RefusedCall) else None
    )
    if one.cost_wei is None or not one.held_raw or amount_raw is None:
        return _TokenSum(worth_wei, None, None)
    # What it gave away is neither held nor lost; what it was given cost it nothing that is known.
    own_raw = min(one.held_raw, amount_raw)
    cost_wei = one.cost_wei * own_raw // one.held_raw
    gain_wei = None if worth_wei is None else worth_wei * own_raw // amount_raw - cost_wei
    return _TokenSum(worth_wei, cost_wei, gain_wei)


def _row(
    one: BagToken,
    known: BagRecord,
    label: Label,
    seen: WalletToken,
    valued: Valued | None,
    own: _TokenSum,
    policy: Policy,
) -> BagRow:
    decimals = seen.decimals if label.decimals is None else label.decimals
    amount = seen.amount_raw
    refused = isinstance(valued, RefusedCall)
    sells: Sells = "yes" if isinstance(valued, SellValue) else "refused" if refused else "unknown"
    gain_bps = own.gain_wei * BPS // own.cost_wei if own.gain_wei is not None and own.cost_wei else None
    return BagRow(
        token=present_token(label),
        amount=None if amount is None or decimals is None else plain_decimal(amount, decimals),
        amount_raw=None if amount is None else str(amount),
        bought_raw=str(one.held_raw),
        sells=sells,
        reverts=names.reason(valued.reason or "") or None if isinstance(valued, RefusedCall) else None,
        worth_eth=_eth(own.worth_wei),
        venue=valued.venue.kind if isinstance(valued, SellValue) else None,
        cost_eth=_eth(own.cost_wei),
        gain_eth=_eth(own.gain_wei),
        gain_bps=gain_bps,
        realised_eth=_eth(one.realised_wei),
        since=when(one.at_s),
        changes=_changes(one, known, policy),
    )


def _changes(one: BagToken, known: BagRecord, policy: Policy) -> Changes:
    token_id = one.token_id
    sold, left = known.sold.get(token_id), known.left.get(token_id)
    deployer = None
    if sold is not None:
        bps = share_bps(sold.sold_raw, sold.had_raw) or 0
        deployer = DeployerChange(sold.deployer, str(sold.sold_raw), bps)
    return Changes(
        deployer=deployer,
        liquidity_left_bps=None if left is None else share_bps(left.gone, left.before),
        then=_check(known.then.get(token_id), policy),
        now=_check(known.now.get(token_id), policy),
    )


def _check(kept: StoredCheck | None, policy: Policy) -> CheckKept | None:
    if kept is None:
        return None
    fees_bps = buy_bps = sell_bps = None
    try:
        evidence = canonical_json.load(Evidence, kept.document)
        found = checked(evidence, judge(evidence, policy), policy, kept.checked_at.timestamp())
    except ValueError:
        # Kept by a version that wrote it otherwise.
        found = None
    if found is not None:
        fees_bps = None if found.trade is None else found.trade.fees_bps
        if found.launchpad is not None:
            buy_bps, sell_bps = found.launchpad.buy_tax_bps, found.launchpad.sell_tax_bps
    level, code = kept.level, kept.code
    return CheckKept(code, level, kept.checked_at, kept.block_number, fees_bps, buy_bps, sell_bps)  # type: ignore[arg-type]


def _eth(wei: int | None) -> str | None:
    return None if wei is None else plain_decimal(wei, ETH_DECIMALS)


# --- in words --------------------------------------------------------------------------------------


def _text(answer: MyBag, worth_wei: int, gain_wei: int, known: BagRecord) -> str:
    rows = answer.holdings
    if not known.held:
        return "By the index this wallet holds no token. What it never traded may not be known."
    count = "1 token" if len(rows) == 1 else f"{len(rows)} tokens"
    said = [f"This wallet holds {count} that the index knows{' at least' if answer.at_least else ''}."]
    if answer.at_block is None:
        said.append(
            "The chain did not answer: what it really holds and what that would bring could not be found out."
        )
    elif answer.worth_eth is not None:
        at = f"as simulated at block {answer.at_block}"
        said.append(f"Sold now, each alone, they bring {eth_text(worth_wei)}, {at}.")
    if answer.gain_eth is not None:
        gain = "a gain" if gain_wei >= 0 else "a loss"
        said.append(f"Against what they cost that is {gain} of {eth_text(abs(gain_wei))}.")
    if answer.unvalued and answer.at_block is not None:
        said.append(f"Of {answer.unvalued} it could not be found out what they bring: that is no yes.")
    if answer.gone:
        said.append(f"{answer.gone} that it bought it holds no more.")
    labels = {label.address: label for label in known.labels.values()}
    worse = [line for row in rows if (line := _worse(row, quote_token(labels[row.token.address])))]  # type: ignore[index]
    said += worse[:MOST_SAID]
    if len(worse) > MOST_SAID:
        said.append(f"Of {len(worse) - MOST_SAID} more something is worse, too.")
    return " ".join(said)


_RANK = {"ok": 0, "warn": 1, "unknown": 2, "danger": 3}


def _worse(row: BagRow, name: str) -> str:
    """What of a token is worse than when it was bought; empty: nothing that is known."""
    changes, found = row.changes, list[str]()
    if row.sells == "refused":
        found.append("it cannot be sold now")
    then, now = changes.then, changes.now
    if now is not None and (then is None or _RANK[now.level] > _RANK[then.level]) and now.level != "ok":
        was = "" if then is None else f", and was {then.level} ({then.code}) when it was bought"
        found.append(f"its newest check says {now.level} ({now.code}){was}")
    if changes.deployer is not None and changes.deployer.sold_bps:
        found.append(f"its deployer sold {_percent(changes.deployer.sold_bps)} of what he had")
    if changes.liquidity_left_bps:
        found.append(f"{_percent(changes.liquidity_left_bps)} of its liquidity left")
    was_bps = None if then is None else then.fees_bps
    is_bps = None if now is None else now.fees_bps
    if was_bps is not None and is_bps is not None and is_bps > was_bps + BPS // 100:
        found.append(f"fees of a round trip were {_percent(was_bps)} and are {_percent(is_bps)}")
    return f"Of {name}: {'; '.join(found)}." if found else ""


def _percent(bps: int) -> str:
    return f"{plain_decimal(bps, 2)}%"


MOST_HELD = GUARD.most_held


class BagValuation(Protocol):
    """As ``worth``."""

    def __call__(
        self, ctx: Context, head: ChainHead, holdings: Sequence[HoldingToSell], meter: Meter
    ) -> Awaitable[list[Valued]]: ...


async def my_bag(ctx: Context, params: Nothing, account: Account) -> UseCaseAnswer[MyBag]:
    """Everything the account's wallet holds by the index. What the node does not tell stands as null, and the
    text says so. Raises ServiceFull (busy)."""
    return await bag_of(ctx, account.wallet, worth)


async def bag_of(ctx: Context, wallet: Address, values: BagValuation) -> UseCaseAnswer[MyBag]:
    """The same of a wallet. Raises ServiceFull (busy)."""
    meter = Meter()
    async with reading(ctx) as (connection, stands):
        known = await _read_bag(connection, wallet, stands)
    read = await _read(ctx, wallet, known, values, meter)
    answer = present(ctx.chain_id, wallet, known, read, ctx.policy)
    return UseCaseAnswer(answer, counted=read.head is not None or not known.held, meter=meter)


async def _read_bag(connection: Connection, wallet: Address, stands: Cursor) -> BagRecord:
    # Who stands in no fact has a number that nobody has.
    wallet_id = await addresses.id_of(connection, wallet) or 0
    held = await bag_changes.list_held(connection, wallet_id, MOST_HELD + 1)
    some = held[:MOST_HELD]
    then, now = await bag_changes.checks(connection, some)
    now_s = stands.block.timestamp_s
    return BagRecord(
        stands=stands,
        held=some,
        is_part=len(held) > MOST_HELD,
        labels=await tokens.labels(connection, [one.token_id for one in some]),
        sold=await bag_changes.deployers_sold(connection, some),
        left=await bag_changes.liquidity_left(connection, some, stands.start_number, now_s),
        then=then,
        now=now,
    )


async def _read(
    ctx: Context, wallet: Address, known: BagRecord, values: BagValuation, meter: Meter
) -> NodeValues:
    """What the node says at the head; nothing where it does not answer."""
    if not known.held:
        return NodeValues(None, UNREAD, {})
    try:
        head = ctx.heads.current()
        views = await _views(ctx, wallet, known, head, meter)
    except (NodeFault, ServiceFull):
        return NodeValues(None, UNREAD, {})
    asked = [one for one in known.held if views.tokens[known.labels[one.token_id].address].amount_raw]
    return NodeValues(head, views, await _values(ctx, wallet, known, views, head, asked, values, meter))


async def _views(
    ctx: Context, wallet: Address, known: BagRecord, head: ChainHead, meter: Meter
) -> WalletViews:
    labels = [known.labels[one.token_id] for one in known.held]
    held = [label.address for label in labels]
    unread = {label.address for label in labels if label.decimals is None or label.supply_raw is None}
    calls = view_calls(wallet, held, unread, ctx.contracts, head.block, ctx.policy.read_gas_limit)
    return read_views(await ctx.node.batch(calls, meter=meter), held, unread, ctx.chain_id)


async def _values(
    ctx: Context,
    wallet: Address,
    known: BagRecord,
    views: WalletViews,
    head: ChainHead,
    asked: Sequence[BagToken],
    values: BagValuation,
    meter: Meter,
) -> dict[int, Valued]:
    holdings = []
    for one in asked:
        token = known.labels[one.token_id].address
        amount_raw = views.tokens[token].amount_raw
        assert amount_raw is not None
        holdings.append(HoldingToSell(token, amount_raw, seller=wallet))
    if not holdings:
        return {}
    try:
        found = await values(ctx, head, holdings, meter)
    except (NodeFault, ServiceFull) as error:
        found = [Missing("node", str(error))] * len(holdings)
    return {one.token_id: valued for one, valued in zip(asked, found, strict=True)}
