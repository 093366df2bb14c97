"""The functions that a contract's owner may call, read from bytecode alone."""

import contextlib
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from vyper.compiler import compile_from_file_input
from vyper.compiler.input_bundle import FilesystemInputBundle

from roundtrip.chain.owner import selectors as functions
from roundtrip.chain.owner.known_setters import HOLDERS, KNOWN, UPGRADES
from roundtrip.chain.owner.owner_setters import OwnerSetters, Setter, find
from roundtrip.chain.owner.state_changing import find_changing
from roundtrip.venues.abi import selector
from unit.chain.bytecode import STOP, contract, reads, writes

CONTRACTS = Path(__file__).resolve().parents[4] / "contracts"


def runtime(source: str) -> bytes:
    """What stands on the chain of one of our own contracts, without what its constructor adds."""
    path = CONTRACTS / source
    bundle = FilesystemInputBundle([path.parent])
    answer = compile_from_file_input(
        bundle.load_file(path.name), input_bundle=bundle, output_formats=["bytecode_runtime"]
    )
    return bytes.fromhex(answer["bytecode_runtime"][2:])


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


def test_a_function_whose_arguments_are_not_told_is_counted_and_a_known_one_is_called_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    code = contract({"0x10000001": writes("bool"), "setFee(uint256)": writes("uint256"), "x()": reads()})
    untold = tuple(replace(one, arguments=None) for one in functions.read(code))
    monkeypatch.setattr(functions, "read", lambda code: untold)
    found = find(code + b"\0")
    assert [setter.name for setter in found.setters] == ["setFee(uint256)"]
    assert found.unread == 1


def test_code_that_makes_its_reader_use_too_much_is_unreadable_or_read_in_part() -> None:
    """As much code as a chain takes, full of functions that loop: the reading ends, not the service. On a
    busy machine its time is over before all of it is read."""
    count = 24_576 // 12
    looping = contract({f"0x{0x30000000 + n:08x}": "" for n in range(count)})[: 11 * count + 6]
    body = b"\x5b\x60\x04\x35\x5a\x61" + len(looping).to_bytes(2, "big") + b"\x57\x60\x00\x55\x00"
    with contextlib.suppress(functions.UnreadableCode, functions.ArgumentsUnread):
        assert len(functions.read(looping + body)) == count


@pytest.mark.parametrize(
    ("program", "selectors"),
    [
        ("", None),
        ("print('x')", None),
        ("import sys; sys.exit(3)", None),
        ("print('[[\"11223344\", 7]]', flush=True); raise MemoryError", ["0x11223344"]),
        ("print('[[\"11223344\", 7]]', flush=True); print('{\"11223344\": \"bo', end='')", ["0x11223344"]),
        ("print('[[\"11223344\", 7]]', flush=True); import signal; signal.pause()", ["0x11223344"]),
        ("import signal; signal.pause()", None),
    ],
)
def test_a_reader_that_dies_has_told_what_it_told(program: str, selectors: list[str] | None) -> None:
    if selectors is None:
        with pytest.raises(functions.UnreadableCode):
            functions.read(b"\0", program, 0.5)
        return
    with pytest.raises(functions.ArgumentsUnread) as short:
        functions.read(b"\0", program, 0.5)
    assert [one.selector for one in short.value.functions] == selectors
    assert all(one.arguments is None for one in short.value.functions)


@pytest.mark.parametrize(
    ("sources", "calls"),
    [
        (["tokens/plain.vy"], False),
        (["zoo/pausable_owner.vy"], False),
        (["rights/controlled.vy"], True),
        (["zoo/transfer_callback.vy"], True),
        (["zoo/proxy.vy"], True),
        (["zoo/proxy.vy", "zoo/owned_implementation.vy"], False),
    ],
)
def test_a_transfer_that_may_call_another_contract_is_known(sources: list[str], calls: bool) -> None:
    """Where no code has a transfer, it is unknown what one does."""
    assert find(*map(runtime, sources)).calls_out is calls


def test_what_was_cut_short_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut short because the machine had much to do, it was kept so for good."""
    code = b"\0cut short once"
    with monkeypatch.context() as busy:
        busy.setattr(functions, "_PROGRAM", "print('[[\"11223344\", 7]]', flush=True)")
        find(code)
    with monkeypatch.context() as idle:
        idle.setattr(functions, "_PROGRAM", "print('[]'); print('{}')")
        assert find(code) == OwnerSetters((), 0, calls_out=True)
        idle.setattr(functions, "_PROGRAM", "")
        assert find(code) == OwnerSetters((), 0, calls_out=True), "what was read in whole is kept"


@settings(deadline=None, max_examples=200)
@given(st.binary(max_size=600))
def test_no_bytes_break_the_walk_through_them(code: bytes) -> None:
    assert find_changing(code, range(len(code))) <= set(range(len(code)))


@settings(deadline=None, max_examples=12)
@given(st.data())
def test_no_damaged_contract_breaks_it(data: st.DataObject) -> None:
    code = bytearray(contract({"pause()": writes(), "0x10000001": writes("bool"), "name()": reads()}))
    for _ in range(data.draw(st.integers(1, 12))):
        code[data.draw(st.integers(0, len(code) - 1))] = data.draw(st.integers(0, 255))
    known = {known.signature for known in KNOWN.values()}
    for setter in find(bytes(code)).setters:
        assert setter.name in known or setter.name.startswith(setter.selector)


def test_what_only_reads_is_told_from_what_writes_through_calls_within() -> None:
    """Two functions share an inner one that returns to whoever called it, as compilers make them."""
    # 0x00: nothing. 0x01 reads, 0x0a calls the inner one at 0x14, which writes and jumps back.
    code = bytearray(0x20)
    code[0x01:0x09] = bytes.fromhex("5b60005460005200")
    code[0x0A:0x11] = bytes.fromhex("5b6011601456") + b"\x00"
    code[0x11:0x13] = bytes.fromhex("5b00")
    code[0x14:0x1B] = bytes.fromhex("5b600160005556")
    assert find_changing(bytes(code), (0x01, 0x0A, 0x11)) == {0x0A}
    assert STOP == "00"


def test_a_jump_into_what_other_code_runs_into_is_followed() -> None:
    """Two branches meet, as after an ``if``: one jumps there, the other one comes to it without a jump."""
    # 0x01 jumps to 0x0b, which writes; 0x06 reads and runs into it.
    code = bytes.fromhex("00 5b600b56 00 5b60005450 5b600160005500")
    assert find_changing(code, (0x01, 0x06)) == {0x01, 0x06}
    # 0x01 jumps behind the instruction that writes.
    code = bytes.fromhex("00 5b600d56 00 5b60018055 0000 5b00")
    assert find_changing(code, (0x01, 0x06)) == {0x06}


@pytest.mark.parametrize(
    ("code", "changing"),
    [
        ("600160005500", {0}),
        # What a PUSH holds is no instruction.
        ("605500", set()),
        # It runs into the last block, whose end is the code's.
        ("60005450 5b6001600055", {0}),
        # The target of a jump may be of three bytes.
        ("62000006 56 00 5b600160005500", {0}),
    ],
)
def test_code_is_read_from_its_first_byte_to_its_last(code: str, changing: set[int]) -> None:
    assert find_changing(bytes.fromhex(code), (0,)) == changing
