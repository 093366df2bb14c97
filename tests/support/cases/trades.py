"""What is about to be signed."""

from collections.abc import Callable
from typing import Any

from roundtrip_development.devnet.world import Built
from support.wallet import calldata

from .base import HERE, LONG, NOBODY, WALLET, Arguments, Bad, Good

ETH = 10**18
SINGLE = "exactInputSingle((address,address,uint24,address,uint256,uint256,uint160))"


def buy_of(story: str, **more: Any) -> Callable[[Built], Arguments]:
    """A v3 buy of a story's token with a tenth of an eth, from a wallet that need not have it."""

    def arguments(built: Built) -> Arguments:
        weth, router = built.contracts["weth"], built.contracts["swapRouter02"]
        one = (weth, built.tokens[story], 3000, WALLET, ETH // 10, 0, 0)
        call = {"to": router, "data": calldata(SINGLE, one), "value": str(ETH // 10)}
        return {"from": WALLET, "fund": True, **call, **more}

    return arguments


def calls_of(*calls: dict[str, str]) -> Callable[[Built], Arguments]:
    return lambda built: {"from": WALLET, "fund": True, "calls": list(calls)}


def approval(built: Built) -> Arguments:
    data = calldata("approve(address,uint256)", NOBODY, 2**256 - 1)
    return {"from": WALLET, "fund": True, "to": built.contracts["usdg"], "data": data}


def prepared(story: str, **more: Any) -> Callable[[Built], Arguments]:
    return lambda built: {"token": built.tokens[story], "from": WALLET, **more}


PAY = {"to": NOBODY, "value": "1"}
GOOD: Good = {
    "simulate_transaction": {
        "a buy": buy_of("plain"),
        "a trap": buy_of("owner_only_sell"),
        "a strange name": buy_of("strange_name"),
        "what fails": buy_of("paused"),
        "nothing held": buy_of("plain", fund=False),
        "plain eth": lambda built: {"from": WALLET, "to": NOBODY, "value": "0x0de0b6b3a764", "fund": True},
        "all that there is": lambda built: {"from": WALLET, "to": NOBODY, "value": str(2**256 - 1)},
        "an approval": approval,
        "one call of several": calls_of(PAY),
        "six calls": calls_of(*[PAY] * 6),
        "calls replace to": buy_of("plain", calls=[PAY]),
        "capitals": lambda built: {"from": "0x" + WALLET[2:].upper(), "to": NOBODY, "data": "0xABcd"},
    },
    "prepare_buy": {
        "a buy": prepared("plain", amount="0.1", fund=True),
        "a trap": prepared("owner_only_sell", amount="0.1", fund=True),
    },
    "prepare_sell": {
        "a part": lambda built: {"token": built.tokens["plain"], "from": built.accounts[0], "percent": 0.5},
        "an amount": lambda built: {
            "token": built.tokens["plain"], "from": built.accounts[0], "amount": "9.5",
        },
        "what its owner alone sells": lambda built: {
            "token": built.tokens["owner_only_sell"], "from": built.accounts[0], "percent": 0.1,
        },
    },
}  # fmt: skip

BAD_SIMULATIONS: list[Arguments] = [
    {},
    {"from": HERE},
    {"to": HERE},
    {"from": HERE, "calls": []},
    {"from": HERE, "calls": [PAY] * 7},
    {"from": HERE, "to": HERE, "calls": []},
    {"from": HERE, "calls": [{"value": "1"}]},
    {"from": HERE, "calls": [{"to": HERE, "value": "-1"}]},
    {"from": HERE, "calls": [{"to": HERE, "from": HERE}]},
    {"from": HERE, "calls": [HERE]},
    {"from": HERE, "calls": PAY},
    {"from": HERE, "calls": "0x"},
    {"from": HERE, "calls": 6},
    {"from": HERE, "calls": [[[[[[PAY]]]]]]},
    {"from": HERE[:-1], "to": HERE},
    {"from": HERE + "1", "to": HERE},
    {"from": HERE + "\n", "to": HERE},
    {"from": "0X" + "1" * 40, "to": HERE},
    {"from": LONG, "to": HERE},
    {"from": "0x" + "\u0661" * 40, "to": HERE},
    {"from": None, "to": HERE},
    {"from": 5, "to": HERE},
    {"from": HERE, "to": "vitalik.eth"},
    {"from": HERE, "to": HERE[2:]},
    {"from": HERE, "to": HERE, "gas": "none"},
    {"from": HERE, "to": HERE, "sender": HERE},
    {"from": HERE, "to": HERE, "data": "0x1"},
    {"from": HERE, "to": HERE, "data": "0xzz"},
    {"from": HERE, "to": HERE, "data": "1234"},
    {"from": HERE, "to": HERE, "data": ""},
    {"from": HERE, "to": HERE, "data": "0x\n"},
    {"from": HERE, "to": HERE, "data": "0x12 34"},
    {"from": HERE, "to": HERE, "value": "-1"},
    {"from": HERE, "to": HERE, "value": "1.5"},
    {"from": HERE, "to": HERE, "value": "1e18"},
    {"from": HERE, "to": HERE, "value": ""},
    {"from": HERE, "to": HERE, "value": " 1"},
    {"from": HERE, "to": HERE, "value": "1\n"},
    {"from": HERE, "to": HERE, "value": "0x"},
    {"from": HERE, "to": HERE, "value": "0xg"},
    {"from": HERE, "to": HERE, "value": "1_000"},
    {"from": HERE, "to": HERE, "value": "\u0661"},
    {"from": HERE, "to": HERE, "value": str(2**256)},
    {"from": HERE, "to": HERE, "value": "9" * 78},
    {"from": HERE, "to": HERE, "value": "9" * 5000},
    {"from": HERE, "to": HERE, "value": "0x1" + "0" * 64},
    {"from": HERE, "to": HERE, "value": 1},
    {"from": HERE, "to": HERE, "value": 1.5},
    {"from": HERE, "to": HERE, "value": -1},
    {"from": HERE, "to": HERE, "fund": "yes"},
    {"from": HERE, "to": HERE, "fund": 1},
]
BAD: Bad = {
    "simulate_transaction": [(arguments, "bad_input") for arguments in BAD_SIMULATIONS],
    "prepare_buy": [
        ({}, "bad_input"),
        ({"token": HERE, "from": HERE}, "bad_input"),
        ({"token": HERE, "from": HERE, "amount": "1e-1"}, "bad_input"),
        ({"token": HERE, "from": HERE, "amount": "0"}, "bad_input"),
        ({"token": HERE, "from": HERE, "amount": "1", "slippageBps": 0}, "bad_input"),
        ({"token": HERE, "from": HERE, "amount": "1", "slippageBps": 5001}, "bad_input"),
        ({"token": HERE, "from": HERE, "amount": "1"}, "not_a_token"),
    ],
    "prepare_sell": [
        ({}, "bad_input"),
        ({"token": HERE, "from": HERE}, "bad_input"),
        ({"token": HERE, "from": HERE, "percent": 0}, "bad_input"),
        ({"token": HERE, "from": HERE, "percent": 101}, "bad_input"),
        ({"token": HERE, "from": HERE, "amount": "all"}, "no_route"),
    ],
}
