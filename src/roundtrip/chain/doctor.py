"""Checks what works on a node and a network, what is missing, and what fails without it: on command, and
regularly while the service runs."""

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
from roundtrip.chain.rpc.client import REVERTED, Answer, Node, RpcCall, RpcError, hex_bytes, quantity
from roundtrip.chain.rpc.dialect import Dialect
from roundtrip.chain.rpc.dialect_probe import probe
from roundtrip.chain.rpc.node_pool import NodePool
from roundtrip.chain.rpc.node_words import quote_error
from roundtrip.chain.simulate.number_probe import is_honoured, probe_plan
from roundtrip.chain.simulate.reach import access_list_call, read_access_list
from roundtrip.chain.simulate.request import Plan, PlannedBlock, SimulatedStep, build, read
from roundtrip.domain.base.errors import NodeFault, RoundtripError
from roundtrip.domain.base.types import Address, BlockRef
from roundtrip.domain.check.evidence import Environment, NumberInstruction
from roundtrip.venues import abi
from roundtrip.venues.base import Call, Contracts

State = Literal["works", "in part", "missing"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One row of the report. ``what``: the part checked. ``seen``: the observation. ``costs``: what a service
    loses without it. ``check_costs``: what a check over this node alone loses; None: the same."""

    what: str
    state: State
    seen: str
    costs: str = ""
    check_costs: str | None = None


@dataclass(frozen=True, slots=True)
class DoctorSubject:
    """The node and network to check. ``now_s``: our clock, in seconds since 1970. ``clock``: counts
    seconds."""

    node: Node | NodePool
    heads: Heads
    contracts: Contracts
    chain_id: int
    now_s: float
    clock: Callable[[], float]
    thorough: bool = True
    """Whether to run heavy checks, too: on command only."""

    def block(self) -> BlockRef:
        """The newest block."""
        return self.heads.current().block


async def _chain(subject: DoctorSubject) -> list[Finding]:
    (answer,) = await subject.node.batch([RpcCall("eth_chainId", [])], budgeted=False)
    if isinstance(answer, RpcError):
        raise NodeFault(f"the node did not say which chain it is on ({quote_error(answer)})")
    chain_id = quantity(answer)
    if chain_id != subject.chain_id:
        return [
            Finding(
                "chain id",
                "missing",
                f"{chain_id}, not {subject.chain_id}: use a node of chain {subject.chain_id}",
                "everything: the node is on a different chain",
            )
        ]
    return [Finding("chain id", "works", str(chain_id))]


async def _clock(subject: DoctorSubject) -> list[Finding]:
    apart_s = int(subject.now_s) - subject.block().timestamp_s
    seen = f"the newest block is {abs(apart_s)} s {'behind' if apart_s >= 0 else 'ahead of'} our clock"
    if abs(apart_s) <= _MAX_APART_S:
        return [Finding("clock", "works", seen)]
    return [
        Finding(
            "clock", "in part", seen, "deadlines of prepared trades, which are twenty minutes by our clock"
        )
    ]


_MAX_APART_S = 60


async def _code(subject: DoctorSubject) -> list[Finding]:
    named = subject.contracts.by_name()
    pinned = {"blockHash": subject.block().hash}
    answers = await subject.node.batch(
        [RpcCall("eth_getCode", [a, pinned]) for a in named.values()], budgeted=False
    )
    is_empty = [not (isinstance(answer, RpcError) or hex_bytes(answer)) for answer in answers]
    missing = [name for name, lacks_code in zip(named, is_empty, strict=True) if lacks_code]
    needed = [name for name in missing if not name.startswith("beside")]
    if needed:
        return [
            Finding(
                "contracts", "missing", f"no code at {', '.join(needed)}", "trades through these contracts"
            )
        ]
    unanswered = _count_unanswered(answers)
    if missing:
        return [Finding("contracts", "in part", f"no code at {', '.join(missing)}", _BESIDE)]
    if unanswered:
        return [
            Finding(
                "contracts", "in part", f"the node did not answer for {unanswered} of {len(named)}", _UNKNOWN
            )
        ]
    return [Finding("contracts", "works", f"code at all {len(named)} addresses")]


_BESIDE = "nothing now: no trade uses these contracts"
_UNKNOWN = "whether these contracts are right is not known"


def _count_unanswered(answers: list[Answer]) -> int:
    """How many calls the node did not run. Raises NodeFault where it ran none."""
    errors = [answer for answer in answers if isinstance(answer, RpcError) and answer.code != REVERTED]
    if len(errors) == len(answers):
        raise NodeFault(f"the node ran none of the calls ({quote_error(errors[0])})")
    return len(errors)


# Views without arguments by which one contract names another: (contract, view, the named contract).
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


async def _links(subject: DoctorSubject) -> list[Finding]:
    pinned, contracts = {"blockHash": subject.block().hash}, subject.contracts
    calls = [
        RpcCall("eth_call", [{"to": getattr(contracts, contract), "data": abi.selector(view)}, pinned])
        for contract, view, _ in _LINKS
    ]
    answers = await subject.node.batch(calls, budgeted=False)
    unanswered, wrong = _count_unanswered(answers), []
    for (contract, view, target), answer in zip(_LINKS, answers, strict=True):
        if isinstance(answer, RpcError) and answer.code != REVERTED:
            continue
        named: Address | None = None if isinstance(answer, RpcError) else abi.address_at(hex_bytes(answer), 0)
        if named != getattr(contracts, target):
            wrong.append(f"{contract}.{view} is {named or 'unknown'}")
    if wrong:
        return [
            Finding(
                "links",
                "missing",
                "; ".join(wrong),
                "verdicts: routers and pools of different deployments are mixed",
            )
        ]
    if unanswered:
        return [
            Finding(
                "links", "in part", f"the node did not answer for {unanswered} of {len(_LINKS)}", _UNKNOWN
            )
        ]
    return [Finding("links", "works", f"all {len(_LINKS)} contracts name each other as configured")]


async def _simulation(subject: DoctorSubject) -> list[Finding]:
    head = subject.heads.current()
    probed = await probe(subject.node, head.block, head.base_fee_wei)
    seen = f"simulates in the format of {probed.dialect.name}; two blocks, code and balance overrides"
    inside = f"NUMBER {probed.number_inside}, TIMESTAMP {probed.timestamp_inside} in the second block"
    rows = [Finding("eth_simulateV1", "works", seen)]
    if probed.dialect.lets_numbers_pass():
        return [*rows, Finding("NUMBER inside", "works", inside)]
    stand_ins = await _number_stand_ins(subject, probed.dialect)
    if not stand_ins:
        costs = "tokens that may count blocks stay unproven: no simulation advances NUMBER by an hour"
        return [*rows, Finding("NUMBER inside", "in part", inside, costs)]
    seen = f"{inside}; a simulation can set {' or '.join(stand_ins)} in place of NUMBER"
    costs = "tokens that read block hashes, or could notice a copy of their code, stay unproven"
    return [*rows, Finding("NUMBER inside", "in part", seen, costs)]


_DRIVER = Address("0x" + "7b" * 20)
"""The wallet of the probes; it needs no key."""


async def _number_stand_ins(subject: DoctorSubject, dialect: Dialect) -> list[NumberInstruction]:
    """The instructions that copies of a token's code can run in place of NUMBER, because this node lets a
    simulation set their values. Empty also where the node cannot list the contracts that a trade calls."""
    head, weth = subject.heads.current(), subject.contracts.weth
    fees = (head.base_fee_wei, 2 * head.base_fee_wei, 0)
    env = Environment(_DRIVER, _DRIVER, _DRIVER, 0, head.coinbase, head.prev_randao, *fees)
    block = PlannedBlock(1, (SimulatedStep("buy", _DRIVER, Call(weth, abi.selector("totalSupply()")), 0),))
    probes = {name: probe_plan(env, name) for name in dialect.stand_ins}
    calls = [access_list_call(Plan(env, (block,)), head.block)]
    calls += [build(plan, head.block, dialect, copies) for plan, copies in probes.values()]
    listed, *answers = await subject.node.batch(calls, budgeted=False)
    if read_access_list(listed, weth) is None:
        return []
    return [
        name
        for (name, (plan, copies)), answer in zip(probes.items(), answers, strict=True)
        if is_honoured(plan, copies, read(plan, answer, head.block, dialect), dialect)
    ]


_DEPTHS = (128, 5_000, 100_000, 1_000_000)
"""Blocks before the newest one."""


async def _archive(subject: DoctorSubject) -> list[Finding]:
    head = subject.block().number
    depths = [depth for depth in _DEPTHS if depth < head]
    calls = [RpcCall("eth_getBalance", [subject.contracts.weth, hex(head - depth)]) for depth in depths]
    answers = await subject.node.batch(calls, budgeted=False) if calls else []
    available = [d for d, answer in zip(depths, answers, strict=True) if not isinstance(answer, RpcError)]
    if available == depths:
        return [Finding("archive", "works", f"has the state of {max(available, default=head)} blocks ago")]
    seen = (
        f"has the state of {max(available, default=0)} blocks ago, but not of "
        f"{min(set(depths) - set(available))}"
    )
    return [Finding("archive", "in part", seen, "reads of the past: proofs of old checks, old holders", "")]


_NO_INDEX = "boards, wallets, holders and alerts: nothing is indexed; pools with unusual keys are not found"
_STANDARD_POOLS = "nothing: it only looks at standard pools"
_RANGES = (1_000, 10_000, 100_000)
_WORKING_RANGE = 10_000


async def _logs(subject: DoctorSubject) -> list[Finding]:
    head, served = subject.block().number, 0
    seen = "the node serves no range"
    for blocks in _RANGES if subject.thorough else (_WORKING_RANGE,):
        first = max(0, head - blocks + 1)
        wanted = {"fromBlock": hex(first), "toBlock": hex(head), "address": subject.contracts.v3_factory}
        started = subject.clock()
        (answer,) = await subject.node.batch([RpcCall("eth_getLogs", [wanted])], budgeted=False)
        if isinstance(answer, RpcError):
            seen = f"{seen}; not {blocks} ({quote_error(answer)})"
            break
        served = head - first + 1
        seen = f"{served} blocks in {int((subject.clock() - started) * 1000)} ms"
        if first == 0:
            break
    if not served:
        return [Finding("logs", "missing", seen, _NO_INDEX, _STANDARD_POOLS)]
    state: State = "works" if served >= min(head, 10_000) else "in part"
    return [Finding("logs", state, seen, "" if state == "works" else "reading the past takes longer", "")]


_BATCHES = (10, 100, 500)


async def _batches(subject: DoctorSubject) -> list[Finding]:
    accepted, refused = 0, ""
    for size in _BATCHES:
        try:
            answers = await subject.node.batch([RpcCall("eth_chainId", [])] * size, budgeted=False)
        except NodeFault as fault:
            refused = f"; of {size}: {fault.why}"
            break
        errors = [answer for answer in answers if isinstance(answer, RpcError)]
        if errors:
            refused = f"; of {size}: {quote_error(errors[0])}"
            break
        accepted = size
    seen = f"{accepted} calls in one request{refused}"
    if accepted >= 100:
        return [Finding("batches", "works", seen)]
    state: State = "in part" if accepted else "missing"
    return [Finding("batches", state, seen, "checks: one sends up to 150 calls in a request")]


_POLLED = "nothing: the newest block is polled"
_HEARD_WITHIN_S = 5.0


async def _nodes(subject: DoctorSubject) -> list[Finding]:
    if not isinstance(subject.node, NodePool):
        return []
    states = subject.node.state()
    ill = [f"{state.host} {state.condition}" for state in states if state.condition != "ok"]
    if not ill:
        return [Finding("nodes", "works", f"all {len(states)}")]
    usable = len(states) - len(ill)
    costs = f"{usable} of {len(states)} nodes are usable"
    return [Finding("nodes", "in part" if usable else "missing", "; ".join(ill), costs)]


async def _websocket(subject: DoctorSubject) -> list[Finding]:
    if not isinstance(subject.node, Node):
        return []
    url = "ws" + subject.node.url.removeprefix("http")
    ask = {"jsonrpc": "2.0", "id": 1, "method": "eth_subscribe", "params": ["newHeads"]}
    timeout = aiohttp.ClientWSTimeout(ws_close=1.0)
    try:
        async with (
            asyncio.timeout(_HEARD_WITHIN_S),
            subject.node.session.ws_connect(url, timeout=timeout, max_msg_size=2**20) as socket,
        ):
            await socket.send_json(ask)
            answer = await socket.receive_json()
    except (TimeoutError, aiohttp.ClientError, OSError, TypeError, ValueError):
        return [Finding("websocket", "in part", "no websocket at the same url", _POLLED)]
    if not isinstance(answer, dict) or not isinstance(answer.get("result"), str):
        return [Finding("websocket", "in part", "the websocket reports no new blocks", _POLLED)]
    return [Finding("websocket", "works", "the websocket reports new blocks")]


@dataclass(frozen=True, slots=True)
class DoctorCheck:
    """One check. ``costs``, ``check_costs``: of the finding, where the check itself could not run.
    ``heavy``: run on command only."""

    what: str
    run: Callable[[DoctorSubject], Awaitable[list[Finding]]]
    costs: str
    check_costs: str | None = None
    heavy: bool = False


CHECKS = (
    DoctorCheck("nodes", _nodes, "which nodes are usable is not known"),
    DoctorCheck("chain id", _chain, "everything"),
    DoctorCheck("clock", _clock, "everything: no block arrives"),
    DoctorCheck("contracts", _code, "trades through these contracts"),
    DoctorCheck("links", _links, "whether the contracts belong together is not known"),
    DoctorCheck("eth_simulateV1", _simulation, "every check: nothing can be proven"),
    DoctorCheck("archive", _archive, "reads of the past", ""),
    DoctorCheck("logs", _logs, _NO_INDEX, _STANDARD_POOLS),
    DoctorCheck("batches", _batches, "checks: each sends many calls in one request", heavy=True),
    DoctorCheck("websocket", _websocket, _POLLED, heavy=True),
)
NEEDED = frozenset({"chain id", "contracts", "links", "eth_simulateV1"})
"""The parts without which no token can be checked."""
NEEDED_TO_SERVE = NEEDED | {"logs"}
"""The parts without which ``serve --all`` follows nothing."""


async def examine(subject: DoctorSubject) -> list[Finding]:
    """Every finding, in order. A refusal of the node is a finding, never an exception."""
    findings: list[Finding] = []
    for check in CHECKS:
        if check.heavy and not subject.thorough:
            continue
        try:
            findings += await check.run(subject)
        except RoundtripError as fault:
            findings.append(Finding(check.what, "missing", fault.message, check.costs, check.check_costs))
        except (ValueError, msgspec.DecodeError):
            findings.append(
                Finding(
                    check.what,
                    "missing",
                    "the node's answer could not be read",
                    check.costs,
                    check.check_costs,
                )
            )
    return findings


_ROUND_S, _ROUND_AGAIN_S = 600.0, 15.0
log = structlog.get_logger(__name__)


class DoctorRounds:
    """Runs the light checks from time to time while the service runs, so that nothing fails silently.
    ``subject`` is called before each round."""

    def __init__(self, subject: Callable[[], DoctorSubject]) -> None:
        self._subject = subject
        self._findings: tuple[Finding, ...] = ()

    def lacks(self) -> tuple[Finding, ...]:
        """The findings of the last round that did not work fully; empty before the first round."""
        return tuple(finding for finding in self._findings if finding.state != "works")

    async def once(self) -> None:
        """Runs one round."""
        self._findings = tuple(await examine(self._subject()))

    @contextlib.asynccontextmanager
    async def going(self) -> AsyncIterator["DoctorRounds"]:
        """Runs rounds in the background while the block of ``async with`` runs; sooner again where something
        needed is missing."""
        async with run_in_background(self._go(), "rounds"):
            yield self

    async def _go(self) -> None:
        while True:
            try:
                await self.once()
            except Exception:
                # Whatever a node answers, the rounds go on.
                log.exception("examining the node failed")
            is_ill = any(row.what in NEEDED and row.state == "missing" for row in self._findings)
            await asyncio.sleep(_ROUND_AGAIN_S if is_ill else _ROUND_S)
