"""What only pages ask: rows of the operations' table that no program reaches."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Unpack

from roundtrip.api.operations.operation import (
    A,
    AccountHandler,
    Handler,
    Operation,
    Options,
    P,
    account_operation,
    read_types,
    service_operation,
)


def page_operation(
    handler: Handler[P, A],
    name: str = "",
    shared_by: Callable[[P], str] | None = None,
    **options: Unpack[Options],
) -> Operation[P, A]:
    """The operation that runs ``handler`` for pages alone."""
    return service_operation(handler, name, shared_by=shared_by, on_mcp=False, **options)


def own_operation(
    handler: AccountHandler[P, A], name: str = "", **options: Unpack[Options]
) -> Operation[P, A]:
    """The same for a handler of the visitor's account."""
    return account_operation(handler, name, on_mcp=False, **options)


def page_variant(row: Operation[P, Any], handler: Handler[P, A]) -> Operation[P, A]:
    """The operation with the limits of ``row`` that runs ``handler``, which answers more."""
    _, answer = read_types(handler)
    return replace(
        row, name=handler.__name__, answer=answer, handler=lambda call: handler(call.ctx, call.params),
        path=None, path_answer=None, on_mcp=False,
    )  # fmt: skip


def own_variant(row: Operation[P, Any], handler: AccountHandler[P, A], name: str = "") -> Operation[P, A]:
    """The same for a handler of the visitor's account."""
    _, answer = read_types(handler)
    return replace(
        row, name=name or handler.__name__, answer=answer, path=None, on_mcp=False,
        handler=lambda call: handler(call.ctx, call.params, call.owner()),
    )  # fmt: skip
