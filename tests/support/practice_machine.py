"""Practice accounts by a model: made-up pools whose prices move, requests that are repeated, cut off anywhere
and made at once, and weeks that pass."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Awaitable
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any, TypeVar, cast

import asyncpg
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from roundtrip.chain.blocks.heads import ChainHead
from roundtrip.chain.rpc.client import Meter
from roundtrip.domain.accounts.account import Account
from roundtrip.domain.base.errors import NodeFault, RoundtripError
from roundtrip.domain.base.types import Address, BlockRef, plain_decimal
from roundtrip.domain.check.evidence import Missing
from roundtrip.domain.practice.practice import MIN_WEI, WEEK_S
from roundtrip.services.practice import buy, sell
from roundtrip.services.practice.pricing import Buying, PricedBuy, PricedSell, Unsellable
from roundtrip.services.practice.schema import PracticeBuyParams, PracticeSellParams
from roundtrip.services.rehearsal.verdict import TradeVerdict
from roundtrip.services.runtime.context import Context
from roundtrip.services.valuation.holdings import HoldingToSell
from support.counting import put_account
from support.keys import NOW_S
from support.practice_doubles import CutPool, Meeting, Pool
from support.practising import UNIT, VENUE, a_slot, conserved, read
from unit.venues.logs import NETWORK

A = TypeVar("A")
WALLETS = [Address("0x" + digit * 40) for digit in "12"]
TOKENS = [Address("0x" + digit * 40) for digit in "ab"]
THIN, DEEP = "0x" + "71" * 20, "0x" + "72" * 20
"""A little is bought cheaper in the thin pool, and all sells dearer in the deep one."""


@dataclass(frozen=True)
class Request:
    """One request, as it may be sent again."""

    owner: int
    token: Address
    side: str
    amount: str
    key: str | None


async def _counts_some(*given: Any, **where: object) -> str | None:
    """Whether a sell counts, by its profit: some of each sort do."""
    profit_wei: int = given[3]
    return None if profit_wei % 3 else "by chance"


class Practices(RuleBasedStateMachine):
    """Owners are 0 and 1. ``done``: by owner and key, the request and its first answer. ``here``: what was
    given and got in each pool since the last block; ``lives``: of positions that no pool moved under, what
    they brought, in wei, less what they cost."""

    real: asyncpg.Pool
    loop: asyncio.AbstractEventLoop
    seen: Counter[str]

    def __init__(self) -> None:
        super().__init__()
        self.now_s, self.number, self.keys = NOW_S, 100, 0
        self.pools = {
            token: {THIN: Pool(UNIT, 33 * 10**21), DEEP: Pool(300 * UNIT, 66 * 10**23)} for token in TOKENS
        }
        self.cut = CutPool(self.real)
        heads = SimpleNamespace(read_now=self._refresh, last_number=lambda: self.number)
        self.ctx = cast(
            Context,
            SimpleNamespace(
                pool=self.cut, now_s=lambda: self.now_s, heads=heads, chain_id=4663, contracts=NETWORK
            ),
        )
        self.refuses, self.silent = set[Address](), False
        self.meet: Meeting | None = None
        self.done: dict[tuple[int, str], tuple[Request, dict[str, Any]]] = {}
        self.here: dict[tuple[int, Address, str, str], list[tuple[int, int]]] = defaultdict(list)
        self.lives: dict[tuple[int, Address], int] = {}
        self.accounts = [self._run(self._made(wallet)) for wallet in WALLETS]

    async def _made(self, wallet: Address) -> Account:
        async with self.real.acquire() as connection:
            if wallet == WALLETS[0]:
                await connection.execute("TRUNCATE accounts.account CASCADE")
            return Account(await put_account(connection, wallet), "mite-test", wallet)

    def _run(self, doing: Awaitable[A]) -> A:
        async def done() -> A:
            return await doing

        return asyncio.run_coroutine_threadsafe(done(), self.loop).result(30)

    async def _refresh(self) -> ChainHead:
        block = BlockRef(self.number, "0x" + f"{self.number:064x}", int(self.now_s))
        return cast(ChainHead, SimpleNamespace(block=block))

    # --- prices --------------------------------------------------------------------------------

    def _best(self, token: Address, at: str | None, eth_wei: int) -> tuple[int, str]:
        """What so much buys, and where: at a position's own place, else where it buys most."""
        pools = self.pools[token]
        return max((pools[one].buys(eth_wei), one) for one in ([at] if at is not None else pools))

    async def _price_buy(
        self, ctx: Context, head: ChainHead, buying: Buying, slot_of: Any, meter: Meter
    ) -> PricedBuy:
        await self._met()
        token, earlier_wei = buying.token, buying.earlier_wei
        whole_raw, at = self._best(token, buying.at, earlier_wei + buying.eth_wei)
        brings = whole_raw - self._best(token, buying.at, earlier_wei)[0]
        verdict, venue = TradeVerdict("ok", "ok", "It goes through."), replace(VENUE, pool=Address(at))
        payable_raw = self.pools[token][at].token_raw // 2
        return PricedBuy(
            head.block, venue, None, 18, buying.eth_wei, brings, payable_raw, "yes", verdict, None
        )

    async def _price_sell(
        self, ctx: Context, head: ChainHead, holding: HoldingToSell, worth: Any, meter: Meter
    ) -> PricedSell | Unsellable:
        await self._met()
        if holding.token in self.refuses:
            return Unsellable("It cannot be sold.", by_check=True)
        pools, before_raw = self.pools[holding.token], holding.before_raw
        found = [
            (pool.sells(before_raw + holding.amount_raw) - pool.sells(before_raw), at)
            for at, pool in pools.items()
            if holding.at in (at, None)
        ]
        brings, at = max(found)
        return PricedSell(head.block, replace(VENUE, pool=Address(at)), brings)

    async def _met(self) -> None:
        """Whoever trades at once has priced before any of them books."""
        if self.silent:
            raise NodeFault(Missing("node", "it is silent").why)
        if self.meet is not None:
            await self.meet.arrive()

    # --- requests ------------------------------------------------------------------------------

    async def _sent(self, request: Request) -> dict[str, Any]:
        account = self.accounts[request.owner]
        if request.side == "buy":
            params = PracticeBuyParams(request.token, request.amount)
            means = buy.BuyPricing(self._price_buy, a_slot)
            return read(await buy.buy(self.ctx, params, account, request.key, means, Meter()))
        selling = sell.SellPricing(
            price=self._price_sell, slot_of=a_slot, count_sell=_counts_some, worth=cast(Any, None)
        )
        sold = PracticeSellParams(request.token, float(request.amount))
        return read(await sell.sell(self.ctx, sold, account, request.key, selling, Meter()))

    async def _came(self, request: Request) -> dict[str, Any] | RoundtripError:
        try:
            return await self._sent(request)
        except RoundtripError as error:
            return error

    def _ask(self, request: Request) -> dict[str, Any] | RoundtripError:
        known = request.key is not None and (request.owner, request.key) in self.done
        came = self._run(self._came(request))
        if isinstance(came, dict) and not known:
            self._booked(request, came)
        return came

    def _booked(self, request: Request, came: dict[str, Any]) -> None:
        if request.key is not None:
            self.done[request.owner, request.key] = (request, came)
        self.seen[request.side] += 1
        given, got = ("spent", "receivedRaw") if request.side == "buy" else ("soldRaw", "got")
        pair = tuple(_raw(came[name], name in ("spent", "got")) for name in (given, got))
        place = (request.owner, request.token, request.side, came["venue"]["at"])
        self.here[place].append(cast(tuple[int, int], pair))
        self._lived((request.owner, request.token), request.side, cast(tuple[int, int], pair), came)

    def _lived(
        self, whose: tuple[int, Address], side: str, pair: tuple[int, int], came: dict[str, Any]
    ) -> None:
        """No order of buys and sells gains where the price stands still."""
        if side == "buy" and came["position"]["raw"] == came["receivedRaw"]:
            self.lives[whose] = 0
        if whose not in self.lives:
            return
        self.lives[whose] += pair[1] if side == "sell" else -pair[0]
        if came["position"] is None:
            assert self.lives.pop(whose) <= 0
            self.seen[f"closed where it was, {came['venue']['at']}"] += 1

    def _new(self, owner: int, token: int, side: str, amount: int, keyed: bool) -> Request:
        self.keys += 1
        text = plain_decimal(amount * MIN_WEI, 18) if side == "buy" else str(max(1, amount // 4))
        return Request(owner, TOKENS[token], side, text, f"key {self.keys}" if keyed else None)

    def _keyed(self, given: Any) -> Request:
        owner, token, side, amount, _ = given
        return self._new(owner, token, side, amount, keyed=True)

    # --- rules ---------------------------------------------------------------------------------

    request = st.tuples(
        st.integers(0, 1), st.integers(0, 1), st.sampled_from(["buy", "buy", "sell"]),
        st.sampled_from([0, 1, 7, 50, 200, 200, 400, 400, 1000]), st.booleans(),
    )  # fmt: skip

    @initialize(amount=st.sampled_from([50, 200, 400]))
    def begin_with_some(self, amount: int) -> None:
        """What chance may leave out: one sells nothing, meets a silent node, is cut off after the commit;
        one has nothing left but what nobody takes, and a Monday passes; one trades twice at once; all is sold
        again in either pool."""
        self.trade((0, 1, "sell", 7, False), silent=False)
        for much in (50, 900):
            self._ask(self._new(0, 1, "buy", much, True))
            self._ask(self._new(0, 1, "sell", 400, True))
            self.block(601, 0)
        self.trade((0, 1, "buy", 7, False), silent=True)
        self.trade_is_cut_off_and_sent_again((0, 1, "buy", 7, True), 14)
        self._ask(self._new(1, 1, "buy", 1000, True))
        self.token_turns(1, sells=False)
        for number in range(2):
            self._ask(self._new(1, 1, "sell", 400, True))
            self.weeks_pass(1 + number)
        self._ask(self._new(1, 0, "buy", amount, True))
        for side, much in (("buy", amount), ("sell", 100)):
            self._two(self._new(0, 0, side, much, True), self._new(0, 0, side, much, True))

    @rule(given=request, silent=st.sampled_from([False] * 9 + [True]))
    def trade(self, given: Any, silent: bool) -> None:
        self.silent = silent
        came = self._ask(self._new(*given))
        self.silent = False
        if isinstance(came, RoundtripError):
            self.seen[came.code] += 1
            assert came.code in ("upstream", "too_small", "bad_input", "would_fail", "nothing_to_sell")

    @rule(given=request, before=st.integers(0, 14))
    def trade_is_cut_off_and_sent_again(self, given: Any, before: int) -> None:
        """Before any statement, or, of the last number, after the commit."""
        request = self._keyed(given)
        self.cut.before, self.cut.after_commit = (None, True) if before == 14 else (before, False)
        came = self._run(self._came(request))
        self.cut.before, self.cut.after_commit = None, False
        if isinstance(came, RoundtripError):
            self.seen["cut"] += came.code == "busy"
        elif before == 14:
            # What was booked is found again by its key.
            self.seen["cut after the commit"] += 1
        again = self._ask(request)
        if isinstance(came, dict):
            assert again == came

    @rule(index=st.integers(0, 1000), other=st.booleans())
    def repeat(self, index: int, other: bool) -> None:
        if not self.done:
            return
        owner, key = list(self.done)[index % len(self.done)]
        request, first = self.done[owner, key]
        if other:
            changed = Request(owner, TOKENS[TOKENS.index(request.token) - 1], request.side, "1", key)
            came = self._ask(changed)
            assert isinstance(came, RoundtripError)
            assert came.code == "bad_input"
            return
        assert self._ask(request) == first
        self.seen["repeat"] += 1

    @rule(one=request, two=request, same=st.booleans())
    def two_at_once(self, one: Any, two: Any, same: bool) -> None:
        """Both have their price before either books; one that fails before has nothing to wait for."""
        first = self._keyed(one)
        self._two(first, first if same else self._new(*two))

    def _two(self, first: Request, second: Request) -> None:
        came = self._run(self._both(first, second))
        answers = [found for found in came if isinstance(found, dict)]
        if first is second:
            assert len(answers) in (0, 2)
            assert answers[:1] == answers[1:]
            self.seen["the same at once"] += len(answers) > 0
            if answers:
                self._booked(first, answers[0])
            return
        done = [(request, found) for request, found in zip((first, second), came, strict=True)]
        booked = [(request, found) for request, found in done if isinstance(found, dict)]
        # Whoever is second is priced once more.
        assert all(isinstance(found, dict) or found.code != "busy" for _, found in done)
        for request, found in sorted(booked, key=lambda one: one[1]["id"]):
            self._booked(request, found)
        alike = (first.owner, first.token) == (second.owner, second.token)
        self.seen["priced once more"] += alike and len(booked) == 2

    async def _both(self, *requests: Request) -> list[dict[str, Any] | RoundtripError]:
        self.meet = Meeting(len(requests))

        async def ended(request: Request) -> dict[str, Any] | RoundtripError:
            try:
                return await self._came(request)
            finally:
                assert self.meet is not None
                self.meet.leave()

        try:
            return list(await asyncio.gather(*(ended(request) for request in requests)))
        finally:
            self.meet = None

    @rule(seconds=st.sampled_from([1, 300, 599, 600, 601]), share=st.sampled_from([-20, -3, 0, 4, 25]))
    def block(self, seconds: int, share: int) -> None:
        self.now_s, self.number = self.now_s + seconds, self.number + 1
        for pools in self.pools.values():
            for pool in pools.values():
                pool.trade(share)
        self.here.clear()
        if share:
            self.lives.clear()

    @rule(token=st.integers(0, 1), sells=st.booleans())
    def token_turns(self, token: int, sells: bool) -> None:
        (self.refuses.discard if sells else self.refuses.add)(TOKENS[token])

    @rule(weeks=st.sampled_from([0.5, 1, 1, 3]))
    def weeks_pass(self, weeks: float) -> None:
        self.now_s += weeks * WEEK_S
        self.block(1, 0)

    # --- what always holds ---------------------------------------------------------------------

    @invariant()
    def nothing_is_made_or_lost(self) -> None:
        async def held() -> None:
            async with self.real.acquire() as connection:
                for account in self.accounts:
                    await conserved(connection, account.id)
                sides = await connection.fetch("SELECT DISTINCT side FROM accounts.practice_trade")
                repeats = await connection.fetchval("SELECT count(*) FROM accounts.practice_repeat")
            for row in sides:
                self.seen[row["side"] + " written"] += 1
            assert repeats == len(self.done)

        self._run(held())

    @invariant()
    def parts_bring_no_more_than_the_whole(self) -> None:
        """Within a block and a pool; a unit may come of rounding of each part."""
        for (_, token, side, at), parts in self.here.items():
            pool = self.pools[token][at]
            whole = (pool.buys if side == "buy" else pool.sells)(sum(given for given, _ in parts))
            assert sum(got for _, got in parts) <= whole + len(parts)
            self.seen[f"{side} in parts"] += len(parts) > 1


def _raw(said: str, is_eth: bool) -> int:
    whole, _, fraction = said.partition(".")
    return int(whole + fraction.ljust(18, "0")) if is_eth else int(said)
