"""Payments of two accounts by a model: on a chain that is reorganised, posted several times at once."""

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

import asyncpg
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from roundtrip.domain.accounts.account import Account
from roundtrip.domain.base.errors import RoundtripError
from roundtrip.domain.base.types import Address
from roundtrip.services.accounts.credits import PaymentParams, redeem_payment
from roundtrip.services.runtime.context import Context

from .counting import Wall
from .paying_chain import PayingChain, Payment, paying_context

A = TypeVar("A")
MIDNIGHT_MS = 1_760_054_400_000
WALLETS = [Address("0x" + digit * 40) for digit in "12"]


class Payings(RuleBasedStateMachine):
    """Owners are 0 and 1. ``paid``: the credits that each was given for payments; ``credits``: those left."""

    pool: asyncpg.Pool
    loop: asyncio.AbstractEventLoop

    def __init__(self) -> None:
        super().__init__()
        self.wall, self.chain = Wall(MIDNIGHT_MS - 1_000_000), PayingChain()
        self.context: Context = paying_context(self.chain, self.pool, lambda: self.wall.ms / 1000)
        self.accounts: list[int] = []
        self.counted: set[str] = set()
        self.paid = [0, 0]
        self.credits = [0, 0]

    def _run(self, doing: Awaitable[A]) -> A:
        async def done() -> A:
            return await doing

        return asyncio.run_coroutine_threadsafe(done(), self.loop).result(30)

    @rule(
        owner=st.integers(0, 1),
        raw=st.integers(1, 6),
        what=st.sampled_from(["pay", "pay", "mine", "finalize", "finalize", "drop", "fork", "deep fork"]),
        count=st.integers(0, 4),
    )
    def chain_goes_on(self, owner: int, raw: int, what: str, count: int) -> None:
        if what == "pay":
            self.chain.pay(WALLETS[owner], raw)
            self.chain.mine(9)
        elif what == "mine":
            self.chain.mine(count)
        elif what == "finalize":
            self.chain.finalize(count)
        elif what == "drop":
            self.chain.drop()
        else:
            (self.chain.reorganise if what == "fork" else self.chain.break_finality)(count)

    @rule(
        index=st.integers(0, 1000),
        posts=st.lists(st.integers(0, 1), min_size=1, max_size=4),
        forks=st.sampled_from([0, 0, 0, 1, 3]),
    )
    def redeem(self, index: int, posts: list[int], forks: int) -> None:
        """The accounts in ``posts`` post the same transaction at once. ``forks``: how many final blocks are
        taken back before the first post is confirmed."""
        if not self.chain.known:
            return
        paid = list(self.chain.known.values())[index % len(self.chain.known)]
        was_final = self.chain.is_final(paid)
        taken_back: list[bool] = []

        def fork() -> None:
            self.chain.break_finality(forks)
            self.chain.mine(9)
            taken_back.append(True)

        self.chain.between = fork if forks else None
        codes = self._run(self._posted(paid, posts))
        self.chain.between = None
        owner = WALLETS.index(paid.wallet)
        is_due = was_final and paid.tx_hash not in self.counted and owner in posts
        good = [who for who, code in zip(posts, codes, strict=True) if code == "counted"]
        if taken_back:
            # A post that read the chain after that may find it final, in a block that stayed.
            assert not good or (good == [owner] and is_due and self.chain.is_final(paid)), (codes, posts)
        else:
            assert good == ([owner] if is_due else []), (codes, posts)
        if good:
            self.counted.add(paid.tx_hash)
            self.paid[owner] += paid.raw
            self.credits[owner] += paid.raw
        elif owner in posts and not taken_back:
            used = paid.tx_hash in self.counted
            assert {codes[n] for n, who in enumerate(posts) if who == owner} == {
                "already_used" if used else "no_such_tx"
            }

    async def _posted(self, paid: Payment, posts: list[int]) -> list[str]:
        async def posted(owner: int) -> str:
            account = Account(self.accounts[owner], f"mite-{owner}", WALLETS[owner])
            try:
                await redeem_payment(self.context, PaymentParams(paid.tx_hash), account)
            except RoundtripError as error:
                return error.code
            return "counted"

        return await asyncio.gather(*(posted(owner) for owner in posts))
