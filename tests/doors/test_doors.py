"""The same case through every door gives the same object or the same code."""

from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Any

import aiohttp
import jsonschema
import msgspec
import pytest

from roundtrip.api.catalog import OPERATIONS, Operation
from roundtrip.api.publish import answer_schema, params_schema
from roundtrip.devnet.world import Built
from roundtrip.domain.trade import LEVELS
from roundtrip.domain.types import BlockRef
from roundtrip.services.context import Context
from support.doors import DOORS
from support.followed import followed
from support.serving import service
from support.wallet import calldata

ETH = 10**18
SINGLE = "exactInputSingle((address,address,uint24,address,uint256,uint256,uint160))"


@pytest.fixture
async def base_url(ctx: Context) -> AsyncIterator[str]:
    async with service(ctx) as url:
        yield url


def operation(name: str) -> Operation:
    return next(o for o in OPERATIONS if o.name == name)


WALLET, NOBODY = "0x" + "c0" * 20, "0x" + "ab" * 20
Arguments = dict[str, Any]


def check_of(story: str) -> Callable[[Built], Arguments]:
    return lambda built: {"address": built.tokens[story]}


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
GOOD: dict[str, dict[str, Callable[[Built], Arguments]]] = {
    "check_token": {
        story: check_of(story)
        for story in (
            "plain", "owner_only_sell", "paused", "usdg_pool", "no_pool", "strange_name", "not_a_token",
        )
    },
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
"""Cases that answer, by tool and name: what they ask."""

HERE, LONG = "0x" + "1" * 40, "0x" + "1" * 64
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
    {"from": HERE, "to": HERE, "gas": "1"},
    {"from": HERE, "to": HERE, "sender": HERE},
    {"from": HERE, "to": HERE, "data": "0x1"},
    {"from": HERE, "to": HERE, "data": "0xzz"},
    {"from": HERE, "to": HERE, "data": "1234"},
    {"from": HERE, "to": HERE, "data": ""},
    {"from": HERE, "to": HERE, "data": "0x\n"},
    {"from": HERE, "to": HERE, "data": "0x12 34"},
    {"from": HERE, "to": HERE, "data": None},
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
    {"from": HERE, "to": HERE, "value": None},
    {"from": HERE, "to": HERE, "fund": "yes"},
    {"from": HERE, "to": HERE, "fund": 1},
]
BAD: dict[str, list[tuple[Arguments, str]]] = {
    "check_token": [
        ({"address": "0x12"}, "bad_address"),
        ({"address": "0x" + "g" * 40}, "bad_address"),
        ({"address": "0x" + "1" * 41}, "bad_address"),
        ({"address": "PLAIN"}, "bad_address"),
        ({"address": "0X" + "1" * 40}, "bad_address"),
        ({"address": "0x" + "1" * 40 + "\n"}, "bad_address"),
        ({"address": "%00"}, "bad_address"),
        ({"address": "\u0661" * 40}, "bad_address"),
    ],
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
"""Cases that fail, by tool, with their code."""

ONLY_TOOLS: dict[str, list[Arguments]] = {
    "check_token": [{}, {"address": 5}, {"address": None}, {"address": ["0x" + "1" * 40]}]
}
"""Arguments that no path can carry. Tools without parameters in their path have all of theirs in BAD."""
NOW_S = 2_000_000_000.5


def test_every_tool_has_its_cases() -> None:
    tools_ = {o.name: o for o in OPERATIONS if o.on_mcp}
    assert tools_.keys() == GOOD.keys() == BAD.keys()
    assert {name for name, tool in tools_.items() if "{" in (tool.path or "")} == ONLY_TOOLS.keys()


@pytest.mark.parametrize(("name", "case"), [(n, c) for n, cases in GOOD.items() for c in cases])
async def test_every_door_gives_the_same_object(ctx: Context, built: Built, name: str, case: str) -> None:
    # Each run draws its own wallets, at its own time: here all draw the same, at once.
    ctx = replace(ctx, entropy=lambda: bytes(32), now_s=lambda: NOW_S)
    arguments = GOOD[name][case](built)
    async with service(ctx) as url:
        came = [await door(url, operation(name), arguments) for door in DOORS.values()]
    answers = [dict(one.answer or {}) for one in came]
    assert all(answers)
    for answer in answers:
        jsonschema.validate(answer, answer_schema(operation(name)), jsonschema.Draft202012Validator)
    assert answers[0] == answers[1] == answers[2]


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("name", BAD)
async def test_every_door_gives_the_same_code(base_url: str, door: str, name: str) -> None:
    came = [(a, code, (await DOORS[door](base_url, operation(name), a)).code) for a, code in BAD[name]]
    assert [one for one in came if one[1] != one[2]] == []


@pytest.mark.parametrize(("name", "arguments"), [(n, a) for n, cases in ONLY_TOOLS.items() for a in cases])
async def test_arguments_of_another_shape_are_refused(
    base_url: str, name: str, arguments: dict[str, Any]
) -> None:
    came = await DOORS["bare mcp"](base_url, operation(name), arguments)
    assert came.code in ("bad_address", "bad_input")


async def test_arguments_that_are_no_object_or_too_deep_are_refused(base_url: str) -> None:
    deep = b'{"from":"%s","calls":%s}' % (HERE.encode(), b"[" * 5000)
    for body, code in (
        (b"", "bad_json"), (b"{", "bad_json"), (b"\xff\xfe", "bad_json"), (deep, "bad_json"),
        (b'{"a":' * 12_000, "bad_json"), (b"[]", "bad_input"), (b'"x"', "bad_input"), (b"null", "bad_input"),
        (b"7", "bad_input"), (b'{"from": NaN}', "bad_json"), (b" " * 70_000, "bad_input"),
    ):  # fmt: skip
        for row in OPERATIONS:
            if row.method != "POST" or row.path is None:
                continue
            async with (
                aiohttp.ClientSession() as session,
                session.post(base_url + row.path, data=body) as response,
            ):
                assert (response.status, (await response.json())["error"]["code"]) == (400, code), body[:20]


async def test_a_posted_body_that_says_a_thing_twice_is_read_once(base_url: str, built: Built) -> None:
    body = f'{{"from":"{WALLET}","to":"{HERE}","to":"{NOBODY}","value":"1","fund":true}}'
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{base_url}/v1/simulate", data=body) as response,
    ):
        assert response.status in (200, 400)


async def test_an_unknown_argument_is_refused(base_url: str, built: Built) -> None:
    arguments = {"address": built.tokens["plain"], "amount": "1"}
    came = await DOORS["bare mcp"](base_url, operation("check_token"), arguments)
    assert came.code in ("bad_address", "bad_input")


async def test_health_speaks_of_the_chain(base_url: str, ctx: Context) -> None:
    async with followed(ctx):
        came = await DOORS["http"](base_url, operation("health"), {})
    assert came.answer is not None
    assert came.answer["ok"] is True
    assert came.answer["blocksBehind"] == 0
    assert came.answer["head"] == ctx.heads.current().block.number
    assert came.answer["ethUsd"] == pytest.approx(3500, rel=1e-3)


async def test_health_is_bad_while_nobody_follows_the_chain_or_not_to_its_end(
    base_url: str, ctx: Context
) -> None:
    head = ctx.heads.current().block

    async def told() -> dict[str, Any]:
        came = await DOORS["http"](base_url, operation("health"), {})
        assert came.answer is not None
        return came.answer

    never = await told()
    assert (never["ok"], never["blocksBehind"]) == (False, head.number)
    assert "index" in {lack["what"] for lack in never["lacks"]}
    for seconds, is_well in ((10, True), (11, False)):
        at = BlockRef(head.number - 7, head.hash, head.timestamp_s - seconds)
        async with followed(ctx, at):
            found = await told()
        assert (found["ok"], found["blocksBehind"]) == (is_well, 7)
        assert "index" not in {lack["what"] for lack in found["lacks"]}


async def test_the_tool_table_is_the_same_at_both_doors(base_url: str) -> None:
    async with aiohttp.ClientSession() as session:
        async with session.get(f"{base_url}/v1/tools.json") as response:
            published = await response.json()
        listing = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        async with session.post(f"{base_url}/mcp", json=listing) as response:
            listed = (await response.json())["result"]["tools"]
    assert published.keys() == {"about", "tools"}
    by_name = {tool["name"]: tool for tool in listed}
    assert [tool["function"]["name"] for tool in published["tools"]] == list(by_name)
    for tool in published["tools"]:
        function = tool["function"]
        assert (tool["type"], tool["needsKey"], tool["writes"]) == ("function", False, False)
        assert function["parameters"] == by_name[function["name"]]["inputSchema"]
        assert function["description"] == by_name[function["name"]]["description"]
        assert by_name[function["name"]]["annotations"]["readOnlyHint"] is True


@pytest.mark.parametrize("name", [o.name for o in OPERATIONS])
def test_schemas_are_valid_and_closed(name: str) -> None:
    for schema in (params_schema(operation(name)), answer_schema(operation(name))):
        jsonschema.Draft202012Validator.check_schema(schema)
        assert schema["type"] == "object"
    assert params_schema(operation(name))["additionalProperties"] is False
    assert operation(name).description.count(". ") < 5


def test_the_check_has_every_field_of_the_specification() -> None:
    schema = answer_schema(operation("check_token"))
    required = [
        "address",
        "chainId",
        "verdict",
        "flags",
        "token",
        "venue",
        "trade",
        "price",
        "launchpad",
        "checkedAt",
    ]
    assert schema["required"] == required
    fields = {name: set(part["properties"]) for name, part in schema["$defs"].items() if "properties" in part}
    assert fields["TokenAnswer"] == {"symbol", "name", "decimals", "totalSupply", "owner", "ownerRenounced"}
    assert fields["VenueAnswer"] == {
        "kind", "quote", "poolFeeBps", "dynamicFee", "hook", "pool", "poolId", "poolsFound"
    }  # fmt: skip
    assert fields["TradeAnswer"] == {
        "method", "paid", "tokensOut", "roundTripLossBps", "feesBps", "priceImpactBps", "buyReverts",
        "sellReverts",
    }  # fmt: skip
    assert fields["LaunchpadAnswer"] == {
        "phase", "curveFillBps", "buyTaxBps", "sellTaxBps", "creatorTaxBps", "deployer"
    }  # fmt: skip
    assert fields["DeployerAnswer"] == {"address", "launches", "graduated", "soldOwn"}
    assert fields["PriceAnswer"] == {"usd", "marketCapUsd"}


def test_answers_encode_what_they_declare() -> None:
    for row in OPERATIONS:
        assert issubclass(row.params, msgspec.Struct)
        assert issubclass(row.answer, msgspec.Struct)


def test_a_simulation_has_every_field_of_the_specification() -> None:
    schema = answer_schema(operation("simulate_transaction"))
    fields = {name: set(part["properties"]) for name, part in schema["$defs"].items() if "properties" in part}
    assert schema["required"] == [
        "chainId", "block", "from", "verdict", "calls", "spent", "received", "approvals", "sellBack", "check",
        "simulatedAt",
    ]  # fmt: skip
    assert fields["CallAnswer"] == {"ok", "gasUsed", "reverts"}
    assert fields["Amount"] == {"amount", "raw", "asset", "symbol"}
    assert fields["ApprovalAnswer"] == {"token", "spender", "amount", "unlimited"}
    assert fields["SellBack"] == {"token", "venue", "at", "sold", "back", "roundTripLossBps", "reverts"}
    assert fields["ShortCheck"] == {"address", "verdict", "flags"}
    assert set(schema["$defs"]["TradeVerdict"]["properties"]["code"]["enum"]) == set(LEVELS)


def test_a_simulations_parameters_are_those_of_the_specification() -> None:
    schema = params_schema(operation("simulate_transaction"))
    assert schema["properties"].keys() == {"from", "to", "data", "value", "calls", "fund"}
    assert set(schema["required"]) == {"from", "to"}
    assert schema["properties"]["data"]["pattern"] == "^0x([0-9a-fA-F]{2})*$"
