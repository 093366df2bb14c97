"""Reads of a token and its venues: facts, code, proxy and launch record; plans and readings. Pure."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import msgspec
from msgspec import structs

from roundtrip.chain.rpc.client import REVERTED, RpcCall, RpcError, hex_bytes
from roundtrip.domain.base.errors import NodeFault
from roundtrip.domain.base.policy import Policy
from roundtrip.domain.base.types import BURN_ADDRESSES, WEI_PER_ETH, ZERO_ADDRESS, Address, BlockRef
from roundtrip.domain.base.venue import PoolFacts
from roundtrip.domain.check.evidence import AnyLaunch, Curve, Environment, LaunchRecord, Missing, TokenFacts
from roundtrip.venues import LAUNCHPADS, abi, erc20, launchpad_curve
from roundtrip.venues.base import Call, Contracts

from .block_dependence import CALLCODE, DELEGATECALL, DELEGATED, may_count_blocks
from .legs import VenuePlace
from .number_copies import read_code as read_opcodes
from .request import Plan, PlannedBlock, Results, SimulatedStep, StepResult

PROXY_ADMIN_SLOT = "0xb53127684a568b3173ae13b9f8a6016e243e63b6e8ee1178d6a717850b5d6103"
"""EIP-1967: keccak256("eip1967.proxy.admin") - 1."""

IMPLEMENTATION_SLOT = "0x360894a13ba1a3210667c828492db98dca3e2076cc3735a920a3ca505d382bbc"
"""EIP-1967: keccak256("eip1967.proxy.implementation") - 1."""

_VIEWS = (
    ("name", erc20.NAME),
    ("symbol", erc20.SYMBOL),
    ("decimals", erc20.DECIMALS),
    ("totalSupply", erc20.TOTAL_SUPPLY),
    ("owner", "0x8da5cb5b"),
    ("getOwner", "0x893d20e8"),
)
BEACON_SLOT = "0xa3f0ad74e5423aebfd80d3ef4346578335a9a72aeaee59ff6cb3582b35133d50"
"""EIP-1967: keccak256("eip1967.proxy.beacon") - 1."""

_PROXY_SLOTS = (PROXY_ADMIN_SLOT, IMPLEMENTATION_SLOT, BEACON_SLOT)

GET_CHAIN_ID = "0x3408e470"
"""Multicall3.getChainId()."""
_COUNTS_BLOCKS = "the token may count blocks, and no simulation on this chain makes blocks pass"
_CODE_READER = "0x3d35803b803d3d843c3df3"
"""Returns the code of the account that it is called with: CALLDATALOAD(0), DUP1, EXTCODESIZE, DUP1, 0, 0,
DUP5, EXTCODECOPY, 0, RETURN, with RETURNDATASIZE for 0."""
_NO_IMPLEMENTATION = Missing("token", "its beacon does not name the contract that it runs")
_NO_SLOTS = Missing("node", "the node did not read the token's proxy slots")
_TWO_IMPLEMENTATIONS = Missing("token", "its slots name two contracts that its code may run")
_RUNS_OTHERS = frozenset({CALLCODE, DELEGATECALL})
_BEACON_GAS, _PROXY_GAS = 200_000, 1_000_000
_PROXY_WORDS = 7
_MAX_TEXT_BYTES = 512
"""Longer names are cut before they become evidence."""


def facts_plan(
    token: Address, places: tuple[VenuePlace, ...], contracts: Contracts, env: Environment, policy: Policy
) -> Plan:
    """One simulated block of plain reads: the token's own views, a balance, every venue's state, the
    launchpad's record of the token, and the chain's id."""
    limit = policy.read_gas_limit
    steps = [SimulatedStep(name, env.reader, Call(token, head), limit) for name, head in _VIEWS]
    balance = Call(token, abi.call(erc20.BALANCE_OF, env.reader))
    steps.append(SimulatedStep("balanceOf", env.reader, balance, limit))
    reads = {
        f"launch-{number}": file.launch_calls(token, contracts) for number, file in enumerate(LAUNCHPADS)
    }
    for number, place in enumerate(places):
        reads[f"venue-{number}"] = place.file.fact_calls(place.venue, contracts)
    for label, calls in reads.items():
        steps += [SimulatedStep(f"{label}-{n}", env.reader, call, limit) for n, call in enumerate(calls)]
    steps.append(SimulatedStep("chain-id", env.reader, Call(contracts.multicall3, GET_CHAIN_ID), limit))
    return Plan(env, (PlannedBlock(1, tuple(steps), ((env.reader, WEI_PER_ETH),)),))


def with_code_read(block: PlannedBlock, token: Address, env: Environment, policy: Policy) -> PlannedBlock:
    """The block, which also returns the token's code: this saves the request ``code_call``. The code that
    reads it stands at an address that nothing else calls."""
    at = Address("0x" + abi.keccak(bytes.fromhex(env.reader[2:]) + b"code")[12:].hex())
    call = Call(at, "0x" + token[2:].rjust(64, "0"))
    step = SimulatedStep("code", env.reader, call, policy.read_gas_limit)
    return structs.replace(block, steps=(*block.steps, step), codes=(*block.codes, (at, _CODE_READER)))


def read_simulated_code(results: Results | Missing) -> bytes | Missing:
    """The code from a block ``with_code_read``."""
    if isinstance(results, Missing):
        return results
    code = results["code"]
    return code.data if code.ok else Missing("node", "the token's code could not be read")


def read_chain_id(results: Results | Missing) -> int | Missing:
    """The chain that the simulation ran on."""
    if isinstance(results, Missing):
        return results
    chain_id = _uint(results["chain-id"])
    return Missing("node", "the node does not say which chain it is on") if chain_id is None else chain_id


def code_call(token: Address, pinned: BlockRef) -> RpcCall:
    """The token's code at the pinned block."""
    return RpcCall("eth_getCode", [token, {"blockHash": pinned.hash}])


@dataclass(frozen=True, slots=True)
class ProxyFacts:
    """``admin``: who can replace a proxy's code: its admin, or the owner of its beacon; the beacon itself
    where that answers no address. ``implementation``: the contract that it delegates to; Missing: it could
    not be found out which. ``beacon``: the contract that names the implementation; ``beacon_owner``: who can
    act in the beacon, also where the proxy has an admin. None: there is none."""

    admin: Address | None
    implementation: Address | Missing | None
    beacon: Address | None = None
    beacon_owner: Address | None = None


def _proxy_reader() -> str:
    """A program that stands in place of a token's code. It returns the slots of EIP-1967's admin,
    implementation and beacon, then what the beacon answers to ``owner()`` and to ``implementation()``, each
    behind whether it answered."""
    slots = enumerate((PROXY_ADMIN_SLOT, IMPLEMENTATION_SLOT))
    parts = [f"7f{slot[2:]}5460{abi.WORD * n:02x}52" for n, slot in slots]  # PUSH32 slot SLOAD PUSH1 n MSTORE
    parts.append(f"7f{BEACON_SLOT[2:]}5480604052")  # PUSH32 slot SLOAD DUP1 PUSH1 64 MSTORE
    for at, view in ((0x60, "8da5cb5b"), (0xA0, "5c60da1b")):
        parts.append(f"63{view}60e01b61010052")  # PUSH4 selector PUSH1 224 SHL PUSH2 256 MSTORE
        parts.append(f"602060{at + 32:02x}60046101008462{_BEACON_GAS:06x}fa")  # STATICCALL
        parts.append(f"601f3d111660{at:02x}52")  # and RETURNDATASIZE > 31: MSTORE
    return f"0x{''.join(parts)}60{_PROXY_WORDS * abi.WORD:02x}5ff3"


_PROXY_READER = _proxy_reader()


def proxy_call(token: Address, pinned: BlockRef) -> RpcCall:
    """Reads who can replace the token's code, and the contract that it delegates to, at the pinned block."""
    request, codes = {"to": token, "gas": hex(_PROXY_GAS)}, {token: {"code": _PROXY_READER}}
    return RpcCall("eth_call", [request, {"blockHash": pinned.hash}, codes])


def read_proxy(answer: msgspec.Raw | RpcError, token: Address, code: bytes | Missing) -> ProxyFacts | Missing:
    """The answer to ``proxy_call`` of the token. The token's author controls its slots, so a value in one
    must not hide what another names. ``code``: of the token."""
    data = _bytes(answer)
    if isinstance(data, Missing):
        return data
    return _read_words(data, token, code) if len(data) == _PROXY_WORDS * abi.WORD else _NO_SLOTS


def slot_calls(token: Address, pinned: BlockRef) -> tuple[RpcCall, ...]:
    """Reads the slots of ``proxy_call`` alone, where the node's eth_call takes no other code."""
    return tuple(
        RpcCall("eth_getStorageAt", [token, slot, {"blockHash": pinned.hash}]) for slot in _PROXY_SLOTS
    )


def read_slots(
    answers: Sequence[msgspec.Raw | RpcError], token: Address, code: bytes | Missing
) -> ProxyFacts | Missing:
    """The answers to ``slot_calls``. Missing also where a beacon counts: it was not asked."""
    words = [word for word in map(_bytes, answers) if isinstance(word, bytes) and len(word) == abi.WORD]
    if len(words) != len(_PROXY_SLOTS):
        return _NO_SLOTS
    proxy = _read_words(b"".join(words).ljust(_PROXY_WORDS * abi.WORD, b"\0"), token, code)
    return proxy if proxy.beacon is None else _NO_SLOTS


def _read_words(data: bytes, token: Address, code: bytes | Missing) -> ProxyFacts:
    admin, implementation, beacon = (_slot_address(data, n) for n in range(3))
    if beacon is None or not _may_ask_beacon(code):
        return ProxyFacts(admin, implementation)
    # In this call the token's own code is not there to answer.
    owner, named = (None, None) if beacon == token else (_answered_address(data, n) for n in (3, 5))
    beacon_owner, named = _none_if_zero(owner or beacon), _none_if_zero(named)
    is_other = implementation is not None and implementation != named
    return ProxyFacts(
        admin=(beacon_owner or admin) if admin is None or admin in BURN_ADDRESSES else admin,
        implementation=_TWO_IMPLEMENTATIONS if is_other else named or _NO_IMPLEMENTATION,
        beacon=beacon,
        beacon_owner=beacon_owner,
    )


def _may_ask_beacon(code: bytes | Missing) -> bool:
    """Whether code can run what a beacon names: it runs other code in its place, or it has the slot."""
    if isinstance(code, Missing) or code.startswith(DELEGATED):
        return True
    return not _RUNS_OTHERS.isdisjoint(read_opcodes(code).opcodes) or bytes.fromhex(BEACON_SLOT[2:]) in code


def _slot_address(data: bytes, index: int) -> Address | None:
    """The address in a slot; None: zero. A proxy takes the low bytes, whatever is above them."""
    return _none_if_zero(Address("0x" + data[index * abi.WORD : (index + 1) * abi.WORD][-20:].hex()))


def _answered_address(data: bytes, index: int) -> Address | None:
    """The address that a contract answered, behind whether it answered; None: it gave none."""
    return abi.address_at(data, index + 1) if abi.uint_at(data, index) else None


def _none_if_zero(address: Address | None) -> Address | None:
    return None if address == ZERO_ADDRESS else address


def block_count(code: bytes | Missing) -> Missing | None:
    """Why a contract's behaviour in later blocks is unknown on a chain where no simulation advances the block
    number: it may read block numbers, or its code is missing. None: it reads none."""
    if isinstance(code, Missing):
        return code
    return Missing("token", _COUNTS_BLOCKS) if may_count_blocks(code) else None


_MINIMAL_PROXY = re.compile(
    rb"\A\x36\x3d\x3d\x37\x3d\x3d\x3d\x36\x3d\x73(.{20})\x5a\xf4\x3d\x82\x80\x3e\x90\x3d\x91\x60\x2b\x57\xfd\x5b\xf3",
    re.DOTALL,
)
"""EIP-1167: the whole code of an immutable proxy, with its implementation in the middle."""


def read_code(answer: msgspec.Raw | RpcError) -> bytes | Missing:
    """The code in the answer to ``code_call``."""
    return _bytes(answer)


def implementation_of(code: bytes | Missing, proxy: ProxyFacts | Missing) -> Address | Missing | None:
    """The implementation that the token delegates to; None: it runs its own code."""
    if isinstance(code, bytes) and (minimal := _MINIMAL_PROXY.match(code)):
        return Address("0x" + minimal[1].hex())
    return proxy if isinstance(proxy, Missing) else proxy.implementation


SnipeAnswer = msgspec.Raw | RpcError | None
"""The node's answer to ``snipe_call``: the snipe tax, which a curve takes of early buys in addition to its
fees, in bps. None where no curve is known."""


def snipe_call(place: VenuePlace, env: Environment, pinned: BlockRef) -> RpcCall:
    """Reads the snipe tax that a curve takes of a buy by a fresh wallet, at the pinned block."""
    call = launchpad_curve.snipe_call(place.venue, env.buyer)
    return RpcCall("eth_call", [{"to": call.to, "data": call.data}, {"blockHash": pinned.hash}])


def read_launch(
    results: Results | Missing,
    token: Address,
    places: tuple[VenuePlace, ...],
    snipe: SnipeAnswer,
    contracts: Contracts,
) -> AnyLaunch | Missing | None:
    """The launchpad's record of the token, with its curve's state where the curve is one of the places. None:
    no launchpad launched it."""
    counts = [len(file.launch_calls(token, contracts)) for file in LAUNCHPADS]
    if isinstance(results, Missing):
        return results if any(counts) else None
    for number, file in enumerate(LAUNCHPADS):
        launch = file.read_launch(token, _answers(results, f"launch-{number}", counts[number]), contracts)
        if isinstance(launch, LaunchRecord) and launch.phase == "curve":
            return replace(launch, curve_state=_curve(results, launch, places, snipe, contracts))
        if launch is not None:
            return launch
    return None


def _curve(
    results: Results,
    launch: LaunchRecord,
    places: tuple[VenuePlace, ...],
    snipe: SnipeAnswer,
    contracts: Contracts,
) -> Curve | Missing | None:
    number = next((n for n, place in enumerate(places) if place.venue.pool == launch.curve), None)
    if number is None:
        return None
    if snipe is None:
        return None
    count = len(places[number].file.fact_calls(places[number].venue, contracts))
    answers = _answers(results, f"venue-{number}", count)
    # A curve of another version, without the snipe tax, reverts.
    tax = b"" if isinstance(snipe, RpcError) and snipe.code == REVERTED else _bytes(snipe)
    if isinstance(tax, Missing):
        return tax
    return launchpad_curve.read_curve(answers, abi.uint_at(tax, 0) or 0)


def _answers(results: Results, label: str, count: int) -> tuple[bytes | None, ...]:
    answers = (results[f"{label}-{n}"] for n in range(count))
    return tuple(r.data if r.ok else None for r in answers)


def read_token_facts(
    results: Results | Missing, code: bytes | Missing, proxy: ProxyFacts | Missing
) -> TokenFacts:
    """The token's facts. Missing: the node did not answer. None: the token did not."""
    common = {
        "code_bytes": len(code) if isinstance(code, bytes) else code,
        "proxy_admin": proxy if isinstance(proxy, Missing) else proxy.admin,
    }
    if isinstance(results, Missing):
        gap = results
        unknown = dict.fromkeys(("name_data", "symbol_data", "decimals", "owner"), gap)
        return TokenFacts(
            total_supply_raw=gap,
            balance_answers=gap,
            **unknown,
            **common,  # type: ignore[arg-type]
        )
    decimals = _uint(results["decimals"])
    return TokenFacts(
        name_data=_text_data(results["name"]),
        symbol_data=_text_data(results["symbol"]),
        decimals=decimals if decimals is not None and decimals < 256 else None,
        total_supply_raw=_uint(results["totalSupply"]),
        balance_answers=_uint(results["balanceOf"]) is not None,
        owner=_address(results["owner"]) or _address(results["getOwner"]),
        **common,  # type: ignore[arg-type]
    )


def read_pool_facts(
    results: Results | Missing, number: int, place: VenuePlace, token: Address, contracts: Contracts
) -> PoolFacts | Missing:
    """The state of venue ``number`` of the plan."""
    if isinstance(results, Missing):
        return results
    count = len(place.file.fact_calls(place.venue, contracts))
    return place.file.read_facts(place.venue, token, _answers(results, f"venue-{number}", count))


def _bytes(answer: msgspec.Raw | RpcError) -> bytes | Missing:
    try:
        return hex_bytes(answer)
    except NodeFault as fault:
        return Missing("node", fault.message)


def _uint(result: StepResult) -> int | None:
    return abi.uint_at(result.data, 0) if result.ok else None


def _address(result: StepResult) -> Address | None:
    return abi.address_at(result.data, 0) if result.ok else None


def _text_data(result: StepResult) -> str | None:
    return "0x" + result.data[:_MAX_TEXT_BYTES].hex() if result.ok and result.data else None
