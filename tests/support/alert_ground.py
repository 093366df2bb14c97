"""A curve that was launched, accounts that watch it, and alerts that are made of it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import asyncpg

from roundtrip.chain.blocks.spans import BlockRead
from roundtrip.domain.base.types import Address, BlockRef
from roundtrip.domain.watch.rules import Rule, Who
from roundtrip.jobs.alerts.loop import AlertLoop
from roundtrip.store.server.rows import Connection
from roundtrip.store.watch import watches
from roundtrip.sync.apply import Writer
from roundtrip.venues.base import Contracts
from support.alerting import PLAIN, amiss
from support.tables import append_blocks
from support.told_blocks import Chain, LoggedTransaction, bought, sent
from unit.sync.telling import ALICE, CURVE
from unit.venues.logs import NETWORK

NOW_S = 1_767_225_600.0


NOW = datetime.fromtimestamp(NOW_S, UTC)


BUYING = Rule(Who("any"), "buying")


@dataclass
class AlertGround:
    """A chain, its index, an account and alert loop. ``contracts``, ``now_s``: what ``AlertLoop`` needs."""

    pool: asyncpg.Pool
    index: Connection
    chain: Chain
    writer: Writer
    account: int
    contracts: Contracts = NETWORK
    at_s: float = NOW_S
    given_up: list[tuple[int, int]] = field(default_factory=list)
    loop: AlertLoop = field(init=False)

    def __post_init__(self) -> None:
        self.loop = self.another()

    def now_s(self) -> float:
        return self.at_s

    def another(self, parts: Any = PLAIN, **how: Any) -> AlertLoop:
        return AlertLoop(self, parts, poll_s=60.0, **how)

    async def follows(self, *blocks: BlockRead) -> None:
        await append_blocks(self.index, self.writer, blocks or self.chain.blocks[-1:])

    async def block(self, *transactions: LoggedTransaction, after_s: int = 1) -> BlockRead:
        made = self.chain.block(*transactions, after_s=after_s)
        await self.follows(made)
        return made

    async def forked(self, number: int, *blocks: Sequence[LoggedTransaction], after_s: int = 1) -> None:
        """The chain has other blocks after ``number``."""
        head = self.chain.blocks[-1].ref
        self.given_up.append((number, head.number))
        self.chain = self.chain.fork(number, f"fork {head.hash}")
        await self.writer.rewind(self.index, head, self.head())
        for transactions in blocks:
            await self.block(*transactions, after_s=after_s)

    async def returned(self, blocks: Sequence[BlockRead], number: int) -> None:
        """The chain has these again after ``number``, which it once had."""
        head = self.head()
        self.given_up.append((number, head.number))
        self.chain = self.chain.fork(number, "")
        await self.writer.rewind(self.index, head, self.head())
        self.chain.blocks += blocks
        await self.follows(*blocks)

    def head(self) -> BlockRef:
        return self.chain.blocks[-1].ref if self.chain.blocks else self.chain.parent

    async def rule(
        self, rule: Rule = BUYING, wallet: Address | None = None, account: int | None = None
    ) -> int:
        async with self.index.transaction():
            return await watches.add_rule(self.index, account or self.account, rule, wallet, -1, NOW)

    async def follow(self, wallet: Address, name: str = "whale") -> int:
        async with self.index.transaction():
            return await watches.add_follow(self.index, self.account, wallet, name, -1, NOW)

    async def read(self, told: AlertLoop | None = None) -> None:
        """Tells of all there is."""
        for _ in range(1000):
            if not await (told or self.loop).step():
                return
        raise AssertionError("it never comes to an end")

    async def rows(self, where: str = "retracted_at IS NULL") -> list[asyncpg.Record]:
        found = await self.index.fetch(f"SELECT * FROM accounts.alert WHERE {where} ORDER BY id")  # noqa: S608
        return list(found)

    async def hits(self) -> list[int]:
        return [row["hits"] for row in await self.index.fetch("SELECT hits FROM accounts.rule ORDER BY id")]

    async def is_right(self) -> None:
        assert await amiss(self.index, NETWORK, self.given_up) == []


WAIT_S = 20.0


def buys(who: Address = ALICE, wei: int = 500, times: int = 1) -> LoggedTransaction:
    return sent(*(bought(CURVE, who, who, wei, 7) for _ in range(times)), sender=who)
