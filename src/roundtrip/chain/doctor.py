"""What works of a node and a network, what is missing, and what that costs. Asked by hand, and now and then
while the service runs."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Literal

import aiohttp
import msgspec
import structlog

from roundtrip.chain.blocks.heads import Heads
from roundtrip.chain.rpc.background import run_in_background
from roundtrip.chain.rpc.client import REVERTED, Node, RpcCall, RpcError, hex_bytes, quantity
from roundtrip.chain.rpc.dialect_probe import probe
from roundtrip.chain.rpc.errors import describe_error
from roundtrip.chain.rpc.node_pool import Nodes
from roundtrip.domain.base.errors import NodeFault, RoundtripError
from roundtrip.domain.base.types import Address, BlockRef
from roundtrip.venues import abi
from roundtrip.venues.base import Contracts

State = Literal["works", "in part", "missing"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the table: what was looked at, how it stands, what was seen, and what its lack costs."""

    what: str
    state: State
    seen: str
    costs: str = ""


@dataclass(frozen=True, slots=True)
class DoctorSubject:
    """What is looked at. ``now_s``: our clock, in seconds since 1970; ``clock``: counts seconds."""

    node: Node | Nodes
    heads: Heads
    contracts: Contracts
    chain_id: int
    now_s: float
    clock: Callable[[], float]
    thorough: bool = True
    """By hand: what is heavy is asked, too."""

    def block(self) -> BlockRef:
        """The newest block."""
        return self.heads.current().block


async def _chain(patient: DoctorSubject) -> list[Finding]:
    (answer,) = await patient.node.batch([RpcCall("eth_chainId", [])], budgeted=False)
    told = quantity(answer)
    if told != patient.chain_id:
        return [
            Finding(
                "chain id", "missing", f"{told}, not {patient.chain_id}", "everything: it is another chain"
            )
        ]
    return [Finding("chain id", "works", str(told))]


async def _clock(patient: DoctorSubject) -> list[Finding]:
    apart_s = int(patient.now_s) - patient.block().timestamp_s
    said = f"the newest block is {abs(apart_s)} s {'behind' if apart_s >= 0 else 'ahead of'} our clock"
    if abs(apart_s) <= _MOST_APART_S:
        return [Finding("clock", "works", said)]
    return [Finding("clock", "in part", said, "deadlines of prepared trades are twenty minutes by our clock")]


_MOST_APART_S = 60


async def _code(patient: DoctorSubject) -> list[Finding]:
    named = patient.contracts.by_name()
    at = {"blockHash": patient.block().hash}
    answers = await patient.node.batch(
        [RpcCall("eth_getCode", [a, at]) for a in named.values()], budgeted=False
    )
    told = [not (isinstance(one, RpcError) or hex_bytes(one)) for one in answers]
    without = [name for name, lacks in zip(named, told, strict=True) if lacks]
    empty = [name for name in without if not name.startswith("beside")]
    if empty:
        return [Finding("contracts", "missing", f"no code at {', '.join(empty)}", "what trades through them")]
    untold = _untold(answers)
    if without:
        return [Finding("contracts", "in part", f"no code at {', '.join(without)}", _BESIDE)]
    if untold:
        return [Finding("contracts", "in part", f"{untold} of {len(named)} were not told", _NOT_TOLD)]
    return [Finding("contracts", "works", f"code at all {len(named)}")]


_BESIDE = "nothing now: nobody trades through those"
_NOT_TOLD = "nothing is known of those: the node would not say"


def _untold(answers: list[msgspec.Raw | RpcError]) -> int:
    """How many calls the node would not run. Raises NodeFault where that is all of them."""
    errors = [one for one in answers if isinstance(one, RpcError) and one.code != REVERTED]
    if len(errors) == len(answers):
        raise NodeFault(describe_error(errors[0]))
    return len(errors)


# Views without arguments by which one contract names another: (of whom, view, who it is).
_LINKS = (
    ("swap_router02", "factory()", "v3_factory"),
    ("swap_router02", "WETH9()", "weth"),
    ("quoter_v2", "factory()", "v3_factory"),
    ("quoter_v2", "WETH9()", "weth"),
    ("v3_position_manager", "factory()", "v3_factory"),
    ("v4_state_view", "poolManager()", "v4_pool_manager"),
    ("v4_quoter", "poolManager()", "v4_pool_manager"),
    ("v4_position_manager", "poolManager()", "v4_pool_manager"),
    ("v4_position_manager", "permit2()", "permit2"),
    ("universal_router", "poolManager()", "v4_pool_manager"),
)


async def _links(patient: DoctorSubject) -> list[Finding]:
    at, contracts = {"blockHash": patient.block().hash}, patient.contracts
    calls = [
        RpcCall("eth_call", [{"to": getattr(contracts, of), "data": abi.selector(view)}, at])
        for of, view, _ in _LINKS
    ]
    answers = await patient.node.batch(calls, budgeted=False)
    untold, wrong = _untold(answers), []
    for (of, view, who), answer in zip(_LINKS, answers, strict=True):
        if isinstance(answer, RpcError) and answer.code != REVERTED:
            continue
        told: Address | None = None if isinstance(answer, RpcError) else abi.address_at(hex_bytes(answer), 0)
        if told != getattr(contracts, who):
            wrong.append(f"{of}.{view} is {told or 'not told'}")
    if wrong:
        return [
            Finding(
                "links", "missing", "; ".join(wrong), "verdicts: routers and pools of two kinds are mixed"
            )
        ]
    if untold:
        return [Finding("links", "in part", f"{untold} of {len(_LINKS)} were not told", _NOT_TOLD)]
    return [Finding("links", "works", f"all {len(_LINKS)} contracts name each other as configured")]


async def _simulation(patient: DoctorSubject) -> list[Finding]:
    head = patient.heads.current()
    found = await probe(patient.node, head.block, head.base_fee_wei)
    said = f"speaks as {found.dialect.name}; two blocks, code and balance overrides"
    inside = f"NUMBER {found.number_inside}, TIMESTAMP {found.timestamp_inside} inside the second block"
    rows = [Finding("eth_simulateV1", "works", said)]
    if found.dialect.lets_numbers_pass():
        return [*rows, Finding("NUMBER inside", "works", inside)]
    if found.dialect.own_numbers:
        most = f"a simulation spans {found.dialect.most_numbers} numbers, and an hour is 300"
        costs = f"tokens that may count blocks are unproven beyond a moment: {most}"
    else:
        costs = "tokens that may count blocks are unproven: no simulation makes NUMBER pass"
    return [*rows, Finding("NUMBER inside", "in part", inside, costs)]


_DEPTHS = (128, 5_000, 100_000, 1_000_000)


async def _archive(patient: DoctorSubject) -> list[Finding]:
    head = patient.block().number
    deep = [depth for depth in _DEPTHS if depth < head]
    calls = [RpcCall("eth_getBalance", [patient.contracts.weth, hex(head - depth)]) for depth in deep]
    answers = await patient.node.batch(calls, budgeted=False) if calls else []
    kept = [d for d, answer in zip(deep, answers, strict=True) if not isinstance(answer, RpcError)]
    if kept == deep:
        return [Finding("archive", "works", f"state of {max(kept, default=head)} blocks ago is told")]
    said = f"state of {max(kept, default=0)} blocks ago is told, of {min(set(deep) - set(kept))} not"
    return [Finding("archive", "in part", said, "what reads the past: proofs of old checks, old holders")]


_RANGES = (1_000, 10_000, 100_000)
_WORKING_RANGE = 10_000


async def _logs(patient: DoctorSubject) -> list[Finding]:
    head, served = patient.block().number, 0
    said = "no range is served"
    for blocks in _RANGES if patient.thorough else (_WORKING_RANGE,):
        first = max(0, head - blocks + 1)
        wanted = {"fromBlock": hex(first), "toBlock": hex(head), "address": patient.contracts.v3_factory}
        started = patient.clock()
        (answer,) = await patient.node.batch([RpcCall("eth_getLogs", [wanted])], budgeted=False)
        if isinstance(answer, RpcError):
            break
        served = head - first + 1
        said = f"{served} blocks in {int((patient.clock() - started) * 1000)} ms"
        if first == 0:
            break
    if not served:
        return [Finding("logs", "missing", said, "pools are looked for by their usual keys only")]
    state: State = "works" if served >= min(head, 10_000) else "in part"
    return [Finding("logs", state, said, "" if state == "works" else "learning of old pools takes longer")]


_BATCHES = (10, 100, 500)


async def _batches(patient: DoctorSubject) -> list[Finding]:
    taken = 0
    for size in _BATCHES:
        try:
            answers = await patient.node.batch([RpcCall("eth_chainId", [])] * size, budgeted=False)
        except NodeFault:
            break
        if any(isinstance(answer, RpcError) for answer in answers):
            break
        taken = size
    if taken >= 100:
        return [Finding("batches", "works", f"{taken} calls in one request")]
    state: State = "in part" if taken else "missing"
    return [
        Finding("batches", state, f"{taken} calls in one request", "a check takes up to 150 calls a trip")
    ]


_POLLED = "nothing is lost: the newest block is polled for"
_HEARD_WITHIN_S = 5.0


async def _nodes(patient: DoctorSubject) -> list[Finding]:
    if not isinstance(patient.node, Nodes):
        return []
    states = patient.node.state()
    ill = [f"{state.host} {state.condition}" for state in states if state.condition != "ok"]
    if not ill:
        return [Finding("nodes", "works", f"all {len(states)}")]
    left = len(states) - len(ill)
    costs = f"{left} of {len(states)} nodes are left to be asked"
    return [Finding("nodes", "in part" if left else "missing", "; ".join(ill), costs)]


async def _websocket(patient: DoctorSubject) -> list[Finding]:
    if not isinstance(patient.node, Node):
        return []
    url = "ws" + patient.node.url.removeprefix("http")
    ask = {"jsonrpc": "2.0", "id": 1, "method": "eth_subscribe", "params": ["newHeads"]}
    timeout = aiohttp.ClientWSTimeout(ws_close=1.0)
    try:
        async with (
            asyncio.timeout(_HEARD_WITHIN_S),
            patient.node.session.ws_connect(url, timeout=timeout, max_msg_size=2**20) as socket,
        ):
            await socket.send_json(ask)
            told = await socket.receive_json()
    except (TimeoutError, aiohttp.ClientError, OSError, TypeError, ValueError):
        return [Finding("websocket", "in part", "none at the same place", _POLLED)]
    if not isinstance(told, dict) or not isinstance(told.get("result"), str):
        return [Finding("websocket", "in part", "it tells of no new blocks", _POLLED)]
    return [Finding("websocket", "works", "it tells of new blocks")]


@dataclass(frozen=True, slots=True)
class DoctorCheck:
    """One thing that is looked at, and what it costs when nothing of it can be seen. ``heavy``: asked by hand
    only."""

    what: str
    how: Callable[[DoctorSubject], Awaitable[list[Finding]]]
    costs: str
    heavy: bool = False


LOOKS = (
    DoctorCheck("nodes", _nodes, "it is not known which nodes are left"),
    DoctorCheck("chain id", _chain, "everything"),
    DoctorCheck("clock", _clock, "everything: no block is heard of"),
    DoctorCheck("contracts", _code, "what trades through them"),
    DoctorCheck("links", _links, "it is not known whether the contracts belong together"),
    DoctorCheck("eth_simulateV1", _simulation, "every check: nothing is proven"),
    DoctorCheck("archive", _archive, "what reads the past"),
    DoctorCheck("logs", _logs, "pools are looked for by their usual keys only"),
    DoctorCheck("batches", _batches, "checks: they ask many things at once", heavy=True),
    DoctorCheck("websocket", _websocket, _POLLED, heavy=True),
)
NEEDED = frozenset({"chain id", "contracts", "links", "eth_simulateV1"})
"""Without these no check can be made."""


async def examine(patient: DoctorSubject) -> list[Finding]:
    """Every finding, in order. What the node refuses is a finding, never an exception."""
    found: list[Finding] = []
    for look in LOOKS:
        if look.heavy and not patient.thorough:
            continue
        try:
            found += await look.how(patient)
        except RoundtripError as fault:
            found.append(Finding(look.what, "missing", fault.message, look.costs))
        except (ValueError, msgspec.DecodeError):
            found.append(Finding(look.what, "missing", "its answer could not be read", look.costs))
    return found


_ROUND_S, _ROUND_AGAIN_S = 600.0, 15.0
log = structlog.get_logger(__name__)


class DoctorRounds:
    """Looks now and then while the service runs, so that nothing is missing silently. ``patient`` as it is
    when it is called."""

    def __init__(self, patient: Callable[[], DoctorSubject]) -> None:
        self._patient = patient
        self._found: tuple[Finding, ...] = ()

    def lacks(self) -> tuple[Finding, ...]:
        """What did not work, or in part, when it was last looked at; empty before that."""
        return tuple(found for found in self._found if found.state != "works")

    async def once(self) -> None:
        """Looks at everything that is not heavy."""
        self._found = tuple(await examine(self._patient()))

    @contextlib.asynccontextmanager
    async def going(self) -> AsyncIterator["DoctorRounds"]:
        """Looks in the background while the block of ``async with`` runs; sooner again where something that
        is needed was missing."""
        async with run_in_background(self._go(), "rounds"):
            yield self

    async def _go(self) -> None:
        while True:
            try:
                await self.once()
            except Exception:
                # Whatever a node answers, the service goes on.
                log.exception("the node could not be looked at")
            ill = any(row.what in NEEDED and row.state == "missing" for row in self._found)
            await asyncio.sleep(_ROUND_AGAIN_S if ill else _ROUND_S)
