"""Who may ask: a caller with a key or without one, as often as its limits allow."""

from dataclasses import dataclass, replace
from typing import Literal

from roundtrip.domain.errors import CallerFault
from roundtrip.domain.mite import Allowance, Allowances, Mite

from .callers import Asking
from .limits import MinuteLimits, Ticket

Counts = Literal["day", "minute", "never"]


@dataclass(frozen=True, slots=True)
class Admitted:
    """A caller that was let in. ``mite``: whose key it showed. ``ticket``: None where nothing is counted."""

    allowance: Allowance
    mite: Mite | None = None
    ticket: Ticket | None = None


@dataclass(frozen=True, slots=True)
class Gate:
    """Counts calls, and knows keys."""

    limits: MinuteLimits
    allowances: Allowances

    async def admit(self, asking: Asking, counts: Counts, needs_key: bool) -> Admitted:
        """Lets a call in, and counts it. Raises CallerFault (bad_key, key_needed), LimitReached
        (rate_limited, daily_limit), ServiceFull (busy)."""
        if asking.key is not None:
            raise CallerFault("bad_key", "This key is not live.")
        if needs_key:
            raise CallerFault("key_needed", "This needs a key. Get one for a signature at POST /v1/keys.")
        allowance = self.allowances.anonymous
        if counts == "never":
            return Admitted(allowance)
        return Admitted(allowance, None, self.limits.take(asking.name, allowance.per_minute))

    def hand_back(self, admitted: Admitted) -> Admitted:
        """Uncounts a call: its failure was not the caller's doing."""
        if admitted.ticket is None:
            return admitted
        return replace(admitted, ticket=self.limits.hand_back(admitted.ticket))
