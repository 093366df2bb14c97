"""Views of pages: what people look at, counted apart from calls. A page counts once."""

from collections import Counter
from dataclasses import dataclass, field

from roundtrip.api.request.callers import CallerRequest
from roundtrip.domain.base.errors import LimitReached

from .gate import CallRefused, Gate
from .minute_limits import LocalMinutes, MinuteCounter, MinuteLimits, Ticket

PIECES_PER_VIEW = 3
"""Pieces that scripts load into a page have a limit of their own: this many times that of views."""
_DAY_S = 86_400
_MAX_NAMES = 100_000
"""Beyond so many visitors, the day's counts start over, to bound the memory."""


@dataclass(frozen=True, slots=True)
class ViewTicket:
    """One counted view. ``beside``: what it took from the limits of its address and networks."""

    name: str
    minute: Ticket
    beside: tuple[Ticket, ...]


@dataclass(slots=True)
class PageViews:
    """Counts views by address; those of a session by its account. Minutes are shared with other processes
    where calls are; days, addresses and networks are counted by each process for itself."""

    gate: Gate
    minutes: MinuteCounter = field(init=False)
    _around: MinuteLimits = field(init=False)
    _of_day: Counter[str] = field(default_factory=Counter)
    _day: int = 0

    def __post_init__(self) -> None:
        now_ms = self.gate.limits.now_ms
        # Not the calls' own limits: where too many callers are counted together, views would refuse calls.
        self.minutes = self.gate.across or LocalMinutes(MinuteLimits(now_ms))
        self._around = MinuteLimits(now_ms)

    async def take(self, asking: CallerRequest, is_piece: bool) -> ViewTicket:
        """Counts one view, or one piece. Raises LimitReached (rate_limited, daily_limit), and CallerFault
        (bad_key) where the session has ended."""
        try:
            account = await self.gate.look_at(asking)
        except CallRefused as refused:
            raise refused.error from None
        name = asking.name if account is None else f"account:{account.id}"
        self._check_day(name)
        beside = self._take_beside(asking)
        limit = self.gate.allowances.views.per_minute * (PIECES_PER_VIEW if is_piece else 1)
        try:
            minute = await self.minutes.take(f"{name} {'pieces' if is_piece else 'views'}", limit)
        except LimitReached as error:
            self._refund_beside(beside)
            raise _too_many(limit, error) from None
        self._of_day[name] += 1
        return ViewTicket(name, minute, beside)

    def refund(self, ticket: ViewTicket) -> None:
        """Uncounts a view: its answers were shared ones, or it failed through no fault of the visitor."""
        self.minutes.refund(ticket.minute)
        self._refund_beside(ticket.beside)
        # A day may have begun since.
        self._of_day[ticket.name] = max(0, self._of_day[ticket.name] - 1)

    def _check_day(self, name: str) -> None:
        now_s = self.gate.limits.now_ms() // 1000
        if now_s // _DAY_S != self._day or len(self._of_day) > _MAX_NAMES:
            self._day = now_s // _DAY_S
            self._of_day.clear()
        per_day = self.gate.allowances.views.per_day
        if per_day and self._of_day[name] >= per_day:
            text = f"More than {per_day:,} pages were opened today. The next day begins at 00:00 UTC."
            raise LimitReached("daily_limit", text, _DAY_S - now_s % _DAY_S, per_day)

    def _take_beside(self, asking: CallerRequest) -> tuple[Ticket, ...]:
        """Counts one view of the address, whoever is signed in there, and of each network around it."""
        if not self.gate.is_bound(asking):
            return ()
        per_minute, tickets = self.gate.allowances.views.per_minute, []
        limits = [(asking.name, self.gate.allowances.address.keyed)]
        limits += [(name, addresses * per_minute) for name, addresses in asking.networks]
        for name, limit in limits:
            try:
                tickets.append(self._around.take(name, limit))
            except LimitReached as error:
                self._refund_beside(tuple(tickets))
                raise _too_many(limit, error) from None
        return tuple(tickets)

    def _refund_beside(self, tickets: tuple[Ticket, ...]) -> None:
        for ticket in tickets:
            self._around.refund(ticket)


def _too_many(limit: int, error: LimitReached) -> LimitReached:
    wait_s = error.retry_after_s or 1
    text = f"More than {limit:,} pages were opened from here in a minute. Retry in {wait_s} s."
    return LimitReached("rate_limited", text, wait_s, limit)
