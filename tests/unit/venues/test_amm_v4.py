"""Plans for v4 pools, decoded with an independent library field by field."""

from typing import Any

import pytest
from eth_abi.abi import decode

from roundtrip.domain.base.types import ZERO_ADDRESS, Address
from roundtrip.domain.base.venue import PoolFacts, Venue
from roundtrip.venues import amm_v4
from roundtrip.venues.base import Call
from unit.venues.network import CONTRACTS

LOW, HIGH = Address("0x" + "01" * 20), Address("0x" + "fe" * 20)
SELLER = Address("0x" + "5e" * 20)
KEY = "(address,address,uint24,int24,address)"
OLD_SWAP = f"({KEY},bool,uint128,uint128,bytes)"
SWAP = f"({KEY},bool,uint128,uint128,uint256,bytes)"


def venue(quote: str, token: Address = LOW) -> Venue:
    found = (v for v in amm_v4.candidates(token, CONTRACTS) if v.quote == quote and v.fee_pips == 3000)
    return next(found)


def executed(call: Call, deadline_s: int = amm_v4.FAR_DEADLINE_S) -> list[tuple[int, bytes]]:
    """Commands and inputs of a router call."""
    assert call.to == CONTRACTS.universal_router
    assert call.data.startswith(amm_v4.EXECUTE)
    commands, inputs, deadline = decode(["bytes", "bytes[]", "uint256"], bytes.fromhex(call.data[10:]))
    assert deadline == deadline_s
    return list(zip(commands, inputs, strict=True))


def actions(data: bytes) -> list[tuple[int, bytes]]:
    codes, parameters = decode(["bytes", "bytes[]"], data)
    return list(zip(codes, parameters, strict=True))


def swap(parameters: bytes) -> tuple[Any, ...]:
    (found,) = decode([SWAP], parameters)
    # A router that does not know the bound on a hop's price reads the same trade.
    (old,) = decode([OLD_SWAP], parameters)
    assert old == (*found[:4], b"")
    return tuple(found)


def test_a_pool_id_of_the_real_chain() -> None:
    """A pool of the launchpad, as public logs show it."""
    token = Address("0xc9e9ab90654f82893d7fd18b62f694992e8cef29")
    quote = Address("0xd0601ce157db5bdc3162bbac2a2c8af5320d9eec")
    hook = Address("0xe5e702641ea86f4ae6cc3cdaed2b886f976be044")
    found = amm_v4.pool("launchpad_pool", token, quote, quote, 0, 200, hook)
    assert found.pool_id == "0x6eb457f0729bd458608099505990f03d8a6af91202f936124f72ad76c96f6fe1"


def test_candidates_are_every_usual_fee_against_each_money_side() -> None:
    found = amm_v4.candidates(LOW, CONTRACTS)
    assert len(found) == len({v.pool_id for v in found}) == 12
    assert {v.quote for v in found} == {"eth", "weth", "usdg"}
    assert len(amm_v4.candidates(CONTRACTS.weth, CONTRACTS)) == 8


@pytest.mark.parametrize("token", [LOW, HIGH])
def test_a_buy_with_eth(token: Address) -> None:
    (call,) = amm_v4.plan_buy(venue("eth", token), token, CONTRACTS, 10**17, SELLER)
    assert call.value_wei == 10**17
    (command, body), (sweep, rest) = executed(call)
    assert (command, sweep) == (0x10, 0x04)
    assert decode(["address", "address", "uint256"], rest) == (ZERO_ADDRESS, amm_v4.CALLER, 0)
    (first, traded), (second, settled), (third, taken) = actions(body)
    assert (first, second, third) == (0x06, 0x0C, 0x0F)
    assert swap(traded) == ((ZERO_ADDRESS, token, 3000, 60, ZERO_ADDRESS), True, 10**17, 0, 0x140, b"")
    assert decode(["address", "uint256"], settled) == (ZERO_ADDRESS, 10**17)
    assert decode(["address", "uint256"], taken) == (token, 0)


def test_a_buy_with_weth_wraps_and_unwraps_the_rest() -> None:
    (call,) = amm_v4.plan_buy(venue("weth"), LOW, CONTRACTS, 7, SELLER)
    (wrap, wrapped), (_, body), (unwrap, unwrapped) = executed(call)
    assert (wrap, unwrap, call.value_wei) == (0x0B, 0x0C, 7)
    assert decode(["address", "uint256"], wrapped) == (amm_v4.ROUTER_ITSELF, 7)
    assert decode(["address", "uint256"], unwrapped) == (amm_v4.CALLER, 0)
    (_, traded), (settle, settled), _ = actions(body)
    assert (settle, decode(["address", "uint256", "bool"], settled)) == (0x0B, (CONTRACTS.weth, 0, False))
    assert swap(traded)[1] is (CONTRACTS.weth < LOW)


@pytest.mark.parametrize("token", [LOW, HIGH])
def test_a_buy_with_usdg_allows_exactly_that(token: Address) -> None:
    approve, permit, call = amm_v4.plan_buy(venue("usdg", token), token, CONTRACTS, 350, SELLER)
    assert (approve.to, permit.to, call.value_wei) == (CONTRACTS.usdg, CONTRACTS.permit2, 0)
    assert decode(["address", "uint256"], bytes.fromhex(approve.data[10:])) == (CONTRACTS.permit2, 350)
    allowed = decode(["address", "address", "uint160", "uint48"], bytes.fromhex(permit.data[10:]))
    assert allowed == (CONTRACTS.usdg, CONTRACTS.universal_router, 350, amm_v4.FAR_DEADLINE_S)
    ((_, body),) = executed(call)
    assert swap(actions(body)[0][1])[1] is (CONTRACTS.usdg < token)


@pytest.mark.parametrize("quote", ["eth", "weth", "usdg"])
@pytest.mark.parametrize("token", [LOW, HIGH])
def test_a_sell_pays_in_before_it_swaps(quote: str, token: Address) -> None:
    traded = venue(quote, token)
    approve, permit, call = amm_v4.plan_sell(traded, token, CONTRACTS, 10**24, SELLER)
    assert (approve.to, permit.to) == (token, CONTRACTS.permit2)
    assert decode(["address", "uint256"], bytes.fromhex(approve.data[10:])) == (CONTRACTS.permit2, 10**24)
    commands = executed(call)
    assert [code for code, _ in commands] == ([0x10, 0x0C] if quote == "weth" else [0x10])
    (first, settled), (second, swapped), (third, taken) = actions(commands[0][1])
    assert (first, second) == (0x0B, 0x06)
    assert decode(["address", "uint256", "bool"], settled) == (token, 10**24, True)
    found = swap(swapped)
    assert found[1] is (token < traded.quote_address)
    assert found[2:] == (0, 0, 0x140, b"")
    if quote == "weth":
        assert (third, decode(["address", "address", "uint256"], taken)) == (
            0x0E,
            (CONTRACTS.weth, amm_v4.ROUTER_ITSELF, 0),
        )
    else:
        assert (third, decode(["address", "uint256"], taken)) == (0x0F, (traded.quote_address, 0))


def test_the_moves_behind_a_trade() -> None:
    payer, paid = amm_v4.plan_pay_out(venue("eth"), LOW, CONTRACTS, SELLER)
    assert payer == CONTRACTS.v4_pool_manager
    assert decode(["address", "uint256"], bytes.fromhex(paid.data[10:])) == (SELLER, 1)
    puller, pull = amm_v4.plan_pull(venue("eth"), LOW, CONTRACTS, 9, SELLER)
    assert puller == CONTRACTS.permit2
    moved = decode(["address", "address", "uint256"], bytes.fromhex(pull.data[10:]))
    assert moved == (SELLER, CONTRACTS.v4_pool_manager, 9)


def test_facts_of_a_pool_and_of_none() -> None:
    def answer(value: int) -> bytes:
        return value.to_bytes(32, "big")

    for token, quote_is_high in ((Address("0x" + "00" * 19 + "01"), True), (HIGH, False)):
        traded = venue("usdg", token)
        assert (token < CONTRACTS.usdg) is quote_is_high
        found = amm_v4.read_facts(traded, token, (answer(2**97), answer(10**12)))
        reserve = 2 * 10**12 if quote_is_high else 10**12 // 2
        assert found == PoolFacts(True, 2**97, 10**12, reserve)
    none = PoolFacts(False, 0, 0, 0)
    assert amm_v4.read_facts(venue("eth"), LOW, (answer(0), answer(0))) == none
    assert amm_v4.read_facts(venue("eth"), LOW, (None, None)) == none
    assert amm_v4.read_facts(venue("eth"), LOW, (b"\x01", b"")) == none
