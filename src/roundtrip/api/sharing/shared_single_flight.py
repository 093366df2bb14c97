"""Shared answers and single flight for several processes together, in Valkey."""

import asyncio
import contextlib
import hashlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Literal

import msgspec

from roundtrip.domain.base.errors import STATUS_BY_CODE, RoundtripError, ServiceFull

from .single_flight import Makes, SharedAnswer, TookTooLong
from .valkey import NAMESPACE, Script, StoreUnavailable, Valkey

MOST_BYTES = 1_000_000
"""Of an answer that is put into the store."""
_LEAST_PAUSE_S, _MOST_PAUSE_S, _PAUSE_GROWS = 0.005, 0.05, 1.5

_BEGIN = Script("""\
local answer = ARGV[3] == '0' and redis.call('GET', KEYS[1])
if answer then return {'answer', answer, redis.call('PTTL', KEYS[1])} end
if redis.call('SET', KEYS[2], ARGV[1], 'NX', 'PX', ARGV[2]) then return {'lease'} end
return {'held', redis.call('GET', KEYS[2])}
""")
"""Keys: answer, lease. Arguments: token, the lease's milliseconds, 1 not to look for an answer."""
_LOOK = Script("""\
local outcome = redis.call('GET', KEYS[1])
if outcome then return {'outcome', outcome, redis.call('PTTL', KEYS[1])} end
if redis.call('GET', KEYS[2]) == ARGV[1] then return {'held'} end
return {'lost'}
""")
"""Keys: outcome, lease. Argument: the token of who runs."""
_RENEW = Script("""\
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])
""")
_RELEASE = Script("if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end")
"""Key: lease. Argument: the token of who held it."""
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
"""Keys: answer, lease, outcome. Arguments: token, what came, for how many milliseconds everyone may share it,
and for how many who waited may still fetch it. Returns 0 where another has begun meanwhile."""


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

Found = tuple[SharedAnswer, int, Literal[True]]


@dataclass(frozen=True, slots=True)
class Spans:
    """How long a lease holds, how often it is renewed while the run lasts, for how long an outcome can be
    fetched by who waited for it, and how long anybody waits and runs in all: longer than a run may take, so
    that one which begins at once ends by its own deadline."""

    lease_ms: int = 2_000
    renew_s: float = 0.7
    outcome_ms: int = 5_000
    wait_s: float = 31.0


@dataclass(frozen=True, slots=True)
class SharedInValkey:
    """Who asks first holds a lease and runs; the others wait for what comes of it, whatever that is. A
    process that ends without a word loses its lease, and another of those who wait runs instead. While the
    store is gone each process runs for itself.

    ``version``: of the answers' shape; processes of different versions share none. ``token``: a new one with
    every call, never the same twice. ``clock``: seconds, of any beginning.
    """

    valkey: Valkey
    version: str
    token: Callable[[], str]
    clock: Callable[[], float]
    spans: Spans = Spans()

    async def get(self, key: str, make: Makes) -> tuple[SharedAnswer, int, bool]:
        """As ``answers.Across.get``. Raises also FailedElsewhere."""
        token = self.token()
        until_s = self.clock() + self.spans.wait_s
        found = None
        # Whoever finds it gone runs, and hands round what comes of it if it is back by then.
        with contextlib.suppress(StoreUnavailable):
            found = await self._await_answer(key, token, until_s)
        return await self._run(key, token, self._in_time(make, until_s)) if found is None else found

    def _in_time(self, make: Makes, until_s: float) -> Makes:
        """The run in the time that waiting has left."""

        async def making() -> SharedAnswer:
            limit = asyncio.timeout(until_s - self.clock())
            try:
                async with limit:
                    return await make()
            except TimeoutError:
                if not limit.expired():
                    raise
                raise _late() from None

        return making

    async def _await_answer(self, key: str, token: str, until_s: float) -> Found | None:
        """What another process made; None: the lease is this token's. Raises Gone."""
        unread = False
        while self.clock() < until_s:
            keys = (self._key("answer", key), self._key("lease", key))
            match await self.valkey.run(_BEGIN, keys, (token, self.spans.lease_ms, int(unread))):
                case [b"lease"]:
                    return None
                case [b"answer", bytes(encoded), int(left_ms)] if not unread:
                    outcome = _read(encoded)
                    if isinstance(outcome, _SharedBody) and 0 < left_ms <= outcome.ttl_ms:
                        return _as_shared(outcome), left_ms, True
                    unread = True
                case [b"held", bytes(holder)]:
                    unread = False
                    found = await self._waited_for(key, holder, until_s)
                    if found is not None:
                        return found
                case _:
                    self.valkey.distrust("an answer that is none")
                    raise StoreUnavailable
        raise _late()

    async def _waited_for(self, key: str, holder: bytes, until_s: float) -> Found | None:
        """What came of the run of who holds the lease; None: nothing that can be read. Raises what the run
        raised, and Gone."""
        pause_s = _LEAST_PAUSE_S
        keys = (self._key("outcome", holder.decode("latin-1")), self._key("lease", key))
        while self.clock() < until_s:
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * _PAUSE_GROWS, _MOST_PAUSE_S)
            match await self.valkey.run(_LOOK, keys, (holder,)):
                case [b"held"]:
                    pass
                case [b"lost"]:
                    return None
                case [b"outcome", bytes(encoded), int(left_ms)]:
                    outcome = _read(encoded)
                    if outcome is None:
                        return None
                    if isinstance(outcome, _SharedFailure):
                        raise _error(outcome)
                    age_ms = self.spans.outcome_ms - left_ms
                    return _as_shared(outcome), outcome.ttl_ms - max(0, age_ms), True
                case _:
                    self.valkey.distrust("an outcome that is none")
                    raise StoreUnavailable
        return None

    async def _run(self, key: str, token: str, make: Makes) -> tuple[SharedAnswer, int, bool]:
        try:
            async with self._renew_lease(key, token):
                shared = await make()
        except RoundtripError as error:
            # What this process has run out of, or too little time, says nothing of the next one.
            if isinstance(error, ServiceFull) and not isinstance(error, TookTooLong):
                self._release(key, token)
            else:
                await self._finish(
                    key, token, _SharedFailure(error.code, error.message, error.retry_after_s), 0
                )
            raise
        except Exception:
            await self._finish(key, token, _INTERNAL, 0)
            raise
        except BaseException:
            self._release(key, token)
            raise
        made = _SharedBody(shared.body, shared.ttl_ms, shared.counted, shared.block, shared.is_absence)
        # Who waited for an absence holds it against the newest block; who comes later runs.
        is_newest = await self._finish(key, token, made, 0 if shared.is_absence else shared.ttl_ms)
        return shared, shared.ttl_ms if is_newest else 0, False

    @contextlib.asynccontextmanager
    async def _renew_lease(self, key: str, token: str) -> AsyncIterator[None]:
        """Renews the lease meanwhile."""
        renewing = asyncio.create_task(self._renew(key, token), name="lease")
        try:
            yield
        finally:
            renewing.cancel()

    async def _renew(self, key: str, token: str) -> None:
        pause_s = self.spans.renew_s
        while True:
            await asyncio.sleep(pause_s)
            try:
                await self.valkey.run(_RENEW, (self._key("lease", key),), (token, self.spans.lease_ms))
                pause_s = self.spans.renew_s
            except StoreUnavailable:
                # It may be back before the lease is over.
                pause_s = self.spans.renew_s / 4

    async def _finish(self, key: str, token: str, outcome: _Outcome, ttl_ms: int) -> bool:
        """Hands it to everybody; False: a run that began later has its place."""
        encoded = msgspec.msgpack.encode(outcome)
        if len(encoded) > MOST_BYTES:
            self._release(key, token)
            return True
        keys = (self._key("answer", key), self._key("lease", key), self._key("outcome", token))
        try:
            came = await self.valkey.run(_FINISH, keys, (token, encoded, ttl_ms, self.spans.outcome_ms))
        except StoreUnavailable:
            return True
        return came != 0

    def _release(self, key: str, token: str) -> None:
        """Whoever waits for it runs instead."""
        self.valkey.tell(_RELEASE, (self._key("lease", key),), (token,))

    def _key(self, kind: str, of: str) -> bytes:
        # A question may hold anything that a stranger wrote, at any length.
        asked = hashlib.sha256(of.encode("utf-8", "surrogatepass")).hexdigest()
        return f"{NAMESPACE}:{kind}:{self.version}:{asked}".encode()


def _read(encoded: bytes) -> _SharedBody | _SharedFailure | None:
    try:
        return _OUTCOMES.decode(encoded)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None


def _as_shared(made: _SharedBody) -> SharedAnswer:
    return SharedAnswer(made.body, made.ttl_ms, made.counted, made.block, made.is_absence)


def _late() -> ServiceFull:
    """The time is over for who waited; others may have more. They are told the same as by a deadline."""
    return ServiceFull("busy", TookTooLong().message, 1)


def _error(failed: _SharedFailure) -> Exception:
    if failed.code == "internal" or failed.code not in STATUS_BY_CODE:
        return RunFailedElsewhere()
    return RoundtripError(failed.code, failed.message, failed.retry_after_s)
