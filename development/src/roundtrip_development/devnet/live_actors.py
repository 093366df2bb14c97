"""Continues the history's actors on the running chain until its process ends."""

import contextlib
import threading
from collections.abc import Iterator
from random import Random

import structlog

from .actors import ActorMarket, choose, give_up, live_role, record
from .deploy import DeployError
from .history import SEED
from .sync_rpc import RpcFailure, SyncRpc
from .trading import DevnetTrader
from .world import Built

PAUSE_S = 2.0
_END_S = 2.0

_log = structlog.get_logger(__name__)


@contextlib.contextmanager
def trading(url: str, built: Built, seed: int = SEED + 1, pause_s: float = PAUSE_S) -> Iterator[None]:
    """Runs the actors on the node at ``url``, with ``pause_s`` seconds of rest before each turn."""
    over = threading.Event()
    arguments = (url, built, seed, pause_s, over)
    thread = threading.Thread(target=_run, args=arguments, name="actors", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        # A step may wait for its block; an ending process does not wait long for it.
        thread.join(_END_S)


def _run(url: str, built: Built, seed: int, pause_s: float, over: threading.Event) -> None:
    market, rng, last_error = ActorMarket.unpack(built.market), Random(seed), ""  # noqa: S311
    trader: DevnetTrader | None = None
    with SyncRpc(url) as chain:
        while not over.wait(pause_s):
            try:
                trader = trader or DevnetTrader(chain, built.contracts, built.accounts)
                _turn(trader, market, rng, over)
            except (DeployError, RpcFailure, OSError) as error:
                # A repeated error is not logged again.
                if str(error) != last_error and not over.is_set():
                    last_error = str(error)
                    _log.warning("actor_step_failed", error=last_error)


def _turn(trader: DevnetTrader, market: ActorMarket, rng: Random, over: threading.Event) -> None:
    """Plays one turn; after a failed step the rest of the turn is left out."""
    for step in choose(market, rng, live_role(rng)):
        if over.is_set():
            return
        try:
            record(market, step, trader.perform(market, step))
        except (DeployError, RpcFailure):
            give_up(market, step)
            raise
