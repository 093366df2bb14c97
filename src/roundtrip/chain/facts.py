"""What trip 1 asks of the token and its venues, beside the buys: plans (pure) and readings (pure)."""

import msgspec

from roundtrip.domain.errors import NodeFault
from roundtrip.domain.evidence import Environment, Missing, PoolFacts, TokenFacts
from roundtrip.domain.policy import Policy
from roundtrip.domain.types import WEI_PER_ETH, ZERO_ADDRESS, Address, BlockRef
from roundtrip.venues import abi, erc20
from roundtrip.venues.base import Call, Contracts

from .probes import Place
from .rpc import RpcCall, RpcError, hex_bytes
from .simulate import Plan, PlannedBlock, Results, Step, StepResult

PROXY_ADMIN_SLOT = "0xb53127684a568b3173ae13b9f8a6016e243e63b6e8ee1178d6a717850b5d6103"
"""EIP-1967: keccak256("eip1967.proxy.admin") - 1."""

_VIEWS = (
    ("name", "0x06fdde03"),
    ("symbol", "0x95d89b41"),
    ("decimals", "0x313ce567"),
    ("totalSupply", "0x18160ddd"),
    ("owner", "0x8da5cb5b"),
    ("getOwner", "0x893d20e8"),
)
_MOST_TEXT_BYTES = 512
"""Names beyond this are cut before they are kept as evidence."""


def facts_plan(
    token: Address, places: tuple[Place, ...], contracts: Contracts, env: Environment, policy: Policy
) -> Plan:
    """One simulated block of plain reads: the token's own views, a balance, every venue's state."""
    limit = policy.read_gas_limit
    steps = [Step(name, env.reader, Call(token, head), limit) for name, head in _VIEWS]
    balance = Call(token, abi.call(erc20.BALANCE_OF, env.reader))
    steps.append(Step("balanceOf", env.reader, balance, limit))
    for number, place in enumerate(places):
        calls = place.file.fact_calls(place.venue, contracts)
        steps += [Step(f"venue-{number}-{n}", env.reader, call, limit) for n, call in enumerate(calls)]
    return Plan(env, (PlannedBlock(1, tuple(steps), ((env.reader, WEI_PER_ETH),)),))


def code_call(token: Address, pinned: BlockRef) -> RpcCall:
    """The token's code at the pinned block."""
    return RpcCall("eth_getCode", [token, {"blockHash": pinned.hash}])


def admin_call(token: Address, pinned: BlockRef) -> RpcCall:
    """The proxy admin's storage slot at the pinned block."""
    return RpcCall("eth_getStorageAt", [token, PROXY_ADMIN_SLOT, {"blockHash": pinned.hash}])


def read_token_facts(
    results: Results | Missing, code: msgspec.Raw | RpcError, admin: msgspec.Raw | RpcError
) -> TokenFacts:
    """The token's facts; a piece the node did not tell is Missing, one the token did not tell is None."""
    code_bytes = _bytes(code)
    admin_word = _bytes(admin)
    proxy_admin = abi.address_at(admin_word, 0) if isinstance(admin_word, bytes) else admin_word
    common = {
        "code_bytes": len(code_bytes) if isinstance(code_bytes, bytes) else code_bytes,
        "proxy_admin": None if proxy_admin == ZERO_ADDRESS else proxy_admin,
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
    results: Results | Missing, number: int, place: Place, token: Address, contracts: Contracts
) -> PoolFacts | Missing:
    """The state of venue ``number`` of the plan."""
    if isinstance(results, Missing):
        return results
    count = len(place.file.fact_calls(place.venue, contracts))
    found = (results[f"venue-{number}-{n}"] for n in range(count))
    return place.file.read_facts(place.venue, token, tuple(r.data if r.ok else None for r in found))


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
    return "0x" + result.data[:_MOST_TEXT_BYTES].hex() if result.ok and result.data else None
