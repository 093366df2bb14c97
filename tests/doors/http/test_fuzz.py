"""Simulations and prepared trades under bodies that nobody meant: of the published schema, and broken."""

import json
import math
import re
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import jsonschema
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from roundtrip.api.documents.tool_schemas import answer_schema, params_schema
from roundtrip.api.operations.catalog import OPERATIONS
from roundtrip.api.operations.operation import AnyOperation
from roundtrip.services.runtime.context import Context
from roundtrip_development.devnet.world import Built
from support.serving import service
from support.wallet import calldata

LONGEST_S = 30.0
"""A request that takes longer on a busy machine hangs."""
TOOLS = ("simulate_transaction", "prepare_buy", "prepare_sell")
CODES: dict[str, dict[int, set[str]]] = {
    "simulate_transaction": {400: {"bad_input", "bad_json"}},
    "prepare_buy": {
        400: {"bad_input", "bad_json"},
        404: {"not_a_token", "no_route"},
        422: {"would_fail", "too_small"},
    },
    "prepare_sell": {
        400: {"bad_input", "bad_json"},
        404: {"no_route"},
        422: {"nothing_to_sell", "would_fail"},
    },
}
"""What each may answer besides 200 while the node is well."""
PROTOCOL_ERRORS = {-32700, -32600, -32602}
MAX = 2**256 - 1
# Each example is a request over the wire to a real node; the same examples come every time.
fuzzed = settings(
    derandomize=True,
    deadline=None,
    max_examples=28,
    database=None,
    # Making a failing body small would take longer than all the rest.
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@dataclass(frozen=True)
class FuzzedService:
    """The service, and its three tools by name."""

    url: str
    session: aiohttp.ClientSession
    built: Built = field(repr=False)

    async def http(self, name: str, body: bytes) -> dict[str, Any] | None:
        """The answer, None for an error; asserts that it is one that may be given, and in time."""
        tool, started = operation(name), time.monotonic()
        headers = {"content-type": "application/json"}
        async with self.session.post(f"{self.url}{tool.path}", data=body, headers=headers) as response:
            answer = json.loads(await response.read(), parse_constant=_no_constant)
        assert time.monotonic() - started < LONGEST_S
        if response.status == 200:
            return checked(tool, answer)
        assert answer.keys() == {"error"}
        assert answer["error"].keys() == {"code", "message"}
        assert answer["error"]["message"]
        assert answer["error"]["code"] in CODES[name].get(response.status, ()), (response.status, answer)
        return None

    async def mcp(self, name: str, arguments: object) -> dict[str, Any] | None:
        """The same over the tool server."""
        tool, started = operation(name), time.monotonic()
        params = {"name": name, "arguments": arguments}
        request = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
        headers = {"content-type": "application/json"}
        async with self.session.post(f"{self.url}/mcp", data=request, headers=headers) as response:
            answer = json.loads(await response.read(), parse_constant=_no_constant)
        assert time.monotonic() - started < LONGEST_S
        if "result" not in answer:
            code = answer["error"]["code"]
            assert code in PROTOCOL_ERRORS or (response.status, code) == (400, "bad_input"), answer
            return None
        result = answer["result"]
        if not result["isError"]:
            return checked(tool, result["structuredContent"])
        code = result["content"][0]["text"].split(":")[0]
        assert code in set().union(*CODES[name].values()), result
        return None


def _no_constant(text: str) -> None:
    raise AssertionError(f"{text} is no JSON")


def operation(name: str) -> AnyOperation:
    return next(one for one in OPERATIONS if one.name == name)


def checked(tool: AnyOperation, answer: dict[str, Any]) -> dict[str, Any]:
    """Asserts that an answer is what its schema says."""
    jsonschema.validate(answer, answer_schema(tool), jsonschema.Draft202012Validator)
    assert answer["chainId"] == 4663
    assert "refused" not in answer or answer["refused"] is (answer["steps"] == [])
    return answer


@pytest.fixture
async def door(ctx: Context, built: Built) -> AsyncIterator[FuzzedService]:
    async with ctx.heads.following(), service(ctx) as url, aiohttp.ClientSession() as session:
        yield FuzzedService(url, session, built)


# --- bodies from the schema ------------------------------------------------------------------------


class Words(dict[str, list[str]]):
    """Strings that mean something on this chain: by the field they belong in; under "" for any they fit."""

    def __repr__(self) -> str:
        return "words"


def known_words(built: Built) -> Words:
    strange = ["no_pool", "paused", "loops_on_transfer", "megabyte_revert", "lying_balance", "not_a_token"]
    usual = ["plain", "v4_eth", "usdg_pool", "curve", "curve_nearly_full", "graduated", "transfer_tax"]
    tokens = [built.tokens[story] for story in (*usual, "owner_only_sell", "hook_takes_tenth", *strange)]
    machines = [*built.contracts.values(), *built.hooks.values()]
    low = [f"0x{number:040x}" for number in (0, 1, 2, 5, 9, 10, 11, 2**160 - 1)]
    one, two = built.accounts[:2]
    data = [
        "0x",
        "0xffffffff",
        "0x" + "ff" * 9_000,
        calldata("approve(address,uint256)", built.contracts["permit2"], MAX),
        calldata("transfer(address,uint256)", two, 10**18),
        calldata("transferFrom(address,address,uint256)", one, two, 1),
        calldata("deposit()"),
        calldata("withdraw(uint256)", 10**17),
        calldata("multicall(bytes[])", [b"\xff" * 64] * 20),
    ]
    numbers = [str(10**23), str(MAX), str(MAX + 1), "9" * 78, "0x0", "0x" + "f" * 64]
    decimals = ["5000", "2000001", "9" * 40, "0.0", "0.000000000000000001", "1." + "0" * 40, "all"]
    return Words(
        {
            "from": [*built.accounts[:3], built.contracts["v4PoolManager"]],
            "token": tokens,
            "to": [*tokens, *machines],
            "amount": ["0.1", "1", "0.000001"],
            "value": ["0", "1", str(10**17)],
            "data": data,
            "": [*tokens, *machines, *built.accounts[:3], *low, *data, *numbers, *decimals],
        }
    )


def fitting(
    schema: dict[str, Any], words: Words, defs: dict[str, Any], field: str = ""
) -> st.SearchStrategy[Any]:
    """Values that a schema allows: strings mostly from ``words``."""
    if "$ref" in schema:
        return fitting(defs[schema["$ref"].removeprefix("#/$defs/")], words, defs)
    if "anyOf" in schema:
        return st.one_of([fitting(one, words, defs, field) for one in schema["anyOf"]])
    kind = schema["type"]
    if kind == "string":
        return _strings(schema.get("pattern", ".*"), words, field)
    if kind == "array":
        items = fitting(schema["items"], words, defs)
        return st.lists(items, min_size=schema.get("minItems", 0), max_size=schema.get("maxItems", 8))
    if kind == "object":
        fields = {name: fitting(part, words, defs, name) for name, part in schema["properties"].items()}
        required = {name: fields.pop(name) for name in schema.get("required", ())}
        return st.fixed_dictionaries(required, optional=fields)
    if kind == "number":
        # Published as a minimum; the service takes what is above it.
        low, high = schema["minimum"], schema["maximum"]
        return st.floats(low, high, exclude_min=True, allow_nan=False) | st.integers(low + 1, high)
    simple: dict[str, st.SearchStrategy[Any]] = {"boolean": st.booleans(), "null": st.none()}
    return simple[kind] if kind in simple else st.integers(schema["minimum"], schema["maximum"])


def _strings(pattern: str, words: Words, field: str) -> st.SearchStrategy[str]:
    own, every = ([word for word in words.get(key, ()) if re.search(pattern, word)] for key in (field, ""))
    found = [st.sampled_from(own)] * 4 if own else []
    found += [st.sampled_from(every)] if every else []
    return st.one_of(*found, st.from_regex(pattern, fullmatch=True))


def bodies(name: str, words: Words) -> st.SearchStrategy[dict[str, Any]]:
    """Bodies that the published schema of a tool allows."""
    schema = params_schema(operation(name))
    return fitting(schema, words, schema.get("$defs", {}))


_ODD: list[Any] = [
    None, True, 0, -1, 2**63, 10**400, 1.5, -0.0, math.inf, math.nan,
    "", "0x", "0x0", "0xg0", "0X00", "0x123", "0x" + "1" * 41, "0x" + "1" * 40 + "\n", "\u0661" * 40,
    "\ud800", "\x00", "-1", "+1", "1e3", " 1", "1_0", "\uff11", "ALL", "0." + "0" * 400 + "1", "f" * 60_000,
    [], {}, [[]], {"": ""}, [{}] * 7, {"to": None},
]  # fmt: skip
_JSON = st.recursive(
    st.sampled_from(_ODD) | st.text(max_size=20) | st.integers() | st.floats(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@st.composite
def broken(draw: st.DrawFn, name: str, words: Words) -> dict[str, Any]:
    """A body of the schema with one or two things wrong, the calls inside it not spared."""
    body = draw(bodies(name, words))
    for _ in range(draw(st.integers(1, 2))):
        inner = body.get("calls")
        calls = [one for one in inner if isinstance(one, dict)] if isinstance(inner, list) else []
        target = draw(st.sampled_from([body, *calls]))
        fields = [
            *target,
            *params_schema(operation(name))["properties"],
            "gas",
            "gasPrice",
            "nonce",
            "__proto__",
        ]
        field = draw(st.sampled_from(fields))
        if draw(st.integers(0, 4)) or field not in target:
            target[field] = draw(st.sampled_from(_ODD) | _JSON)
        else:
            del target[field]
    return body


@pytest.mark.parametrize("name", TOOLS)
@given(data=st.data())
@fuzzed
async def test_bodies_of_the_schema(door: FuzzedService, name: str, data: st.DataObject) -> None:
    body = data.draw(bodies(name, known_words(door.built)))
    await door.http(name, json.dumps(body).encode())


@pytest.mark.parametrize("name", TOOLS)
@given(data=st.data())
@fuzzed
async def test_broken_bodies(door: FuzzedService, name: str, data: st.DataObject) -> None:
    body = data.draw(broken(name, known_words(door.built)))
    await door.http(name, json.dumps(body).encode())


@pytest.mark.parametrize("name", TOOLS)
@given(data=st.data())
@settings(fuzzed, max_examples=15)
async def test_arguments_of_tools(door: FuzzedService, name: str, data: st.DataObject) -> None:
    words = known_words(door.built)
    arguments = data.draw(st.one_of(bodies(name, words), broken(name, words), _JSON))
    await door.mcp(name, arguments)


def spenders_of_gas(built: Built) -> list[list[dict[str, str]]]:
    """Calls that take all the gas there is, call themselves, or answer with very much."""
    wallet, other = built.accounts[:2]
    send, look = calldata("transfer(address,uint256)", other, 1), calldata("name()")
    tokens = built.tokens
    modexp = "0x" + f"{1024:064x}" * 3 + "ff" * 3072
    router = built.contracts["universalRouter"]
    run = calldata("execute(bytes,bytes[],uint256)", b"\x21" * 6, [b"\xff" * 32] * 6, MAX)
    return [
        [{"to": tokens["loops_on_transfer"], "data": send}] * 6,
        [{"to": tokens["loops_on_views"], "data": look}] * 6,
        [{"to": tokens["loops_on_balance"], "data": calldata("balanceOf(address)", wallet)}] * 6,
        [{"to": tokens["megabyte_name"], "data": look}] * 6,
        [{"to": tokens["megabyte_revert"], "data": send}] * 6,
        [{"to": f"0x{5:040x}", "data": modexp}] * 6,
        [{"to": f"0x{number:040x}", "data": "0x" + "ff" * 4096, "value": "1"} for number in range(1, 7)],
        [{"to": wallet, "data": send, "value": str(10**18)}] * 6,
        [{"to": router, "data": run, "value": str(number)} for number in range(6)],
        [{"to": built.contracts["multicall3"], "data": "0x" + "ff" * 5000}] * 6,
    ]


@pytest.mark.parametrize("fund", [True, False])
async def test_calls_that_take_all_the_gas(door: FuzzedService, built: Built, fund: bool) -> None:
    for calls in spenders_of_gas(built):
        body = {"from": built.accounts[0], "calls": calls, "fund": fund}
        answer = await door.http("simulate_transaction", json.dumps(body).encode())
        assert answer is not None
        assert len(answer["calls"]) in (0, len(calls))


@pytest.mark.parametrize("name", TOOLS)
async def test_tokens_that_fight_back(door: FuzzedService, built: Built, name: str) -> None:
    for story in (
        "loops_on_transfer",
        "loops_on_views",
        "loops_on_balance",
        "megabyte_revert",
        "garbage_text",
    ):
        wallet, token = built.accounts[0], built.tokens[story]
        body = {"from": wallet, "token": token, "amount": "0.1"}
        if name == "simulate_transaction":
            body = {"from": wallet, "to": token, "data": calldata("transfer(address,uint256)", token, 0)}
        await door.http(name, json.dumps(body).encode())


@pytest.mark.parametrize("amount", ["1000001", "2000001", "9" * 40])
@pytest.mark.parametrize("fund", [True, False])
async def test_more_eth_than_there_is(door: FuzzedService, built: Built, amount: str, fund: bool) -> None:
    for story in ("plain", "v4_eth", "usdg_pool", "curve"):
        body = {"from": built.accounts[0], "token": built.tokens[story], "amount": amount, "fund": fund}
        await door.http("prepare_buy", json.dumps(body).encode())


@pytest.mark.parametrize("name", TOOLS)
async def test_bodies_that_are_no_json(door: FuzzedService, name: str) -> None:
    deep = [b"[" * 30_000, b'{"calls":' * 6_000, b'{"calls":[' * 900 + b"]}" * 900, b"[" * 999 + b"]" * 999]
    odd = [b"", b"null", b"7", b'"from"', b"[]", b"\xff\xfe", b"\xef\xbb\xbf{}", b"{", b"{}{}", b"{'from':1}"]
    long = [
        b" " * 65_536,
        b" " * 65_537,
        b'{"from":"' + b"1" * 65_520 + b'"}',
        b'{"a":1,"a":2}',
        b'{"from":NaN}',
    ]
    for body in (*deep, *odd, *long):
        assert await door.http(name, body) is None
