"""Verdicts on tokens of the local chain, real trades after them, and the job that holds the one against the
other."""

import asyncio
import time
from dataclasses import dataclass, replace

import asyncpg

from roundtrip.domain.accounts.account import Account
from roundtrip.domain.base.policy import POLICY
from roundtrip.domain.base.types import WEI_PER_ETH
from roundtrip.domain.scorecard.scorecard import SETTLED_S
from roundtrip.jobs.engine.worker import Worker
from roundtrip.jobs.registry import KINDS
from roundtrip.services.check.handler import check
from roundtrip.services.check.schema import CheckParams
from roundtrip.services.runtime.context import Context
from roundtrip.services.scorecard.page import Scorecard, ScorecardParams, scorecard
from roundtrip.services.scorecard.report import Reported, ReportParams, report_verdict
from roundtrip.store.server.rows import as_bytes
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

    async def failure(self) -> str | None:
        """What the job says that went wrong."""
        found: str | None = await self.ctx.pool.fetchval("SELECT last_error FROM jobs.job")
        return found

    async def again(self) -> None:
        """Reports that came too early are weighed again, whenever they were to be."""
        await self.ctx.pool.execute(
            "UPDATE accounts.verdict_report SET again_at = to_timestamp(0) WHERE again_at IS NOT NULL"
        )
        await self.work()

    async def waits(self) -> bool:
        """Whether a report is to be weighed again."""
        found: bool = await self.ctx.pool.fetchval(
            "SELECT EXISTS (SELECT FROM accounts.verdict_report WHERE again_at IS NOT NULL)"
        )
        return found

    async def scores(self) -> list[tuple[str, str, str]]:
        """Code, outcome and cause, in the order of the verdicts."""
        rows = await self.ctx.pool.fetch("SELECT code, outcome, cause FROM facts.score ORDER BY evidence_id")
        return [tuple(row) for row in rows]

    async def card(self) -> Scorecard:
        return (await scorecard(self.ctx, ScorecardParams())).answer

    async def account(self, name: str = "mite-scor") -> Account:
        wallet = self.wallet(name)
        account_id: int = await self.ctx.pool.fetchval(
            "INSERT INTO accounts.account (wallet, designation, made_at) VALUES ($1, $2, to_timestamp(0))"
            " RETURNING id",
            as_bytes(wallet.address),
            name,
        )
        return Account(account_id, name, wallet.address)

    async def report(
        self, account: Account, token: str, tx_hash: str, note: str = "", follows: bool = True
    ) -> Reported:
        if follows:
            await self.follows()
        return (await report_verdict(self.ctx, ReportParams(token, tx_hash, note), account)).answer


async def begun(ground: Ground, pool: asyncpg.Pool) -> Scoring:
    """Nothing was checked or reported yet."""
    await pool.execute(
        "TRUNCATE jobs.job, facts.evidence, facts.score, facts.score_count, facts.score_cursor,"
        " facts.score_token, facts.score_wait, accounts.verdict_report CASCADE"
    )
    return Scoring(ground, replace(ground.ctx, pool=pool, now_s=time.time))
