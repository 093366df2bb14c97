"""THE TABLE of what is done later. The worker, the documentation and the tests loop over it."""

from types import MappingProxyType

from roundtrip.domain.watch.channels import LANES, MOST_AT_ONCE
from roundtrip.jobs.engine.worker import Kind, Turns
from roundtrip.jobs.kinds.bag import EVERY_S as BAG_EVERY_S
from roundtrip.jobs.kinds.bag import bag
from roundtrip.jobs.kinds.boards import EVERY_S, boards
from roundtrip.jobs.kinds.deliver import deliver
from roundtrip.jobs.kinds.flags import calls
from roundtrip.jobs.kinds.holders import holders
from roundtrip.jobs.kinds.names import names
from roundtrip.jobs.kinds.origin import origin
from roundtrip.jobs.kinds.prune import prune
from roundtrip.jobs.kinds.recheck import recheck
from roundtrip.jobs.kinds.scorecard import scorecard
from roundtrip.jobs.kinds.token import token
from roundtrip.jobs.kinds.winners import winners
from roundtrip.services.runtime.context import Context
from roundtrip.store.delivery import deliveries

_DAY_S = 86_400.0
_NEVER_GIVEN_UP = 10**9

KINDS: MappingProxyType[str, Kind[Context]] = MappingProxyType(
    {
        "token": Kind(token, lease_s=30, at_once=4, limit_s=30),
        # A deep one makes three trips and some more of the holders', of up to a minute each.
        "recheck": Kind(recheck, lease_s=30, at_once=2, limit_s=300),
        "origin": Kind(origin, lease_s=30, at_once=1, limit_s=120, waits_s=(_DAY_S,), most_tries=3),
        # A piece of ten seconds a run; each that succeeds counts its tries anew.
        "holders": Kind(holders, lease_s=10, at_once=1, limit_s=120, most_tries=10),
        # These wish for themselves: given up, nobody else would.
        "prune": Kind(prune, lease_s=60, at_once=1, limit_s=60, most_tries=_NEVER_GIVEN_UP, at_start="facts"),
        "boards": Kind(
            boards,
            lease_s=30,
            at_once=1,
            limit_s=30,
            waits_s=(EVERY_S,),
            most_tries=_NEVER_GIVEN_UP,
            at_start="moving",
        ),
        "bag": Kind(
            bag,
            lease_s=30,
            at_once=1,
            limit_s=60,
            waits_s=(BAG_EVERY_S,),
            most_tries=_NEVER_GIVEN_UP,
            at_start="held",
        ),
        # Three statements a run, each of which the database is given ten minutes for.
        "winners": Kind(
            winners,
            lease_s=60,
            at_once=1,
            limit_s=1900,
            waits_s=(5.0, 30.0),
            most_tries=_NEVER_GIVEN_UP,
            at_start="facts",
        ),
        # One trip to the node and what facts tell of some two hundred flags.
        "calls": Kind(
            calls,
            lease_s=30,
            at_once=1,
            limit_s=60,
            waits_s=(5.0, 30.0),
            most_tries=_NEVER_GIVEN_UP,
            at_start="open",
        ),
        # One statement, which the database is given two minutes for.
        "names": Kind(
            names,
            lease_s=30,
            at_once=1,
            limit_s=180,
            waits_s=(30.0, 120.0),
            most_tries=_NEVER_GIVEN_UP,
            at_start="public",
        ),
        # Twenty verdicts a run, and the receipts of a few trades of each.
        "scorecard": Kind(
            scorecard,
            lease_s=30,
            at_once=1,
            limit_s=300,
            waits_s=(5.0, 30.0, 120.0, 600.0),
            most_tries=_NEVER_GIVEN_UP,
            at_start="verdicts",
        ),
        # One a channel, which mostly waits for somebody else's server. What fails here is ours: what fails
        # there has waits of its own.
        "deliver": Kind(
            deliver,
            lease_s=30,
            at_once=MOST_AT_ONCE,
            limit_s=60,
            waits_s=(5.0, 30.0),
            most_tries=_NEVER_GIVEN_UP,
            put_back=deliveries.put_back,
            turns=Turns(LANES, deliveries.sort),
        ),
    }
)
