"""A node of another kind: in front of a real anvil, asked and answering as geth or nitro would.

What each kind does was measured; ``tests/chain/rpc/test_recorded_nodes.py`` compares it with the recording.
"""

import asyncio
import hashlib
import json
from collections.abc import Awaitable, Callable
from typing import Any, Literal

import aiohttp
from aiohttp import web

from support import nitro_blocks
from support.data_fee import PRICE_WEI, SEQUENCER, data_gas, estimated_data_gas, intrinsic_gas
from support.faulty_node import Batch, FaultyNode
from support.nitro_blocks import parent_number
from support.node_errors import (
    BLOCK_GAS,
    MACHINE,
    NO_FUNDS,
    PARAMS,
    POOL_EMPTY,
    REVERT_CODES,
    SERVER,
    Json,
    Refused,
    no_funds,
    revert_error,
    translate_error,
    validate_fees,
    validate_nonce,
)
from support.simulated_blocks import (
    SimulatedCall,
    chain,
    drop_transfers,
    filled,
    max_fee_wei,
    nonce_of,
    refuse_poor_senders,
    sender_of,
    written_out,
)

Kind = Literal["geth", "nitro", "anvil"]

ARBOS_STATE = "0xA4B05FffffFffFFFFfFFfffFfffFFfffFfFfFFFf"
"""Where the parent chain's number stands, among others."""
MAX_PRECOMPILE = 0xFFFF
MAX_CALL_GAS = 32_000_000
"""Of a single call on nitro, beside the data fee."""
NITRO_RANDAO = f"0x{1:064x}"


class DialectNode(FaultyNode):
    """``dialect`` anvil: everything passes. The limits may be set otherwise.

    ``refuses``: for which simulations, counted from 0, the answer is that the sender has too little.
    """

    max_batch = 1000
    max_log_blocks = 10_000
    """Of nitro; geth has no such limit of its own."""
    max_simulated_blocks = 256
    gas_cap = 50_000_000
    """All the gas that one request may use."""
    data_price_wei = PRICE_WEI
    """nitro's data fee, for a unit of data."""
    lists_with_overrides = True
    """Older nodes make access lists on the state as it is only."""

    def __init__(self, upstream: str, dialect: Kind) -> None:
        super().__init__(upstream)
        self.dialect = dialect
        self.is_nitro = dialect == "nitro"
        self.refuses: Callable[[int], bool] = lambda _: False
        self.simulations = 0
        self._handlers: dict[str, Callable[[list[Any]], Awaitable[Any]]] = {
            "eth_simulateV1": self._simulate,
            "eth_getLogs": self._logs,
            "eth_createAccessList": self._access_list,
            "eth_estimateGas": self._estimate,
            "eth_getBlockReceipts": self._receipts,
        }

    # --- requests -------------------------------------------------------------------------------------

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        body = json.loads(await request.read())
        if self.dialect == "anvil":
            return web.json_response(await self._post(body))
        if isinstance(body, dict):
            return web.json_response((await self._answers([body]))[0])
        if not body:
            return web.json_response(_error_answer(None, {"code": -32600, "message": "empty batch"}))
        if len(body) > self.max_batch:
            error = {"code": -32600, "message": "batch too large"}
            return web.json_response([_error_answer(body[0].get("id"), error)])
        return web.json_response(await self._answers(body))

    async def _post(self, body: object) -> Any:
        async with self._session.post(self._upstream, json=body, timeout=aiohttp.ClientTimeout(30)) as answer:
            return await answer.json(content_type=None)

    async def _ask(self, method: str, *params: object) -> Any:
        """The real node's result. Raises Refused with its error, as geth words it."""
        answer = await self._post({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        if "error" in answer:
            raise Refused(**translate_error(answer["error"], method, list(params)))
        return answer["result"]

    async def _answers(self, calls: Batch) -> Batch:
        """What passes goes to the real node in one batch; what does not is answered here."""
        prepared = await asyncio.gather(*(self._prepare(call) for call in calls))
        passing = [item for item in prepared if "method" in item]
        passed = {answer["id"]: answer for answer in (await self._post(passing) if passing else [])}
        return [self._translate(item, passed[item["id"]]) if "method" in item else item for item in prepared]

    async def _prepare(self, call: Json) -> Json:
        """The call to pass on, or an answer to it."""
        method, params = call["method"], call.get("params", [])
        try:
            if method in self._handlers:
                return {"jsonrpc": "2.0", "id": call["id"], "result": await self._handlers[method](params)}
            if method == "eth_call":
                params = await self._call_params(params)
            if self.is_nitro and method.startswith("eth_getBlock") and params[0] in ("safe", "finalized"):
                raise Refused(SERVER, f"{params[0]} block not found")
        except Refused as refused:
            return _error_answer(call["id"], refused.error)
        return {**call, "params": params}

    def _translate(self, call: Json, answer: Json) -> Json:
        method, result = call["method"], answer.get("result")
        if "error" in answer:
            error = translate_error(answer["error"], method, call.get("params", []))
            return _error_answer(call["id"], error)
        if self.is_nitro and isinstance(result, dict):
            if method.startswith("eth_getBlockBy"):
                _translate_nitro_block(result, in_full=call["params"][1])
            else:
                nitro_blocks.shift_index(result)
        return answer

    async def _call_params(self, params: list[Any]) -> list[Any]:
        """Of an eth_call. Without a price BASEFEE is 0; nitro keeps the data fee of the limit."""
        sent, block, overrides, given = _complete(params)
        moment = {**({} if max_fee_wei(sent) else {"baseFeePerGas": "0x0"}), **given}
        gas = min(int(sent.get("gas", hex(self.gas_cap)), 16), self.gas_cap)
        if self.is_nitro:
            _refuse_arbos(overrides)
            header = await self._header(block)
            moment |= _nitro_moment(header)
            base_fee_wei = int(given.get("baseFeePerGas") or header["baseFeePerGas"], 16)
            fee = data_gas(sent, nonce_of(sent), SEQUENCER, base_fee_wei, self.data_price_wei)
            if intrinsic_gas(sent) <= gas < intrinsic_gas(sent) + fee:
                raise Refused(SERVER, f"err: intrinsic gas too low (supplied gas {gas})")
            gas = min(max(gas - fee, 0), MAX_CALL_GAS)
        return [{**sent, "gas": hex(gas)}, block, overrides, moment]

    async def _estimate(self, params: list[Any]) -> str:
        sent, block, overrides, given = _complete(params)
        if not self.is_nitro:
            return str(await self._ask("eth_estimateGas", *params))
        _refuse_arbos(overrides)
        header = await self._header(block)
        moment = {**given, **_nitro_moment(header)}
        estimate = int(await self._ask("eth_estimateGas", sent, block, overrides, moment), 16)
        base_fee_wei = int(header["baseFeePerGas"], 16)
        return hex(estimate + estimated_data_gas(sent, nonce_of(sent), base_fee_wei, self.data_price_wei))

    async def _access_list(self, params: list[Any]) -> Any:
        """With overrides, which anvil does not take: all that a trace touched, without the two accounts of
        the call, the block's producer and precompiles."""
        sent, block, overrides = [*params, {}][:3]
        if len(params) > 2 and not self.lists_with_overrides:
            raise Refused(PARAMS, "too many arguments, want at most 2")
        pinned = await self._header(block)
        if self.is_nitro:
            _refuse_arbos(overrides)
            await self._refuse_poor_sender(sent, pinned, overrides)
        elif sent.get("maxFeePerGas") == "0x0" and "maxPriorityFeePerGas" not in sent:
            raise Refused(SERVER, "maxFeePerGas (0x0) < maxPriorityFeePerGas (0xf4240)")
        if len(params) < 3:
            return await self._ask("eth_createAccessList", *params)
        number = int(pinned["number"], 16)
        inside = parent_number(number) if self.is_nitro else number
        moment = {"number": hex(inside), "time": pinned["timestamp"]}
        how = {"stateOverrides": overrides, "blockOverrides": moment}
        traces = [
            await self._ask("debug_traceCall", sent, hex(number), {**how, "tracer": tracer})
            for tracer in ("prestateTracer", "callTracer")
        ]
        touched, run = traces
        left_out = {sent["from"].lower(), sent["to"].lower(), pinned["miner"].lower()}
        entries = [
            {"address": address, "storageKeys": sorted(account.get("storage", {}))}
            for address, account in touched.items()
            if address.lower() not in left_out and int(address, 16) > MAX_PRECOMPILE
        ]
        error = {"error": run["error"]} if "error" in run else {}
        return {"accessList": entries, "gasUsed": run["gasUsed"], **error}

    async def _refuse_poor_sender(self, sent: Json, pinned: Json, overrides: Json) -> None:
        """nitro takes the money for the gas before it makes an access list. Raises Refused."""
        sender, base_fee_wei = sent["from"].lower(), int(pinned["baseFeePerGas"], 16)
        fee = estimated_data_gas(sent, nonce_of(sent), base_fee_wei, self.data_price_wei)
        gas = int(sent.get("gas", hex(self.gas_cap + fee)), 16)
        want_wei = gas * int(sent.get("maxFeePerGas", hex(2 * base_fee_wei)), 16)
        own: Json = next((own for at, own in overrides.items() if at.lower() == sender), {})
        have = own.get("balance") or await self._ask("eth_getBalance", sender, pinned["number"])
        if int(have, 16) < want_wei:
            reason = str(no_funds(sender, int(have, 16), want_wei, gas)).removesuffix(
                f" (supplied gas {gas})"
            )
            name = hashlib.sha256(json.dumps(sent).encode()).hexdigest()
            raise Refused(SERVER, f"failed to apply transaction: 0x{name} {reason}")

    async def _receipts(self, params: list[Any]) -> Any:
        receipts = await self._ask("eth_getBlockReceipts", *params)
        if self.is_nitro and receipts is not None:
            for receipt in receipts:
                nitro_blocks.shift_index(receipt)
            receipts = [nitro_blocks.chain_receipt(await self._header(params[0])), *receipts]
        return receipts

    async def _logs(self, params: list[Any]) -> Any:
        wanted = params[0]
        if "blockHash" not in wanted:
            head = int(await self._ask("eth_blockNumber"), 16)
            tags = {"latest": head, "pending": head, "earliest": 0}
            first, last = [
                tags[name] if name in tags else int(name, 16)
                for name in (wanted.get(end, "latest") for end in ("fromBlock", "toBlock"))
            ]
            if first > last or (self.is_nitro and last > head):
                raise Refused(SERVER if self.is_nitro else PARAMS, "invalid block range params")
            if last > head:
                raise Refused(PARAMS, "block range extends beyond current head block")
            if self.is_nitro and last - first + 1 > self.max_log_blocks:
                raise Refused(-32005, f"block range exceeds the limit of {self.max_log_blocks}")
        logs = await self._ask("eth_getLogs", *params)
        for log in logs if self.is_nitro else ():
            nitro_blocks.shift_index(log)
        return logs

    async def _header(self, block: Any) -> Json:
        """A block by hash, number or tag, as this node has it."""
        by_hash = isinstance(block, dict) and "blockHash" in block
        method = "eth_getBlockByHash" if by_hash else "eth_getBlockByNumber"
        header: Json | None = await self._ask(method, block["blockHash"] if by_hash else block, False)
        if header is None:
            raise Refused(SERVER, "header not found")
        if self.is_nitro:
            nitro_blocks.translate_block(header)
        return header

    # --- simulations ----------------------------------------------------------------------------------

    async def _simulate(self, params: list[Any]) -> list[Json]:
        """The blocks of an answer. Raises Refused."""
        nth, self.simulations = self.simulations, self.simulations + 1
        if self.refuses(nth):
            raise Refused(NO_FUNDS, "err: insufficient funds for gas * price + value")
        options, name = params[0], (params[1] if len(params) > 1 else "latest")
        pinned = await self._header(name)
        spots = chain(options["blockStateCalls"], pinned, self.max_simulated_blocks, self.is_nitro)
        if self.is_nitro:
            for spot in spots:
                await self._apply_nitro_rules(spot.asked or {}, name)
        asked = [
            written_out(spot, pinned, options.get("validation", False), self.is_nitro)
            for spot in spots
            if spot.asked is not None
        ]
        state = await self._read_accounts(asked, name)
        steps = self._steps(asked, {at: nonce for at, (nonce, _) in state.items()}, options)
        refuse_poor_senders(asked, steps, state)
        answered = await self._run(options, asked, steps, name, int(pinned["gasLimit"], 16))
        results = iter(zip(asked, steps, answered, strict=True))
        overrides: Json = {}
        blocks, parent = [], pinned["hash"]
        for spot in spots:
            if spot.asked is None:
                block = filled(spot, pinned)
            else:
                requested, block_steps, block = next(results)
                _merge(overrides, requested.get("stateOverrides", {}))
                await self._translate_results(block, block_steps, requested, overrides, name)
            number = {"number": hex(spot.number), "timestamp": hex(spot.time_s)}
            block |= {**number, "parentHash": parent, "gasLimit": pinned["gasLimit"], "withdrawals": []}
            if self.is_nitro:
                block["l1BlockNumber"] = pinned["l1BlockNumber"]
                del block["withdrawals"]
            for log in (log for call in block["calls"] for log in call["logs"]):
                log["blockNumber"] = block["number"]
            parent = block["hash"]
            blocks.append(block)
        return blocks

    async def _apply_nitro_rules(self, block: Json, name: Any) -> None:
        """Nothing that would touch what the parent chain keeps in the state; and a header whose mixHash is
        overwritten has other rules. Raises Refused."""
        overrides = block.setdefault("stateOverrides", {})
        _refuse_arbos(overrides)
        randao = block.get("blockOverrides", {}).pop("prevRandao", None)
        if randao is not None and nitro_blocks.is_of_first_version(randao):
            for callee in {call["to"] for call in block.get("calls", []) if call.get("to")}:
                override = overrides.setdefault(callee, {})
                code = override.get("code") or await self._ask("eth_getCode", callee, name)
                override["code"] = nitro_blocks.without_newer_opcodes(code)

    async def _read_accounts(self, asked: list[Json], name: Any) -> dict[str, tuple[int, int]]:
        """Nonce and balance of every sender."""
        senders = sorted({sender_of(call) for block in asked for call in block["calls"]})
        methods = ("eth_getTransactionCount", "eth_getBalance")
        calls = [
            {"jsonrpc": "2.0", "id": n, "method": method, "params": [sender, name]}
            for n, (sender, method) in enumerate((sender, method) for sender in senders for method in methods)
        ]
        answers = {answer["id"]: answer for answer in (await self._post(calls) if calls else [])}
        values = [int(answers[n]["result"], 16) for n in range(len(calls))]
        return dict(zip(senders, zip(values[::2], values[1::2], strict=True), strict=True))

    def _steps(self, asked: list[Json], nonces: dict[str, int], options: Json) -> list[list[SimulatedCall]]:
        """Every call, with its fees. Raises Refused where a real block would not have it."""
        steps: list[list[SimulatedCall]] = []
        for block in asked:
            moment, block_steps = block["blockOverrides"], []
            base_fee_wei, producer = int(moment["baseFeePerGas"], 16), moment["feeRecipient"]
            for account, override in block.get("stateOverrides", {}).items():
                if "nonce" in override:
                    nonces[account.lower()] = int(override["nonce"], 16)
            for call in block["calls"]:
                sender = sender_of(call)
                if options.get("validation"):
                    validate_fees(call, base_fee_wei)
                    validate_nonce(call, sender, nonces[sender])
                if self.is_nitro and "maxFeePerGas" in call:
                    call["maxPriorityFeePerGas"] = "0x0"
                nonce = nonce_of(call) or nonces[sender]
                nonces[sender] = nonce + 1
                fee = (
                    data_gas(call, nonce, producer, base_fee_wei, self.data_price_wei) if self.is_nitro else 0
                )
                tip_wei = int(call.get("maxPriorityFeePerGas", "0x0"), 16)
                price_wei = min(max_fee_wei(call), base_fee_wei + tip_wei)
                gas = int(call["gas"], 16) if "gas" in call else None
                supplied = self.gas_cap if gas is None else min(gas, self.gas_cap)
                max_run_gas = MAX_CALL_GAS if self.is_nitro else None
                block_steps.append(SimulatedCall(call, gas, supplied, fee, price_wei, max_run_gas))
                block_steps[-1].validate_gas()
            steps.append(block_steps)
        return steps

    async def _run(
        self, options: Json, asked: list[Json], steps: list[list[SimulatedCall]], name: Any, limit: int
    ) -> list[Json]:
        """The real node's blocks, without the transfers of data fees. A call for which the request has too
        little gas left is given that. Raises Refused."""
        while True:
            blocks = [
                {**block, "calls": [call for step in block_steps for call in step.sent()]}
                for block, block_steps in zip(asked, steps, strict=True)
            ]
            sent = {**options, "validation": True, "blockStateCalls": blocks}
            answered: list[Json] = await self._ask("eth_simulateV1", sent, name)
            for block, block_steps in zip(answered, steps, strict=True):
                drop_transfers(block, block_steps)
            if not self._limit_gas(steps, answered, limit):
                return answered

    def _limit_gas(self, steps: list[list[SimulatedCall]], answered: list[Json], limit: int) -> bool:
        """Whether a call is given less gas, because the ones before it left no more. Raises Refused."""
        left = self.gas_cap
        for block_steps, block in zip(steps, answered, strict=True):
            used = 0
            for step, result in zip(block_steps, block["calls"], strict=True):
                gas = limit - used if step.gas is None else step.gas
                if used + gas > limit:
                    reason = f"remaining: {limit - used}, required: {gas}"
                    raise Refused(BLOCK_GAS, f"block gas limit reached: {reason}")
                if self.is_nitro and left == 0:
                    raise Refused(POOL_EMPTY, f"err: gas limit reached (supplied gas {gas})")
                supplied, step.supplied = step.supplied, min(gas, left)
                step.validate_gas()
                if step.supplied != supplied:
                    return True
                gas_used = int(result["gasUsed"], 16) + step.data_gas
                used, left = used + gas_used, left - gas_used
        return False

    async def _translate_results(
        self, block: Json, steps: list[SimulatedCall], requested: Json, overrides: Json, name: Any
    ) -> None:
        """A block's calls as this node reports them. ``overrides``: of this block and those before it."""
        for step, result in zip(steps, block["calls"], strict=True):
            run_gas = int(result["gasUsed"], 16)
            result["gasUsed"] = hex(run_gas + step.data_gas)
            if not self.is_nitro:
                result["maxUsedGas"] = result["gasUsed"]
            if result["status"] == "0x1":
                continue
            data, result["returnData"] = result["returnData"], "0x"
            if data == "0x" and run_gas >= step.run_gas:
                moment = requested["blockOverrides"]
                message = await self._machine_error(step, overrides, moment, name)
                result["error"] = {"code": MACHINE, "message": message}
            else:
                result["error"] = revert_error(data, REVERT_CODES[self.dialect])
        block["gasUsed"] = hex(sum(int(result["gasUsed"], 16) for result in block["calls"]))

    async def _machine_error(self, step: SimulatedCall, overrides: Json, moment: Json, name: Any) -> str:
        """What ended a call that used all its gas. anvil does not say; a trace of the call alone does, unless
        calls before it matter."""
        sent = {
            field: value for field, value in step.sent()[-1].items()
            if not field.startswith(("max", "gasPrice"))
        }  # fmt: skip
        how = {"tracer": "callTracer", "stateOverrides": overrides, "blockOverrides": moment}
        try:
            error = (await self._ask("debug_traceCall", sent, name, how)).get("error", "")
        except Refused:
            error = ""
        return error if error and error != "execution reverted" else "out of gas"


def _error_answer(call_id: object, error: Json) -> Json:
    return {"jsonrpc": "2.0", "id": call_id, "error": error}


def _translate_nitro_block(block: Json, in_full: bool) -> None:
    nitro_blocks.translate_block(block)
    if in_full:
        block["transactions"][0] = nitro_blocks.chain_transaction(block)


def _complete(params: list[Any]) -> tuple[Json, Any, Json, Json]:
    """The parameters of a call, with those that were left out."""
    left_out: tuple[Any, ...] = ("latest", {}, {})
    block, overrides, moment = (*params[1:], *left_out[len(params) - 1 :])
    return params[0], block, overrides, moment


def _nitro_moment(header: Json) -> Json:
    """What a call on top of a block sees of it. GASLIMIT is the local chain's, which its contracts know."""
    return {"number": header["l1BlockNumber"], "prevRandao": NITRO_RANDAO}


def _refuse_arbos(overrides: Json) -> None:
    """Raises Refused."""
    if ARBOS_STATE.lower() in map(str.lower, overrides):
        raise Refused(SERVER, f"overriding address {ARBOS_STATE}  not allowed")


def _merge(overrides: Json, more: Json) -> None:
    for account, override in more.items():
        overrides[account.lower()] = {**overrides.get(account.lower(), {}), **override}
