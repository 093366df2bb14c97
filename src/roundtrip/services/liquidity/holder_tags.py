"""Tags from the token's holders, for the accounts that hold its liquidity or can withdraw it."""

import asyncio
from collections.abc import Iterable, Sequence

import structlog

from roundtrip.chain.rpc.client import Meter
from roundtrip.domain.base.errors import CallerFault, NodeFault, ReadFailed, ServiceFull
from roundtrip.domain.base.types import BURN_ADDRESSES, Address
from roundtrip.domain.liquidity.depth import TokenPositions
from roundtrip.services.holder_record.collect import gather_holders
from roundtrip.services.holder_record.findings import HolderRecord, tag_accounts
from roundtrip.services.runtime.context import Context
from roundtrip.venues.base import Contracts

from .sentence import Tags

HOLDERS_S = 3.0
"""How long an answer waits for the holders: who can withdraw matters more than the tags."""
_MAX_TRACED = 16
"""Accounts whose origins are traced with those of the holders."""
log = structlog.get_logger(__name__)


def holders_to_tag(indexed: TokenPositions | None, contracts: Contracts) -> tuple[Address, ...]:
    """Who holds the positions that the index knows, the most important first, except burn addresses and the
    launchpad's contracts."""
    pools = () if indexed is None else indexed.pools
    return accounts_to_tag((held.holder for pool in pools for held in pool.positions), contracts)


def accounts_to_tag(accounts: Iterable[Address | None], contracts: Contracts) -> tuple[Address, ...]:
    """The accounts, each once, except burn addresses and the launchpad's contracts."""
    skipped = BURN_ADDRESSES | contracts.launchpad_addresses()
    return tuple(one for one in dict.fromkeys(accounts) if one is not None and one not in skipped)


async def read_holders(
    ctx: Context, token: Address, accounts: Sequence[Address], meter: Meter, most_s: float = HOLDERS_S
) -> HolderRecord | None:
    """What is known of the token's holders, and of the first ``accounts``. None: there are no accounts, or it
    could not be read in ``most_s``; the book keeps what was folded until then."""
    if not accounts:
        return None
    try:
        async with asyncio.timeout(most_s):
            return await gather_holders(ctx, token, meter, accounts[:_MAX_TRACED])
    except (TimeoutError, NodeFault, ReadFailed, ServiceFull, CallerFault) as error:
        log.info("holders could not be read for the liquidity's tags", error=repr(error))
        return None


def join_tags(own: Tags, record: HolderRecord | None, accounts: Sequence[Address]) -> tuple[Tags, bool]:
    """The liquidity's ``own`` tags, then those of the holders, each once; and whether all are known."""
    if not accounts:
        return own, True
    tags, is_complete = ({}, False) if record is None else tag_accounts(record, accounts)
    joined = {
        account: tuple(dict.fromkeys((*own.get(account, ()), *tags.get(account, ()))))
        for account in (*own, *tags)
    }
    return joined, is_complete
