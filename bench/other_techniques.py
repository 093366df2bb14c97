"""Other techniques that find out whether a token can be sold, each done as well as possible. They share only
the encoding of trades with us. They get the token's venue as input, which our check has to find.

helper      a contract of our own (peers/round_trip.vy) buys and sells as a wallet would, in one eth_call, at
            the price and with the gas of a real transaction. Once a state override puts its code at the
            calling address, so that the caller is the origin; once it is the constructor of a contract that
            the call creates, so that it has no code while it trades, and another origin.
quoter      the exchange's own quoters: what a buy brings, and what selling that brings. A curve has none.
transfer    eth_call of a transfer of all that a holder has to 0x...dEaD. The holder is a wallet that really
            bought before; if no wallet could, it is the pool, with a thousandth of what it has.
selectors   the token's code holds a function by which an owner can stop sales, by usual names.
"""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec
from eth_abi.abi import encode
from vyper.compiler import compile_from_file_input
from vyper.compiler.input_bundle import FilesystemInputBundle

from roundtrip.chain.rpc.client import REVERTED, Meter, RpcCall, RpcError, RpcNode
from roundtrip.domain.base.types import ZERO_ADDRESS, Address
from roundtrip.domain.base.venue import Venue
from roundtrip.venues import BY_KIND, abi, amm_v3, amm_v4, erc20
from roundtrip.venues.abi import selector
from roundtrip.venues.base import Call, Contracts

from .zoo import Case, amount_raw
from .zoo_truth import BPS, DANGER_BPS, WARN_BPS

Level = Literal["ok", "warn", "danger", "unknown"]
HELPER = Path(__file__).with_name("peers") / "round_trip.vy"
_GAS, _GAS_PRICE_WEI = 2**24, 20 * 10**9
"""As much as a transaction may take, at what the local chain's own transactions offer."""
_RICH_WEI, _VALUE_WEI = 100 * 10**18, 10 * 10**18
_CALLER = Address("0x" + abi.keccak(b"a helper's caller")[12:].hex())
_DEAD = Address("0x" + "dead".rjust(40, "0"))
_SOLD = 0x5E11 << 96
"""The placeholder in calldata that the helper replaces with what it bought; some routers take 128 bits at
most."""
_STEPS = "(address,uint256,bytes,uint256)[]"
_ROUND_TRIP = f"round_trip(address,address,{_STEPS},{_STEPS},{_STEPS})"
_POWERS = (
    "pause()", "setPaused(bool)", "blacklist(address)", "blacklist(address,bool)", "addToBlacklist(address)",
    "setBlacklist(address,bool)", "addBot(address)", "addBots(address[])", "setBots(address[])",
    "setBot(address,bool)", "setTradingEnabled(bool)", "setTrading(bool)", "disableTrading()",
    "closeTrading()", "setMaxTx(uint256)", "setMaxTxAmount(uint256)", "setFee(uint256)",
    "setFees(uint256,uint256)",
    "setTax(uint256)", "setTaxes(uint256,uint256)", "setSellTax(uint256)", "setSellFee(uint256)",
    "setCooldown(uint256)", "setWhitelist(address,bool)", "mint(address,uint256)",
)  # fmt: skip
"""What scanners of bytecode look for: stopping, listing, taxing, limiting, making more."""


class Answer(NamedTuple):
    """What a technique says. ``loss_bps``: of the money, None where it tells none."""

    level: Level
    loss_bps: int | None = None
    said: str = ""


Technique = Callable[[RpcNode, Contracts, Case, Meter], Awaitable[Answer]]
_ORDER: tuple[Level, ...] = ("ok", "warn", "unknown", "danger")


def by_loss(loss_bps: int, whole: bool = True) -> Answer:
    """By the lines that our own verdicts have. ``whole``: all of it was sold."""
    if loss_bps >= DANGER_BPS:
        return Answer("danger", loss_bps)
    return Answer("warn" if loss_bps >= WARN_BPS or not whole else "ok", loss_bps)


def _best(answers: list[Answer]) -> Answer:
    """The best of several venues: a trader may choose."""
    return min(answers, key=lambda one: (_ORDER.index(one.level), one.loss_bps or 0))


def _eth_call(call: Call, sender: str | None = None, overrides: object = None) -> RpcCall:
    asked = {"to": call.to, "data": call.data, "gas": hex(_GAS)} | ({"from": sender} if sender else {})
    return RpcCall("eth_call", [asked, "latest", *([overrides] if overrides else [])])


def _bytes(answer: msgspec.Raw | RpcError) -> bytes | None:
    """What a call returned; None where it failed."""
    return None if isinstance(answer, RpcError) else bytes.fromhex(msgspec.json.decode(answer, type=str)[2:])


# --- a helper contract -----------------------------------------------------------------------------


def compiled_helper() -> tuple[str, str]:
    """Its creation code and its runtime code."""
    bundle = FilesystemInputBundle([HELPER.parent])
    output = compile_from_file_input(
        bundle.load_file(HELPER.name), input_bundle=bundle, output_formats=["bytecode", "bytecode_runtime"]
    )
    return str(output["bytecode"]), str(output["bytecode_runtime"])


def helper_at_caller(runtime: str) -> Technique:
    """``runtime``: the contract's code."""
    overrides = {_CALLER: {"code": runtime, "balance": hex(_RICH_WEI)}}

    async def ask(node: RpcNode, contracts: Contracts, case: Case, meter: Meter) -> Answer:
        calls = [
            _paid_call(
                {"to": _CALLER, "data": selector(_ROUND_TRIP) + _plan(case, venue, contracts, _CALLER).hex()},
                overrides,
            )
            for venue in case.venues
        ]
        return _best([_of_helper(_bytes(answer)) for answer in await node.batch(calls, meter)])

    return ask


def helper_in_creation(creation: str) -> Technique:
    """``creation``: the contract's creation code. It trades as the contract that its caller makes."""
    overrides = {_CALLER: {"balance": hex(_RICH_WEI)}}
    # The first contract of an account that never sent anything (nonce 0).
    packed = bytes.fromhex("d694" + _CALLER[2:] + "80")
    made = Address("0x" + abi.keccak(packed)[12:].hex())

    async def ask(node: RpcNode, contracts: Contracts, case: Case, meter: Meter) -> Answer:
        calls = [
            _paid_call(
                {"data": creation + _plan(case, venue, contracts, made).hex(), "value": hex(_VALUE_WEI)},
                overrides,
            )
            for venue in case.venues
        ]
        return _best([_of_helper(_reverted_with(answer)) for answer in await node.batch(calls, meter)])

    return ask


def _paid_call(asked: dict[str, str], overrides: object) -> RpcCall:
    terms = {"from": _CALLER, "gas": hex(_GAS), "gasPrice": hex(_GAS_PRICE_WEI)}
    return RpcCall("eth_call", [asked | terms, "latest", overrides])


def _reverted_with(answer: msgspec.Raw | RpcError) -> bytes | None:
    """The bytes of a revert."""
    if not isinstance(answer, RpcError) or answer.code != REVERTED:
        return None
    return bytes.fromhex(msgspec.json.decode(answer.data, type=str)[2:])


def _plan(case: Case, venue: Venue, contracts: Contracts, trader: Address) -> bytes:
    """The helper's arguments for one place."""
    file, spent_raw = BY_KIND[venue.kind], case.amount_raw(venue, contracts)
    money = _money(venue.quote_address, case.wei, contracts, trader)
    buys = file.plan_buy(venue, case.token, contracts, spent_raw, trader)
    sells = file.plan_sell(venue, case.token, contracts, _SOLD, trader)
    paid_in = ZERO_ADDRESS if venue.quote in ("eth", "weth") else venue.quote_address
    steps = [[_step(call) for call in calls] for calls in (money, buys, sells)]
    return encode(["address", "address", _STEPS, _STEPS, _STEPS], [case.token, paid_in, *steps])


def _money(quote: Address, wei: int, contracts: Contracts, trader: Address) -> list[Call]:
    """The calls that turn eth into twice what is spent: usdg, and by way of it a share."""
    if quote in (ZERO_ADDRESS, contracts.weth):
        return []
    usdg = contracts.usdg
    first = amm_v3.pool(usdg, contracts.weth, 500, contracts)
    calls = list(amm_v3.plan_buy(first, usdg, contracts, 4 * wei, trader))
    if quote != usdg:
        second, usdg_raw = amm_v3.pool(quote, usdg, 500, contracts), amount_raw(usdg, 3 * wei, contracts)
        calls += amm_v3.plan_buy(second, quote, contracts, usdg_raw, trader)
    return calls


def _step(call: Call) -> tuple[str, int, bytes, int]:
    """As the helper takes it: with the place where what was bought is written."""
    data = bytes.fromhex(call.data[2:])
    return call.to, call.value_wei, data, max(0, data.find(_SOLD.to_bytes(32, "big")))


def _of_helper(told: bytes | None) -> Answer:
    if told is None or len(told) != 160:
        return Answer("unknown", said="the call failed")
    refused, bought, sold, paid, back = (int.from_bytes(told[32 * n : 32 * n + 32], "big") for n in range(5))
    if refused or bought == 0 or sold * 2 < bought:
        return Answer("danger", said=f"call {refused} refused" if refused else "less than half sold")
    cost_raw = max(1, paid * sold // bought)
    return by_loss(-((back - cost_raw) * BPS // cost_raw), sold * BPS >= bought * (BPS - 1))


# --- the exchange's quoters ------------------------------------------------------------------------


async def quoter(node: RpcNode, contracts: Contracts, case: Case, meter: Meter) -> Answer:
    """Two trips: the second sells what the first one bought."""
    quoted = [venue for venue in case.venues if venue.kind != "launchpad_curve"]
    if not quoted:
        return Answer("unknown", said="a curve has no quoter")
    spent = [case.amount_raw(venue, contracts) for venue in quoted]

    def quotes(amounts: list[int], buys: bool) -> list[Call]:
        pairs = zip(quoted, amounts, strict=True)
        return [_quote(venue, case.token, contracts, raw, buys) for venue, raw in pairs]

    bought = await _quoted(node, quotes(spent, True), meter)
    back = await _quoted(node, quotes(bought, False), meter)
    return _best([_of_quotes(*three) for three in zip(spent, bought, back, strict=True)])


async def _quoted(node: RpcNode, calls: list[Call], meter: Meter) -> list[int]:
    """What comes out by each; 0 where it refuses."""
    answers = await node.batch([_eth_call(call) for call in calls], meter)
    return [int.from_bytes((_bytes(answer) or b"")[:32], "big") for answer in answers]


def _quote(venue: Venue, token: Address, contracts: Contracts, raw: int, buys: bool) -> Call:
    paid, got = (venue.quote_address, token) if buys else (token, venue.quote_address)
    if venue.kind == "amm_v3":
        return amm_v3.plan_quote(contracts, paid, got, venue.fee_pips, raw)
    head = (
        abi.word(abi.WORD) + amm_v4.encode_key(token, venue) + amm_v4.encode(paid < got, raw, 8 * abi.WORD, 0)
    )
    return Call(contracts.v4_quoter, amm_v4.QUOTE_EXACT_INPUT_SINGLE + head)


def _of_quotes(spent_raw: int, bought_raw: int, back_raw: int) -> Answer:
    if not bought_raw or not back_raw:
        return Answer("danger", said="no quote")
    return by_loss(-((back_raw - spent_raw) * BPS // spent_raw))


# --- a transfer to a dead address ------------------------------------------------------------------


async def transfer(node: RpcNode, contracts: Contracts, case: Case, meter: Meter) -> Answer:
    """Two trips: what the holder has, and its transfer."""
    pools = [venue.pool or contracts.v4_pool_manager for venue in case.venues]
    holders = pools if case.holder is None else [case.holder]
    asked = [_eth_call(Call(case.token, abi.call(erc20.BALANCE_OF, holder))) for holder in holders]
    held = [abi.uint_at(_bytes(answer) or b"", 0) or 0 for answer in await node.batch(asked, meter)]
    parts = 1000 if case.holder is None else 1
    moves = [
        _eth_call(Call(case.token, abi.call(erc20.TRANSFER, _DEAD, raw // parts)), holder)
        for holder, raw in zip(holders, held, strict=True)
    ]
    return _best([_of_transfer(_bytes(answer)) for answer in await node.batch(moves, meter)])


def _of_transfer(told: bytes | None) -> Answer:
    """A token that returns nothing is taken for one that moved it."""
    moved = told is not None and (len(told) == 0 or int.from_bytes(told[:32], "big") == 1)
    return Answer("ok") if moved else Answer("danger", said="the transfer is refused")


# --- bytecode --------------------------------------------------------------------------------------


async def selectors(node: RpcNode, contracts: Contracts, case: Case, meter: Meter) -> Answer:
    """Says of every token with one of these functions that it is a trap, as scanners do."""
    (answer,) = await node.batch([RpcCall("eth_getCode", [case.token, "latest"])], meter)
    code = _bytes(answer)
    if code is None:
        return Answer("unknown", said="no code")
    found = [power for power in _POWERS if bytes.fromhex(abi.keccak(power.encode())[:4].hex()) in code]
    return Answer("danger", said=", ".join(found)) if found else Answer("ok")
