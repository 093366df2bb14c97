"""The HTTP service over an open context: its application, its socket, its server."""

import contextlib
import functools
import hashlib
import socket
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path
from uuid import uuid4

import msgspec
import structlog
import uvicorn
from starlette.applications import Starlette
from starlette.routing import Route

import roundtrip
from roundtrip.api.admission.gate import Gate, gate_over
from roundtrip.api.admission.minute_limits import MinuteLimits
from roundtrip.api.admission.shared_minute_limits import SharedMinutes
from roundtrip.api.dispatch import Dispatch
from roundtrip.api.documents.openapi import openapi_json
from roundtrip.api.documents.tool_schemas import tools_json
from roundtrip.api.http.app import Lost, create_app
from roundtrip.api.request.callers import Callers
from roundtrip.api.server.drain import ANSWERS_S, DrainingServer
from roundtrip.api.server.overload import RunLimit
from roundtrip.api.server.protocol import BoundedProtocol, ConnectionPlaces, spare_files
from roundtrip.api.sharing.shared_single_flight import SharedInValkey
from roundtrip.api.sharing.single_flight import SharedAnswers
from roundtrip.api.sharing.valkey import Valkey
from roundtrip.config.resources import LIBRARIES
from roundtrip.config.settings import Settings
from roundtrip.console.app import console_routes
from roundtrip.console.support.static_files import LibraryMissing
from roundtrip.domain.accounts.account import AddressAllowance, Allowances, CallAllowance
from roundtrip.domain.accounts.credits import Payments
from roundtrip.domain.base.errors import CannotRun
from roundtrip.domain.base.metrics import Measures
from roundtrip.domain.base.types import parse_address
from roundtrip.services.accounts.credits import open_payments_in_background
from roundtrip.services.runtime.context import Context
from roundtrip.services.runtime.holder_tier import HolderTier, IsHolder, nobody_holds
from roundtrip.services.runtime.newest_block import is_newest

from .recursion_limit import bound_recursion

log = structlog.get_logger(__name__)


class PortTaken(CannotRun):
    """Somebody else listens where this service was to listen."""


def listen(host: str, port: int, setting: str) -> socket.socket:
    """A listening socket. Raises PortTaken, naming the setting that moves the port."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        listening.listen(2048)
    except OSError as error:
        listening.close()
        raise PortTaken(
            f"Port {port} on {host} is taken or cannot be used ({error.strerror}). "
            f"Set {setting} to another one."
        ) from error
    return listening


def inherit_socket(descriptor: int) -> socket.socket:
    """The listening socket that whoever started this process left open as this file descriptor. Raises
    OSError."""
    listening = socket.socket(fileno=descriptor)
    if not listening.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
        raise OSError(f"file descriptor {descriptor} is no listening socket")
    return listening


def application(settings: Settings, ctx: Context) -> Starlette:
    """The service's ASGI application over an open context."""
    bound_recursion()
    ctx = replace(
        ctx,
        public_url=settings.public_url or f"http://127.0.0.1:{settings.port}",
        allowances=_allowances(settings),
        is_holder=_is_holder(settings, ctx),
        holder_min=settings.holder_min,
        has_own_token=settings.own_token is not None,
        payments=_payments(settings),
    )
    callers = Callers(settings.trusted_proxies)
    store, minutes, across = None, None, None
    if settings.redis_url is not None:
        store = Valkey(settings.redis_url)
        minutes = SharedMinutes(MinuteLimits(lambda: int(ctx.now_s() * 1000)), store, service=ctx.service_id)
        across = SharedInValkey(store, shape_of_answers(ctx), lambda: uuid4().hex, time.monotonic)
    gate = gate_over(ctx, minutes)
    pressure = RunLimit(settings.most_checks_at_once, time.monotonic)
    shared = SharedAnswers(
        time.monotonic,
        settings.most_checks_at_once,
        across,
        pressure.allowed_runs,
        functools.partial(is_newest, ctx),
    )

    @contextlib.asynccontextmanager
    async def running() -> AsyncIterator[None]:
        async with contextlib.AsyncExitStack() as closing:
            if store is not None:
                closing.push_async_callback(store.close)
            if minutes is not None:
                closing.push_async_callback(minutes.settle)
            await closing.enter_async_context(gate.open())
            await closing.enter_async_context(open_payments_in_background(ctx))
            await closing.enter_async_context(pressure.watch_loop(shared.running))
            yield

    dispatch = Dispatch(ctx, gate, shared)
    beside, lost = pages(dispatch, callers)
    _watch(ctx.measures, gate, shared, store)
    ctx.measures.watch("runs", "allowed", pressure.allowed_runs)
    return create_app(dispatch, callers, running, beside=beside, turns_away=pressure.turns_away, lost=lost)


def _watch(measures: Measures, gate: Gate, shared: SharedAnswers, store: Valkey | None) -> None:
    """What waits in this process, and how full it is."""
    measures.watch("runs", "under_way", shared.running)
    measures.watch("runs", "most", lambda: shared.most_running)
    measures.watch("answers_kept", "", shared.count_shared)
    measures.watch("writes_waiting", "calls", gate.commit.waiting)
    if gate.spending is not None:
        measures.watch("writes_waiting", "credits", gate.spending.waiting)
    if store is not None:
        measures.watch("store_answers", "", lambda: int(not store.is_gone()))


def pages(
    dispatch: Dispatch, callers: Callers, libraries: Path = LIBRARIES
) -> tuple[list[Route], Lost | None]:
    """The pages for people, and the one for where nothing is; none where what browsers load is not installed:
    programs need no pages."""
    try:
        return console_routes(dispatch, callers, libraries)
    except LibraryMissing as error:
        log.warning("no pages are served", error=str(error))
        return [], None


def shape_of_answers(ctx: Context) -> str:
    """What answers that are put where other processes find them depend on: while one release takes the place
    of another, both run; and another chain's service may have been given the same store."""
    published = hashlib.sha256(msgspec.json.encode([openapi_json(), tools_json()])).hexdigest()[:16]
    return f"{ctx.service_id}:{roundtrip.__version__}:{ctx.policy.version}:{ctx.chain_id}:{published}"


def _is_holder(settings: Settings, ctx: Context) -> IsHolder:
    if settings.own_token is None:
        return nobody_holds
    own, limit = parse_address(settings.own_token), ctx.policy.read_gas_limit
    return HolderTier(own, settings.holder_min, ctx.node, ctx.heads, limit, time.monotonic).is_holder


def _payments(settings: Settings) -> Payments | None:
    if settings.pay_to is None:
        return None
    return Payments(parse_address(settings.pay_to), settings.calls_per_usdg)


def _allowances(settings: Settings) -> Allowances:
    return Allowances(
        anonymous=CallAllowance(settings.anon_per_minute),
        key=CallAllowance(settings.key_per_minute, settings.key_per_day),
        holder=CallAllowance(settings.holder_per_minute, settings.holder_per_day),
        address=AddressAllowance(
            keyed=settings.keyed_per_address,
            requests=settings.requests_per_address,
            accounts=settings.accounts_per_address,
            loopback=settings.limit_loopback,
        ),
    )


def http_server(
    app: Starlette,
    most_connections: int = 2_000,
    proxies: tuple[IPv4Network | IPv6Network, ...] = (),
    ready: Callable[[], None] = lambda: None,
    takes_turns: bool = False,
    measures: Measures | None = None,
) -> uvicorn.Server:
    """The HTTP server around the application; ``ready`` is called when it serves. ``takes_turns``: others
    accept from the same sockets. Its ``serve`` ends on a signal, and hands the signal on."""
    places = ConnectionPlaces(spare_files(most_connections), proxies, measures)
    bounded = functools.partial(BoundedProtocol, places=places)
    config = uvicorn.Config(
        app,
        loop="none",
        http=bounded,  # type: ignore[arg-type]
        access_log=False,
        # Strangers write its warnings: one for every request that cannot be read.
        log_level="error",
        # Its lines go where ours do.
        log_config=None,
        ws="none",
        server_header=False,
        date_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=int(ANSWERS_S),
        timeout_keep_alive=30,
    )
    return DrainingServer(config, places, ready, takes_turns)
