"""The same case through every door gives the same object or the same code."""

from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import jsonschema
import msgspec
import pytest

from roundtrip.api.catalog import OPERATIONS, Operation
from roundtrip.api.publish import answer_schema, params_schema
from roundtrip.devnet.world import Built
from roundtrip.services.context import Context
from support.doors import DOORS
from support.serving import service


@pytest.fixture
async def base_url(ctx: Context) -> AsyncIterator[str]:
    async with service(ctx) as url:
        yield url


def operation(name: str) -> Operation:
    return next(o for o in OPERATIONS if o.name == name)


GOOD: dict[str, list[str]] = {
    "check_token": [
        "plain",
        "owner_only_sell",
        "paused",
        "usdg_pool",
        "no_pool",
        "strange_name",
        "not_a_token",
    ]
}
"""Cases that answer, by tool: the stories they ask about."""

BAD: dict[str, list[tuple[dict[str, Any], str]]] = {
    "check_token": [
        ({"address": "0x12"}, "bad_address"),
        ({"address": "0x" + "g" * 40}, "bad_address"),
        ({"address": "0x" + "1" * 41}, "bad_address"),
        ({"address": "PLAIN"}, "bad_address"),
        ({"address": "0X" + "1" * 40}, "bad_address"),
        ({"address": "0x" + "1" * 40 + "\n"}, "bad_address"),
        ({"address": "%00"}, "bad_address"),
        ({"address": "\u0661" * 40}, "bad_address"),
    ]
}
"""Cases that fail, by tool, with their code."""

ONLY_TOOLS: dict[str, list[dict[str, Any]]] = {
    "check_token": [{}, {"address": 5}, {"address": None}, {"address": ["0x" + "1" * 40]}]
}
"""Arguments that no path can carry."""


def test_every_tool_has_its_cases() -> None:
    names = {o.name for o in OPERATIONS if o.on_mcp}
    assert names == GOOD.keys() == BAD.keys() == ONLY_TOOLS.keys()


@pytest.mark.parametrize(("name", "story"), [(n, s) for n, stories in GOOD.items() for s in stories])
async def test_every_door_gives_the_same_object(base_url: str, built: Built, name: str, story: str) -> None:
    arguments = {"address": built.tokens[story]}
    came = [await door(base_url, operation(name), arguments) for door in DOORS.values()]
    assert came[0].answer is not None
    assert came[0] == came[1] == came[2]
    jsonschema.validate(came[0].answer, answer_schema(operation(name)), jsonschema.Draft202012Validator)


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize(("name", "arguments", "code"), [(n, a, c) for n, cs in BAD.items() for a, c in cs])
async def test_every_door_gives_the_same_code(
    base_url: str, door: str, name: str, arguments: dict[str, Any], code: str
) -> None:
    assert (await DOORS[door](base_url, operation(name), arguments)).code == code


@pytest.mark.parametrize(("name", "arguments"), [(n, a) for n, cases in ONLY_TOOLS.items() for a in cases])
async def test_arguments_of_another_shape_are_refused(
    base_url: str, name: str, arguments: dict[str, Any]
) -> None:
    came = await DOORS["bare mcp"](base_url, operation(name), arguments)
    assert came.code in ("bad_address", "bad_input")


async def test_an_unknown_argument_is_refused(base_url: str, built: Built) -> None:
    arguments = {"address": built.tokens["plain"], "amount": "1"}
    came = await DOORS["bare mcp"](base_url, operation("check_token"), arguments)
    assert came.code in ("bad_address", "bad_input")


async def test_health_speaks_of_the_chain(base_url: str, ctx: Context) -> None:
    came = await DOORS["http"](base_url, operation("health"), {})
    assert came.answer is not None
    assert came.answer["ok"] is True
    assert came.answer["head"] == ctx.heads.current().block.number
    assert came.answer["ethUsd"] == pytest.approx(3500, rel=1e-3)


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
