"""Words and selectors, against eth_abi and eth_utils, which know nothing of this package."""

import re
import subprocess
import sys
from types import ModuleType

import pytest
from eth_abi.abi import encode
from eth_utils.crypto import keccak as other_keccak
from hypothesis import given
from hypothesis import strategies as st

from roundtrip.chain.blocks import heads
from roundtrip.chain.simulate import legs, rates, token_facts
from roundtrip.chain.wallet import event_hints
from roundtrip.domain.base.types import Address
from roundtrip.venues import (
    DECODERS,
    abi,
    amm_v3,
    amm_v4,
    entry_point,
    erc20,
    launchpad,
    launchpad_curve,
    launchpad_v1,
    permit2,
)

SIGNATURES: dict[str, tuple[ModuleType, str]] = {
    "approve(address,uint256)": (erc20, "APPROVE"),
    "transfer(address,uint256)": (erc20, "TRANSFER"),
    "transferFrom(address,address,uint256)": (erc20, "TRANSFER_FROM"),
    "balanceOf(address)": (erc20, "BALANCE_OF"),
    "allowance(address,address)": (erc20, "ALLOWANCE"),
    "symbol()": (erc20, "SYMBOL"),
    "name()": (erc20, "NAME"),
    "totalSupply()": (erc20, "TOTAL_SUPPLY"),
    "isApprovedForAll(address,address)": (erc20, "IS_APPROVED_FOR_ALL"),
    "setApprovalForAll(address,bool)": (erc20, "SET_APPROVAL_FOR_ALL"),
    "getApproved(uint256)": (erc20, "GET_APPROVED"),
    "isOperator(address,address)": (erc20, "IS_OPERATOR"),
    "allowance(address,address,uint256)": (erc20, "CLAIM_ALLOWANCE"),
    "setOperator(address,bool)": (erc20, "SET_OPERATOR"),
    "graduate(address)": (launchpad, "GRADUATE"),
    "createGraduatedPool(address)": (launchpad, "CREATE_GRADUATED_POOL"),
    "exactInputSingle((address,address,uint24,address,uint256,uint256,uint160))": (
        amm_v3,
        "EXACT_INPUT_SINGLE",
    ),
    "getChainId()": (token_facts, "GET_CHAIN_ID"),
    "exactOutput((bytes,address,uint256,uint256))": (amm_v3, "EXACT_OUTPUT"),
    "multicall(bytes[])": (amm_v3, "MULTICALL"),
    "multicall(uint256,bytes[])": (amm_v3, "MULTICALL_BY"),
    "refundETH()": (amm_v3, "REFUND_ETH"),
    "unwrapWETH9(uint256,address)": (amm_v3, "UNWRAP_WETH9"),
    "slot0()": (amm_v3, "SLOT0"),
    "liquidity()": (amm_v3, "LIQUIDITY"),
    "token0()": (amm_v3, "TOKEN0"),
    "token1()": (amm_v3, "TOKEN1"),
    "fee()": (amm_v3, "FEE"),
    "quoteExactInputSingle((address,address,uint256,uint24,uint160))": (amm_v3, "QUOTE_EXACT_INPUT_SINGLE"),
    "execute(bytes,bytes[],uint256)": (amm_v4, "EXECUTE"),
    "poolKeys(bytes25)": (amm_v4, "POOL_KEYS"),
    "approve(address,address,uint160,uint48)": (permit2, "APPROVE"),
    "getSlot0(bytes32)": (amm_v4, "GET_SLOT0"),
    "getLiquidity(bytes32)": (amm_v4, "GET_LIQUIDITY"),
    "quoteExactInputSingle(((address,address,uint24,int24,address),bool,uint128,bytes))": (
        amm_v4,
        "QUOTE_EXACT_INPUT_SINGLE",
    ),
    "allowance(address,address,address)": (permit2, "ALLOWANCE"),
    "getLaunchedToken(address)": (launchpad, "GET_LAUNCHED_TOKEN"),
    "hookFeeBps()": (launchpad, "HOOK_FEE_BPS"),
    "buy(uint256,uint256,address)": (launchpad_curve, "BUY"),
    "sell(uint256,uint256,address)": (launchpad_curve, "SELL"),
    "getReserves()": (launchpad_curve, "GET_RESERVES"),
    "realQuoteReserve()": (launchpad_curve, "REAL_QUOTE_RESERVE"),
    "reservedTokens()": (launchpad_curve, "RESERVED_TOKENS"),
    "feeBps()": (launchpad_curve, "FEE_BPS"),
    "creatorTaxBps()": (launchpad_curve, "CREATOR_TAX_BPS"),
    "readyToGraduate()": (launchpad_curve, "READY_TO_GRADUATE"),
    "graduated()": (launchpad_curve, "GRADUATED"),
    "launchedAt()": (launchpad_curve, "LAUNCHED_AT"),
    "snipeTaxSeconds()": (launchpad_curve, "SNIPE_TAX_SECONDS"),
    "currentSnipeTaxBps(address)": (launchpad_curve, "CURRENT_SNIPE_TAX_BPS"),
    "decimals()": (erc20, "DECIMALS"),
    "latestRoundData()": (heads, "LATEST_ROUND_DATA"),
    "getEthBalance(address)": (legs, "GET_ETH_BALANCE"),
}
"""Signatures as the contracts declare them, and the constant each stands in."""

EVENTS: dict[str, tuple[ModuleType, str]] = {
    "PoolCreated(address,address,uint24,int24,address)": (amm_v3, "POOL_CREATED"),
    "Initialize(bytes32,address,address,uint24,int24,address,uint160,int24)": (amm_v4, "INITIALIZE"),
    "TokenLaunched(address,address,address,address,uint256,uint256)": (launchpad_curve, "TOKEN_LAUNCHED"),
    "Initialize(uint160,int24)": (amm_v3, "INITIALIZE"),
    "Swap(address,address,int256,int256,uint160,uint128,int24)": (amm_v3, "SWAP"),
    "Mint(address,address,int24,int24,uint128,uint256,uint256)": (amm_v3, "MINT"),
    "Burn(address,int24,int24,uint128,uint256,uint256)": (amm_v3, "BURN"),
    "Swap(bytes32,address,int128,int128,uint160,uint128,int24,uint24)": (amm_v4, "SWAP"),
    "ModifyLiquidity(bytes32,address,int24,int24,int256,bytes32)": (amm_v4, "MODIFY_LIQUIDITY"),
    "CurveBuy(address,address,uint256,uint256,uint256,uint256)": (launchpad_curve, "CURVE_BUY"),
    "CurveSell(address,address,uint256,uint256,uint256,uint256)": (launchpad_curve, "CURVE_SELL"),
    "BuybackLocked(uint256,uint256)": (launchpad_curve, "BUYBACK_LOCKED"),
    "LaunchSwept(address,uint256,uint256)": (launchpad, "LAUNCH_SWEPT"),
    "PoolGraduated(address,uint256,uint256,uint256)": (launchpad, "POOL_GRADUATED"),
    "LaunchForceSwept(address)": (launchpad, "LAUNCH_FORCE_SWEPT"),
    "HookFeeCollected(bytes32,address,uint256,uint256)": (launchpad, "HOOK_FEE_COLLECTED"),
    "TokenLaunched(address,address,address,address,address,uint256,uint256,uint256,uint256,uint256)": (
        launchpad_v1,
        "TOKEN_LAUNCHED",
    ),
    "BeforeExecution()": (entry_point, "BEFORE_EXECUTION"),
    "SignatureAggregatorChanged(address)": (entry_point, "SIGNATURE_AGGREGATOR_CHANGED"),
    "UserOperationEvent(bytes32,address,address,uint256,bool,uint256,uint256)": (
        entry_point,
        "USER_OPERATION_EVENT",
    ),
    "IncreaseLiquidity(uint256,uint128,uint256,uint256)": (amm_v3, "INCREASE_LIQUIDITY"),
    "DecreaseLiquidity(uint256,uint128,uint256,uint256)": (amm_v3, "DECREASE_LIQUIDITY"),
    "Transfer(address,address,uint256)": (erc20, "TRANSFER_TOPIC"),
    "Approval(address,address,uint256)": (event_hints, "APPROVAL"),
    "ApprovalForAll(address,address,bool)": (event_hints, "APPROVAL_FOR_ALL"),
    "OperatorSet(address,address,bool)": (event_hints, "OPERATOR_SET"),
    "Transfer(address,address,address,uint256,uint256)": (event_hints, "CLAIM_TRANSFER"),
    "Approval(address,address,uint256,uint256)": (event_hints, "CLAIM_APPROVAL"),
    "TransferSingle(address,address,address,uint256,uint256)": (event_hints, "TRANSFER_SINGLE"),
    "TransferBatch(address,address,address,uint256[],uint256[])": (event_hints, "TRANSFER_BATCH"),
    "Approval(address,address,address,uint160,uint48)": (event_hints, "PERMIT2_APPROVAL"),
    "Permit(address,address,address,uint160,uint48,uint48)": (event_hints, "PERMIT2_PERMIT"),
}
"""Events as the contracts declare them, and the constant their topic stands in."""

MODULES = (amm_v3, amm_v4, erc20, token_facts, heads, launchpad, launchpad_curve, legs, permit2, rates)

VIEWS = ("name()", "symbol()", "decimals()", "totalSupply()", "owner()", "getOwner()")

words = st.integers(0, 2**256 - 1)
addresses = st.integers(0, 2**160 - 1).map(lambda n: Address(f"0x{n:040x}"))


def selector_of(signature: str) -> str:
    return "0x" + other_keccak(text=signature)[:4].hex()


@pytest.mark.parametrize("signature", SIGNATURES)
def test_a_selector_constant_is_the_hash_of_its_signature(signature: str) -> None:
    module, name = SIGNATURES[signature]
    assert getattr(module, name) == selector_of(signature)
    assert abi.selector(signature) == selector_of(signature)


def test_the_tokens_views_are_asked_by_the_hash_of_their_names() -> None:
    assert [f"{name}()" for name, _ in token_facts._VIEWS] == list(VIEWS)
    assert [head for _, head in token_facts._VIEWS] == [selector_of(signature) for signature in VIEWS]


@pytest.mark.parametrize("signature", EVENTS)
def test_a_topic_constant_is_the_hash_of_its_event(signature: str) -> None:
    module, name = EVENTS[signature]
    assert getattr(module, name) == "0x" + other_keccak(text=signature).hex()


@pytest.mark.parametrize("module", MODULES, ids=lambda m: m.__name__)
def test_every_selector_constant_has_its_signature_here(module: ModuleType) -> None:
    found = {
        name
        for name, value in vars(module).items()
        if isinstance(value, str) and re.fullmatch("0x[0-9a-f]{8}", value)
    }
    known = {name for of, name in SIGNATURES.values() if of is module}
    assert found == known


@pytest.mark.parametrize("module", DECODERS, ids=lambda m: m.__name__)
def test_every_topic_constant_has_its_event_here(module: ModuleType) -> None:
    found = {
        name
        for name, value in vars(module).items()
        if isinstance(value, str) and re.fullmatch("0x[0-9a-f]{64}", value)
    }
    assert found == {name for of, name in EVENTS.values() if of is module}


def test_the_proxy_admin_slot_is_the_one_of_eip_1967() -> None:
    slot = int.from_bytes(other_keccak(text="eip1967.proxy.admin"), "big") - 1
    assert f"0x{slot:064x}" == token_facts.PROXY_ADMIN_SLOT


@pytest.mark.parametrize(
    ("data", "digest"),
    [
        (b"", "c5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470"),
        (b"abc", "4e03657aea45a94fc7d47ba826c8d667c0d1e6e33a64a036ec44f58fa12d6c45"),
        (b"hello", "1c8aff950685c2ed4bc3174f3472287b56d9517b9c948127319a09a7a36deac8"),
    ],
)
def test_keccak_is_ethereums_and_not_the_one_of_nist(data: bytes, digest: str) -> None:
    assert abi.keccak(data).hex() == digest


@given(st.binary(max_size=300))
def test_keccak_agrees_with_another_implementation(data: bytes) -> None:
    assert abi.keccak(data) == other_keccak(data)


@pytest.mark.parametrize("module", ["roundtrip.venues.abi", "roundtrip_verify.abi"])
def test_keccak_is_the_same_where_the_fast_package_is_missing(module: str) -> None:
    program = (
        f"import sys; sys.modules['sha3'] = None; import {module} as abi; print(abi.keccak(b'abc').hex())"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == abi.keccak(b"abc").hex()


@given(addresses, words, st.integers(-(2**255), 2**255 - 1), st.booleans())
def test_a_call_is_encoded_as_eth_abi_does(to: Address, amount: int, signed: int, flag: bool) -> None:
    expected = encode(["address", "uint256", "int256", "bool"], [to, amount, signed, flag])
    assert abi.call("0x12345678", to, amount, signed, flag) == "0x12345678" + expected.hex()


@given(addresses)
def test_an_address_in_capitals_is_the_same_argument(to: Address) -> None:
    assert abi.call("0x", "0x" + to[2:].upper()) == abi.call("0x", to)


@given(st.lists(st.binary(max_size=100), max_size=6))
def test_an_array_of_bytes_is_encoded_as_eth_abi_does(items: list[bytes]) -> None:
    found = abi.word(32) + abi.bytes_array(["0x" + item.hex() for item in items])
    assert found == encode(["bytes[]"], [items]).hex()


@given(st.lists(words, max_size=5), st.binary(max_size=31), st.integers(0, 7))
def test_an_integer_is_read_only_from_a_whole_word(values: list[int], rest: bytes, index: int) -> None:
    data = encode(["uint256"] * len(values), values) + rest
    assert abi.uint_at(data, index) == (values[index] if index < len(values) else None)


@given(st.integers(1, 32).map(lambda size: 8 * size), st.integers(-(2**255), 2**255 - 1), words)
def test_an_integer_is_read_only_where_it_fits_its_width(bits: int, signed: int, value: int) -> None:
    data = encode(["int256", "uint256"], [signed, value])
    topics = tuple("0x" + data[at : at + 32].hex() for at in (0, 32))
    fits = -(2 ** (bits - 1)) <= signed < 2 ** (bits - 1)
    assert abi.int_at(data, 0, bits) == abi.topic_int(topics, 0, bits) == (signed if fits else None)
    expected = value if value < 2**bits else None
    assert abi.uint_at(data, 1, bits) == abi.topic_uint(topics, 1, bits) == expected
    assert abi.int_at(data[:31], 0, bits) is None
    assert abi.topic_int(topics, 2, bits) is abi.topic_uint(topics, 2, bits) is None


@pytest.mark.parametrize("bits", [8, 24, 128, 256])
def test_a_width_holds_its_bounds_and_no_more(bits: int) -> None:
    most, least = 2 ** (bits - 1) - 1, -(2 ** (bits - 1))
    assert [abi.fits(value, bits) for value in (least - 1, least, -1, 0, most, most + 1)] == [
        False, True, True, True, True, False,
    ]  # fmt: skip
    if bits < 256:
        data = encode(["int256"] * 2 + ["uint256"] * 2, [most, most + 1, 2**bits - 1, 2**bits])
        assert [abi.int_at(data, index, bits) for index in (0, 1)] == [most, None]
        assert [abi.uint_at(data, index, bits) for index in (2, 3)] == [2**bits - 1, None]


@given(words)
def test_an_address_in_a_topic_is_read_alike_in_both_ways(value: int) -> None:
    for one in (value, value >> 96, value >> 95):
        topic = f"0x{one:064x}"
        assert abi.address_in(topic) == abi.topic_address((topic,), 0)


@given(words, words)
def test_an_address_is_read_only_where_nothing_else_stands(value: int, other: int) -> None:
    data = encode(["uint256", "uint256"], [other, value])
    assert abi.address_at(data, 1) == (f"0x{value:040x}" if value < 2**160 else None)
    assert abi.address_at(data, 2) is None


@pytest.mark.parametrize(("value", "fits"), [(2**160 - 1, True), (2**160, False), (2**256 - 1, False)])
def test_twenty_bytes_are_an_address_and_one_bit_more_is_none(value: int, fits: bool) -> None:
    assert (abi.address_at(encode(["uint256"], [value]), 0) is not None) is fits


@given(addresses)
def test_an_address_comes_back_as_it_went(of: Address) -> None:
    assert abi.address_at(encode(["address"], [of]), 0) == of
    assert abi.address_at(encode(["address"], [of])[:31], 0) is None
