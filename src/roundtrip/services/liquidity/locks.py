"""Finds out by trial who can take a position out of the contract that holds it, now and when a lock ends."""

import asyncio
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import msgspec

from roundtrip.chain.liquidity import lock_plans, position_logs, position_reads
from roundtrip.chain.liquidity.lock_plans import HeldByContract, TakenOut
from roundtrip.chain.owner import named_accounts, owner_setters
from roundtrip.chain.owner.owner_setters import Setter
from roundtrip.chain.owner.selectors import UnreadableCode
from roundtrip.chain.rpc.client import RpcCall, RpcError
from roundtrip.chain.simulate import token_facts
from roundtrip.chain.simulate.legs import VenuePlace
from roundtrip.chain.simulate.request import Plan, Results
from roundtrip.chain.simulate.token_facts import ProxyFacts
from roundtrip.domain.base.errors import NodeFault
from roundtrip.domain.base.types import BURN_ADDRESSES, Address
from roundtrip.domain.base.venue import Venue
from roundtrip.domain.check.evidence import Environment, Missing, RefusedCall
from roundtrip.domain.liquidity.depth import (
    KNOWN_CODES,
    HeldBy,
    HeldPosition,
    KnownLocker,
    Lock,
    Position,
    Withdrawal,
)
from roundtrip.services.engine.session import CheckSession
from roundtrip.venues import BY_KIND, abi
from roundtrip.venues.base import Contracts
from roundtrip.venues.positions import is_nft

MAX_LOCKS = 8
"""Positions in contracts that are tried, the largest first."""
_DELEGATED = b"\xef\x01\x00"
"""EIP-7702: the code of a wallet that runs a contract's."""
_MAX_CALLS = 8000
"""Simulated calls of all trials of one answer. A usual locker takes some hundreds."""
TrialName = TypeVar("TrialName", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Holder:
    """An account that holds a position, as it was read at the block. ``code`` Missing: not known. ``admin``:
    who can replace its code, by a proxy's admin slot; None: nobody, or not known."""

    address: Address
    code: bytes | Missing
    admin: Address | None

    def is_wallet(self) -> bool:
        """Whether whoever has its key can act as it."""
        return isinstance(self.code, bytes) and (not self.code or self.code.startswith(_DELEGATED))


def read_holder(address: Address, answers: Mapping[str, msgspec.Raw | RpcError]) -> Holder:
    """A holder from the answers to ``position_reads.holder_calls``."""
    code = token_facts.read_code(answers[f"code {address}"])
    admin = answers[f"admin {address}"]
    try:
        slot = b"" if isinstance(admin, RpcError) else msgspec.json.decode(admin, type=str)
        named = abi.address_at(bytes.fromhex(slot[2:].rjust(64, "0")) if isinstance(slot, str) else b"", 0)
    except (msgspec.DecodeError, ValueError):
        named = None
    return Holder(address, code, None if named in BURN_ADDRESSES else named)


@dataclass(frozen=True, slots=True)
class ContractPosition:
    """A position that a contract holds, before it is tried. ``given_by``: who handed it to the contract."""

    venue: Venue
    position: Position
    liquidity: int
    holder: Holder
    given_by: Address | None


@dataclass(frozen=True, slots=True)
class LockResult:
    """What was found out of a position in a contract. ``locker``: the name of a known contract. ``taken``:
    the calls that take it out now; None: no trial did."""

    held_by: HeldBy
    withdrawal: Withdrawal | None = None
    lock: Lock | None = None
    locker: str | None = None
    taken: TakenOut | None = None

    def apply(self, held: HeldPosition) -> HeldPosition:
        """The position with what was found out."""
        return replace(
            held, held_by=self.held_by, withdrawal=self.withdrawal, lock=self.lock, locker=self.locker
        )


UNKNOWN = LockResult("unknown")


class LockTrials:
    """The trials of one answer. ``accounts``: those of the token, tried after those that a contract names."""

    def __init__(self, run: CheckSession, contracts: Contracts, accounts: Sequence[Address]) -> None:
        self._run = run
        self._contracts = contracts
        self._accounts = accounts
        self._now_s = run.head.block.timestamp_s

    async def find(self, wanted: Sequence[ContractPosition]) -> list[LockResult]:
        """The results of these positions, in order. At most three trips, whatever their number; two more
        where one is no NFT, and up to two for proxies. A position beyond ``MAX_LOCKS``, and one whose
        contract cannot be tried, is unknown. Raises NodeFault."""
        tried = list(wanted[:MAX_LOCKS])
        held = self._afford(await self._prepare(tried))
        free = await self._try_now(held)
        waiting = await self._try_later(
            [None if taken else one for one, taken in zip(held, free, strict=True)]
        )
        results = []
        for place, one, taken, lock in zip(tried, held, free, waiting, strict=True):
            results.append(_result(place.holder, one, taken, lock, self._now_s))
        return results + [UNKNOWN] * (len(wanted) - len(tried))

    def _afford(self, held: Sequence[HeldByContract | None]) -> list[HeldByContract | None]:
        """Leaves out those for whose trials there is no room; their contracts decide how many they take."""
        left, affordable = _MAX_CALLS, list[HeldByContract | None]()
        for one in held:
            waits = 0 if one is None else len(_waits(one.times_s, self._now_s))
            calls = 0 if one is None else lock_plans.count_calls(one, self._environment(one), waits)
            affordable.append(one if calls <= left else None)
            left -= calls if calls <= left else 0
        return affordable

    # --- what the contracts are ---------------------------------------------------------------------

    async def _prepare(self, tried: Sequence[ContractPosition]) -> list[HeldByContract | None]:
        """Each with its contract's functions, the accounts to try and the times that the contract names;
        None: the functions cannot be read."""
        run, block = self._run, self._run.head.block
        tried = await self._with_senders(tried)
        calls: dict[str, RpcCall] = {}
        environment = run.environments[0]
        holders = tuple(dict.fromkeys(place.holder.address for place in tried))
        for n, place in enumerate(tried):
            views = lock_plans.view_calls(place.holder.address, place.position)
            calls[f"views {n}"] = position_reads.views_call(views, self._contracts, block)
            manager, holder = place.position.owner, place.holder.address
            calls[f"operators {n}"] = position_logs.operators_call(manager, holder, block)
            calls[f"proxy {n}"] = token_facts.proxy_call(holder, block)
        if not holders:
            return []
        slots = named_accounts.slots_plan(environment, holders)
        calls["slots"] = run.request(slots)
        answers = dict(zip(calls, await run.means.node.batch(list(calls.values()), run.meter), strict=True))
        stored = run.results(slots, answers["slots"])
        proxies = [
            token_facts.read_proxy(answers[f"proxy {n}"], place.holder.address, place.holder.code)
            for n, place in enumerate(tried)
        ]
        codes = await self._read_codes(
            [
                (place.holder.code, _logic_of(place.holder, proxy, stored))
                for place, proxy in zip(tried, proxies, strict=True)
            ]
        )
        functions = await asyncio.gather(*(_functions_of(own) for own in codes))
        held: list[HeldByContract | None] = []
        for n, (place, setters) in enumerate(zip(tried, functions, strict=True)):
            count = len(lock_plans.view_calls(place.holder.address, place.position))
            said = position_reads.read_many(answers[f"views {n}"], count) or (None,) * count
            if setters is None:
                held.append(None)
                continue
            words, locker = lock_plans.read_words(said), known_locker(place.holder)
            held.append(
                HeldByContract(
                    place.holder.address,
                    place.position,
                    place.venue,
                    place.liquidity,
                    setters,
                    self._actors(place, lock_plans.read_owner(said), words, stored),
                    lock_plans.times_in(said, place.position, self._now_s),
                    None if locker is None else lock_plans.read_end(said, locker),
                    lock_plans.lock_ids_in(said, place.position),
                    position_logs.read_operators(answers[f"operators {n}"]),
                    _admin_of(place.holder, proxies[n]),
                )
            )
        return held

    async def _read_codes(
        self, places: Sequence[tuple[bytes | Missing, Address | Missing | None]]
    ) -> list[tuple[bytes | Missing, ...]]:
        """The codes that each holder runs: its own, and a proxy's implementation, which may be a minimal
        proxy in turn. ``places``: each holder's code and implementation. One trip for each level, two at
        most."""
        codes: list[tuple[bytes | Missing, ...]] = [
            (own, logic) if isinstance(logic, Missing) else (own,) for own, logic in places
        ]
        wanted = {n: logic for n, (_, logic) in enumerate(places) if isinstance(logic, str)}
        for _ in range(_MAX_PROXIES):
            if not wanted:
                break
            calls = [token_facts.code_call(one, self._run.head.block) for one in wanted.values()]
            answers = await self._run.means.node.batch(calls, self._run.meter)
            read = dict(zip(wanted, map(token_facts.read_code, answers), strict=True))
            codes = [(*own, read[n]) if n in read else own for n, own in enumerate(codes)]
            behind = {n: token_facts.implementation_of(code, _NO_PROXY) for n, code in read.items()}
            wanted = {n: logic for n, logic in behind.items() if isinstance(logic, str)}
        return codes

    async def _with_senders(self, tried: Sequence[ContractPosition]) -> list[ContractPosition]:
        """The positions; ``given_by`` of those that are no NFT is who sent the first transaction that added
        to them: nothing else may name that account. Two trips, none where every position is an NFT."""
        run, block = self._run, self._run.head.block
        bare = [
            n
            for n, place in enumerate(tried)
            if place.given_by is None and not is_nft(place.position, place.venue, self._contracts)
        ]
        if not bare:
            return list(tried)
        calls = [
            [position_logs.log_call(tried[n].venue, self._contracts, block, tried[n].position.owner)]
            for n in bare
        ]
        answers = await run.means.node.batches(calls, run.meter)
        first: dict[int, str] = {}
        for n, answer in zip(bare, answers, strict=True):
            logs = None if isinstance(answer, NodeFault) else position_logs.read_logs(answer[0])
            if logs:
                first[n] = logs[0].transaction_hash
        if not first:
            return list(tried)
        sent = await run.means.node.batch(
            [position_logs.transaction_call(tx_hash) for tx_hash in first.values()], run.meter
        )
        senders = {n: position_logs.read_sender(answer) for n, answer in zip(first, sent, strict=True)}
        return [replace(place, given_by=senders.get(n, place.given_by)) for n, place in enumerate(tried)]

    def _actors(
        self, place: ContractPosition, owner: Address | None, words: Sequence[int], stored: Results | Missing
    ) -> tuple[Address, ...]:
        """The accounts to try: the admin, the owner, who gave the position, those that the contract names,
        those that a lock names, and those of the token."""
        named: tuple[Address, ...] = ()
        if not isinstance(stored, Missing):
            named = named_accounts.find_in_storage(stored[f"slots-{place.holder.address}"]) or ()
        in_code = (
            named_accounts.find_in_code(place.holder.code) if isinstance(place.holder.code, bytes) else ()
        )
        listed = (
            place.given_by, owner, place.holder.admin, *lock_plans.addresses_in(words), *named, *in_code,
            *self._accounts,
        )  # fmt: skip
        keyless = self._contracts.all_addresses() | BURN_ADDRESSES
        keyless |= {place.holder.address, place.venue.pool or place.holder.address, self._run.token}
        actors = dict.fromkeys(one for one in listed if one is not None and one not in keyless)
        return tuple(actors)[: lock_plans.MAX_ACTORS]

    # --- trials -------------------------------------------------------------------------------------

    async def _try_now(self, held: Sequence[HeldByContract | None]) -> list[TakenOut | Missing | None]:
        """What takes each out now: each account alone, and all of them together. None: nothing does; Missing:
        one of them could not be tried."""
        plans: dict[tuple[int, tuple[Address, ...]], Plan] = {}
        for n, one in enumerate(held):
            if one is None:
                continue
            together = [one.actors] if len(one.actors) > 1 else []
            for actors in (*((actor,) for actor in one.actors), *together):
                plans[n, actors] = lock_plans.now_plan(one, actors, self._environment(one), self._contracts)
        results = await self._send({name: (held[name[0]], plan) for name, plan in plans.items()})
        found: list[TakenOut | Missing | None] = [None] * len(held)
        for (n, actors), result in results.items():
            one = held[n]
            if one is None or isinstance(found[n], TakenOut):
                continue
            if isinstance(result, Missing):
                found[n] = result
                continue
            taken = lock_plans.read_now(one, result, plans[n, actors], self._contracts, self._now_s)
            found[n] = taken or found[n]
        return found

    async def _try_later(self, held: Sequence[HeldByContract | None]) -> list[Lock | None]:
        """When somebody can first take each out; None: at none of the times that were tried (see
        ``_waits``)."""
        plans: dict[tuple[int, Setter, Address], Plan] = {}
        waits: dict[int, tuple[int, ...]] = {}
        for n, one in enumerate(held):
            if one is None:
                continue
            waits[n] = _waits(one.times_s, self._now_s)
            environment = self._environment(one)
            for actor in one.actors:
                for function in one.functions[: lock_plans.MAX_FUNCTIONS]:
                    plans[n, function, actor] = lock_plans.waiting_plan(
                        one, function, actor, environment, self._contracts, waits[n]
                    )
        results = await self._send({name: (held[name[0]], plan) for name, plan in plans.items()})
        locks: list[Lock | None] = [None] * len(held)
        for (n, function, actor), result in results.items():
            one = held[n]
            if one is None or isinstance(result, Missing):
                continue
            plan = plans[n, function, actor]
            read = lock_plans.read_waiting(one, result, plan, self._contracts, waits[n], self._now_s)
            if read is not None:
                locks[n] = _earlier(locks[n], _lock_of(read, one, self._now_s, actor))
        return locks

    async def _send(
        self, plans: Mapping[TrialName, tuple[HeldByContract | None, Plan]]
    ) -> dict[TrialName, Results | Missing]:
        places = {
            name: (VenuePlace(one.venue, BY_KIND[one.venue.kind]), plan)
            for name, (one, plan) in plans.items()
            if one is not None
        }
        if not places:
            return {}
        _, results = await self._run.ask({}, places)
        return {
            name: Missing("token", result.reason or "") if isinstance(result, RefusedCall) else result
            for name, result in results.items()
        }

    def _environment(self, one: HeldByContract) -> Environment:
        return lock_plans.environment_of(self._run.environments[0], one)


_READ_AT_ONCE = asyncio.Semaphore(2)


async def _functions_of(codes: Sequence[bytes | Missing]) -> tuple[Setter, ...] | None:
    """The functions of a contract with these codes; None: they cannot be read."""
    functions: dict[str, Setter] = {}
    for code in codes:
        if isinstance(code, Missing):
            return None
        async with _READ_AT_ONCE:
            try:
                found = await asyncio.to_thread(owner_setters.list_changing, code)
            except UnreadableCode:
                return None
        functions |= {one.selector: one for one in found if one.selector not in functions}
    return tuple(functions.values())


_NO_PROXY = ProxyFacts(None, None)
_MAX_PROXIES = 2
"""Levels of proxies whose code is read."""
_SMALL_CODE = 256
"""Bytes. A proxy of its own kind is smaller, and has its implementation in its first slot."""


def _logic_of(
    holder: Holder, proxy: ProxyFacts | Missing, stored: Results | Missing
) -> Address | Missing | None:
    """The contract whose code the holder runs; None: it runs its own."""
    logic = token_facts.implementation_of(holder.code, _NO_PROXY if isinstance(proxy, Missing) else proxy)
    is_small = isinstance(holder.code, bytes) and len(holder.code) < _SMALL_CODE
    if logic is not None or not is_small or isinstance(stored, Missing):
        return logic
    first = abi.address_at(stored[f"slots-{holder.address}"].data, 0)
    return None if first in BURN_ADDRESSES else first


def _admin_of(holder: Holder, proxy: ProxyFacts | Missing) -> Address | None:
    """Who can replace the contract's code, also by its beacon."""
    admin = holder.admin or (None if isinstance(proxy, Missing) else proxy.admin)
    return None if admin in BURN_ADDRESSES else admin


def _waits(times_s: Sequence[int], now_s: int) -> tuple[int, ...]:
    """The waits in seconds after which a lock is tried: until a second before each time that the contract
    names, and until that time; where it names none, ``lock_plans.LADDER_S``."""
    if not times_s:
        return lock_plans.LADDER_S
    waits = {time_s - now_s - early_s for time_s in times_s for early_s in (1, 0)}
    return tuple(sorted(wait for wait in waits if wait > 1))


def _lock_of(read: tuple[int | None, TakenOut], one: HeldByContract, now_s: int, actor: Address) -> Lock:
    """The lock that a trial shows: ``read`` of ``lock_plans.read_waiting``. It is exact where the position
    was in place a second before a time that the contract names; else its end is not before the last wait that
    failed."""
    before, taken = read
    if before is None:
        return Lock(now_s, True, actor)
    is_exact = taken.at_s in one.times_s and now_s + before == taken.at_s - 1
    return Lock(taken.at_s if is_exact else now_s + before, is_exact, actor)


def _earlier(known: Lock | None, lock: Lock) -> Lock:
    return lock if known is None or lock.at_s < known.at_s else known


def _result(
    holder: Holder,
    one: HeldByContract | None,
    taken: TakenOut | Missing | None,
    lock: Lock | None,
    now_s: int,
) -> LockResult:
    """The judgement of one position: free where somebody took it out, can replace the contract's code, or is
    approved by the manager of the contract's NFTs; unknown where an account could not be tried."""
    if isinstance(holder.code, Missing):
        return UNKNOWN
    known = known_locker(holder)
    locker = None if known is None else known.name
    if isinstance(taken, TakenOut):
        return LockResult("free", taken.withdrawal, None, locker, taken)
    admin = holder.admin if one is None else one.admin
    if admin is not None:
        return LockResult("free", Withdrawal(admin, lock_plans.UPGRADE), None, locker)
    if one is not None and one.operators:
        return LockResult("free", Withdrawal(one.operators[0]), None, locker)
    if one is None or taken is not None:
        return UNKNOWN
    return LockResult("locked" if _is_locked(one, lock, now_s) else "contract", None, lock, locker)


def known_locker(holder: Holder) -> KnownLocker | None:
    """The locker whose code the holder has; None: it is none that is known."""
    code = b"" if isinstance(holder.code, Missing) else holder.code
    return KNOWN_CODES.get("0x" + abi.keccak(code).hex())


def _is_locked(one: HeldByContract, lock: Lock | None, now_s: int) -> bool:
    """Whether a known locker keeps the position, and a trial showed until when."""
    if one.end_s is None or one.operators is None:
        # Without the operators that logs show it proves nothing: whoever made the contract can have let
        # somebody act for it before its code was there.
        return False
    if lock is None:
        return lock_plans.is_for_ever(one.end_s, now_s)
    return lock.is_exact and lock.at_s == one.end_s
