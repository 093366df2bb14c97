"""What only pages ask: rows of the operations' table that no program reaches."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Concatenate, ParamSpec, TypeVar

from roundtrip.api.operations.operation import (
    A,
    AccountHandler,
    Handler,
    Operation,
    P,
    account_operation,
    read_types,
    service_operation,
)

H = TypeVar("H")
Q = ParamSpec("Q")


def _for_pages(
    make: Callable[Concatenate[H, Q], Operation[P, A]],
) -> Callable[Concatenate[H, Q], Operation[P, A]]:
    """``make`` for operations that are no tools."""
    return lambda handler, /, *args, **fields: replace(make(handler, *args, **fields), on_mcp=False)


page_operation = _for_pages(service_operation)
"""The operation that runs a use case for pages alone."""
own_operation = _for_pages(account_operation)
"""The same for a use case of the visitor's account."""


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
