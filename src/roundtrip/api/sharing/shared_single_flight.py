"""Shared answers and single flight across processes, in Valkey."""

import asyncio
import contextlib
import hashlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Literal

import msgspec

from roundtrip.domain.base.errors import STATUS_BY_CODE, RoundtripError, ServiceFull

from .single_flight import MakeAnswer, SharedAnswer, TookTooLong
from .valkey import NAMESPACE, Script, StoreUnavailable
from .valkey_cluster import SharedStore

MAX_BYTES = 1_000_000
"""Larger answers are not stored."""
_MIN_PAUSE_S, _MAX_PAUSE_S, _PAUSE_GROWS = 0.005, 0.05, 1.5

_BEGIN = Script("""\
local answer = ARGV[3] == '0' and redis.call('GET', KEYS[1])
if answer then return {'answer', answer, redis.call('PTTL', KEYS[1])} end
if redis.call('SET', KEYS[2], ARGV[1], 'NX', 'PX', ARGV[2]) then return {'lease'} end
return {'held', redis.call('GET', KEYS[2])}
""")
"""Keys: answer, lease. Arguments: this caller's token, the lease's milliseconds, 1 to ignore a stored answer.
"""
_FIND = Script("""\
local answer = redis.call('GET', KEYS[1])
return answer and {answer, redis.call('PTTL', KEYS[1])}
""")
"""Key: answer."""
_LOOK = Script("""\
local outcome = redis.call('GET', KEYS[1])
if outcome then return {'outcome', outcome, redis.call('PTTL', KEYS[1])} end
if redis.call('GET', KEYS[2]) == ARGV[1] then return {'held'} end
return {'lost'}
""")
"""Keys: outcome, lease. Argument: the lease holder's token."""
_RENEW = Script("""\
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])
""")
"""Key: lease. Arguments: the lease holder's token, the lease's milliseconds."""
_RELEASE = Script("if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end")
"""Key: lease. Argument: the lease holder's token."""
_FINISH = Script("""\
redis.call('SET', KEYS[3], ARGV[2], 'PX', ARGV[4])
local holder = redis.call('GET', KEYS[2])
if holder == ARGV[1] then
  redis.call('DEL', KEYS[2])
elseif holder or redis.call('EXISTS', KEYS[1]) == 1 then
  return 0
end
if tonumber(ARGV[3]) > 0 then redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3]) end
return 1
""")
"""Keys: answer, lease, outcome. Arguments: token, encoded outcome, for how many milliseconds the answer is
shared, and for how many waiting processes may fetch the outcome. Returns 0 if another run has started
since."""


class RunFailedElsewhere(Exception):
    """The run failed in another process, which has logged why."""


class _SharedBody(msgspec.Struct, frozen=True, array_like=True, tag="made"):
    body: bytes
    ttl_ms: int
    counted: bool
    block: int = 0
    is_absence: bool = False


class _SharedFailure(msgspec.Struct, frozen=True, array_like=True, tag="failed"):
    code: str
    message: str
    retry_after_s: int | None


_Outcome = _SharedBody | _SharedFailure
_OUTCOMES: msgspec.msgpack.Decoder[_Outcome] = msgspec.msgpack.Decoder(_Outcome)
_INTERNAL = _SharedFailure("internal", "", None)

HitAnswer = tuple[SharedAnswer, int, Literal[True]]
"""What ``get`` returns if another process made the answer."""


@dataclass(frozen=True, slots=True)
class FlightTimes:
    """How long a lease lasts, how often it is renewed during the run, how long waiting processes can fetch an
    outcome, and how long a caller waits and runs in total: longer than a run may take, so that a run that
    starts at once ends by its own deadline."""

    lease_ms: int = 2_000
    renew_s: float = 0.7
    outcome_ms: int = 5_000
    wait_s: float = 31.0


FLIGHT_TIMES = FlightTimes()


@dataclass(frozen=True, slots=True)
class SharedInValkey:
    """The first process to ask holds a lease and runs; the others wait for its outcome, an answer or a
    failure. If a process dies, its lease expires, and a waiting process runs instead. While the store is
    unavailable, each process runs for itself.

    ``version``: of the answers' schema; processes of different versions share nothing. ``token``: returns a
    unique token with every call. ``clock``: seconds from any origin.
    """

    valkey: SharedStore
    version: str
    token: Callable[[], str]
    clock: Callable[[], float]
    times: FlightTimes = FLIGHT_TIMES

    async def find(self, key: str) -> tuple[SharedAnswer, int] | None:
        """As ``OtherProcesses.find``."""
        with contextlib.suppress(StoreUnavailable):
            match await self.valkey.run(_FIND, (self.store_key("answer", key),), ()):
                case [bytes(encoded), int(left_ms)]:
                    outcome = _decode(encoded)
                    if isinstance(outcome, _SharedBody) and 0 < left_ms <= outcome.ttl_ms:
                        return _to_shared_answer(outcome), left_ms
        return None

    async def get(self, key: str, make: MakeAnswer) -> tuple[SharedAnswer, int, bool]:
        """As ``OtherProcesses.get``. Also raises RunFailedElsewhere."""
        token = self.token()
        until_s = self.clock() + self.times.wait_s
        hit = None
        # If the store is unavailable, runs here, and publishes the outcome if the store is back by then.
        with contextlib.suppress(StoreUnavailable):
            hit = await self._await_answer(key, token, until_s)
        return await self._run(key, token, self._limit_time(make, until_s)) if hit is None else hit

    def _limit_time(self, make: MakeAnswer, until_s: float) -> MakeAnswer:
        """``make`` with the time limit that waiting has left."""

        async def make_in_time() -> SharedAnswer:
            limit = asyncio.timeout(until_s - self.clock())
            try:
                async with limit:
                    return await make()
            except TimeoutError:
                if not limit.expired():
                    raise
                raise _timeout_error() from None

        return make_in_time

    async def _await_answer(self, key: str, token: str, until_s: float) -> HitAnswer | None:
        """Another process's answer; None: this token has the lease. Raises StoreUnavailable."""
        is_unreadable = False
        while self.clock() < until_s:
            keys = (self.store_key("answer", key), self.store_key("lease", key))
            match await self.valkey.run(_BEGIN, keys, (token, self.times.lease_ms, int(is_unreadable))):
                case [b"lease"]:
                    return None
                case [b"answer", bytes(encoded), int(left_ms)] if not is_unreadable:
                    outcome = _decode(encoded)
                    if isinstance(outcome, _SharedBody) and 0 < left_ms <= outcome.ttl_ms:
                        return _to_shared_answer(outcome), left_ms, True
                    is_unreadable = True
                case [b"held", bytes(holder)]:
                    is_unreadable = False
                    hit = await self._await_outcome(key, holder, until_s)
                    if hit is not None:
                        return hit
                case _:
                    self.valkey.mark_unavailable("an answer that is none", keys[0])
                    raise StoreUnavailable
        raise _timeout_error()

    async def _await_outcome(self, key: str, holder: bytes, until_s: float) -> HitAnswer | None:
        """The outcome of the lease holder's run; None: there is none, or it is unreadable. Raises what the
        run raised, and StoreUnavailable."""
        pause_s = _MIN_PAUSE_S
        keys = (self.store_key("outcome", key, holder), self.store_key("lease", key))
        while self.clock() < until_s:
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * _PAUSE_GROWS, _MAX_PAUSE_S)
            match await self.valkey.run(_LOOK, keys, (holder,)):
                case [b"held"]:
                    pass
                case [b"lost"]:
                    return None
                case [b"outcome", bytes(encoded), int(left_ms)]:
                    outcome = _decode(encoded)
                    if outcome is None:
                        return None
                    if isinstance(outcome, _SharedFailure):
                        raise _to_exception(outcome)
                    age_ms = self.times.outcome_ms - left_ms
                    return _to_shared_answer(outcome), outcome.ttl_ms - max(0, age_ms), True
                case _:
                    self.valkey.mark_unavailable("an outcome that is none", keys[0])
                    raise StoreUnavailable
        return None

    async def _run(self, key: str, token: str, make: MakeAnswer) -> tuple[SharedAnswer, int, bool]:
        try:
            async with self._renew_lease(key, token):
                shared = await make()
        except RoundtripError as error:
            # A limit of this process, unlike a run's deadline, says nothing about another process.
            if isinstance(error, ServiceFull) and not isinstance(error, TookTooLong):
                self._release(key, token)
            else:
                await self._publish(
                    key, token, _SharedFailure(error.code, error.message, error.retry_after_s), 0
                )
            raise
        except Exception:
            await self._publish(key, token, _INTERNAL, 0)
            raise
        except BaseException:
            self._release(key, token)
            raise
        body = _SharedBody(shared.body, shared.ttl_ms, shared.counted, shared.block, shared.is_absence)
        # Waiting callers compare an absence with the newest block; later callers run again.
        is_latest = await self._publish(key, token, body, 0 if shared.is_absence else shared.ttl_ms)
        return shared, shared.ttl_ms if is_latest else 0, False

    @contextlib.asynccontextmanager
    async def _renew_lease(self, key: str, token: str) -> AsyncIterator[None]:
        """Renews the lease while the block runs."""
        renewing = asyncio.create_task(self._renew(key, token), name="lease")
        try:
            yield
        finally:
            renewing.cancel()

    async def _renew(self, key: str, token: str) -> None:
        pause_s = self.times.renew_s
        while True:
            await asyncio.sleep(pause_s)
            try:
                await self.valkey.run(_RENEW, (self.store_key("lease", key),), (token, self.times.lease_ms))
                pause_s = self.times.renew_s
            except StoreUnavailable:
                # The store may be back before the lease expires.
                pause_s = self.times.renew_s / 4

    async def _publish(self, key: str, token: str, outcome: _Outcome, ttl_ms: int) -> bool:
        """Publishes an outcome to waiting and later callers. False: a later run has replaced this one."""
        encoded = msgspec.msgpack.encode(outcome)
        if len(encoded) > MAX_BYTES:
            self._release(key, token)
            return True
        keys = (
            self.store_key("answer", key),
            self.store_key("lease", key),
            self.store_key("outcome", key, token.encode()),
        )
        try:
            is_published = await self.valkey.run(
                _FINISH, keys, (token, encoded, ttl_ms, self.times.outcome_ms)
            )
        except StoreUnavailable:
            return True
        return is_published != 0

    def _release(self, key: str, token: str) -> None:
        """Releases the lease: a waiting process runs instead."""
        self.valkey.send_script(_RELEASE, (self.store_key("lease", key),), (token,))

    def store_key(self, kind: str, key: str, token: bytes = b"") -> bytes:
        """The store's key of an answer, lease or outcome; the last is of one run, whose ``token`` it has."""
        # A key contains strangers' text of any length. In a cluster all keys of an answer are on one master.
        digest = hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()
        name = f"{NAMESPACE}:{kind}:{self.version}:{{{digest}}}"
        return (f"{name}:{hashlib.sha256(token).hexdigest()}" if token else name).encode()


def _decode(encoded: bytes) -> _SharedBody | _SharedFailure | None:
    try:
        return _OUTCOMES.decode(encoded)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None


def _to_shared_answer(body: _SharedBody) -> SharedAnswer:
    return SharedAnswer(body.body, body.ttl_ms, body.counted, body.block, body.is_absence)


def _timeout_error() -> ServiceFull:
    """The error of a caller that waited long enough; others may wait longer. Same message as a
    deadline's."""
    return ServiceFull("busy", TookTooLong().message, 1)


def _to_exception(failure: _SharedFailure) -> Exception:
    if failure.code == "internal" or failure.code not in STATUS_BY_CODE:
        return RunFailedElsewhere()
    return RoundtripError(failure.code, failure.message, failure.retry_after_s)
