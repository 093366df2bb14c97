"""The functions that a contract's owner may call, read from bytecode alone."""

import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from vyper.compiler import compile_from_file_input
from vyper.compiler.input_bundle import FilesystemInputBundle

from roundtrip.chain.code_paths import changing
from roundtrip.chain.known_setters import HOLDERS, KNOWN, UPGRADES
from roundtrip.chain.setters import MOST_READ, Setter, find
from roundtrip.venues.abi import selector
from unit.chain.bytecode import STOP, contract, reads, writes

CONTRACTS = Path(__file__).resolve().parents[3] / "contracts"


def runtime(source: str) -> bytes:
    """What stands on the chain of one of our own contracts, without what its constructor adds."""
    path = CONTRACTS / source
    bundle = FilesystemInputBundle([path.parent])
    told = compile_from_file_input(
        bundle.load_file(path.name), input_bundle=bundle, output_formats=["bytecode_runtime"]
    )
    return bytes.fromhex(told["bytecode_runtime"][2:])


def names(*codes: bytes) -> list[str]:
    return [setter.name for setter in find(*codes).setters]


def one(signature: str) -> Setter:
    (setter,) = find(contract({signature: writes()})).setters
    return setter


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("zoo/pausable_owner.vy", ["setSelling(bool)"]),
        ("zoo/blacklist_admin.vy", ["setBlacklist(address,bool)"]),
        ("tokens/paused.vy", ["pause()", "unpause()"]),
        ("zoo/owner_close.vy", ["closeTrading()", "renounceOwnership()"]),
        ("zoo/owner_unguessable.vy", ["0xd7b492fb(uint256)"]),
        ("zoo/pull_owner.vy", ["seize(address,uint256)"]),
        ("tokens/plain.vy", []),
        ("launchpad/token.vy", []),
    ],
)
def test_a_vyper_contract_is_read_whatever_its_jump_table(source: str, found: list[str]) -> None:
    assert names(runtime(source)) == found


def test_a_solidity_dispatcher_is_read_with_the_types_of_unknown_functions() -> None:
    code = contract(
        {
            "0x10000001": writes("bool"),
            "0x10000002": writes("address", "bool"),
            "0x10000003": writes("uint256", "uint8"),
            "0x10000004": writes(),
            "0x10000005": reads("address"),
        }
    )
    assert names(code) == [
        "0x10000001(bool)", "0x10000002(address,bool)", "0x10000003(uint256,uint8)", "0x10000004()",
    ]  # fmt: skip


def test_what_holders_call_for_themselves_is_not_the_owners() -> None:
    assert HOLDERS.isdisjoint(KNOWN)
    signatures = (
        "approve(address,uint256)",
        "transfer(address,uint256)",
        "transferFrom(address,address,uint256)",
    )
    found = find(contract({signature: writes("address", "uint256") for signature in signatures}))
    assert (found.setters, found.unread) == ((), 0)


def test_the_most_hostile_come_first_whatever_their_place_in_the_code() -> None:
    signatures = (
        "renounceOwnership()", "mint(address,uint256)", "setMaxTx(uint256)", "0x77777777", "pause()",
        "setSellTax(uint256)", "setTradingEnabled(bool)", "setBlacklist(address,bool)",
    )  # fmt: skip
    expected = [
        "setTradingEnabled(bool)", "pause()", "setBlacklist(address,bool)", "setSellTax(uint256)",
        "setMaxTx(uint256)", "0x77777777(uint256)", "mint(address,uint256)", "renounceOwnership()",
    ]  # fmt: skip
    for order in (signatures, signatures[::-1]):
        assert names(contract({name: writes("uint256") for name in order})) == expected


def test_a_proxys_functions_and_its_implementations_are_found_once_each() -> None:
    proxy = contract({"upgradeTo(address)": writes("address"), "setFee(uint256)": writes("uint256")})
    logic = contract({"pause()": writes(), "setFee(uint256)": writes("uint256")})
    assert names(proxy, logic) == ["pause()", "upgradeTo(address)", "setFee(uint256)"]
    assert names(proxy, b"") == ["upgradeTo(address)", "setFee(uint256)"]


def test_an_upgrade_that_is_told_apart_elsewhere_is_found_too() -> None:
    """As transparent proxies of a newer make do: only for the admin, and not among their functions."""
    upgrade = selector("upgradeToAndCall(address,bytes)")
    code = bytes.fromhex("36600957600080fd5b" + "63" + upgrade[2:] + "5000")
    (found,) = find(code).setters
    assert (found.name, found.types) == ("upgradeToAndCall(address,bytes)", ("address", "bytes"))
    assert found.upgrades()
    assert found.selector in UPGRADES


@pytest.mark.parametrize(
    ("signature", "manners"),
    [
        ("pause()", ["bare"]),
        ("setTradingEnabled(bool)", ["off", "on"]),
        ("setPaused(bool)", ["on", "off"]),
        ("setBlacklist(address,bool)", ["on", "off"]),
        ("setWhitelist(address,bool)", ["off", "on"]),
        ("blacklist(address)", ["each", "code"]),
        ("upgradeTo(address)", ["code"]),
        ("setFee(uint256)", ["up", "down", "zero"]),
        ("setMaxTx(uint256)", ["down", "up", "zero"]),
        ("setFees(uint256,uint256)", ["up", "down", "last", "zero"]),
        ("seize(address,uint256)", ["each", "code", "zero"]),
        ("setBots(address[],bool)", ["on", "off"]),
    ],
)
def test_every_function_has_its_most_hostile_manner_first(signature: str, manners: list[str]) -> None:
    assert list(one(signature).manners()) == manners


def test_every_known_function_can_be_called_in_its_own_first_manner() -> None:
    for known in KNOWN.values():
        setter = Setter("0x", known.types(), known.signature, known.first)
        assert setter.manners()[0] == known.first or "code" in setter.manners(), known


def test_of_code_with_very_many_functions_only_known_names_are_read_and_the_rest_is_counted() -> None:
    many = {f"0x{0x20000000 + n:08x}": writes("uint256") for n in range(MOST_READ)}
    assert len(find(contract(many)).setters) == MOST_READ
    found = find(contract({**many, "setFee(uint256)": writes("uint256")}))
    assert [setter.name for setter in found.setters] == ["setFee(uint256)"]
    assert found.unread == MOST_READ


def test_code_beyond_all_bounds_is_not_read_and_that_is_counted() -> None:
    assert find(bytes(2**17 + 1)).unread == 1


@settings(deadline=None, max_examples=200)
@given(st.binary(max_size=600))
def test_no_bytes_break_it(code: bytes) -> None:
    assert all(setter.name for setter in find(code).setters)
    assert changing(code, range(len(code))) <= set(range(len(code)))


@settings(deadline=None, max_examples=100)
@given(st.data())
def test_no_damaged_contract_breaks_it(data: st.DataObject) -> None:
    code = bytearray(contract({"pause()": writes(), "0x10000001": writes("bool"), "name()": reads()}))
    for _ in range(data.draw(st.integers(1, 12))):
        code[data.draw(st.integers(0, len(code) - 1))] = data.draw(st.integers(0, 255))
    known = {known.signature for known in KNOWN.values()}
    for setter in find(bytes(code)).setters:
        assert setter.name in known or setter.name.startswith(setter.selector)


def test_a_hostile_dispatcher_is_read_in_a_bounded_time() -> None:
    """As much code as a chain takes, full of functions that loop. Nothing else runs while it is read."""
    functions = 24_576 // 12
    looping = contract({f"0x{0x30000000 + n:08x}": "" for n in range(functions)})[: 11 * functions + 6]
    body = b"\x5b\x60\x04\x35\x5a\x61" + (len(looping)).to_bytes(2, "big") + b"\x57" + b"\x60\x00\x55\x00"
    few = {
        f"0x{0x40000000 + n:08x}": "6004355a60" + "3f57" + "60006000555b6004355a" for n in range(MOST_READ)
    }
    began_s = time.process_time()
    find(looping + body)
    find(contract(few))
    assert time.process_time() - began_s < 5


def test_what_only_reads_is_told_from_what_writes_through_calls_within() -> None:
    """Two functions share an inner one that returns to whoever called it, as compilers make them."""
    # 0x00: nothing. 0x01 reads, 0x0a calls the inner one at 0x14, which writes and jumps back.
    code = bytearray(0x20)
    code[0x01:0x09] = bytes.fromhex("5b60005460005200")
    code[0x0A:0x11] = bytes.fromhex("5b6011601456") + b"\x00"
    code[0x11:0x13] = bytes.fromhex("5b00")
    code[0x14:0x1B] = bytes.fromhex("5b600160005556")
    assert changing(bytes(code), (0x01, 0x0A, 0x11)) == {0x0A}
    assert STOP == "00"
