"""Plans that try to take a position out of the contract that holds it, and the reading of the results. Pure.

What a contract promises of itself does not count. Each of its functions is called as each account that may
have a right to it, now and at the times at which a lock may end: the position moved, or it did not.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from roundtrip.chain.owner.owner_plans import STAND_IN_CODE, encode
from roundtrip.chain.owner.owner_setters import Setter, is_number
from roundtrip.chain.simulate.legs import cast
from roundtrip.chain.simulate.request import Plan, PlannedBlock, Results, SimulatedStep, StepResult
from roundtrip.domain.base.types import WEI_PER_ETH, Address
from roundtrip.domain.base.venue import Venue
from roundtrip.domain.check.evidence import Environment
from roundtrip.domain.liquidity.depth import KnownLocker, Position, Withdrawal
from roundtrip.venues import abi, positions
from roundtrip.venues.base import Call, Contracts

MAX_FUNCTIONS = 16
MAX_ACTORS = 4
_MAX_VARIANTS = 12
_MAX_TIMES = 4
"""Tried of a position: functions, accounts, choices of a function's arguments, times."""
_LOCK_IDS = range(4)
"""The first numbers of a locker that numbers its locks itself."""
_CALL_GAS, _READ_GAS = 500_000, 200_000
_CALLS_A_BLOCK = 24
_FOREVER_S = 100 * 365 * 86_400
LADDER_S = (86_400, 30 * 86_400, 365 * 86_400, 5 * 365 * 86_400, 30 * 365 * 86_400)
"""Waits that are tried where the contract does not say when a lock ends."""
TIME_VIEWS = (
    "unlockTime()", "unlockDate()", "releaseTime()", "lockedUntil()",
    "unlockTime(uint256)", "unlockDate(uint256)", "lockedUntil(uint256)", "releaseTime(uint256)",
    "locks(uint256)", "getLock(uint256)", "tokenLocks(uint256)", "unlockTime(address,uint256)",
    "unlockDate(address,uint256)", "lockedUntil(address,uint256)", "locks(address,uint256)",
    "getLock(address,uint256)",
)  # fmt: skip
"""Views of usual lockers, by the NFT's number, or by its manager and its number."""
OWNER = "0x8da5cb5b"
UPGRADE = "an upgrade of the contract's code"
"""Stands for a withdrawal's function where somebody can replace the contract's code: new code can do anything
as the contract."""


@dataclass(frozen=True, slots=True)
class HeldByContract:
    """A position that a contract holds. ``actors``: accounts that may have a right over it; ``functions``: of
    the contract; ``times_s``: at which a lock may end, in order, as the contract says."""

    holder: Address
    position: Position
    venue: Venue
    liquidity: int
    functions: tuple[Setter, ...]
    actors: tuple[Address, ...]
    times_s: tuple[int, ...]
    end_s: int | None = None
    """When the position's lock ends, as a contract says whose code is known."""
    lock_ids: tuple[int, ...] = ()
    """Numbers that the contract names beside the position."""
    operators: tuple[Address, ...] | None = None
    """Whom the NFTs' manager lets act for the contract; None: not known."""
    admin: Address | None = None
    """Who can replace the contract's code."""


@dataclass(frozen=True, slots=True)
class TakenOut:
    """Somebody took the position out. ``calls``: who called what, in order; ``at_s``: when."""

    withdrawal: Withdrawal
    calls: tuple[tuple[Address, Call], ...]
    at_s: int


# --- what the contract says -------------------------------------------------------------------------


def view_calls(holder: Address, position: Position) -> tuple[Call, ...]:
    """Asks the contract who owns it, and for times in the manner of usual lockers."""
    calls = [Call(holder, OWNER)]
    for signature in TIME_VIEWS:
        arguments: tuple[int | str, ...] = (position.owner, position.number)
        takes = signature.count("address") + signature.count("uint256")
        calls.append(Call(holder, abi.call(abi.selector(signature), *arguments[2 - takes :])))
    calls += [
        Call(holder, abi.call(abi.selector(signature), number))
        for signature in ("getLock(uint256)", "locks(uint256)")
        for number in _LOCK_IDS
    ]
    return tuple(calls)


def read_owner(answers: Sequence[bytes | None]) -> Address | None:
    """The contract's owner, from the answers to ``view_calls``."""
    owner = abi.address_at(answers[0] or b"", 0)
    return owner if owner is not None and int(owner, 16) else None


def read_words(answers: Sequence[bytes | None]) -> tuple[int, ...]:
    """Every word of the answers to ``view_calls`` but the owner's."""
    return tuple(
        int.from_bytes(answer[at : at + abi.WORD], "big")
        for answer in answers[1:]
        for at in range(0, len(answer or b""), abi.WORD)
        if answer is not None
    )


def times_in(answers: Sequence[bytes | None], position: Position, now_s: int) -> tuple[int, ...]:
    """At most four words that may be times to come, in order; those of answers about this position first."""
    own = [word for words in _own_words(answers, position) for word in words]
    coming = (word for word in (*own, *read_words(answers)) if now_s < word <= now_s + _FOREVER_S)
    return tuple(sorted(list(dict.fromkeys(coming))[:_MAX_TIMES]))


def read_end(answers: Sequence[bytes | None], locker: KnownLocker) -> int | None:
    """When the position's lock ends, as a known locker says; None: it does not."""
    answer = answers[1 + TIME_VIEWS.index(locker.end_view)]
    return abi.uint_at(answer or b"", locker.end_word)


def is_for_ever(end_s: int, now_s: int) -> bool:
    """Whether the time is more than a hundred years away."""
    return end_s > now_s + _FOREVER_S


def lock_ids_in(answers: Sequence[bytes | None], position: Position) -> tuple[int, ...]:
    """Small numbers beside this position in the answers to ``view_calls``: one may be its lock's."""
    words = [word for own in _own_words(answers, position) for word in own if word < _MIN_TIME]
    return tuple(dict.fromkeys(word for word in words if word != position.number))[:_MAX_LOCK_IDS]


_MAX_LOCK_IDS, _MIN_TIME = 2, 10**9
"""A time of a lock is later, in seconds since 1970 (2001)."""


def _own_words(answers: Sequence[bytes | None], position: Position) -> Iterator[tuple[int, ...]]:
    """The words of each answer that is about this position: it was asked for by manager and number, or names
    both."""
    own = {int(position.owner, 16), position.number}
    for n, answer in enumerate(answers[1:]):
        words = read_words((None, answer))
        if own.issubset(words) or "(address," in "".join(TIME_VIEWS[n : n + 1]):
            yield words


def addresses_in(words: Sequence[int]) -> tuple[Address, ...]:
    """The words that may be addresses, in order. Smaller words are taken for amounts."""
    addresses = (Address(f"0x{word:040x}") for word in words if 2**120 <= word < 2**160)
    return tuple(dict.fromkeys(addresses))


# --- plans ------------------------------------------------------------------------------------------


def count_calls(held: HeldByContract, environment: Environment, waits: int) -> int:
    """How many calls the trials of a position take; ``waits``: of ``waiting_plan``."""
    actors = len(held.actors)
    # ``now_plan``: the only account twice, or each, and all together twice. ``waiting_plan``: each.
    passes = (2 if actors == 1 else 3 * actors) + actors * (1 + waits)
    first = held.actors[:1]
    functions = held.functions[:MAX_FUNCTIONS]
    return passes * sum(len(_datas(held, f, actor, environment)) for f in functions for actor in first)


def now_plan(
    held: HeldByContract, actors: Sequence[Address], environment: Environment, contracts: Contracts
) -> Plan:
    """Every function as each of these accounts, twice where these are several or the position's only one: one
    call may give the right to another. A call that reverts changes nothing. Before them each account tries to
    move the NFT itself."""
    once, first = [], []
    for n, actor in enumerate(actors):
        once += [
            step
            for function in held.functions[:MAX_FUNCTIONS]
            for step in _steps(held, function, actor, environment, f"now {n}")
        ]
        if positions.is_nft(held.position, held.venue, contracts):
            take = positions.plan_take(held.position, held.holder, actor)
            first.append(SimulatedStep(f"take now {n}", actor, take, _CALL_GAS))
    twice = once if len(actors) > 1 or len(held.actors) == 1 else []
    again = [SimulatedStep(f"{step.label} again", step.sender, step.call, step.gas_limit) for step in twice]
    steps = [*first, *once, *again]
    blocks = [
        PlannedBlock(1, tuple(steps[at : at + _CALLS_A_BLOCK])) for at in range(0, len(steps), _CALLS_A_BLOCK)
    ]
    opening = _fund(blocks[0] if blocks else PlannedBlock(1, ()), actors, environment)
    last = PlannedBlock(1, tuple(_reads(held, environment, contracts, "end")))
    return Plan(environment, (opening, *blocks[1:], last))


def waiting_plan(
    held: HeldByContract,
    function: Setter,
    actor: Address,
    environment: Environment,
    contracts: Contracts,
    waits_s: Sequence[int],
) -> Plan:
    """One function as one account, now and after each of the waits (seconds from the pinned block, rising),
    each followed by a read of the position."""
    blocks, passed_s = [], 0
    for wait_s in (1, *waits_s):
        steps = (
            *_steps(held, function, actor, environment, str(wait_s)),
            *_reads(held, environment, contracts, str(wait_s)),
        )
        blocks.append(PlannedBlock(wait_s - passed_s, steps))
        passed_s = wait_s
    return Plan(environment, (_fund(blocks[0], (actor,), environment), *blocks[1:]))


def _fund(block: PlannedBlock, actors: Sequence[Address], environment: Environment) -> PlannedBlock:
    money = (*((actor, 100 * WEI_PER_ETH) for actor in actors), (environment.reader, WEI_PER_ETH))
    return PlannedBlock(block.delay_s, block.steps, money, codes=((environment.receiver, STAND_IN_CODE),))


def environment_of(environment: Environment, held: HeldByContract) -> Environment:
    """The environment with wallets of its own."""
    return cast(environment, f"lock {held.position.owner} {held.position.number}")


def _steps(
    held: HeldByContract, function: Setter, actor: Address, environment: Environment, moment: str
) -> Iterator[SimulatedStep]:
    for n, data in enumerate(_datas(held, function, actor, environment)):
        label = f"{function.selector}-{n} {moment}"
        yield SimulatedStep(label, actor, Call(held.holder, data), _CALL_GAS)


def _datas(held: HeldByContract, function: Setter, actor: Address, environment: Environment) -> list[str]:
    """The function's calldata with each choice of arguments: addresses are the account or the NFT's manager,
    numbers the NFT's or a small one, and bytes the NFT's transfer; of an upgrade nothing, which calls the new
    code."""
    payload: int | str = positions.plan_take(held.position, held.holder, actor).data
    choices = list(_arguments(held, function.types, actor))
    if function.upgrades():
        payload, choices = 0, [(environment.receiver,)]
    datas = [
        function.selector + encode(function.types, _fill(function.types, choice, actor, payload))
        for choice in choices
    ]
    return list(dict.fromkeys(datas))[:_MAX_VARIANTS]


def _arguments(
    held: HeldByContract, types: tuple[str, ...], actor: Address
) -> Iterator[tuple[int | str | bool, ...]]:
    addresses = [part for part in types if part.startswith("address")]
    numbers = [part for part in types if is_number(part)]
    manager, number = held.position.owner, held.position.number
    named = list(product((manager, actor), repeat=min(2, len(addresses))))
    # Whoever takes it is named last: a manager that was handed its own NFT keeps it.
    named.sort(key=lambda choice: choice[-1:] == (manager,))
    counted: list[tuple[int, ...]] = [()]
    if numbers:
        rest = len(numbers) - 1
        counted = [(number, *[0] * rest), (number, *[number] * rest)]
        counted += [(lock_id, *[0] * rest) for lock_id in dict.fromkeys((*held.lock_ids, *_LOCK_IDS))]
        if rest:
            counted.append((number, *[held.liquidity] * rest))
    for some_numbers, some_addresses in product(counted, named):
        yield (*some_addresses, *some_numbers)


def _fill(
    types: tuple[str, ...], choice: tuple[int | str | bool, ...], actor: Address, payload: int | str
) -> list[int | str | bool]:
    addresses = [value for value in choice if isinstance(value, str)]
    numbers = [value for value in choice if not isinstance(value, str)]
    values: list[int | str | bool] = []
    for part in types:
        if part.startswith("address"):
            values.append(addresses.pop(0) if addresses else actor)
        elif is_number(part):
            value = numbers.pop(0) if numbers else 0
            bits_of = int("".join(filter(str.isdigit, part.removesuffix("[]"))) or 256)
            bits_of *= 8 if part.startswith("bytes") else 1
            values.append(int(value) % 2 ** min(256, bits_of))
        elif part.startswith("bool"):
            values.append(True)
        else:
            values.append(payload if part == "bytes" else 0)
    return values


def _reads(
    held: HeldByContract, environment: Environment, contracts: Contracts, moment: str
) -> list[SimulatedStep]:
    calls = positions.position_calls(held.position, held.venue, contracts)
    return [
        SimulatedStep(f"read-{n} {moment}", environment.reader, call, _READ_GAS)
        for n, call in enumerate(calls)
    ]


# --- results ----------------------------------------------------------------------------------------


def read_now(
    held: HeldByContract, results: Results, plan: Plan, contracts: Contracts, now_s: int
) -> TakenOut | None:
    """What took the position out now, or replaced the contract's code; None: nothing did."""
    if not _is_out(held, results, contracts, "end"):
        upgrading = {function.selector for function in held.functions if function.upgrades()}
        senders = (
            step.sender
            for block in plan.blocks
            for step in block.steps
            if step.label.partition("-")[0] in upgrading and results[step.label].ok
        )
        upgrader = next(senders, None)
        return None if upgrader is None else TakenOut(Withdrawal(upgrader, UPGRADE), (), now_s)
    steps = [step for block in plan.blocks for step in block.steps if results[step.label].ok]
    steps = [step for step in steps if not step.label.startswith("read-")]
    return _read_taking(held, steps, results, now_s)


def read_waiting(
    held: HeldByContract,
    results: Results,
    plan: Plan,
    contracts: Contracts,
    waits_s: Sequence[int],
    now_s: int,
) -> tuple[int | None, TakenOut] | None:
    """The last wait in seconds after which the position was still in place (None: it was taken out at once),
    and what took it out at the next one. None: nothing did."""
    before: int | None = None
    for wait_s in (1, *waits_s):
        if _is_out(held, results, contracts, str(wait_s)):
            block = plan.blocks[(1, *waits_s).index(wait_s)]
            steps = [step for step in block.steps if results[step.label].ok and step.call.to == held.holder]
            return before, _read_taking(held, steps, results, now_s + wait_s)
        before = wait_s
    return None


def _read_taking(
    held: HeldByContract, steps: Sequence[SimulatedStep], results: Results, at_s: int
) -> TakenOut:
    """The first call whose events name the position is the one that took it out; calls before it may have
    prepared it."""
    place = next((n for n, step in enumerate(steps) if _names(held, results[step.label])), len(steps) - 1)
    step, prepared = steps[place], steps[: place + 1]
    selector = step.label.partition("-")[0]
    name = next((f.name for f in held.functions if f.selector == selector), "its transfer")
    return TakenOut(Withdrawal(step.sender, name), tuple((s.sender, s.call) for s in prepared), at_s)


def _names(held: HeldByContract, result: StepResult) -> bool:
    """Whether events of the call are of the position's manager and number, or of its pool."""
    logs = bytes(result.logs).lower()
    if held.position.number:
        return held.position.owner.encode() in logs and abi.word(held.position.number).encode() in logs
    return (held.venue.pool or held.venue.pool_id or "").encode() in logs


def _is_out(held: HeldByContract, results: Results, contracts: Contracts, moment: str) -> bool:
    """Whether the contract no longer holds all of the position."""
    calls = positions.position_calls(held.position, held.venue, contracts)
    read = [results[f"read-{n} {moment}"] for n in range(len(calls))]
    answers = tuple(result.data if result.ok else None for result in read)
    state = positions.read_position(held.position, held.venue, contracts, positions.NO_STATE, answers)
    # A burned NFT has no holder any more.
    return state is None or state.holder != held.holder or state.liquidity < held.liquidity
