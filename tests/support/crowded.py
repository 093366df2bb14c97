"""A token of the local chain that a crowd out of many purses bought for real, and the index of it."""

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace

from roundtrip.domain.accounts.account import Account
from roundtrip.domain.base.types import Address
from roundtrip.jobs.engine.worker import Worker
from roundtrip.jobs.registry import KINDS
from roundtrip.services.runtime.context import Context
from roundtrip.store.server import connections
from roundtrip_development.devnet.demo.crowd import DemoCrowd
from roundtrip_development.devnet.deploy import ZERO, ContractDeployer
from roundtrip_development.devnet.launchpad import pool_key, v4_swap
from roundtrip_development.devnet.sync_rpc import SyncRpc
from roundtrip_development.devnet.world import Built
from support.clocks import Clock
from support.holding_asked import copied
from support.indexing import at, cursor, follow
from support.keys import random_context
from support.leagued import new_account
from support.signing import now_s

_GAS = 1_500_000
_WAIT_S = 60


@dataclass
class Crowded:
    """``token``: what the crowd bought, traded for eth in a v4 pool; ``deployer``: the actor who launched
    it. The clock of ``ctx`` is the chain's."""

    ctx: Context
    clock: Clock
    rpc: SyncRpc
    built: Built
    url: str
    token: str
    deployer: str = ""

    async def follow(self) -> None:
        """The index and the head catch up with the chain."""
        stands, number = (await cursor(self.url)).block, int(self.rpc.call("eth_blockNumber"), 16)
        if stands.hash != self.rpc.call("eth_getBlockByNumber", hex(number), False)["hash"]:
            await follow(self.rpc.url, self.built, self.url, 0, at(number))
        await self.ctx.heads.refresh()
        self.clock.now_s = float(now_s(self.rpc))

    async def pass_s(self, seconds: int) -> None:
        """On the chain, and what follows it."""
        self.rpc.call("evm_increaseTime", seconds)
        self.rpc.call("evm_mine")
        await self.follow()

    async def work(self, kind: str, runs: int = 1) -> None:
        """The job, so often."""
        worker = Worker(self.ctx, {kind: KINDS[kind]}, lambda: 0.5)
        await worker.start()
        for _ in range(runs):
            await self.ctx.pool.execute("UPDATE jobs.job SET run_at = to_timestamp(0) WHERE kind = $1", kind)
            async with asyncio.timeout(_WAIT_S):
                await asyncio.gather(*await worker.take())

    async def account(self, wallet: str | None = None) -> Account:
        """An account of a wallet that nobody ever met, or of this one."""
        async with self.ctx.pool.acquire() as connection:
            return await new_account(connection, None if wallet is None else Address(wallet))

    async def buy(self, account: str, wei: int) -> None:
        """For real; the account is given what it pays."""
        self.rpc.call("anvil_setBalance", account, hex(wei + 10**18))
        self._swap(account, ZERO, wei)
        await self.follow()

    async def sell(self, account: str, raw: int) -> int:
        """For real. What it paid, gas given back."""
        since, before = int(self.rpc.call("eth_blockNumber"), 16), self._eth(account)
        self._swap(account, self.token, raw)
        paid_wei = self._eth(account) - before + self._gas_wei(account, since)
        await self.follow()
        return paid_wei

    def _eth(self, account: str) -> int:
        return int(self.rpc.call("eth_getBalance", account, "latest"), 16)

    def _gas_wei(self, account: str, since: int) -> int:
        """What it paid for transactions after block ``since``."""
        spent = 0
        for number in range(since + 1, int(self.rpc.call("eth_blockNumber"), 16) + 1):
            for receipt in self.rpc.call("eth_getBlockReceipts", hex(number)):
                if receipt["from"] == account:
                    spent += int(receipt["gasUsed"], 16) * int(receipt["effectiveGasPrice"], 16)
        return spent

    def _swap(self, account: str, paid: str, raw: int) -> None:
        self.rpc.call("anvil_impersonateAccount", account)
        sender = ContractDeployer(self.rpc, account, _GAS)
        contracts = self.built.contracts
        sender.receipt(v4_swap(sender, contracts, pool_key(contracts, self.token, ZERO), paid, raw))


@contextlib.asynccontextmanager
async def crowded_over(
    ctx: Context, rpc: SyncRpc, built: Built, server_url: str, like_url: str
) -> AsyncIterator[Crowded]:
    """On the chain of ``rpc``, with an index of its own; nobody has counted winners yet."""
    crowd = DemoCrowd(rpc, built, threading.Event())
    crowd.run_crowd()
    token = crowd.tokens.crowded.token
    async with (
        copied(server_url, like_url) as url,
        connections.create_pool(url, min_size=1, max_size=6) as pool,
    ):
        clock = Clock()
        own = random_context(replace(ctx, pool=pool), clock)
        found = Crowded(own, clock, rpc, built, url, token)
        await found.follow()
        found.deployer = await pool.fetchval(
            "SELECT '0x' || encode(deployer.address, 'hex') FROM facts.launch AS launch"
            " JOIN facts.address AS deployer ON deployer.id = launch.deployer_id"
            " JOIN facts.address AS token ON token.id = launch.token_id WHERE token.address = $1",
            bytes.fromhex(token[2:]),
        )
        yield found
