"""Verdicts on tokens of the local chain, real trades after them, and the job that holds the one against the
other."""

import asyncio
import time
from dataclasses import dataclass, replace

import asyncpg

from roundtrip.domain.base.policy import POLICY
from roundtrip.domain.base.types import WEI_PER_ETH
from roundtrip.domain.scorecard.scorecard import SETTLED_S
from roundtrip.jobs.engine.worker import Worker
from roundtrip.jobs.registry import KINDS
from roundtrip.services.check.handler import check
from roundtrip.services.check.schema import CheckParams
from roundtrip.services.runtime.context import Context
from roundtrip.services.scorecard.page import Scorecard, ScorecardParams, scorecard
from roundtrip_development.devnet.deploy import put_token
from roundtrip_development.devnet.stories import Story
from support.actors import code_of
from support.ground import Ground
from support.indexing import cursor
from support.wallet import Wallet, calldata

ETH = WEI_PER_ETH
PROBE = POLICY.probe_wei
WAIT_S = 120


@dataclass
class Scoring:
    """``ctx``: over the index at ``ground.url``; its clock is not the chain's."""

    ground: Ground
    ctx: Context

    def token(self, source: str = "tokens/plain.vy") -> str:
        """A token of ``ground.me``, in a pool that the same one filled."""
        me, contracts = self.ground.me, self.ground.built.contracts
        me.send(contracts["weth"], calldata("deposit()"), 20 * ETH)
        spent = calldata("approve(address,uint256)", contracts["v3PositionManager"], 20 * ETH)
        me.send(contracts["weth"], spent)
        token = put_token(me, contracts, Story("score", "", source, "Score", "SCORE"), code_of(source))
        me.check_receipts()
        return token

    def wallet(self, seed: str) -> Wallet:
        return Wallet(self.ground.rpc, self.ground.built.contracts, seed, eth=50)

    def buyer(self, token: str, seed: str = "a plain wallet", wei: int = PROBE) -> Wallet:
        """A wallet that bought it in the market."""
        wallet = self.wallet(seed)
        assert wallet.buy(token, "weth", 3000, wei)
        return wallet

    def sells(self, wallet: Wallet, token: str) -> str:
        """All that it has; the transaction's hash, also where it failed."""
        wallet.sell(token, "weth", 3000, wallet.tokens(token))
        return self.newest()

    def newest(self) -> str:
        block = self.ground.rpc.call("eth_getBlockByNumber", "latest", False)
        return str(block["transactions"][-1])

    def does(self, token: str, signature: str, *values: object) -> None:
        """By the token's owner."""
        me = self.ground.me
        me.receipt(me.send(token, calldata(signature, *values)))

    async def follows(self) -> None:
        """The index catches up, where there is something new."""
        stands = (await cursor(self.ground.url)).block
        newest = self.ground.rpc.call("eth_getBlockByNumber", "latest", False)
        if stands.hash != newest["hash"]:
            await self.ground.follow()
        await self.ctx.heads.refresh()

    async def checked(self, token: str) -> str:
        """A verdict, now; its code."""
        await self.follows()
        code = (await check(self.ctx, CheckParams(token))).answer.verdict.code
        # The trade that comes next is in a later block and second.
        self.ground.pass_s(20)
        return code

    async def later(self, seconds: int = SETTLED_S + 1) -> None:
        """So much later, and followed."""
        self.ground.pass_s(seconds)
        await self.follows()

    async def over(self) -> None:
        """All days are over, and scored."""
        await self.later(POLICY.day_s + SETTLED_S + 1)
        await self.work()

    async def work(self, ctx: Context | None = None) -> None:
        await self.ctx.pool.execute("DELETE FROM jobs.job")
        await self.ctx.pool.execute(
            "INSERT INTO jobs.job (kind, key, run_at) VALUES ('scorecard', 'verdicts', to_timestamp(0))"
        )
        worker = Worker(ctx or self.ctx, {"scorecard": KINDS["scorecard"]}, lambda: 0.5)
        async with asyncio.timeout(WAIT_S):
            await asyncio.gather(*await worker.take())

    async def find_failed(self) -> list[tuple[str, bool]]:
        """Works off what the sync enqueued; the failed sells known then: hash, and whether it is known to be
        refused."""
        await self.follows()
        worker = Worker(self.ctx, {"failed_sell": KINDS["failed_sell"]}, lambda: 0.5)
        async with asyncio.timeout(WAIT_S):
            await asyncio.gather(*await worker.take())
        rows = await self.ctx.pool.fetch("SELECT tx_hash, refused FROM facts.failed_sell ORDER BY at_s")
        return [("0x" + row["tx_hash"].hex(), row["refused"]) for row in rows]

    async def failure(self) -> str | None:
        """What the job says that went wrong."""
        found: str | None = await self.ctx.pool.fetchval("SELECT last_error FROM jobs.job")
        return found

    async def scores(self) -> list[tuple[str, str, str]]:
        """Code, outcome and cause, in the order of the verdicts."""
        rows = await self.ctx.pool.fetch("SELECT code, outcome, cause FROM facts.score ORDER BY evidence_id")
        return [tuple(row) for row in rows]

    async def card(self) -> Scorecard:
        return (await scorecard(self.ctx, ScorecardParams())).answer


async def begin_index(ground: Ground, pool: asyncpg.Pool) -> Scoring:
    """Nothing was checked yet."""
    await pool.execute(
        "TRUNCATE jobs.job, facts.evidence, facts.score, facts.score_count, facts.score_cursor,"
        " facts.score_token, facts.score_wait, facts.failed_sell CASCADE"
    )
    return Scoring(ground, replace(ground.ctx, pool=pool, now_s=time.time))
