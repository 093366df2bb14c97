"""Works out what an address is."""

from dataclasses import dataclass

from roundtrip.chain.rpc.client import Meter, RpcCall, hex_bytes
from roundtrip.chain.simulate.block_dependence import DELEGATED
from roundtrip.domain.base.events import PoolPlace
from roundtrip.domain.base.types import BURN_ADDRESS, ZERO_ADDRESS, Address, BlockRef
from roundtrip.services.lookup.look_up_answer import (
    BY_ADDRESS,
    LookUpAnswer,
    WalletAnswer,
    asset_text,
    count_text,
    label_of,
    launch_part,
    launch_text,
    look_up_answer,
    on_day,
    pool_found,
    quote_of,
)
from roundtrip.services.runtime.context import Context
from roundtrip.services.support.index_reader import present_token, reading, when
from roundtrip.store.index import addresses, cursor, deployers, origins, tokens
from roundtrip.store.index.deployers import DeployerLaunches
from roundtrip.store.index.origins import StoredOrigin
from roundtrip.store.index.tokens import Label
from roundtrip.store.wallets import look_up
from roundtrip.store.wallets.look_up import LaunchFound

from .entities import KnownEntities, token_question
from .explain_text import StepsText

_NOBODYS: dict[Address, str] = {
    ZERO_ADDRESS: "It is the zero address, which is nobody's: what is sent there is lost.",
    BURN_ADDRESS: "It is an address that nobody has the key of: what is sent there is burned.",
}
_LAST_PRECOMPILE = 0xFFFF
"""Of Ethereum the first seventeen and 0x100, of Arbitrum 0x64 and up; nobody has the key of any such."""


@dataclass(frozen=True, slots=True)
class _AddressRecord:
    """What the index has of an address."""

    at: BlockRef
    label: Label | None
    launch: LaunchFound | None
    record: DeployerLaunches
    pool: PoolPlace | None
    pool_label: Label | None
    pool_launch: LaunchFound | None
    origin: StoredOrigin | None
    has_traded: bool
    own: DeployerLaunches


async def what_address(ctx: Context, query: str, address: Address, meter: Meter) -> LookUpAnswer:
    """What it is. Raises NodeFault and ServiceFull where that could not be found out."""
    known = await _read_address(ctx, address)
    head, limit = ctx.heads.current().block, ctx.policy.read_gas_limit
    asked = KnownEntities()
    views = token_question(address, asked, head, limit)
    code_call = RpcCall("eth_getCode", [address, {"blockHash": head.hash}])
    code_answer, *answers = await ctx.node.batch([code_call, *views.calls], meter)
    code = hex_bytes(code_answer)
    views.read(answers)
    label = known.label if known.label is not None and known.label.decimals is not None else None
    label = label or asked.label(address)
    if known.pool is not None and known.pool_label is not None:
        return pool_found(ctx, known.at, query, known.pool, known.pool_label, known.pool_launch, known.record)
    if known.launch is not None:
        return _answer_launch(ctx, query, known, known.launch, label)
    if address in _NOBODYS:
        return look_up_answer(ctx, known.at, query, "nothing", [_NOBODYS[address]], address)
    if int(address, 16) <= _LAST_PRECOMPILE:
        said = [f"{address} is a part of the chain itself (a precompile), and nobody's wallet."]
        return look_up_answer(ctx, known.at, query, "contract", said, address)
    if not code or code.startswith(DELEGATED):
        return _wallet(ctx, query, address, known, bool(code))
    machinery = StepsText(ctx.contracts, KnownEntities()).who(address)
    if address in (ctx.contracts.weth, ctx.contracts.usdg):
        said = [f"It is {quote_of(ctx.contracts, address)}, money on this chain."]
        return look_up_answer(ctx, known.at, query, "token", said, address, token=present_token(label))
    if machinery != address:
        said = [f"It is {machinery}, one of the contracts that this service trusts."]
        return look_up_answer(ctx, known.at, query, "contract", said, address)
    if label.decimals is not None and label.supply_raw is not None:
        said = [f"{asset_text(ctx, label)} is a token that was not launched on the launchpad.", BY_ADDRESS]
        return look_up_answer(ctx, known.at, query, "token", said, address, token=present_token(label))
    said = [f"{address} is a contract that we do not know, and no token."]
    return look_up_answer(ctx, known.at, query, "contract", said, address)


async def _read_address(ctx: Context, address: Address) -> _AddressRecord:
    async with reading(ctx) as (connection, stands):
        own_id = await addresses.id_of(connection, address)
        ids = [] if own_id is None else [own_id]
        labels = await tokens.labels(connection, ids)
        launch = (await look_up.launches_of(connection, ids)).get(own_id or 0)
        pool = (await cursor.pools_at(connection, [address], cursor.Ids())).get(address)
        pool_label = None if pool is None else await label_of(connection, pool.token)
        pool_launch = None
        if pool is not None:
            pool_id = await addresses.id_of(connection, pool.token) or 0
            pool_launch = (await look_up.launches_of(connection, [pool_id])).get(pool_id)
        origin = await origins.origin(connection, address)
        has_traded = own_id is not None and await look_up.has_traded(connection, own_id)
        behind = launch or pool_launch
        deploying = [*ids, *([] if behind is None else [behind.deployer_id])]
        records = await deployers.records(connection, deploying)
    return _AddressRecord(
        at=stands.block,
        label=labels.get(own_id or 0),
        launch=launch,
        record=deployers.NOTHING if behind is None else records[behind.deployer_id],
        pool=pool,
        pool_label=pool_label,
        pool_launch=pool_launch,
        origin=origin,
        has_traded=has_traded,
        own=deployers.NOTHING if own_id is None else records[own_id],
    )


def _answer_launch(
    ctx: Context, query: str, known: _AddressRecord, launch: LaunchFound, label: Label
) -> LookUpAnswer:
    said = [f"{asset_text(ctx, label)} is a token from the launchpad.", launch_text(launch, known.record)]
    return look_up_answer(
        ctx,
        known.at,
        query,
        "token",
        said,
        label.address,
        token=present_token(label),
        launch=launch_part(ctx, launch, known.record),
    )


def _wallet(
    ctx: Context, query: str, address: Address, known: _AddressRecord, delegated: bool
) -> LookUpAnswer:
    found, launches = known.origin, known.own.launches
    said = [f"{address} is a wallet: it has no code of its own."]
    if not (delegated or found or launches or known.has_traded):
        said = [
            f"{address} has no code: it is a wallet, or an address nobody has used. Nothing is known of it."
        ]
        wallet = WalletAnswer(None, None, False, 0)
        return look_up_answer(ctx, known.at, query, "wallet", said, address, wallet=wallet)
    if delegated:
        said = [f"{address} is a wallet that lets a contract act for it."]
    if found is not None:
        said.append(f"It was first seen {on_day(found.first_s)}.")
    if found is not None and found.funder is not None:
        said.append(f"{found.funder} first sent it eth.")
    said.append("It has traded here." if known.has_traded else "It has not traded, as far as is known.")
    if launches:
        said.append(
            f"It launched {count_text(launches, 'token')} onto curves; {known.own.graduated:,} graduated."
        )
    first, funder = (None, None) if found is None else (when(found.first_s), found.funder)
    wallet = WalletAnswer(first, funder, known.has_traded, launches)
    return look_up_answer(ctx, known.at, query, "wallet", said, address, wallet=wallet)
