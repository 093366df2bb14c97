"""The table of all job kinds. The worker, the documentation and the tests loop over it."""

from types import MappingProxyType

from roundtrip.domain.watch.channels import LANES, MAX_AT_ONCE
from roundtrip.jobs.engine.worker import JobKind, Turns
from roundtrip.jobs.kinds.bag import EVERY_S as BAG_EVERY_S
from roundtrip.jobs.kinds.bag import bag
from roundtrip.jobs.kinds.boards import EVERY_S, boards
from roundtrip.jobs.kinds.deliver import deliver
from roundtrip.jobs.kinds.exposure import exposure
from roundtrip.jobs.kinds.failed_sell import failed_sell
from roundtrip.jobs.kinds.flags import calls
from roundtrip.jobs.kinds.holders import holders
from roundtrip.jobs.kinds.liquidity import liquidity
from roundtrip.jobs.kinds.names import names
from roundtrip.jobs.kinds.origin import origin
from roundtrip.jobs.kinds.prune import prune
from roundtrip.jobs.kinds.recheck import recheck
from roundtrip.jobs.kinds.scorecard import scorecard
from roundtrip.jobs.kinds.token import token
from roundtrip.jobs.kinds.unlocks import unlocks
from roundtrip.jobs.kinds.winners import winners
from roundtrip.services.runtime.context import Context
from roundtrip.store.delivery import deliveries

_DAY_S = 86_400.0
_UNLIMITED_TRIES = 10**9

KINDS: MappingProxyType[str, JobKind[Context]] = MappingProxyType(
    {
        "token": JobKind(token, lease_s=30, max_running=4, timeout_s=30),
        # A deep check makes three node requests and some more for holders, of up to a minute each.
        "recheck": JobKind(recheck, lease_s=30, max_running=2, timeout_s=300),
        # As long as a check, and up to four more requests to the node.
        "liquidity": JobKind(liquidity, lease_s=30, max_running=1, timeout_s=120, most_tries=10),
        # Reads the liquidity, then the holders.
        "exposure": JobKind(exposure, lease_s=30, max_running=1, timeout_s=180, most_tries=3),
        "origin": JobKind(
            origin, lease_s=30, max_running=1, timeout_s=120, retry_waits_s=(_DAY_S,), most_tries=3
        ),
        # Each run reads for 15 s (``ReadLimits.piece``); a run that succeeds resets the tries.
        "holders": JobKind(holders, lease_s=10, max_running=1, timeout_s=120, most_tries=10),
        # A job with a ``start_key`` enqueues itself again: nothing else would.
        "prune": JobKind(
            prune, lease_s=60, max_running=1, timeout_s=60, most_tries=_UNLIMITED_TRIES, start_key="facts"
        ),
        "boards": JobKind(
            boards,
            lease_s=30,
            max_running=1,
            timeout_s=30,
            retry_waits_s=(EVERY_S,),
            most_tries=_UNLIMITED_TRIES,
            start_key="moving",
        ),
        "bag": JobKind(
            bag,
            lease_s=30,
            max_running=1,
            timeout_s=60,
            retry_waits_s=(BAG_EVERY_S,),
            most_tries=_UNLIMITED_TRIES,
            start_key="held",
        ),
        # Each run has three statements, each with a timeout of ten minutes.
        "winners": JobKind(
            winners,
            lease_s=60,
            max_running=1,
            timeout_s=1900,
            retry_waits_s=(5.0, 30.0),
            most_tries=_UNLIMITED_TRIES,
            start_key="facts",
        ),
        # Each run sends one batch to the node and reads the facts of some two hundred flags.
        "calls": JobKind(
            calls,
            lease_s=30,
            max_running=1,
            timeout_s=60,
            retry_waits_s=(5.0, 30.0),
            most_tries=_UNLIMITED_TRIES,
            start_key="open",
        ),
        # Two statements, each with a timeout of two minutes; ``timeout_s`` bounds both.
        "names": JobKind(
            names,
            lease_s=30,
            max_running=1,
            timeout_s=180,
            retry_waits_s=(30.0, 120.0),
            most_tries=_UNLIMITED_TRIES,
            start_key="public",
        ),
        # Each run reads twenty verdicts, and the receipts of a few trades of each.
        "scorecard": JobKind(
            scorecard,
            lease_s=30,
            max_running=1,
            timeout_s=300,
            retry_waits_s=(5.0, 30.0, 120.0, 600.0),
            most_tries=_UNLIMITED_TRIES,
            start_key="verdicts",
        ),
        # A few reads, and the simulation of one sell.
        "failed_sell": JobKind(failed_sell, lease_s=30, max_running=1, timeout_s=60),
        "unlocks": JobKind(
            unlocks,
            lease_s=30,
            max_running=1,
            timeout_s=60,
            retry_waits_s=(30.0, 120.0),
            most_tries=_UNLIMITED_TRIES,
            start_key="coming",
        ),
        # One job a channel, which mostly waits for the channel's server. ``retry_waits_s``: for errors of
        # this service; a message that the server did not take has waits of its own.
        "deliver": JobKind(
            deliver,
            lease_s=30,
            max_running=MAX_AT_ONCE,
            timeout_s=60,
            retry_waits_s=(5.0, 30.0),
            most_tries=_UNLIMITED_TRIES,
            on_clock_set_back=deliveries.put_back,
            turns=Turns(LANES, deliveries.sort),
        ),
    }
)
