"""Prepared trades of every kind, encoded with an independent library."""

import copy
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal, localcontext
from typing import Any

import sha3
from eth_abi.abi import encode
from eth_abi.packed import encode_packed

from roundtrip_verify import Network, Unreadable, verify

PREPARED_S = 1_790_000_000
DEADLINE_S = PREPARED_S + 1200
DECIMALS = 9
ZERO, CALLER, ROUTER = (f"0x{number:040x}" for number in range(3))
KEY = "(address,address,uint24,int24,address)"
DYNAMIC_FEE = 0x800000

Json = dict[str, Any]


def address(name: str) -> str:
    return "0x" + hashlib.sha256(name.encode()).hexdigest()[:40]


WALLET, STRANGER, CURVE = address("wallet"), address("stranger"), address("curve")
NETWORK_FILE = {
    "chainId": 4663,
    "contracts": {
        name: address(name)
        for name in (
            "weth", "usdg", "permit2", "v3Factory", "swapRouter02", "universalRouter", "launchpadHook",
        )
    },
}  # fmt: skip
NETWORK = Network.read(NETWORK_FILE)
BELOW, ABOVE = "0x00" + address("token")[4:], "0xff" + address("token")[4:]
"""Tokens whose address is below, and above, all money but eth."""


@dataclass(frozen=True)
class TradeCase:
    """One way to trade. ``quote`` is what the pool is paid in, of which eth and weth both mean eth."""

    kind: str
    side: str
    quote: str
    token: str = BELOW
    fee: int = 3000
    spacing: int = 60
    hook: str = ZERO
    reset: bool = False
    taxed: bool = False
    second: bool = False
    """A v3 sell through Permit2 and the Universal Router."""
    paid: int | None = None
    router_min: int | None = None

    @property
    def name(self) -> str:
        marks = [mark for mark in ("reset", "taxed", "second") if getattr(self, mark)]
        marks += ["hooked"] if self.hook != ZERO else []
        return "-".join([self.kind, self.side, self.quote, *marks, self.token[:4]])

    @property
    def money(self) -> str:
        return "usdg" if self.quote == "usdg" else "eth"

    @property
    def money_address(self) -> str:
        return {"eth": ZERO, "weth": NETWORK.weth, "usdg": NETWORK.usdg}[self.quote]

    @property
    def paid_raw(self) -> int:
        if self.paid is not None:
            return self.paid
        if self.side == "sell":
            return 123_456_789_012_345
        return 250_250_000 if self.money == "usdg" else 10**17 + 7

    @property
    def expected_raw(self) -> int:
        if self.side == "buy":
            return 987_654_321_987
        return 99_000_111 if self.money == "usdg" else 54_321 * 10**12 + 1

    @property
    def min_raw(self) -> int:
        return self.expected_raw * 9900 // 10_000

    @property
    def router_min_raw(self) -> int:
        if self.router_min is not None:
            return self.router_min
        return self.min_raw * 10 // 9 if self.taxed else self.min_raw


def launched(side: str, quote: str, token: str = BELOW) -> TradeCase:
    assert NETWORK.launchpad_hook is not None
    return TradeCase("launchpad_pool", side, quote, token, 0, 200, NETWORK.launchpad_hook)


CASES: tuple[TradeCase, ...] = (
    *(TradeCase("launchpad_curve", side, quote) for side in ("buy", "sell") for quote in ("eth", "usdg")),
    *(
        TradeCase("amm_v3", side, quote, token)
        for side in ("buy", "sell")
        for quote in ("weth", "usdg")
        for token in (BELOW, ABOVE)
    ),
    *(
        TradeCase("amm_v4", side, quote, token)
        for side in ("buy", "sell")
        for quote in ("eth", "weth", "usdg")
        for token in (BELOW, ABOVE)
    ),
    *(
        launched(side, quote, token)
        for side in ("buy", "sell")
        for quote, token in (("eth", BELOW), ("weth", ABOVE), ("usdg", BELOW))
    ),
    TradeCase("amm_v4", "buy", "eth", fee=DYNAMIC_FEE, hook=address("a hook")),
    TradeCase("amm_v4", "sell", "usdg", ABOVE, reset=True),
    TradeCase("amm_v3", "sell", "weth", reset=True),
    *(
        TradeCase("amm_v3", "sell", quote, token, second=True)
        for quote in ("weth", "usdg")
        for token in (BELOW, ABOVE)
    ),
    TradeCase("amm_v3", "sell", "usdg", reset=True, second=True),
    TradeCase("launchpad_curve", "buy", "usdg", reset=True),
    TradeCase("amm_v4", "buy", "weth", taxed=True),
    TradeCase("amm_v3", "buy", "usdg", taxed=True),
)


def decimal(raw: int, decimals: int) -> str:
    with localcontext() as exact:
        exact.prec = 100
        return f"{Decimal(raw).scaleb(-decimals):f}"


def keccak(data: bytes) -> bytes:
    return bytes(sha3.keccak_256(data).digest())


def call(signature: str, *arguments: object) -> bytes:
    types = signature[signature.index("(") + 1 : -1]
    return keccak(signature.encode())[:4] + encode(_split(types), arguments)


def _split(types: str) -> list[str]:
    found, depth = [""], 0
    for letter in types:
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            found.append("")
        else:
            found[-1] += letter
    return [one for one in found if one]


def key(case: TradeCase) -> tuple[object, ...]:
    return (*sorted((case.token, case.money_address)), case.fee, case.spacing, case.hook)


def place(case: TradeCase) -> str:
    if case.kind == "launchpad_curve":
        return CURVE
    if case.kind == "amm_v3":
        low, high = sorted((case.token, case.money_address))
        salt = keccak(encode(["address", "address", "uint24"], [low, high, case.fee]))
        code = bytes.fromhex("e34f199b19b2b4f47f68442619d555527d244f78a3297ea89325f843f87b8b54")
        return "0x" + keccak(b"\xff" + bytes.fromhex(NETWORK.v3_factory[2:]) + salt + code)[-20:].hex()
    return "0x" + keccak(encode([KEY], [key(case)])).hex()


def approvals(case: TradeCase) -> list[tuple[str, bytes]]:
    """Receivers and calldata."""
    if case.side == "buy" and case.money == "eth":
        return []
    asset = NETWORK.usdg if case.side == "buy" else case.token
    spender = {"launchpad_curve": CURVE, "amm_v3": NETWORK.swap_router02}.get(case.kind, NETWORK.permit2)
    spender = NETWORK.permit2 if case.second else spender
    found = [(asset, call("approve(address,uint256)", spender, 0))] if case.reset else []
    found.append((asset, call("approve(address,uint256)", spender, case.paid_raw)))
    if spender == NETWORK.permit2:
        until = (asset, NETWORK.universal_router, case.paid_raw, DEADLINE_S)
        found.append((spender, call("approve(address,address,uint160,uint48)", *until)))
    return found


def trade(case: TradeCase) -> tuple[str, bytes]:
    if case.kind == "launchpad_curve":
        name = "buy" if case.side == "buy" else "sell"
        amounts = (case.paid_raw, case.router_min_raw, WALLET)
        return CURVE, call(f"{name}(uint256,uint256,address)", *amounts)
    if case.kind == "amm_v3" and not case.second:
        return NETWORK.swap_router02, call("multicall(uint256,bytes[])", DEADLINE_S, _v3_calls(case))
    commands = _v4_buy(case) if case.side == "buy" else _v4_sell(case)
    commands = _v3_second(case) if case.second else commands
    codes, inputs = bytes(one for one, _ in commands), [data for _, data in commands]
    return NETWORK.universal_router, call("execute(bytes,bytes[],uint256)", codes, inputs, DEADLINE_S)


def _v3_calls(case: TradeCase) -> list[bytes]:
    buys, eth = case.side == "buy", case.money == "eth"
    pair = (case.money_address, case.token) if buys else (case.token, case.money_address)
    recipient = CALLER if buys else (ROUTER if eth else WALLET)
    swap = call(
        "exactInputSingle((address,address,uint24,address,uint256,uint256,uint160))",
        (*pair, case.fee, recipient, case.paid_raw, case.router_min_raw, 0),
    )
    if buys:
        return [swap, call("refundETH()")] if eth else [swap]
    return [swap, call("unwrapWETH9(uint256,address)", case.router_min_raw, WALLET)] if eth else [swap]


def _v3_second(case: TradeCase) -> list[tuple[int, bytes]]:
    eth, least = case.money == "eth", case.router_min_raw
    path = encode_packed(["address", "uint24", "address"], [case.token, case.fee, case.money_address])
    types = ["address", "uint256", "uint256", "bytes", "bool", "uint256[]"]
    swap = encode(types, [ROUTER if eth else CALLER, case.paid_raw, least, path, True, []])
    return [(0x00, swap), *([(0x0C, _words("address uint256", CALLER, least))] if eth else [])]


def _actions(*actions: tuple[int, bytes]) -> bytes:
    return encode(["bytes", "bytes[]"], [bytes(one for one, _ in actions), [data for _, data in actions]])


def _swap(case: TradeCase, amount: int) -> bytes:
    token_is_low = int(case.token, 16) < int(case.money_address, 16)
    zero_for_one = token_is_low if case.side == "sell" else not token_is_low
    least = case.router_min_raw
    return encode(
        [f"({KEY},bool,uint128,uint128,uint256,bytes)"],
        [(key(case), zero_for_one, amount, least, 0x140, b"")],
    )


def _words(types: str, *values: object) -> bytes:
    return encode(types.split(), values)


def _v4_buy(case: TradeCase) -> list[tuple[int, bytes]]:
    swap, paid = _swap(case, case.paid_raw), case.paid_raw
    take = _words("address uint256", case.token, case.router_min_raw)
    if case.quote == "weth":
        settle = _words("address uint256 bool", NETWORK.weth, 0, False)
        body = _actions((0x06, swap), (0x0B, settle), (0x0F, take))
        wrap, unwrap = _words("address uint256", ROUTER, paid), _words("address uint256", CALLER, 0)
        return [(0x0B, wrap), (0x10, body), (0x0C, unwrap)]
    settle = _words("address uint256", case.money_address, paid)
    body = _actions((0x06, swap), (0x0C, settle), (0x0F, take))
    sweep = _words("address address uint256", ZERO, CALLER, 0)
    return [(0x10, body), (0x04, sweep)] if case.quote == "eth" else [(0x10, body)]


def _v4_sell(case: TradeCase) -> list[tuple[int, bytes]]:
    settle = _words("address uint256 bool", case.token, case.paid_raw, True)
    first = ((0x0B, settle), (0x06, _swap(case, 0)))
    if case.quote == "weth":
        take = _words("address address uint256", NETWORK.weth, ROUTER, 0)
        unwrap = _words("address uint256", CALLER, case.router_min_raw)
        return [(0x10, _actions(*first, (0x0E, take))), (0x0C, unwrap)]
    take = _words("address uint256", case.money_address, case.router_min_raw)
    return [(0x10, _actions(*first, (0x0F, take)))]


def iso(seconds: int, fraction: str = "") -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}{fraction}Z"


def amount(raw: int, asset: str) -> Json:
    decimals = {"eth": 18, "usdg": 6}.get(asset, DECIMALS)
    return {"amount": decimal(raw, decimals), "raw": str(raw), "asset": asset, "symbol": None}


def body_of(case: TradeCase, calls: Sequence[tuple[str, bytes]]) -> Json:
    """The answer around some calls, of which the last is the trade."""
    buys = case.side == "buy"
    spend = amount(case.paid_raw, case.money if buys else case.token)
    expect = amount(case.expected_raw, case.token if buys else case.money)
    least = amount(case.min_raw, expect["asset"])
    answer = amount(case.router_min_raw, expect["asset"])
    value = case.paid_raw if buys and case.money == "eth" else 0
    steps = [
        {"n": n, "does": "approves", "to": to, "data": "0x" + data.hex(), "value": "0", "gas": 90_000}
        for n, (to, data) in enumerate(calls, 1)
    ]
    steps[-1]["does"] = f"Trades for at least {answer['amount']} ({answer['raw']} base units)."
    steps[-1]["value"] = str(value)
    return {
        "chainId": 4663,
        "side": case.side,
        "from": WALLET,
        "block": 77,
        "token": {"address": case.token, "symbol": "\u202eTKN", "decimals": DECIMALS},
        "venue": {"kind": case.kind, "at": place(case), "pays": case.money},
        "spend": spend,
        "expect": {**expect, "min": least["amount"], "minRaw": least["raw"]},
        "slippageBps": 100,
        "validUntil": iso(DEADLINE_S, ".250"),
        "refused": False,
        "steps": steps,
        "alreadyDone": [],
        "sellBack": None,
        "verdict": {"code": "ok", "level": "ok", "text": ""},
        "check": {},
        "preparedAt": iso(PREPARED_S, ".250"),
    }


_MADE: dict[TradeCase, Json] = {}


def body(case: TradeCase) -> Json:
    """A fresh copy of a right answer."""
    if case not in _MADE:
        _MADE[case] = body_of(case, [*approvals(case), trade(case)])
    return copy.deepcopy(_MADE[case])


def first(kind: str, side: str, quote: str) -> TradeCase:
    """The plain case of a kind."""
    found = (case for case in CASES if (case.kind, case.side, case.quote) == (kind, side, quote))
    return next(case for case in found if not (case.reset or case.taxed or case.second))


def caught(answer: Json) -> bool:
    """True when the answer is not passed."""
    try:
        report = verify(answer, NETWORK)
    except Unreadable:
        return True
    assert report.ok is (not report.findings)
    return not report.ok
