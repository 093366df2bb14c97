"""A chain written by hand with tokens that count, accounts that flag them, and prices that a test sets."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import cast
from uuid import UUID

import asyncpg

from roundtrip.chain.blocks.heads import ChainHead, Heads
from roundtrip.chain.rpc.client import Meter, RpcNode
from roundtrip.chain.rpc.dialect import ANVIL
from roundtrip.chain.simulate.balance_slots import BalanceSlot
from roundtrip.chain.simulate.rates import Rates
from roundtrip.domain.accounts.account import Account
from roundtrip.domain.base.errors import NodeFault
from roundtrip.domain.base.policy import POLICY
from roundtrip.domain.base.types import WEI_PER_ETH, Address, BlockRef
from roundtrip.domain.base.venue import Venue
from roundtrip.domain.check.evidence import MarketRates, Missing, RefusedCall
from roundtrip.domain.community.flag_calls import Kind
from roundtrip.jobs.kinds.names import names
from roundtrip.services.community.flag_resolution import review_flags
from roundtrip.services.community.flag_token import FlagParams, flag_token
from roundtrip.services.runtime.context import Context
from roundtrip.services.valuation.holdings import (
    HoldingToSell,
    ProbeBuy,
    Probed,
    SellValue,
    TokenPricing,
    Valued,
)
from roundtrip.store.boards import winners
from roundtrip.store.community import flags
from roundtrip.store.index import cursor as chain
from roundtrip.store.server.jobs import Job
from roundtrip.store.server.rows import Connection, as_bytes
from roundtrip.sync.apply import Writer
from support import told_blocks as told
from support.tables import append_blocks, begin_index
from support.told_blocks import WETH, Chain, LoggedTransaction, sent
from support.told_winners import BEST, BUYERS, DAY_S, DEPLOYER, HIS_FRIEND, MILLION, buys, curve, pays, sells
from unit.venues.logs import NETWORK
from unit.venues.network import address

START = datetime.fromtimestamp(told.START_S, UTC)
TOKENS = tuple(address(0x70CE00 + 0x100 * n) for n in range(4))
TOKEN, OTHER = TOKENS[:2]
FLAGGER, HIS_PURSE, HIS_KIN = address(0xF1A6), address(0xF1A7), address(0xF1A8)
LP = address(0x11C)
POOL = told.v3_at(TOKEN, WETH)
BOUGHT_RAW = MILLION
VENUE = Venue("launchpad_curve", "eth", Address("0x" + "0" * 40), curve(TOKEN), 0)


def mints(who: Address, liquidity: int) -> LoggedTransaction:
    return sent(told.v3_minted(POOL, who, liquidity, liquidity, liquidity), sender=who)


def burns(who: Address, liquidity: int) -> LoggedTransaction:
    return sent(told.v3_burnt(POOL, who, liquidity, liquidity, liquidity), sender=who)


def buys_in_pool(who: Address, eth: int = 3) -> LoggedTransaction:
    """Weth lies below the token."""
    amounts = (eth * WEI_PER_ETH, -MILLION) if WETH < TOKEN else (-MILLION, eth * WEI_PER_ETH)
    return sent(told.v3_swap(POOL, *amounts, recipient=who), sender=who)


@dataclass
class Quotes:
    """What each token's sells pay, in wei; what is not there can nobody find out. ``pays_at``: where a place
    pays something else. ``trips``: to the node. ``bought_at``: where was asked what 0.1 eth buys."""

    pays: dict[Address, int | RefusedCall] = field(default_factory=dict)
    trips: int = 0
    pays_at: dict[str, int] = field(default_factory=dict)
    bought_at: list[str | None] = field(default_factory=list)

    async def probe_buy(
        self, ctx: Context, head: ChainHead, token: Address, meter: Meter, at: str | None
    ) -> Probed:
        self.bought_at.append(at)
        found = self.pays.get(token, 9 * 10**16)
        return ProbeBuy(BOUGHT_RAW, found) if isinstance(found, int) else found

    async def slot_of(
        self, ctx: Context, head: ChainHead, token: Address, meter: Meter
    ) -> BalanceSlot | None:
        return BalanceSlot(token, "vyper", 2**255 + 3)

    async def worth(
        self, ctx: Context, head: ChainHead, holdings: Sequence[HoldingToSell], meter: Meter
    ) -> list[Valued]:
        self.trips += 1
        return [self._valued(one) for one in holdings]

    def _valued(self, holding: HoldingToSell) -> Valued:
        assert holding.amount_raw == BOUGHT_RAW
        assert holding.at is not None
        assert holding.slot == BalanceSlot(holding.token, "vyper", 2**255 + 3)
        found = self.pays_at.get(holding.at, self.pays.get(holding.token))
        if found is None:
            return Missing("node", "it was asked in vain")
        return SellValue(found, VENUE) if isinstance(found, int) else found

    def prices(self) -> TokenPricing:
        return TokenPricing(self.probe_buy, self.slot_of, self.worth)


@dataclass
class FlagGround:
    """``ctx``: its time is that of the chain's newest block."""

    pool: asyncpg.Pool
    index: Connection
    chain: Chain = field(default_factory=Chain)
    quotes: Quotes = field(default_factory=Quotes)
    node_is_away: bool = False
    draws: int = 0
    writer: Writer = field(init=False)
    ctx: Context = field(init=False)

    def __post_init__(self) -> None:
        self.ctx = Context(
            chain_id=4663,
            contracts=NETWORK,
            node=cast(RpcNode, None),
            heads=cast(Heads, self),
            policy=POLICY,
            pool=self.pool,
            rates=cast(Rates, None),
            now_s=lambda: float(self.at.timestamp_s),
            entropy=self._draw,
        )

    @property
    def at(self) -> BlockRef:
        return self.chain.blocks[-1].ref

    def _draw(self) -> bytes:
        self.draws += 1
        return self.draws.to_bytes(32, "big")

    def current(self) -> ChainHead:
        """As ``Heads`` does it: the head is the index's newest block."""
        if self.node_is_away:
            raise NodeFault("it is away")
        market = MarketRates(self.at.number, 3 * 10**9, 500, None)
        return ChainHead(self.at, 1, DEPLOYER, "0x" + "0" * 64, market, 0.0, ANVIL)

    async def begin(self) -> None:
        """Four launches, each a day old, bought by twenty people, and counted. The first has a pool beside
        its curve, with the liquidity of two who have nothing to do with each other, in which more is
        traded."""
        funders = [pays(address(0xF000 + n), who) for n, who in enumerate((*BUYERS, LP))]
        own = pays(HIS_PURSE, FLAGGER), pays(HIS_PURSE, HIS_KIN), pays(DEPLOYER, HIS_FRIEND)
        self.chain.block(*funders, *own)
        launches = [sent(told.launched(token, curve(token), DEPLOYER), sender=DEPLOYER) for token in TOKENS]
        self.chain.block(*launches, after_s=DAY_S)
        for token in TOKENS:
            self.chain.block(*(buys(who, 0.5, token) for who in (*BUYERS, DEPLOYER)))
        opened = sent(told.v3_opened(TOKEN, WETH), told.v3_priced(POOL, told.Q96))
        self.chain.block(opened, mints(LP, 600), mints(FLAGGER, 900))
        self.chain.block(*(sells(BEST, 3.0, token) for token in TOKENS), after_s=DAY_S)
        self.chain.block(buys_in_pool(BUYERS[1]))
        self.writer = await begin_index(self.index, self.chain.parent)
        await append_blocks(self.index, self.writer, self.chain.blocks)
        await self.count()

    async def count(self) -> None:
        """Has the tokens counted, as the job does it."""
        stands = await chain.cursor(self.index)
        assert stands is not None
        async with self.index.transaction():
            board = await winners.count_board(self.index, "all", stands.block)
            await winners.keep(self.index, board, stands)
        found = await self.index.fetchval("SELECT count(*) FROM facts.fair_token")
        assert found == len(TOKENS)

    async def block(self, *transactions: LoggedTransaction, after_s: int = 1) -> None:
        made = self.chain.block(*transactions, after_s=after_s)
        await append_blocks(self.index, self.writer, [made])

    async def account(
        self, wallet: Address = FLAGGER, designation: str = "mite-test", days_old: float = 30
    ) -> Account:
        made_at = datetime.fromtimestamp(self.at.timestamp_s, UTC) - timedelta(days=days_old)
        account_id: int = await self.index.fetchval(
            "INSERT INTO accounts.account (wallet, designation, made_at) VALUES ($1, $2, $3) RETURNING id",
            as_bytes(wallet),
            designation,
            made_at,
        )
        return Account(account_id, designation, wallet)

    async def flag(self, account: Account, kind: Kind, token: Address = TOKEN) -> int:
        answered = await flag_token(self.ctx, FlagParams(token, kind), account, self.quotes.prices())
        return answered.answer.id

    async def look(self) -> None:
        """As the job does it."""
        reviews, newest_s = await review_flags(self.ctx, self.quotes.prices())
        async with self.index.transaction():
            now = datetime.fromtimestamp(self.ctx.now_s(), UTC)
            await flags.write_reviews(self.index, reviews, now, newest_s)

    async def count_names(self) -> None:
        """As the job does it."""
        await names(self.ctx, Job(1, "names", "public", {}, START, UUID(int=1), START, 1))

    async def state(self, flag_id: int) -> str:
        found: str = await self.index.fetchval("SELECT state FROM accounts.flag WHERE id = $1", flag_id)
        return found

    async def control(self, flag_id: int) -> asyncpg.Record | None:
        return await self.index.fetchrow("SELECT * FROM accounts.flag WHERE control_of = $1", flag_id)

    async def to_the_end(self) -> None:
        """The week is over, and what was to be known of its end is known."""
        for _ in range(8):
            await self.block(after_s=DAY_S)
            await self.look()


async def emptied_accounts(connection: Connection) -> None:
    await connection.execute("TRUNCATE accounts.account CASCADE")
    await connection.execute("TRUNCATE accounts.public_name")
