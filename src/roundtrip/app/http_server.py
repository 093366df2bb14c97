"""The HTTP service over an open context: its application, socket and server."""

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
from starlette.types import Scope

import roundtrip
from roundtrip.api.admission.gate import Gate, gate_over
from roundtrip.api.admission.minute_limits import MinuteLimits
from roundtrip.api.admission.shared_minute_limits import SharedMinutes
from roundtrip.api.dispatch import Dispatch
from roundtrip.api.documents.openapi import openapi_json
from roundtrip.api.documents.tool_schemas import tools_json
from roundtrip.api.http.app import NotFoundPage, Service, create_app
from roundtrip.api.request.callers import Callers, anonymous
from roundtrip.api.server.drain import ANSWERS_S, DrainingServer, DrainRequest, drain_mark
from roundtrip.api.server.protocol import BoundedProtocol, ConnectionPlaces, FairStarts, raise_file_limit
from roundtrip.api.sharing.places import RunPlaces
from roundtrip.api.sharing.shared_single_flight import FLIGHT_TIMES, FlightTimes, SharedInValkey
from roundtrip.api.sharing.single_flight import SharedAnswers
from roundtrip.api.sharing.valkey_cluster import SharedStore, open_shared_store
from roundtrip.config.settings import DOCUMENTS, LIBRARIES, Settings
from roundtrip.console.app import console_routes
from roundtrip.console.support.static_files import LibraryMissing
from roundtrip.domain.accounts.account import AddressAllowance, Allowances, CallAllowance, Payments
from roundtrip.domain.base.errors import CannotRun
from roundtrip.domain.base.metrics import Measures
from roundtrip.domain.base.types import parse_address
from roundtrip.services.accounts.credits import open_payments_in_background
from roundtrip.services.runtime.context import Context
from roundtrip.services.runtime.holder_tier import HolderTier, IsHolder, nobody_holds
from roundtrip.services.runtime.newest_block import is_newest

from .recursion_limit import bound_recursion

log = structlog.get_logger(__name__)


def listen(host: str, port: int, setting: str) -> socket.socket:
    """A listening socket. Raises CannotRun: the port is in use; the text names the setting that moves it."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        listening.listen(2048)
    except OSError as error:
        listening.close()
        raise CannotRun(
            f"Port {port} on {host} is in use or not available ({error.strerror}). "
            f"Set {setting} to a different port."
        ) from error
    return listening


def take_port(settings: Settings) -> socket.socket:
    """The service's listening socket. Removes the mark by which ``roundtrip drain`` told an earlier process
    on this port to drain. Raises CannotRun: the port is in use, or the mark cannot be removed, so that the
    service would start drained."""
    listening = listen(settings.host, settings.port, "ROUNDTRIP_PORT")
    mark = drain_mark(settings.var, settings.port)
    # This user makes the folder now. Otherwise root would make it at the first drain, and this user could not
    # remove the mark in it. On a read-only disk there is no folder, so this service cannot be drained.
    with contextlib.suppress(OSError):
        mark.parent.mkdir(parents=True, exist_ok=True)
    try:
        # On a read-only disk unlink fails even where there is no file.
        if mark.exists():
            mark.unlink(missing_ok=True)
    except OSError as error:
        listening.close()
        raise CannotRun(f"This port drains, and {mark} cannot be removed: {error.strerror}.") from error
    return listening


def inherit_socket(descriptor: int) -> socket.socket:
    """The listening socket that the parent process passed as this file descriptor. Raises OSError: it is not
    one."""
    listening = socket.socket(fileno=descriptor)
    if not listening.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
        raise OSError(f"file descriptor {descriptor} is not a listening socket")
    return listening


def build_application(
    settings: Settings,
    ctx: Context,
    open_store: Callable[[str], SharedStore] = open_shared_store,
    flight_times: FlightTimes = FLIGHT_TIMES,
) -> Starlette:
    """The service's ASGI application over an open context. ``open_store``: the store of a url."""
    bound_recursion()
    ctx = replace(
        ctx,
        public_url=settings.public_url or f"http://127.0.0.1:{settings.port}",
        allowances=_read_allowances(settings),
        is_holder=_holder_check(settings, ctx),
        holder_min=settings.holder_min,
        has_own_token=settings.own_token is not None,
        payments=_read_payments(settings),
    )
    callers = Callers(settings.trusted_proxies)
    valkey, shared_minutes, shared_store = None, None, None
    if settings.redis_url is not None:
        valkey = open_store(settings.redis_url)
        shared_minutes = SharedMinutes(
            MinuteLimits(lambda: int(ctx.now_s() * 1000)), valkey, service=ctx.service_id
        )
        shared_store = SharedInValkey(
            valkey, answers_version(ctx), lambda: uuid4().hex, time.monotonic, flight_times
        )
    gate = gate_over(ctx, shared_minutes)
    places = RunPlaces(settings.most_checks_at_once)
    shared = SharedAnswers(time.monotonic, places, shared_store, functools.partial(is_newest, ctx))

    @contextlib.asynccontextmanager
    async def running() -> AsyncIterator[None]:
        # Ended in reverse: the gate writes what waits, then the minutes settle, then Valkey closes.
        async with contextlib.AsyncExitStack() as stack:
            if valkey is not None:
                stack.push_async_callback(valkey.close)
            if shared_minutes is not None:
                stack.push_async_callback(shared_minutes.settle)
            await stack.enter_async_context(gate.open())
            await stack.enter_async_context(open_payments_in_background(ctx))
            yield

    dispatch = Dispatch(ctx, gate, shared)
    page_routes, not_found_page = build_pages(dispatch, callers)
    _register_gauges(ctx.measures, gate, shared, valkey)
    return create_app(
        dispatch,
        callers,
        running,
        extra_routes=page_routes,
        not_found_page=not_found_page,
        drains=DrainRequest(drain_mark(settings.var, settings.port), time.monotonic).is_made,
    )


def _register_gauges(
    measures: Measures, gate: Gate, shared: SharedAnswers, store: SharedStore | None
) -> None:
    """Registers gauges of this process's queues and limits."""
    measures.watch("runs", "under_way", shared.places.count_held)
    measures.watch("runs", "waiting", shared.places.count_waiting)
    measures.watch("runs", "most", lambda: shared.places.places)
    measures.watch("answers_kept", "", shared.count_answers)
    measures.watch("writes_waiting", "calls", gate.counter.waiting)
    if gate.spender is not None:
        measures.watch("writes_waiting", "credits", gate.spender.waiting)
    if store is not None:
        measures.watch("store_answers", "", lambda: int(not store.is_gone()))


def build_pages(
    dispatch: Dispatch, callers: Callers, libraries: Path = LIBRARIES, documents: Path = DOCUMENTS
) -> tuple[list[Route], NotFoundPage | None]:
    """The console's routes and its not-found page; none if the browser libraries are not installed, as
    programs do not need pages."""
    try:
        return console_routes(dispatch, callers, libraries, documents)
    except LibraryMissing as error:
        log.warning("serving no pages", error=str(error))
        return [], None


def answers_version(ctx: Context) -> str:
    """The version under which answers are shared across processes. Answers of other releases (both run during
    an upgrade) and of other chains' services (which may use the same store) must not match."""
    return f"{ctx.service_id}:{roundtrip.__version__}:{ctx.policy.version}:{ctx.chain_id}:{_hash_documents()}"


@functools.cache
def _hash_documents() -> str:
    return hashlib.sha256(msgspec.json.encode([openapi_json(), tools_json()])).hexdigest()[:16]


def _holder_check(settings: Settings, ctx: Context) -> IsHolder:
    if settings.own_token is None:
        return nobody_holds
    token, limit = parse_address(settings.own_token), ctx.policy.read_gas_limit
    return HolderTier(token, settings.holder_min, ctx.node, ctx.heads, limit, time.monotonic).is_holder


def _read_payments(settings: Settings) -> Payments | None:
    if settings.pay_to is None:
        return None
    return Payments(parse_address(settings.pay_to), settings.calls_per_usdg)


def _read_allowances(settings: Settings) -> Allowances:
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
        views=CallAllowance(settings.views_per_minute, settings.views_per_day),
    )


def build_http_server(
    app: Starlette,
    most_connections: int = 2_000,
    proxies: tuple[IPv4Network | IPv6Network, ...] = (),
    ready: Callable[[], None] = lambda: None,
    takes_turns: bool = False,
    measures: Measures | None = None,
) -> uvicorn.Server:
    """The HTTP server of an application. ``ready`` is called when it serves. ``takes_turns``: other processes
    accept from the same sockets. Its ``serve`` ends on a signal, and raises the signal again."""
    places = ConnectionPlaces(raise_file_limit(most_connections), proxies, measures)
    callers = Callers(proxies)
    if isinstance(app, Service):
        places.drains, places.pause_s = app.drains, app.address_limit.pause_s

    def name(scope: Scope) -> str:
        return anonymous(callers.host(scope["headers"], scope["client"]))

    protocol = functools.partial(BoundedProtocol, places=places, starts=FairStarts(), name=name)
    config = uvicorn.Config(
        app,
        loop="none",
        http=protocol,  # type: ignore[arg-type]
        access_log=False,
        # Strangers can cause its warnings: one for every unreadable request.
        log_level="error",
        # Its lines go through this service's logging.
        log_config=None,
        ws="none",
        server_header=False,
        date_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=int(ANSWERS_S),
        timeout_keep_alive=30,
    )
    return DrainingServer(config, places, ready, takes_turns)
