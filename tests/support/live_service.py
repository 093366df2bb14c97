"""A live service for programs that call it from outside."""

import contextlib
import secrets
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from roundtrip.domain.base.types import Address
from roundtrip.services.runtime.context import Context
from roundtrip.store.check import evidence
from roundtrip.store.check.evidence import KeptEvidence
from roundtrip_development.devnet.world import Built
from support.keys import Person, key_for
from support.serving import service


@dataclass(frozen=True, slots=True)
class Live:
    """``plain``: a token that can be sold; ``trap``: one that cannot. Their last checks found neither."""

    url: str
    key: str
    plain: str
    trap: str


@contextlib.asynccontextmanager
async def live_service(indexed: Context, built: Built) -> AsyncIterator[Live]:
    """Serves the local chain and its index, with a new key."""
    ctx = replace(indexed, entropy=lambda: secrets.token_bytes(32), now_s=time.time)
    plain, trap = built.tokens["plain"], built.tokens["owner_only_sell"]
    before = KeptEvidence(datetime.now(UTC), 7, "p", "no_pool", "unknown", b"{}", loss_bps=None)
    async with ctx.pool.acquire() as connection:
        for token in (plain, trap):
            await evidence.keep(connection, Address(token), before)
    async with service(ctx) as url:
        yield Live(url, str((await key_for(ctx, Person()))["key"]), plain, trap)
