"""Who may ask: a caller with a key or without one, as often as its limits allow."""

import contextlib
import functools
from collections import OrderedDict
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Literal
from uuid import UUID

import msgspec

from roundtrip.api.request.callers import CallerRequest
from roundtrip.domain.accounts import keys
from roundtrip.domain.accounts.account import Account, Allowances, CallAllowance
from roundtrip.domain.base.errors import CallerFault, LimitReached, RoundtripError
from roundtrip.services.runtime.context import Context
from roundtrip.services.runtime.holder_tier import IsHolder, nobody_holds
from roundtrip.store.accounts.call_counts import CountedCall, LiveKey, RefundedCall
from roundtrip.store.accounts.credits import CreditHold

from .call_counter import CallCounter, DatabaseCalls
from .credit_spender import CreditSpender, DatabaseCredits
from .minute_limits import LocalMinutes, MinuteCounter, MinuteLimits, Ticket

Counts = Literal["day", "minute", "never"]

_MAX_KNOWN = 50_000
_TWO_KEYS = "The request has two different keys. Send one, in Authorization: Bearer or in x-api-key."
_NOT_LIVE = (
    "This key is not valid: it is mistyped or revoked, or its session ended. Get a key at POST /v1/keys."
)
_KEY_NEEDED = (
    "This call needs a key. Sign the message of POST /v1/keys/nonce with your wallet, then get a key at POST "
    "/v1/keys."
)
_MAX_LOOK_UPS = 60
"""Look-ups a minute of keys that are not live, for one address; each costs a database row."""
_DAY_MS = 86_400_000


class CallRefused(Exception):
    """A call was refused. ``error``: why; ``ticket``: what is left of the caller's minute, where it is
    known."""

    def __init__(self, error: RoundtripError, ticket: Ticket | None) -> None:
        super().__init__(error.code)
        self.error = error
        self.ticket = ticket


class Admitted(msgspec.Struct, frozen=True):
    """An admitted call. ``account``: the owner of its key. ``ticket``: None where nothing is counted.
    ``day``: the UTC day that it counts against, if any. ``hold``: the credit that it costs, if any.
    ``beside``: what it took from the limits of its address and networks."""

    allowance: CallAllowance
    account: Account | None = None
    ticket: Ticket | None = None
    day: date | None = None
    hold: CreditHold | None = None
    beside: tuple[Ticket, ...] = ()


@dataclass(slots=True)
class Gate:
    """Looks up keys and counts calls. Minutes are counted in memory, and those of accounts are written, so
    that they outlive the process; or by ``across``, for several processes together. Days are counted in the
    database, by ``counter``. Past the day a call costs a credit, held by ``spender``. ``can_be_paid``: a
    refusal names where credits are bought."""

    limits: MinuteLimits
    allowances: Allowances
    counter: CallCounter
    is_holder: IsHolder = nobody_holds
    across: MinuteCounter | None = None
    spender: CreditSpender | None = None
    can_be_paid: bool = False
    minutes: MinuteCounter = field(init=False)
    _around: MinuteLimits = field(init=False)
    """Addresses with keys, and networks: counted by each process for itself."""
    # The owner of a key never changes; whether it is live the counter knows.
    _known: OrderedDict[bytes, Account] = field(default_factory=OrderedDict)

    def __post_init__(self) -> None:
        self.minutes = self.across or LocalMinutes(self.limits)
        self._around = MinuteLimits(self.limits.now_ms)

    @contextlib.asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Remembers the calls of the last minute; writes down what is left at the end."""
        if not self.minutes.is_lasting:
            self.limits.load(await self.counter.recent(self.limits.load))
        try:
            yield
        finally:
            try:
                await self.counter.close()
            finally:
                if self.spender is not None:
                    await self.spender.close()

    async def admit(self, asking: CallerRequest, counts: Counts, needs_key: bool) -> Admitted:
        """Lets a call in, and counts it. Raises CallRefused: bad_key, key_needed, rate_limited, daily_limit,
        busy."""
        if asking.in_view:
            counts = "never"
        if counts == "never" and not needs_key and not (asking.in_view and asking.key):
            return Admitted(self.allowances.anonymous)
        if asking.two_keys:
            raise await self._bad_key(asking, _TWO_KEYS)
        if asking.key is not None:
            return await self._with_key(asking, asking.key, counts)
        if needs_key:
            why = CallerFault("key_needed", _KEY_NEEDED)
            raise CallRefused(why, await self._count_refused(asking))
        ticket = await self._take(asking.name, self.allowances.anonymous)
        beside = self._take_around(asking, ticket)
        return Admitted(self.allowances.anonymous, None, ticket, beside=beside)

    async def look_at(self, asking: CallerRequest) -> Account | None:
        """Returns whose live key is shown; None: no key is. Counts nothing, unless the key is refused.
        Raises CallRefused: bad_key, rate_limited, busy."""
        if asking.two_keys:
            raise await self._bad_key(asking, _TWO_KEYS)
        if asking.key is not None:
            hashed = self._find_known(asking.key, asking.by_cookie) or await self._hash_key(
                asking, asking.key
            )
            return await self._look_up(asking, hashed)
        return None

    def refund(self, admitted: Admitted) -> Admitted:
        """Uncounts a call, and releases its credit: its failure was not the caller's doing."""
        ticket = admitted.ticket
        if ticket is None:
            return admitted
        account_id = None if admitted.account is None else admitted.account.id
        self.release(admitted)
        for ticket_beside in admitted.beside:
            self._around.refund(ticket_beside)
        if account_id is not None and (admitted.day is not None or not self.minutes.is_lasting):
            self.counter.refund(
                RefundedCall(self._minute_of(ticket), ticket.taken_ms, account_id, admitted.day)
            )
        return msgspec.structs.replace(admitted, ticket=self.minutes.refund(ticket))

    async def charge(self, admitted: Admitted) -> None:
        """Charges the credit that the call costs, if any, before its answer goes out."""
        if admitted.hold is not None and self.spender is not None:
            await self.spender.charge(admitted.hold)

    def release(self, admitted: Admitted) -> None:
        """Releases the credit that the call holds, if any; the call still counts."""
        if admitted.hold is not None and self.spender is not None:
            self.spender.release(admitted.hold)

    def doubt_keys(self, admitted: Admitted) -> None:
        """The call may have revoked a key of its account: the next calls with its keys ask the database."""
        if admitted.account is not None:
            self.counter.doubt(admitted.account.id)

    def _minute_of(self, ticket: Ticket) -> str | None:
        """Under which minute a call is written down."""
        return None if self.minutes.is_lasting else ticket.caller

    async def _with_key(self, asking: CallerRequest, shown: str, counts: Counts) -> Admitted:
        hashed = self._find_known(shown, asking.by_cookie) or await self._hash_key(asking, shown)
        account = self._known.get(hashed) or await self._look_up(asking, hashed)
        if counts == "never":
            return Admitted(self.allowances.key, await self._look_up(asking, hashed))
        allowance = self.allowances.holder if await self.is_holder(account.wallet) else self.allowances.key
        beside = self._take_with_keys(asking, allowance)
        try:
            ticket = await self._take(f"account:{account.id}", allowance)
        except CallRefused:
            # A revoked key is refused as such, also when its minute is used up.
            await self._look_up(asking, hashed)
            raise
        # The ticket's day, not the clock's: a clock that was put back must not reopen a day that is over.
        day = _day_at(ticket.taken_ms // _DAY_MS) if counts == "day" else None
        call = CountedCall(self._minute_of(ticket), ticket.taken_ms, hashed, day, allowance.per_day)
        live = await self._count_call(asking, call, ticket, account)
        if live.has_room:
            return Admitted(allowance, live.account, ticket, day, beside=beside)
        held = await self._hold_credit(live, ticket)
        if held is None:
            raise CallRefused(self._day_is_over(ticket, allowance), self.minutes.refund(ticket))
        return Admitted(allowance, live.account, ticket, hold=held, beside=beside)

    async def _hold_credit(self, live: LiveKey, ticket: Ticket) -> CreditHold | None:
        if self.spender is None or not live.may_pay:
            return None
        try:
            return await self.spender.hold(live.account.id, self._minute_of(ticket), ticket.taken_ms)
        except BaseException as error:
            refunded = self.minutes.refund(ticket)
            if isinstance(error, RoundtripError):
                raise CallRefused(error, refunded) from None
            raise

    def knows(self, shown: str) -> bool:
        """Whether this process has seen a key live, and not dead since; asks nobody."""
        return self._find_known(shown, by_cookie=False) is not None

    def _find_known(self, shown: str, by_cookie: bool) -> bytes | None:
        """The hash of a key or session that was live once, found without its checksum; None: not known."""
        if len(shown) != keys.LENGTH or not shown.startswith(
            keys.SESSION_PREFIX if by_cookie else keys.PREFIX
        ):
            return None
        hashed = keys.digest_of(shown)
        return hashed if hashed in self._known else None

    async def _hash_key(self, asking: CallerRequest, shown: str) -> bytes:
        if not (keys.is_session if asking.by_cookie else keys.is_key)(shown):
            raise await self._bad_key(asking)
        return keys.hash_of(shown)

    async def _count_call(
        self, asking: CallerRequest, call: CountedCall, ticket: Ticket, account: Account
    ) -> LiveKey:
        try:
            live = await self.counter.count(call, account.id)
        except BaseException as error:
            refunded = self.minutes.refund(ticket)
            if isinstance(error, RoundtripError):
                raise CallRefused(error, refunded) from None
            raise
        if live is None:
            self.minutes.refund(ticket)
            raise await self._dead(asking, call.key_hash)
        return live

    async def _look_up(self, asking: CallerRequest, hashed: bytes) -> Account:
        """The account of a live key, asked of the counter. Raises CallRefused: bad_key; busy; rate_limited,
        if this process does not know the key, and its address sent too many that were not live."""
        known = hashed in self._known
        look_up_ticket = None if known else self._take_look_up(asking)
        try:
            live = await self.counter.look_up(hashed, known)
        except BaseException as error:
            self._refund_look_up(look_up_ticket)
            if isinstance(error, RoundtripError):
                raise CallRefused(error, None) from None
            raise
        if live is not None:
            self._refund_look_up(look_up_ticket)
        if live is None:
            raise await self._dead(asking, hashed)
        self._known[hashed] = live.account
        self._known.move_to_end(hashed)
        if len(self._known) > _MAX_KNOWN:
            self._known.popitem(last=False)
        return live.account

    def _take_look_up(self, asking: CallerRequest) -> Ticket:
        try:
            return self.limits.take(f"look-ups of {asking.name}", _MAX_LOOK_UPS)
        except LimitReached as error:
            wait_s, limit = error.retry_after_s or 1, self.allowances.anonymous.per_minute
            text = (
                f"Your address sent more than {_MAX_LOOK_UPS} invalid keys in a minute. Retry in {wait_s} s "
                "with a valid key."
            )
            why = LimitReached("rate_limited", text, wait_s, limit)
            raise CallRefused(why, Ticket(asking.name, 0, limit, 0)) from None

    def _refund_look_up(self, ticket: Ticket | None) -> None:
        if ticket is not None:
            self.limits.refund(ticket)

    async def _dead(self, asking: CallerRequest, hashed: bytes | None) -> CallRefused:
        if hashed is not None:
            self._known.pop(hashed, None)
        return await self._bad_key(asking)

    async def _bad_key(self, asking: CallerRequest, text: str = _NOT_LIVE) -> CallRefused:
        return CallRefused(CallerFault("bad_key", text), await self._count_refused(asking))

    async def _count_refused(self, asking: CallerRequest) -> Ticket:
        """Counts a call that is refused anyway, under its address, as long as that has calls left."""
        limit = self.allowances.anonymous.per_minute
        try:
            return await self.minutes.take(asking.name, limit)
        except LimitReached:
            return Ticket(asking.name, 0, limit, 0)

    async def _take(self, caller: str, allowance: CallAllowance) -> Ticket:
        try:
            return await self.minutes.take(caller, allowance.per_minute)
        except LimitReached as error:
            if allowance is self.allowances.anonymous and self.allowances.key.per_minute > error.limit:
                more = f"{error.message} With a key you can make {self.allowances.key.per_minute:,}."
                error = LimitReached(error.code, more, error.retry_after_s or 1, error.limit)
            raise CallRefused(error, Ticket(caller, 0, allowance.per_minute, 0)) from None

    def is_bound(self, asking: CallerRequest) -> bool:
        """Whether the limits of one address hold for this caller: not on the service's own machine, unless
        ``limit_loopback`` is set."""
        return self.allowances.address.loopback or not asking.is_local

    def _take_around(self, asking: CallerRequest, ticket: Ticket) -> tuple[Ticket, ...]:
        """Counts one call of each network around an address. Raises CallRefused (rate_limited)."""
        tickets: list[Ticket] = []
        if not self.is_bound(asking):
            return ()
        for name, addresses in asking.networks:
            try:
                tickets.append(self._around.take(name, addresses * self.allowances.anonymous.per_minute))
            except LimitReached as error:
                for taken_ticket in tickets:
                    self._around.refund(taken_ticket)
                wait_s = error.retry_after_s or 1
                text = (
                    f"Your network made more than {error.limit:,} calls without a key in a minute. Retry in "
                    f"{wait_s} s, or send a key."
                )
                why = LimitReached("rate_limited", text, wait_s, error.limit)
                raise CallRefused(why, self.minutes.refund(ticket)) from None
        return tuple(tickets)

    def _take_with_keys(self, asking: CallerRequest, allowance: CallAllowance) -> tuple[Ticket, ...]:
        """Counts one call of an address that shows a key. Raises CallRefused (rate_limited)."""
        if not self.is_bound(asking):
            return ()
        try:
            return (self._around.take(asking.name, self.allowances.address.keyed),)
        except LimitReached as error:
            wait_s = error.retry_after_s or 1
            text = f"Your address made over {error.limit:,} calls with keys in a minute. Retry in {wait_s} s."
            why = LimitReached("rate_limited", text, wait_s, error.limit)
            raise CallRefused(why, Ticket(asking.name, 0, allowance.per_minute, 0)) from None

    def _day_is_over(self, ticket: Ticket, allowance: CallAllowance) -> LimitReached:
        wait_s = -((ticket.taken_ms % _DAY_MS - _DAY_MS) // 1000)
        text = (
            f"Your account made its {allowance.per_day:,} calls of the day. The next day begins at 00:00 UTC."
        )
        if self.can_be_paid:
            text += " GET /v1/credits explains how to pay for more."
        return LimitReached("daily_limit", text, wait_s, allowance.per_minute)


@functools.lru_cache(maxsize=4)
def _day_at(days: int) -> date:
    """The UTC day that is ``days`` days after 1970-01-01."""
    return date(1970, 1, 1) + timedelta(days=days)


def gate_over(ctx: Context, across: MinuteCounter | None = None) -> Gate:
    """The gate of a service. ``across``: who counts minutes for several processes together."""

    def now_ms() -> int:
        return int(ctx.now_s() * 1000)

    def new_id() -> UUID:
        return UUID(bytes=ctx.entropy()[-16:], version=4)

    counter = CallCounter(DatabaseCalls(ctx.pool), now_ms)
    spender = CreditSpender(DatabaseCredits(ctx.pool), now_ms, new_id)
    return Gate(
        MinuteLimits(now_ms),
        ctx.allowances,
        counter,
        ctx.is_holder,
        across,
        spender,
        can_be_paid=ctx.payments is not None,
    )
