"""Finds out what an address is."""

from collections.abc import Sequence
from dataclasses import dataclass

from roundtrip.chain.rpc.client import Meter, RpcCall, hex_bytes
from roundtrip.chain.simulate.block_dependence import DELEGATED
from roundtrip.domain.base.events import PoolPlace
from roundtrip.domain.base.types import BURN_ADDRESS, ZERO_ADDRESS, Address, BlockRef, is_precompile
from roundtrip.domain.liquidity.removals import Removal
from roundtrip.domain.wallets.linked import FirstSeen
from roundtrip.services.lookup.look_up_answer import (
    BY_ADDRESS,
    MAX_REMOVALS,
    LookUpAnswer,
    WalletAnswer,
    answer_pool,
    build_answer,
    count_launches,
    describe_asset,
    describe_launch,
    format_time,
    present_launch,
    read_label,
)
from roundtrip.services.runtime.context import Context
from roundtrip.services.runtime.newest_block import wait_for_index
from roundtrip.services.support.index_reader import present_token, reading, when
from roundtrip.services.support.removals import describe_removal, present_removal
from roundtrip.store.index import addresses, cursor, deployers, origins, tokens
from roundtrip.store.index.deployers import DeployerLaunches
from roundtrip.store.index.tokens import Label
from roundtrip.store.liquidity.removals import read_removals
from roundtrip.store.wallets import look_up
from roundtrip.store.wallets.look_up import LaunchFound
from roundtrip.venues.base import quote_name

from .entities import KnownEntities, build_token_question
from .explain_text import StepsText

_KEYLESS: dict[Address, str] = {
    ZERO_ADDRESS: "It is the zero address, which has no owner: what is sent there is lost.",
    BURN_ADDRESS: "It is a burn address, which has no key: what is sent there is burned.",
}
_REMOVALS_S = 7 * 86_400


@dataclass(frozen=True, slots=True)
class _AddressRecord:
    """What the index knows of an address. ``record``: launches of the deployer of the token (or the pool's
    token); ``own_launches``: launches by the address itself."""

    at: BlockRef
    label: Label | None
    launch: LaunchFound | None
    record: DeployerLaunches
    pool: PoolPlace | None
    pool_label: Label | None
    pool_launch: LaunchFound | None
    origin: FirstSeen | None
    has_traded: bool
    own_launches: DeployerLaunches
    removals: Sequence[Removal]
    """The newest large removals of liquidity from pools of the address as a token."""

    def is_known(self) -> bool:
        """Whether a later block can only add to what it is, and not change it."""
        return self.launch is not None or self.pool is not None or self.has_traded


async def identify_address(ctx: Context, query: str, address: Address, meter: Meter) -> LookUpAnswer:
    """Finds out what the address is. Raises NodeFault or ServiceFull when that cannot be read."""
    # The address may have been launched since the last poll.
    head, limit = (await ctx.heads.read_now()).block, ctx.policy.read_gas_limit
    record = await _read_address(ctx, address)
    if not record.is_known() and record.at.number < head.number:
        await wait_for_index(ctx, head.number)
        record = await _read_address(ctx, address)
    entities = KnownEntities()
    question = build_token_question(address, entities, head, limit)
    code_call = RpcCall("eth_getCode", [address, {"blockHash": head.hash}])
    code_answer, *answers = await ctx.node.batch([code_call, *question.calls], meter)
    code = hex_bytes(code_answer)
    question.read(answers)
    label = record.label if record.label is not None and record.label.decimals is not None else None
    label = label or entities.label(address)
    if record.pool is not None and record.pool_label is not None:
        return answer_pool(
            ctx, record.at, query, record.pool, record.pool_label, record.pool_launch, record.record
        )
    if record.launch is not None:
        return _answer_launch(ctx, query, record, record.launch, label)
    if address in _KEYLESS:
        return build_answer(ctx, record.at, query, "nothing", [_KEYLESS[address]], address)
    if is_precompile(address):
        sentences = [f"{address} is a part of the chain itself (a precompile), not a wallet."]
        return build_answer(ctx, record.at, query, "contract", sentences, address)
    if not code or code.startswith(DELEGATED):
        return _answer_wallet(ctx, query, address, record, bool(code))
    machinery = StepsText(ctx.contracts, KnownEntities()).name_address(address)
    if address in (ctx.contracts.weth, ctx.contracts.usdg):
        sentences = [f"It is {quote_name(address, ctx.contracts)}, money on this chain."]
        return build_answer(ctx, record.at, query, "token", sentences, address, token=present_token(label))
    if machinery != address:
        sentences = [f"It is {machinery}, one of the contracts that this service trusts."]
        return build_answer(ctx, record.at, query, "contract", sentences, address)
    if label.decimals is not None and label.supply_raw is not None:
        sentences = [
            _describe_no_launch(describe_asset(ctx, label), record.at, head),
            BY_ADDRESS,
            _describe_removals(record.removals),
        ]
        return build_answer(
            ctx,
            record.at,
            query,
            "token",
            sentences,
            address,
            token=present_token(label),
            removals=[present_removal(removal) for removal in record.removals],
        )
    sentences = [f"{address} is a contract that we do not know. It does not answer as a token."]
    return build_answer(ctx, record.at, query, "contract", sentences, address)


async def _read_address(ctx: Context, address: Address) -> _AddressRecord:
    async with reading(ctx) as (connection, index_cursor):
        address_id = await addresses.id_of(connection, address)
        ids = [] if address_id is None else [address_id]
        labels = await tokens.labels(connection, ids)
        launch = (await look_up.launches_of(connection, ids)).get(address_id or 0)
        pool = (await cursor.pools_at(connection, [address], cursor.Ids())).get(address)
        pool_label = None if pool is None else await read_label(connection, pool.token)
        pool_launch = None
        if pool is not None:
            pool_id = await addresses.id_of(connection, pool.token) or 0
            pool_launch = (await look_up.launches_of(connection, [pool_id])).get(pool_id)
        origin = await origins.origin(connection, address)
        has_traded = address_id is not None and await look_up.has_traded(connection, address_id)
        named_launch = launch or pool_launch
        deployer_ids = [*ids, *([] if named_launch is None else [named_launch.deployer_id])]
        records = await deployers.records(connection, deployer_ids)
        after_s = index_cursor.block.timestamp_s - _REMOVALS_S
        removals = await read_removals(connection, address, after_s, MAX_REMOVALS) if ids else []
    return _AddressRecord(
        at=index_cursor.block,
        label=labels.get(address_id or 0),
        launch=launch,
        record=deployers.NOTHING if named_launch is None else records[named_launch.deployer_id],
        pool=pool,
        pool_label=pool_label,
        pool_launch=pool_launch,
        origin=origin,
        has_traded=has_traded,
        own_launches=deployers.NOTHING if address_id is None else records[address_id],
        removals=removals,
    )


def _answer_launch(
    ctx: Context, query: str, record: _AddressRecord, launch: LaunchFound, label: Label
) -> LookUpAnswer:
    sentences = [
        f"{describe_asset(ctx, label)} is a token from the launchpad.",
        describe_launch(launch, record.record),
        _describe_removals(record.removals),
    ]
    return build_answer(
        ctx,
        record.at,
        query,
        "token",
        sentences,
        label.address,
        token=present_token(label),
        launch=present_launch(ctx, launch, record.record),
        removals=[present_removal(removal) for removal in record.removals],
    )


def _describe_no_launch(asset: str, indexed: BlockRef, head: BlockRef) -> str:
    """Only an index that has read the whole chain knows that there was no launch."""
    if indexed.number >= head.number:
        return f"{asset} is a token that was not launched on the launchpad."
    read = f"we have read the chain up to block {indexed.number:,}"
    return f"{asset} is a token. We know of no launch of it on the launchpad; {read}."


def _describe_removals(removals: Sequence[Removal]) -> str:
    """The newest removal, and how many there are more; empty: there is none."""
    if not removals:
        return ""
    more = f" It is the newest of {len(removals)} such removals within seven days." if removals[1:] else ""
    return f"Liquidity left {format_time(removals[0].spot.at_s)}: {describe_removal(removals[0])}{more}"


def _answer_wallet(
    ctx: Context, query: str, address: Address, record: _AddressRecord, delegated: bool
) -> LookUpAnswer:
    origin, launches = record.origin, record.own_launches.launches
    sentences = [f"{address} is a wallet: it has no code of its own."]
    if not (delegated or origin or launches or record.has_traded):
        sentences = [
            f"{address} has no code: it is a wallet, or an address that was never used. We know nothing "
            "about it."
        ]
        wallet = WalletAnswer(None, None, False, 0)
        return build_answer(ctx, record.at, query, "wallet", sentences, address, wallet=wallet)
    if delegated:
        sentences = [f"{address} is a wallet that lets a contract act for it."]
    if origin is not None:
        sentences.append(f"It was first seen {format_time(origin.first_s)}.")
    if origin is not None and origin.funder is not None:
        sentences.append(f"Its first eth came from {origin.funder}.")
    sentences.append("It has traded here." if record.has_traded else "We know of no trade by it.")
    if launches:
        sentences.append(
            f"It launched {count_launches(launches)} on curves; {record.own_launches.graduated:,} graduated."
        )
    first_seen, funder = (None, None) if origin is None else (when(origin.first_s), origin.funder)
    wallet = WalletAnswer(first_seen, funder, record.has_traded, launches)
    return build_answer(ctx, record.at, query, "wallet", sentences, address, wallet=wallet)
