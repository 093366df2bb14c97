"""Lets block numbers pass on a node whose simulations keep NUMBER still: reads what a trade reaches, and puts
copies in the place of code that reads NUMBER. docs/decisions/0010 says why, and when it may not."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec

from roundtrip.chain.rpc.client import Answer, RpcCall, hex_bytes
from roundtrip.chain.rpc.node_logs import UnverifiedLog
from roundtrip.chain.simulate import token_facts
from roundtrip.chain.simulate.block_dependence import DELEGATECALL, NUMBER, TIMESTAMP
from roundtrip.chain.simulate.legs import VenuePlace
from roundtrip.chain.simulate.number_copies import (
    INSTRUCTIONS,
    NumberCopies,
    copy_code,
    read_code,
    reads_own_copy,
)
from roundtrip.chain.simulate.number_probe import is_honoured, number_at, probe_plan
from roundtrip.chain.simulate.reach import (
    CodeGraph,
    Slot,
    TouchedContracts,
    access_list_call,
    read_access_list,
    storage_call,
    transfer_calls,
)
from roundtrip.chain.simulate.request import Plan, StepResult, build
from roundtrip.domain.base.errors import NodeFault
from roundtrip.domain.base.types import BPS, ZERO_ADDRESS, Address
from roundtrip.domain.base.venue import Venue
from roundtrip.domain.check.evidence import (
    AnyLaunch,
    LaunchRecord,
    Missing,
    NumberInstruction,
    NumberSubstitution,
    PoolLaunch,
    Probe,
)
from roundtrip.venues import abi

from .candidates import standard_venues
from .main_trips import probe_plan as sell_plan
from .session import BlockGaps, CheckSession, ReadAnswers, VenueTrial

_MAX_ROUNDS, _MAX_READS, _MAX_BATCH = 6, 256, 48
"""Rounds of reads, from contract to contract; reads in one round; reads in one batch."""
_MAX_CONTRACTS, _MAX_CODE_BYTES = 16, 250_000
"""To read so much code takes a second at most."""

# At most 80 characters each: texts cut a reason off there.
_TOO_MANY = "the token may count blocks, and it names too many contracts to read"
_NOT_LISTED = "the token may count blocks, and not all that its sale runs is known"
_HASHES = "the token may read block hashes, and no simulation makes blocks pass"
_ARBSYS = "the token may ask for the chain's own block number, which stands still here"
_OPAQUE = "the token may count blocks, and it runs code that is not for the EVM"
_CREATES = "the token may count blocks, and it runs code that makes other contracts"
_NOTICES = "the token counts blocks, and it could notice a copy of its code"
_NO_INSTRUCTION = "the token counts blocks, and on this node nothing can stand for NUMBER"
_DIFFERS = "the token counts blocks, and its trade differed with a copy of its code"

_FIRST: NumberInstruction = "COINBASE"
"""The instruction that stands for NUMBER, unless some code of the trade reads it."""


@dataclass(frozen=True, slots=True)
class _NodeNumbers:
    """NUMBER at the pinned block (None: not known), and whether a simulation can set ``_FIRST``."""

    number: int | None
    sets_first: bool


@dataclass(frozen=True, slots=True)
class PassedNumbers:
    """``gaps``: the venues whose later trades stay unknown where numbers cannot pass. ``copies``: for later
    simulations, if they pass their control; None: no code of a trade reads NUMBER. ``counting``: the trades
    that run them."""

    gaps: BlockGaps
    copies: NumberCopies | None = None
    counting: tuple["ReachedCodes", ...] = ()
    evidence: NumberSubstitution | None = None

    def venues(self) -> frozenset[Venue]:
        """The venues where a trade reaches code that reads block numbers, or that may."""
        return frozenset((*self.gaps, *(reached.trial.place.venue for reached in self.counting)))


@dataclass(frozen=True, slots=True)
class ReachedCodes:
    """A venue's trade: the codes that it may run, or why they are not all known."""

    trial: VenueTrial
    codes: Mapping[Address, bytes] | Missing

    def gap(self) -> Missing | None:
        """Why its later trades are unknown, whatever stands for NUMBER."""
        if isinstance(self.codes, Missing):
            return self.codes
        readings = [read_code(code) for code in self.codes.values()]
        if any(reading.reads_block_hash() for reading in readings):
            return Missing("token", _HASHES)
        if any(reading.asks_arbsys for reading in readings):
            return Missing("token", _ARBSYS)
        if any(reading.opaque for reading in readings):
            return Missing("token", _OPAQUE)
        if any(reading.makes_contracts() for reading in readings):
            return Missing("token", _CREATES)
        if any(map(_hides_calls, self.codes.values())):
            return Missing("token", _NOT_LISTED)
        counting = self.counting().values()
        notices = any(reading.inspects_code() for reading in readings) or any(map(reads_own_copy, counting))
        return Missing("token", _NOTICES) if counting and notices else None

    def counting(self) -> dict[Address, bytes]:
        """The codes that may read NUMBER."""
        if isinstance(self.codes, Missing):
            return {}
        return {address: code for address, code in self.codes.items() if read_code(code).reads_number()}

    def opcodes(self) -> frozenset[int]:
        """The instructions that it may reach."""
        codes = {} if isinstance(self.codes, Missing) else self.codes
        return frozenset(op for code in codes.values() for op in read_code(code).opcodes)


def _hides_calls(code: bytes) -> bool:
    """Whether a transfer may run a contract that is neither named nor seen now. A proxy may look its logic up
    in a way that cannot be followed; but not one that knows the time or the block's number, so that it could
    run another later."""
    unnamed = transfer_calls(code).unnamed
    knows_time = not read_code(code).opcodes.isdisjoint({TIMESTAMP, NUMBER})
    return bool(unnamed if knows_time else unnamed - {DELEGATECALL})


async def find_copies(
    run: CheckSession,
    trials: Iterable[VenueTrial],
    gaps: BlockGaps,
    launch: AnyLaunch | Missing | None,
    code: bytes | Missing,
) -> PassedNumbers:
    """``gaps``, without the venues where nothing reads block numbers or copies may let them pass. ``trials``:
    the venues to sell on; ``code``: the token's. Sends a batch and one for each step from contract to
    contract, and none where no gap is of the token."""
    stuck = [trial for trial in trials if _is_stuck(trial, gaps)]
    if not stuck or isinstance(code, Missing):
        return PassedNumbers(gaps)
    try:
        found, node = await _read_reached(run, stuck, launch, code)
        left = dict(gaps)
        for reached in found:
            left.pop(reached.trial.place.venue)
        left |= {reached.trial.place.venue: gap for reached in found if (gap := reached.gap()) is not None}
        counting = tuple(reached for reached in found if reached.gap() is None and reached.counting())
        if not counting:
            return PassedNumbers(left)
        instruction = await _choose_instruction(run, counting, node)
    except NodeFault:
        return PassedNumbers(gaps)
    if instruction is None or node.number is None:
        gap = Missing("token", _NO_INSTRUCTION)
        return PassedNumbers(left | {reached.trial.place.venue: gap for reached in counting})
    codes = _codes_of(counting)
    copied = tuple((address, copy_code(code, instruction)) for address, code in codes.items())
    return PassedNumbers(left, NumberCopies(instruction, node.number, copied), counting)


def _codes_of(counting: Iterable[ReachedCodes]) -> dict[Address, bytes]:
    return {address: code for reached in counting for address, code in reached.counting().items()}


def _is_stuck(trial: VenueTrial, gaps: BlockGaps) -> bool:
    gap = gaps.get(trial.place.venue)
    return gap is not None and gap.fault == "token" and trial.main_size() is not None


def _sale(run: CheckSession, trial: VenueTrial, delay_s: int) -> Plan:
    size = trial.main_size()
    assert size is not None
    return sell_plan(run, trial, Probe(size, delay_s, BPS, 0))


# --- contracts that may read block numbers -----------------------------------------------------------


def strange_contracts(run: CheckSession, places: Iterable[VenuePlace]) -> tuple[Address, ...]:
    """Contracts beside the token that take part in its trades and have unknown code: hooks, and quotes
    other than eth, weth and usdg."""
    known = (*run.means.contracts.all_addresses(), ZERO_ADDRESS, run.token)
    parties = (party for place in places for party in (place.venue.hook, place.venue.quote_address))
    return tuple(dict.fromkeys(party for party in parties if party is not None and party not in known))


def find_block_gaps(
    run: CheckSession,
    places: tuple[VenuePlace, ...],
    code: bytes | Missing,
    answers: ReadAnswers,
    launch: AnyLaunch | Missing | None,
) -> BlockGaps:
    """The venues where the token, a hook or a quote may read the block number. The tokens of the
    launchpad and the quotes that it approves are trusted."""
    codes = {run.token: code}
    codes |= {
        contract: token_facts.read_code(answers[contract]) for contract in strange_contracts(run, places)
    }
    trusted = {run.token, launch.quote_address} if isinstance(launch, LaunchRecord | PoolLaunch) else set()
    found = {
        contract: token_facts.block_count(code) for contract, code in codes.items() if contract not in trusted
    }
    gaps = {}
    for venue in (place.venue for place in places):
        parties = (run.token, venue.hook or run.token, venue.quote_address)
        gap = next((gap for gap in map(found.get, parties) if gap is not None), None)
        if gap is not None:
            gaps[venue] = gap
    return gaps


# --- what the trades reach -------------------------------------------------------------------------


async def _read_reached(
    run: CheckSession, trials: list[VenueTrial], launch: AnyLaunch | Missing | None, code: bytes
) -> tuple[list[ReachedCodes], _NodeNumbers]:
    """Asks for the access list of each venue's trade, and reads the code of all that it reaches. Raises
    NodeFault."""
    block, dialect = run.head.block, run.head.known_dialect()
    graph = CodeGraph(_known_contracts(run, trials, launch), {run.token: code})
    plan, copies = probe_plan(run.environments[0], _FIRST)
    _, named = graph.unread([run.token])
    slots = named[:_MAX_READS]
    calls = [access_list_call(_sale(run, trial, run.means.policy.later_s), block) for trial in trials]
    calls += [build(plan, block, dialect, copies), *(storage_call(slot, block) for slot in slots)]
    answers = await _ask(run, calls)
    lists = [read_access_list(answer, run.token) for answer in answers[: len(trials)]]
    told = run.results(plan, answers[len(trials)])
    node = _NodeNumbers(number_at(told, block, dialect), is_honoured(plan, copies, told, dialect))
    _keep_words(graph, slots, answers[len(trials) + 1 :])
    touched = {address for listed in lists if listed is not None for address in listed.addresses}
    parties = {party for trial in trials for party in _parties(run, trial)}
    is_complete = await _read_graph(run, graph, touched | parties)
    too_many = Missing("token", _TOO_MANY)
    found = [
        ReachedCodes(trial, _codes(graph, _parties(run, trial), listed) if is_complete else too_many)
        for trial, listed in zip(trials, lists, strict=True)
    ]
    return found, node


def _known_contracts(
    run: CheckSession, trials: list[VenueTrial], launch: AnyLaunch | Missing | None
) -> frozenset[Address]:
    """Contracts that need no reading: the network's own but for Multicall3, which returns the block
    number to any caller; standard pools; and what the launchpad made or approved."""
    contracts = run.means.contracts
    venues = [trial.place.venue for trial in trials]
    venues += [*standard_venues(contracts, run.token), *standard_venues(contracts, contracts.usdg)]
    pools = {venue.pool for venue in venues if venue.pool is not None}
    launched = {run.token, launch.quote_address} if isinstance(launch, LaunchRecord | PoolLaunch) else set()
    return frozenset({ZERO_ADDRESS, *contracts.all_addresses(), *pools, *launched} - {contracts.multicall3})


def _parties(run: CheckSession, trial: VenueTrial) -> set[Address]:
    venue = trial.place.venue
    return {run.token, venue.hook or run.token, venue.quote_address}


async def _read_graph(run: CheckSession, graph: CodeGraph, roots: set[Address]) -> bool:
    """Reads codes and storage until nothing new is named. False: there is too much to read. Raises
    NodeFault."""
    for _ in range(_MAX_ROUNDS):
        codes, slots = graph.unread(roots)
        if not codes and not slots:
            return True
        if len(codes) + len(slots) > _MAX_READS:
            return False
        block = run.head.block
        calls = [token_facts.code_call(address, block) for address in codes]
        calls += [storage_call(slot, block) for slot in slots]
        answers = await _ask(run, calls)
        graph.codes |= {a: hex_bytes(answer) for a, answer in zip(codes, answers, strict=False)}
        _keep_words(graph, slots, answers[len(codes) :])
        sizes = [len(code) for code in graph.codes.values() if code]
        if len(sizes) > _MAX_CONTRACTS or sum(sizes) > _MAX_CODE_BYTES:
            return False
    return False


async def _ask(run: CheckSession, calls: list[RpcCall]) -> list[Answer]:
    """One trip, in batches as small as nodes take. Raises NodeFault."""
    batches = [calls[at : at + _MAX_BATCH] for at in range(0, len(calls), _MAX_BATCH)]
    answers: list[Answer] = []
    for batch in await run.means.node.batches(batches, run.meter):
        if isinstance(batch, NodeFault):
            raise batch
        answers += batch
    return answers


def _keep_words(graph: CodeGraph, slots: list[Slot], answers: Sequence[Answer]) -> None:
    graph.words |= {
        slot: int.from_bytes(hex_bytes(answer), "big") for slot, answer in zip(slots, answers, strict=True)
    }


def _codes(
    graph: CodeGraph, parties: set[Address], listed: TouchedContracts | None
) -> dict[Address, bytes] | Missing:
    """The codes of a venue's trade. Where its list ends before the sale, they are known only if the parties
    of the trade, and what they name, also name all that is on it."""
    if listed is None:
        return Missing("token", _NOT_LISTED)
    reached = graph.reached_from(parties.union(listed.addresses))
    if not listed.completed and reached != graph.reached_from(parties):
        return Missing("token", _NOT_LISTED)
    return {address: graph.codes[address] for address in sorted(reached)}


# --- the copies and their control ------------------------------------------------------------------


async def _choose_instruction(
    run: CheckSession, counting: tuple[ReachedCodes, ...], node: _NodeNumbers
) -> NumberInstruction | None:
    """The first instruction that the node lets a simulation set and that none of the codes reads. Sends a
    batch for each that is tried beside the first. Raises NodeFault."""
    used = frozenset[int]().union(*(reached.opcodes() for reached in counting))
    block, dialect = run.head.block, run.head.known_dialect()
    for name in dialect.stand_ins:
        if INSTRUCTIONS[name] in used or (name == _FIRST and not node.sets_first):
            continue
        if name == _FIRST:
            return name
        plan, copies = probe_plan(run.environments[0], name)
        (answer,) = await run.means.node.batch([build(plan, block, dialect, copies)], run.meter)
        if is_honoured(plan, copies, run.results(plan, answer), dialect):
            return name
    return None


async def control_copies(run: CheckSession, passed: PassedNumbers) -> PassedNumbers:
    """Runs each venue's sales with the originals and with copies that get the originals' number. A venue
    where anything differs stays unknown. Both have the same blocks: nitro may charge the parent chain's fee,
    in gas, only where the block's producer is its own. Sends nothing where there are no copies."""
    if passed.copies is None:
        return passed
    copies, policy = passed.copies, run.means.policy
    block, dialect = run.head.block, run.head.known_dialect()
    plans = [
        [_sale(run, reached.trial, delay_s) for delay_s in (policy.later_s, policy.day_s)]
        for reached in passed.counting
    ]
    ways = (replace(copies, still=True, copies=()), replace(copies, still=True))
    batches = [[build(plan, block, dialect, way) for plan in sales for way in ways] for sales in plans]
    answers = await run.means.node.batches(batches, run.meter)
    gaps, controls = dict(passed.gaps), 0
    for reached, sales, batch in zip(passed.counting, plans, answers, strict=True):
        if isinstance(batch, NodeFault):
            gaps[reached.trial.place.venue] = Missing("node", batch.message)
        elif all(_is_same(run, plan, batch[2 * n], batch[2 * n + 1]) for n, plan in enumerate(sales)):
            controls += len(sales)
        else:
            gaps[reached.trial.place.venue] = Missing("token", _DIFFERS)
    if not controls:
        return PassedNumbers(gaps)
    codes = _codes_of(passed.counting)
    hashes = tuple("0x" + abi.keccak(code).hex() for code in codes.values())
    evidence = NumberSubstitution(copies.instruction, copies.start, tuple(codes), hashes, controls)
    return replace(passed, gaps=gaps, evidence=evidence)


def _is_same(run: CheckSession, plan: Plan, original: Answer, copy: Answer) -> bool:
    first, second = run.results(plan, original), run.results(plan, copy)
    if isinstance(first, Missing) or isinstance(second, Missing):
        return False
    return {label: _as_told(result) for label, result in first.items()} == {
        label: _as_told(result) for label, result in second.items()
    }


def _as_told(result: StepResult) -> tuple[object, ...]:
    """All that a call shows, without the hashes of its block."""
    logs = msgspec.json.decode(result.logs, type=list[UnverifiedLog])
    shown = tuple((log.address, log.topics, log.data) for log in logs)
    return result.ok, result.gas_used, result.data, result.out_of_gas, shown
