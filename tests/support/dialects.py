"""A node of another kind: in front of a real anvil, asked and answering as geth or nitro would.

What each kind does is written down here from their documents and sources, in our own words and samples.
"""

import asyncio
import copy
import hashlib
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Literal

import aiohttp
from aiohttp import web
from eth_abi.abi import decode
from eth_abi.exceptions import DecodingError

from support.faulty_node import Batch, FaultyNode

Kind = Literal["geth", "nitro", "anvil"]
Json = dict[str, Any]

NITRO_GAS_LIMIT = 2**50
ARBOS_STATE = "0xA4B05FffffFffFFFFfFFfffFfffFFfffFfFfFFFf"
"""Where the parent chain's number stands, among others."""
MOST_PRECOMPILE = 0xFFFF
OWN_METHODS = ("eth_simulateV1", "eth_getLogs", "eth_createAccessList")
CALLS = ("eth_call", "eth_estimateGas")
"""They pass, unless their third parameter overrides what must not be."""
FILLER_S = 12
"""How much later than the block before it a filled block stands."""

NONCE_TOO_LOW, NONCE_TOO_HIGH, FEE_TOO_LOW = -38010, -38011, -38012
"""The last by the specification; geth's newer versions call it invalid parameters, -32602."""
INTRINSIC_GAS, NO_FUNDS, BLOCK_GAS = -38013, -38014, -38015
NUMBERS, TIMES, TOO_MANY_BLOCKS = -38020, -38021, -38026
REVERTED, MACHINE = 3, -32015

_PANICS = {
    0x01: "assert(false)",
    0x11: "arithmetic underflow or overflow",
    0x12: "division or modulo by zero",
}


class Refused(Exception):
    """A request's own error."""

    def __init__(self, code: int, message: str, data: object = None) -> None:
        super().__init__(message)
        self.error: Json = {"code": code, "message": message} | ({} if data is None else {"data": data})


@dataclass(frozen=True)
class Spot:
    """A block of a simulation: one that was asked for, or (None) one that fills a gap."""

    number: int
    time_s: int
    asked: Json | None


class DialectNode(FaultyNode):
    """``dialect`` anvil: everything passes. The limits may be set otherwise.

    ``refuses``: for which simulations, counted from 0, the answer is that the sender has too little.
    """

    most_batch = 1000
    most_log_blocks = 10_000
    """Of nitro; geth has no such limit of its own."""
    most_simulated_blocks = 256
    gas_cap = 50_000_000
    """All the gas that one request may use."""
    lists_with_overrides = True
    """Older nodes make access lists on the state as it is only."""

    def __init__(self, upstream: str, dialect: Kind) -> None:
        super().__init__(upstream)
        self.dialect = dialect
        self.refuses: Callable[[int], bool] = lambda _: False
        self.simulations = 0

    # --- requests -------------------------------------------------------------------------------------

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        body = json.loads(await request.read())
        if self.dialect == "anvil":
            return web.json_response(await self._post(body))
        if isinstance(body, dict):
            return web.json_response((await self._answers([body]))[0])
        if len(body) > self.most_batch:
            error = {"code": -32600, "message": "batch too large"}
            return web.json_response([{"jsonrpc": "2.0", "id": body[0].get("id"), "error": error}])
        return web.json_response(await self._answers(body))

    async def _post(self, body: object) -> Any:
        async with self._session.post(self._upstream, json=body, timeout=aiohttp.ClientTimeout(30)) as answer:
            return await answer.json(content_type=None)

    async def _ask(self, method: str, *params: object) -> Any:
        """The real node's result. Raises Refused with its error."""
        answer = await self._post({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        if "error" in answer:
            raise Refused(**answer["error"])
        return answer["result"]

    async def _answers(self, calls: Batch) -> Batch:
        """What passes goes to the real node in one batch; what does not is answered here."""
        own = [call for call in calls if call["method"] in OWN_METHODS or self._is_refused(call)]
        passing = [call for call in calls if call not in own]
        found = await asyncio.gather(*(self._answer(call) for call in own))
        by_id = {answer["id"]: answer for answer in (*await self._passed(passing), *found)}
        return [by_id[call["id"]] for call in calls]

    async def _passed(self, calls: Batch) -> Batch:
        answers: Batch = await self._post(calls) if calls else []
        methods = {call["id"]: call["method"] for call in calls}
        for answer in answers:
            if methods[answer["id"]].startswith("eth_getBlockBy") and answer.get("result"):
                self._as_header(answer["result"])
        return answers

    async def _answer(self, call: Json) -> Json:
        handlers: dict[str, Callable[[list[Any]], Awaitable[Any]]] = {
            "eth_simulateV1": self._simulate,
            "eth_getLogs": self._logs,
            "eth_createAccessList": self._access_list,
        }
        try:
            if self._is_refused(call):
                _refuse_arbos(call["params"][2])
            result = await handlers[call["method"]](call.get("params", []))
        except Refused as refused:
            return {"jsonrpc": "2.0", "id": call["id"], "error": refused.error}
        return {"jsonrpc": "2.0", "id": call["id"], "result": result}

    def _is_refused(self, call: Json) -> bool:
        """Whether a single call overrides the state of ArbOS on nitro."""
        is_call = self.dialect == "nitro" and call["method"] in CALLS
        return is_call and any(map(_overrides_arbos, call.get("params", [])[2:3]))

    async def _access_list(self, params: list[Any]) -> Any:
        """With overrides, which anvil does not take: all that a trace touched, without the two accounts of
        the call, the block's producer and precompiles."""
        if len(params) < 3:
            return await self._ask("eth_createAccessList", *params)
        if not self.lists_with_overrides:
            raise Refused(-32602, "too many arguments, want at most 2")
        sent, block, overrides = params
        pinned = await self._header(block)
        if self.dialect == "nitro":
            _as_arbos_allows({"stateOverrides": overrides})
        number = int(pinned["number"], 16)
        inside = parent_number(number) if self.dialect == "nitro" else number
        moment = {"number": hex(inside), "time": pinned["timestamp"]}
        how = {"tracer": "prestateTracer", "stateOverrides": overrides, "blockOverrides": moment}
        touched = await self._ask("debug_traceCall", sent, hex(number), how)
        left_out = {sent["from"].lower(), sent["to"].lower(), pinned["miner"].lower()}
        entries = [
            {"address": address, "storageKeys": sorted(account.get("storage", {}))}
            for address, account in touched.items()
            if address.lower() not in left_out and int(address, 16) > MOST_PRECOMPILE
        ]
        try:
            await self._ask("eth_call", sent, hex(number), overrides, moment)
        except Refused as refused:
            return {"accessList": entries, "gasUsed": "0x5208", "error": refused.error["message"]}
        return {"accessList": entries, "gasUsed": "0x5208"}

    async def _logs(self, params: list[Any]) -> Any:
        wanted = params[0]
        if self.dialect == "nitro" and "blockHash" not in wanted:
            first, last = [await self._number(wanted.get(end, "latest")) for end in ("fromBlock", "toBlock")]
            if last - first + 1 > self.most_log_blocks:
                raise Refused(-32005, f"block range exceeds the limit of {self.most_log_blocks}")
        return await self._ask("eth_getLogs", *params)

    async def _number(self, block: str) -> int:
        if block.startswith("0x"):
            return int(block, 16)
        return int((await self._header(block))["number"], 16)

    async def _header(self, block: Any) -> Json:
        """A block by hash, number or tag, as the real node has it."""
        by_hash = isinstance(block, dict) and "blockHash" in block
        method = "eth_getBlockByHash" if by_hash else "eth_getBlockByNumber"
        name = block["blockHash"] if by_hash else block
        found: Json | None = await self._ask(method, name, False)
        if found is None:
            raise Refused(-32000, "header not found")
        return found

    def _as_header(self, header: Json) -> None:
        if self.dialect == "nitro":
            header["l1BlockNumber"] = hex(parent_number(int(header["number"], 16)))
            header["gasLimit"] = hex(NITRO_GAS_LIMIT)

    # --- simulations ----------------------------------------------------------------------------------

    async def _simulate(self, params: list[Any]) -> list[Json]:
        """The blocks of an answer. Raises Refused."""
        nth, self.simulations = self.simulations, self.simulations + 1
        if self.refuses(nth):
            raise Refused(NO_FUNDS, "err: insufficient funds for gas * price + value")
        options, name = params[0], (params[1] if len(params) > 1 else "latest")
        pinned = await self._header(name)
        spots = chain(options["blockStateCalls"], pinned, self.most_simulated_blocks)
        if options.get("validation"):
            await self._validate(spots, name)
        if self.dialect == "nitro":
            for spot in spots:
                _as_arbos_allows(spot.asked or {})
        inside = parent_number(int(pinned["number"], 16)) if self.dialect == "nitro" else None
        asked = [written_out(spot, inside) for spot in spots if spot.asked is not None]
        limit = NITRO_GAS_LIMIT if self.dialect == "nitro" else int(pinned["gasLimit"], 16)
        answers = iter(await self._run(options, asked, name, limit))
        calls = iter(asked)
        blocks = [
            filled(spot) if spot.asked is None else as_geth(spot, next(calls), next(answers))
            for spot in spots
        ]
        parent = pinned["hash"]
        for block in blocks:
            block |= {"parentHash": parent, "gasLimit": hex(limit)}
            parent = block["hash"]
            if inside is not None:
                block["l1BlockNumber"] = hex(inside)
        return blocks

    async def _run(self, options: Json, asked: list[Json], name: Any, limit: int) -> list[Json]:
        """The real node's blocks. A call for which the request has too little gas left is given that."""
        while True:
            try:
                answer: list[Json] = await self._ask(
                    "eth_simulateV1", {**options, "blockStateCalls": asked}, name
                )
            except Refused as refused:
                raise _renamed(refused) from refused
            if not self._cut(asked, answer, limit):
                return answer

    def _cut(self, asked: list[Json], answer: list[Json], limit: int) -> bool:
        """Whether a call was given less gas, because the ones before it left no more. Raises Refused."""
        left = self.gas_cap
        for block, answered in zip(asked, answer, strict=True):
            used = 0
            for call, result in zip(block["calls"], answered["calls"], strict=True):
                gas = int(call["gas"], 16) if "gas" in call else limit - used
                if used + gas > limit:
                    raise Refused(BLOCK_GAS, f"block gas limit reached: {used + gas} >= {limit}")
                if gas > left:
                    call["gas"] = hex(left)
                    return True
                spent = int(result["gasUsed"], 16)
                used, left = used + spent, left - spent
        return False

    async def _validate(self, spots: list[Spot], name: Any) -> None:
        """Fees and nonces as a real block would have them. Raises Refused."""
        nonces: dict[str, int] = {}
        for spot in spots:
            if spot.asked is None:
                continue
            base_fee_wei = int(spot.asked.get("blockOverrides", {}).get("baseFeePerGas", "0x0"), 16)
            for account, override in spot.asked.get("stateOverrides", {}).items():
                if "nonce" in override:
                    nonces[account.lower()] = int(override["nonce"], 16)
            for call in spot.asked.get("calls", []):
                _validate_fees(call, base_fee_wei)
                sender = call.get("from", "0x" + "0" * 40).lower()
                if sender not in nonces and "nonce" in call:
                    count = await self._ask("eth_getTransactionCount", sender, name)
                    nonces[sender] = int(count, 16)
                if sender in nonces:
                    _validate_nonce(call, sender, nonces[sender])
                    nonces[sender] += 1


def _overrides_arbos(overrides: Json) -> bool:
    return ARBOS_STATE.lower() in map(str.lower, overrides)


def _refuse_arbos(overrides: Json) -> None:
    """Raises Refused."""
    if _overrides_arbos(overrides):
        raise Refused(-32000, f"overriding address {ARBOS_STATE}  not allowed")


def _as_arbos_allows(block: Json) -> None:
    """No tips, and nothing that would touch what the parent chain keeps in the state and in headers. Raises
    Refused."""
    _refuse_arbos(block.get("stateOverrides", {}))
    if "prevRandao" in block.get("blockOverrides", {}):
        raise Refused(-32000, "unknown version of the rules in the header's mixHash")
    for call in block.get("calls", []):
        if "maxPriorityFeePerGas" in call:
            call["maxPriorityFeePerGas"] = "0x0"


def _validate_fees(call: Json, base_fee_wei: int) -> None:
    most_wei = int(call.get("maxFeePerGas") or call.get("gasPrice") or "0x0", 16)
    if int(call.get("maxPriorityFeePerGas", "0x0"), 16) > most_wei:
        raise Refused(-32602, "err: max priority fee per gas higher than max fee per gas")
    if most_wei < base_fee_wei:
        short = f"maxFeePerGas: {most_wei}, baseFee: {base_fee_wei}"
        raise Refused(FEE_TOO_LOW, f"err: max fee per gas less than block base fee: {short}")


def _validate_nonce(call: Json, sender: str, state: int) -> None:
    given = int(call.get("nonce", hex(state)), 16)
    if given != state:
        code, word = (NONCE_TOO_HIGH, "high") if given > state else (NONCE_TOO_LOW, "low")
        raise Refused(code, f"err: nonce too {word}: address {sender}, tx: {given} state: {state}")


def _renamed(refused: Refused) -> Refused:
    """anvil's error in geth's words."""
    message = str(refused).lower()
    if "insufficient funds" in message:
        return Refused(NO_FUNDS, "err: insufficient funds for gas * price + value")
    if "intrinsic gas" in message:
        return Refused(INTRINSIC_GAS, "err: intrinsic gas too low")
    return refused


def parent_number(number: int) -> int:
    """What NUMBER is in a block of nitro's: the parent chain's height, a tick every 120 blocks. Above all
    that the local chain's contracts remember, as the real one is."""
    return 23_000_000 + number // 120


def chain(asked: list[Json], pinned: Json, most: int) -> list[Spot]:
    """Numbers and timestamps of every block of a simulation, gaps filled. Raises Refused."""
    if not asked:
        raise Refused(-32602, "empty input")
    if len(asked) > most:
        raise Refused(TOO_MANY_BLOCKS, "too many blocks")
    spots: list[Spot] = []
    base = number = int(pinned["number"], 16)
    time_s = int(pinned["timestamp"], 16)
    for block in asked:
        overrides = block.get("blockOverrides", {})
        wanted = int(overrides.get("number", hex(number + 1)), 16)
        if wanted <= number:
            raise Refused(NUMBERS, f"block numbers must be in order: {wanted} <= {number}")
        if wanted - base > most:
            raise Refused(TOO_MANY_BLOCKS, "too many blocks")
        for between in range(number + 1, wanted):
            time_s += FILLER_S
            spots.append(Spot(between, time_s, None))
        wanted_s = int(overrides.get("time", hex(time_s + FILLER_S)), 16)
        if wanted_s <= time_s:
            raise Refused(TIMES, f"block timestamps must be in order: {wanted_s} <= {time_s}")
        number, time_s = wanted, wanted_s
        spots.append(Spot(number, time_s, block))
    return spots


def written_out(spot: Spot, number_inside: int | None) -> Json:
    """A block as the real node is asked for it: nothing left to what it assumes. Nitro (its number stands
    still) takes PREVRANDAO from the difficulty, of which geth takes no notice."""
    block = copy.deepcopy(spot.asked or {})
    number = spot.number if number_inside is None else number_inside
    told = {"number": hex(number), "time": hex(spot.time_s)}
    difficulty = block.get("blockOverrides", {}).pop("difficulty", "0x1")
    if number_inside is not None:
        told["prevRandao"] = f"0x{int(difficulty, 16):064x}"
    block["blockOverrides"] = {"prevRandao": "0x" + "0" * 64, **block.get("blockOverrides", {}), **told}
    block.setdefault("calls", [])
    return block


def filled(spot: Spot) -> Json:
    """An empty block between two that were asked for."""
    name = hashlib.sha256(f"{spot.number} {spot.time_s}".encode()).hexdigest()
    return {
        "number": hex(spot.number),
        "timestamp": hex(spot.time_s),
        "hash": "0x" + name,
        "gasUsed": "0x0",
        "transactions": [],
        "uncles": [],
        "withdrawals": [],
        "calls": [],
    }


def as_geth(spot: Spot, asked: Json, answered: Json) -> Json:
    """A block of the real node's answer as geth tells it."""
    number = hex(spot.number)
    calls = [_as_geth_call(one, told) for one, told in zip(asked["calls"], answered["calls"], strict=True)]
    for call in calls:
        for log in call["logs"]:
            log["blockNumber"] = number
    return {**answered, "number": number, "timestamp": hex(spot.time_s), "withdrawals": [], "calls": calls}


def _as_geth_call(asked: Json, told: Json) -> Json:
    told = {**told, "maxUsedGas": told["gasUsed"]}
    if told["status"] == "0x1":
        return told
    data: str = told["returnData"]
    starved = "gas" in asked and int(told["gasUsed"], 16) >= int(asked["gas"], 16)
    if data == "0x" and starved:
        return {**told, "error": {"code": MACHINE, "message": "out of gas"}}
    reason = _reason(bytes.fromhex(data[2:]))
    message = "execution reverted" + (f": {reason}" if reason is not None else "")
    return {**told, "returnData": "0x", "error": {"code": REVERTED, "message": message, "data": data}}


def _reason(data: bytes) -> str | None:
    try:
        if data[:4].hex() == "08c379a0":
            return str(decode(["string"], data[4:])[0])
        if data[:4].hex() == "4e487b71":
            (code,) = decode(["uint256"], data[4:])
            return _PANICS.get(code, f"unknown panic code: {code:#x}")
    except (DecodingError, UnicodeDecodeError, OverflowError):
        pass
    return None
