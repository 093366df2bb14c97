"""Who may be the same person as a wallet: the same funder, or the same tokens in the same moments."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

import asyncpg

from roundtrip.chain.holders.wallet_views import code_calls, read_codes
from roundtrip.domain.base.errors import NodeFault
from roundtrip.domain.base.types import BURN_ADDRESSES, Address
from roundtrip.domain.wallets.linked import Money, SameTokens, is_exchange
from roundtrip.services.runtime.context import Context, UseCaseAnswer
from roundtrip.services.support.index_reader import reading
from roundtrip.services.support.wallet_params import WalletParams
from roundtrip.store.index import addresses, origins, tokens, vitals
from roundtrip.store.index.cursor import Cursor
from roundtrip.store.wallets import linked
from roundtrip.store.wallets.linked import LinkedPeer
from roundtrip.venues.entry_point import ENTRY_POINTS

from .linked_present import Candidate, Funder, LinkedRecord, present
from .linked_schema import LinkedWallets

MOST_LINKED = 20
MOST_WEIGHED = 40
"""So many of the best are asked for their code, with the funder and without: contracts among them, and a
funder that is one, leave room for others."""


async def linked_wallets(ctx: Context, params: WalletParams) -> UseCaseAnswer[LinkedWallets]:
    """The best links, each with what speaks for it. Raises CallerFault (bad_address), ServiceFull (busy,
    budget_spent), NodeFault: who is a contract cannot be known then, and contracts link nobody."""
    wallet = params.wallet()
    machinery = ctx.contracts.all_addresses() | ENTRY_POINTS | BURN_ADDRESSES
    async with reading(ctx) as (connection, stands):
        gathered = await _read_record(connection, wallet, stands, machinery)
    contracts = await _contracts(ctx, gathered)
    return UseCaseAnswer(present(ctx.chain_id, gathered, contracts, MOST_LINKED), ctx.policy.answer_ttl_ms)


async def _read_record(
    connection: asyncpg.Connection, wallet: Address, stands: Cursor, machinery: frozenset[Address]
) -> LinkedRecord:
    """All that the index knows of it, and of whoever may be linked to it."""
    followed_s = await vitals.followed_from_s(connection, stands)
    found = LinkedRecord(stands, wallet, followed_s, is_machinery=wallet in machinery)
    wallet_id = await addresses.id_of(connection, wallet)
    if found.is_machinery or wallet_id is None:
        return found
    given = await linked.funded_by(connection, wallet_id)
    found = replace(found, is_met=True, is_exchange=is_exchange(len(given)))
    if found.is_exchange:
        return found
    money: dict[int, list[Money]] = {}
    for one in given:
        money.setdefault(one.wallet_id, []).append(Money("funded", len(given)))
    funder = await _funder(connection, wallet, wallet_id, machinery, money)
    money.pop(wallet_id, None)
    buys = await linked.newest_buys(connection, wallet_id, stands.block.timestamp_s)
    beside = await linked.beside(connection, wallet_id, buys, money)
    traded = await linked.tokens_traded(connection, [wallet_id, *beside])
    same = {
        other: SameTokens(one.shared, len(buys), traded[wallet_id], traded[other], one.weight_bps)
        for other, one in beside.items()
    }
    shown = await _best_candidates(connection, money, same, beside, machinery | {wallet})
    token_ids = {shared.token_id for one in shown for shared in one.tokens}
    labels = await tokens.labels(connection, token_ids)
    return replace(found, funder=funder, tokens_compared=len(buys), candidates=shown, labels=labels)


async def _funder(
    connection: asyncpg.Connection,
    wallet: Address,
    wallet_id: int,
    machinery: frozenset[Address],
    money: dict[int, list[Money]],
) -> Funder | None:
    """Who first sent the wallet eth; into ``money`` goes whom that may link."""
    own = await linked.funding(connection, wallet_id)
    older = await origins.older(connection, wallet)
    funder_id, funded_s = (None, None) if own is None else (own.funder_id, own.funded_s)
    if older is not None and older.found is not None and older.found.funder is not None:
        older_id = await addresses.id_of(connection, older.found.funder)
        if older_id is None:
            # No wallet that the index knows had its first eth of it.
            return Funder(older.found.funder, 0, older.found.funder in machinery)
        # When it sent it is not known where that is not what the sync saw, too.
        funder_id, funded_s = older_id, funded_s if older_id == funder_id else None
    if funder_id is None:
        return None
    (address,) = (await addresses.addresses_of(connection, [funder_id])).values()
    given = await linked.funded_by(connection, funder_id)
    found = Funder(address, len(given), address in machinery)
    if found.is_machinery or is_exchange(found.family):
        return found
    money.setdefault(funder_id, []).append(Money("funded_by", found.family))
    for one in given:
        apart_s = None if funded_s is None else abs(one.funded_s - funded_s)
        money.setdefault(one.wallet_id, []).append(Money("same_funder", found.family, apart_s))
    return found


async def _best_candidates(
    connection: asyncpg.Connection,
    money: Mapping[int, list[Money]],
    same: Mapping[int, SameTokens],
    beside: Mapping[int, LinkedPeer],
    never: Iterable[Address],
) -> tuple[Candidate, ...]:
    """The best of them, with the funder and without; exchanges and ``never`` left out."""
    known = await addresses.addresses_of(connection, money.keys() | same.keys())
    left_out = set(never)
    found = {
        wallet_id: Candidate(
            address,
            tuple(money.get(wallet_id, ())),
            same.get(wallet_id),
            beside[wallet_id].tokens if wallet_id in beside else (),
        )
        for wallet_id, address in known.items()
        if address not in left_out
    }
    best: dict[int, Candidate] = {}
    for by_funder in (True, False):
        scored = [(one.score(by_funder), one.address, wallet_id) for wallet_id, one in found.items()]
        ranked = sorted((one for one in scored if one[0]), key=lambda one: (-one[0], one[1]))
        best |= {wallet_id: found[wallet_id] for *_, wallet_id in ranked[:MOST_WEIGHED]}
    crowds = await linked.families(connection, best)
    return tuple(one for wallet_id, one in best.items() if not is_exchange(crowds[wallet_id]))


async def _contracts(ctx: Context, gathered: LinkedRecord) -> dict[Address, bool | None]:
    """Which of all that are spoken of are contracts, at the head. Raises NodeFault where that is not known
    of the wallet or its funder."""
    sure = [gathered.wallet, *([gathered.funder.address] if gathered.funder else [])]
    asked = list(dict.fromkeys([*sure, *(one.address for one in gathered.candidates)]))
    calls = code_calls(asked, ctx.heads.current().block)
    found = read_codes(await ctx.node.batch(calls), asked, ctx.chain_id)
    if any(found[address] is None for address in sure):
        raise NodeFault("it told no code")
    return found
