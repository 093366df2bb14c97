"""The same case through every door gives the same object or the same code."""

from dataclasses import replace
from typing import Any

import aiohttp
import jsonschema
import msgspec
import pytest

from roundtrip.api.documents.tool_schemas import answer_schema, params_schema, path_schema
from roundtrip.api.operations.catalog import OPERATIONS
from roundtrip.api.operations.operation import AnyOperation
from roundtrip.domain.base.types import BlockRef
from roundtrip.domain.trade.judge import LEVELS
from roundtrip.services.runtime.context import Context
from roundtrip_development.devnet.world import Built
from support.cases import BAD, GOOD, Arguments
from support.cases.base import HERE, NOBODY, WALLET
from support.clocks import Clock
from support.doors import DOORS, Door
from support.followed import followed
from support.keys import Person, key_for, random_context
from support.serving import service


def operation(name: str) -> AnyOperation:
    return next(o for o in OPERATIONS if o.name == name)


def doors_of(asked: AnyOperation) -> list[Door]:
    """What has no path is a tool and nothing else."""
    return [door for name, door in DOORS.items() if name != "http" or asked.path is not None]


ONLY_TOOLS: dict[str, list[Arguments]] = {
    name: [{}, {"address": 5}, {"address": None}, {"address": ["0x" + "1" * 40]}]
    for name in ("check_token", "token_holders")
}
"""Arguments that no path can carry. Tools without parameters in their path have all of theirs in BAD."""
NOW_S = 2_000_000_000.5


def test_every_tool_has_its_cases() -> None:
    tools_ = {o.name: o for o in OPERATIONS if o.on_mcp}
    assert tools_.keys() == GOOD.keys() == BAD.keys()
    assert {name for name, tool in tools_.items() if "{" in (tool.path or "")} == ONLY_TOOLS.keys()


@pytest.mark.parametrize(("name", "case"), [(n, c) for n, cases in GOOD.items() for c in cases])
async def test_every_door_gives_the_same_object(indexed: Context, built: Built, name: str, case: str) -> None:
    # Each run draws its own wallets, at its own time: here all draw the same, at once.
    ctx = replace(indexed, entropy=lambda: bytes(32), now_s=lambda: NOW_S)
    arguments = GOOD[name][case](built)
    async with service(ctx) as url:
        came = [await door(url, operation(name), arguments) for door in doors_of(operation(name))]
    answers = [dict(one.answer or {}) for one in came]
    assert len(answers) >= 2
    assert all(answers)
    # The last door is a tool's, and a tool's answer is all there is; a path may give less.
    whole = answers[-1]
    for door, answer in zip(doors_of(operation(name)), answers, strict=True):
        given = operation(name).path_answer if door is DOORS["http"] else None
        schema = path_schema(operation(name)) if given else answer_schema(operation(name))
        jsonschema.validate(answer, schema, jsonschema.Draft202012Validator)
        fields = whole.keys() if given is None else set(given.__struct_encode_fields__)
        assert answer.keys() == fields
        assert answer == {field: whole[field] for field in fields}


def test_the_path_of_holders_gives_what_is_specified_and_why_it_is_partial() -> None:
    given = operation("token_holders").path_answer
    assert given is not None
    assert set(given.__struct_encode_fields__) == {
        "address", "chainId", "status", "transfersRead", "token", "marketCapUsd", "holders", "top", "launch",
        "snipers", "bundle", "deployer", "smartMoney", "repeatCrowd", "checkedAt", "why",
    }  # fmt: skip


@pytest.mark.parametrize("name", BAD)
async def test_every_door_gives_the_same_code(indexed: Context, name: str) -> None:
    async with service(indexed) as url:
        for door in doors_of(operation(name)):
            came = [(a, code, (await door(url, operation(name), a)).code) for a, code in BAD[name]]
            assert [one for one in came if one[1] != one[2]] == []


@pytest.mark.parametrize(("name", "arguments"), [(n, a) for n, cases in ONLY_TOOLS.items() for a in cases])
async def test_arguments_of_another_shape_are_refused(
    base_url: str, name: str, arguments: dict[str, Any]
) -> None:
    came = await DOORS["bare mcp"](base_url, operation(name), arguments)
    assert came.code in ("bad_address", "bad_input")


async def test_arguments_that_are_no_object_or_too_deep_are_refused(ctx: Context, base_url: str) -> None:
    key = (await key_for(random_context(ctx, Clock()), Person()))["key"]
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
                session.post(
                    base_url + row.path, data=body, headers={"x-api-key": key} if row.key else {}
                ) as response,
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
    arguments = {"address": built.tokens["plain"], "chain": "1"}
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

    async def ask_health() -> dict[str, Any]:
        came = await DOORS["http"](base_url, operation("health"), {})
        assert came.answer is not None
        return came.answer

    never = await ask_health()
    assert (never["ok"], never["blocksBehind"]) == (False, head.number)
    assert "index" in {lack["what"] for lack in never["lacks"]}
    for seconds, is_well in ((10, True), (11, False)):
        at = BlockRef(head.number - 7, head.hash, head.timestamp_s - seconds)
        async with followed(ctx, at):
            found = await ask_health()
        assert (found["ok"], found["blocksBehind"]) == (is_well, 7)
        # Never bad without saying what it lacks.
        assert ("index" in {lack["what"] for lack in found["lacks"]}) is not is_well
    # A node that is a moment behind is none; one that is far below has not what the answers speak of.
    for blocks, seconds, is_well in ((9, 10, True), (1, 11, False), (101, 0, False), (-1, -11, False)):
        at = BlockRef(head.number + blocks, head.hash, head.timestamp_s + seconds)
        async with followed(ctx, at):
            found = await ask_health()
        assert (found["ok"], found["blocksBehind"]) == (is_well, max(0, -blocks))
        late = {lack["what"] for lack in found["lacks"]} & {"node", "index"}
        assert late == (set() if is_well else {"node" if blocks > 0 else "index"})


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
        row = operation(function["name"])
        assert (tool["type"], tool["needsKey"], tool["writes"]) == ("function", row.key, row.writes)
        assert function["parameters"] == by_name[function["name"]]["inputSchema"]
        assert function["description"] == by_name[function["name"]]["description"]
        assert by_name[function["name"]]["annotations"].get("readOnlyHint", False) is not row.writes


@pytest.mark.parametrize("name", [o.name for o in OPERATIONS])
def test_schemas_are_valid(name: str) -> None:
    for schema in (params_schema(operation(name)), answer_schema(operation(name))):
        jsonschema.Draft202012Validator.check_schema(schema)
        assert schema["type"] == "object"
    assert operation(name).tool_description().count(". ") < 5


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
    specified = {"token", "venue", "at", "sold", "back", "roundTripLossBps", "reverts"}
    assert fields["SellBack"] == specified | {"shareBps", "afterS", "priceImpactBps", "laterLossBps"}
    assert fields["ShortCheck"] == {"address", "verdict", "flags"}
    assert set(schema["$defs"]["TradeVerdict"]["properties"]["code"]["enum"]) == set(LEVELS)


def test_a_simulations_parameters_are_those_of_the_specification() -> None:
    schema = params_schema(operation("simulate_transaction"))
    assert schema["properties"].keys() == {"from", "to", "data", "value", "calls", "fund"}
    assert set(schema["required"]) == {"from", "to"}
    assert schema["properties"]["data"]["pattern"] == "^0x([0-9a-fA-F]{2})*$"
