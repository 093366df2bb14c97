"""Tags of who holds liquidity: the liquidity's own, then what is known of the token's holders."""

import asyncio
from dataclasses import replace
from typing import Any, cast

import pytest

from roundtrip.chain.rpc.client import Meter
from roundtrip.domain.base.errors import CallerFault, NodeFault, ReadFailed, RoundtripError, ServiceFull
from roundtrip.domain.base.types import BURN_ADDRESS, Address, BlockRef
from roundtrip.domain.holders.findings import KnownWallet
from roundtrip.domain.liquidity.depth import PoolPositions, Position, TokenPositions
from roundtrip.services.holder_record.findings import HolderRecord, tag_accounts
from roundtrip.services.liquidity import holder_tags
from roundtrip.services.liquidity.holder_tags import holders_to_tag, join_tags, read_holders
from roundtrip.services.liquidity.sentence import Tags
from roundtrip.services.runtime.context import Context
from unit.domain.holding import AT_S, DEPLOYER, TOKEN
from unit.services.holding import FUNDER, UNIT, A, B, D, E, gathered, the_told
from unit.venues.network import CONTRACTS, address

LOCKER = address(0x55)
NETWORK = replace(CONTRACTS, beside=(LOCKER,))
CTX = cast(Context, None)
OLD = KnownWallet(AT_S - 30 * 86_400, None, funder_known=True, is_contract=False)


def known(wallets: dict[Address, KnownWallet], **changes: Any) -> HolderRecord:
    """A whole record of which these wallets were traced."""
    inputs = the_told()
    return gathered(inputs=replace(inputs, wallets={**inputs.wallets, **wallets}), **changes)


def test_a_launch_buyer_a_contract_and_a_stranger() -> None:
    record = known({A: replace(the_told().wallets[A], is_contract=False), E: OLD})
    assert tag_accounts(record, (A, E)) == ({A: ("sniper", "bundle", "fresh", "winner")}, True)
    # Of the contract nobody knows who sent it the first eth.
    assert tag_accounts(record, (D, E)) == ({D: ("contract",)}, False)


@pytest.mark.parametrize(
    ("wallet", "changes"),
    [
        (B, {"inputs": None}),
        (E, {}),
        (B, {"status": "partial", "why": ("capped",)}),
        (B, {"launch": None}),
        (B, {"winners": None}),
        (B, {"unsure_maker": the_told().maker}),
    ],
)
def test_what_could_not_be_found_out_is_told(wallet: Address, changes: dict[str, Any]) -> None:
    whole = known({B: replace(OLD, funder=FUNDER)})
    assert tag_accounts(whole, (B,))[1]
    assert not tag_accounts(replace(whole, **changes), (wallet,))[1]


def test_a_buyer_of_unknown_age_may_be_fresh() -> None:
    assert not tag_accounts(known({B: replace(OLD, first_s=None)}), (B,))[1]
    # One that never bought cannot be.
    assert tag_accounts(known({E: replace(OLD, first_s=None)}), (E,))[1]


def test_the_liquiditys_own_tags_come_first_and_each_is_there_once() -> None:
    own: Tags = {DEPLOYER: ("deployer", "owner"), E: ("funded_by_owner",)}
    # Who funded the deployer is no matter.
    record = known({DEPLOYER: KnownWallet(AT_S, is_contract=True), E: OLD})
    assert join_tags(own, record, (DEPLOYER, E)) == (
        {DEPLOYER: ("deployer", "owner", "contract"), E: ("funded_by_owner",)},
        True,
    )
    assert join_tags(own, None, (DEPLOYER, E)) == (own, False)
    assert join_tags({}, None, ()) == ({}, True)


def test_nobody_is_tagged_who_keeps_for_nobody() -> None:
    held = [
        Position(address(1), n, -60, 60, 9 * UNIT, holder)
        for n, holder in enumerate((BURN_ADDRESS, LOCKER, None, A, B, A))
    ]
    pool = PoolPositions(cast(Any, None), tuple(held), 0, 0, 0, 9 * UNIT)
    indexed = TokenPositions(BlockRef(1, "0x", 1), (pool,))
    assert holders_to_tag(indexed, NETWORK) == (A, B)
    assert holders_to_tag(None, NETWORK) == ()


@pytest.mark.parametrize(
    "fault",
    [
        NodeFault("down"),
        ReadFailed(NodeFault("down")),
        ServiceFull("busy", "Full.", 5),
        CallerFault("not_a_token", "None."),
        None,
    ],
)
async def test_a_fault_or_a_slow_book_takes_only_the_tags(
    monkeypatch: pytest.MonkeyPatch, fault: RoundtripError | None
) -> None:
    cancelled = []

    async def fail(*_: Any) -> HolderRecord:
        if fault is not None:
            raise fault
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.append(True)
        raise AssertionError

    monkeypatch.setattr(holder_tags, "gather_holders", fail)
    assert await read_holders(CTX, TOKEN, (A,), Meter(), most_s=0.01) is None
    assert cancelled == ([] if fault else [True])


async def test_without_an_account_nothing_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[Address, ...]] = []

    async def note(_: Context, __: Address, ___: Meter, also: tuple[Address, ...]) -> HolderRecord:
        asked.append(also)
        return gathered()

    monkeypatch.setattr(holder_tags, "gather_holders", note)
    assert await read_holders(CTX, TOKEN, (), Meter()) is None
    assert await read_holders(CTX, TOKEN, (A, B), Meter()) == gathered()
    assert asked == [(A, B)]
