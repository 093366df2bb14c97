"""The history's actors, going on with the running chain until its process ends."""

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
    """Actors trade on the node at ``url``, ``pause_s`` seconds of rest before each turn."""
    over = threading.Event()
    arguments = (url, built, seed, pause_s, over)
    thread = threading.Thread(target=_run, args=arguments, name="actors", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        # A step may wait for its block; a process that ends does not wait for it long.
        thread.join(_END_S)


def _run(url: str, built: Built, seed: int, pause_s: float, over: threading.Event) -> None:
    market, rng, told = ActorMarket.unpack(built.market), Random(seed), ""  # noqa: S311
    desk: DevnetTrader | None = None
    with SyncRpc(url) as chain:
        while not over.wait(pause_s):
            try:
                desk = desk or DevnetTrader(chain, built.contracts, built.accounts)
                _turn(desk, market, rng, over)
            except (DeployError, RpcFailure, OSError) as error:
                # The same trouble again is no news.
                if str(error) != told and not over.is_set():
                    told = str(error)
                    _log.warning("actor_step_failed", error=told)


def _turn(desk: DevnetTrader, market: ActorMarket, rng: Random, over: threading.Event) -> None:
    """One turn; after a step that fails the others of its turn are left out."""
    for step in choose(market, rng, live_role(rng)):
        if over.is_set():
            return
        try:
            record(market, step, desk.perform(market, step))
        except (DeployError, RpcFailure):
            give_up(market, step)
            raise
