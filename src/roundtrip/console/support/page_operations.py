"""What only pages ask: rows of the operations' table that no program reaches."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, Literal, TypedDict, Unpack, get_args, get_type_hints

from roundtrip.api.operations.operation import A, Method, Operation, P
from roundtrip.domain.accounts.account import Account
from roundtrip.services.runtime.context import Context, UseCaseAnswer

Handler = Callable[[Context, P], Awaitable[UseCaseAnswer[A]]]
OwnHandler = Callable[[Context, P, Account], Awaitable[UseCaseAnswer[A]]]


class Options(TypedDict, total=False):
    """Fields of ``Operation`` by their names there."""

    method: Method
    writes: bool
    counts: Literal["day", "minute", "never"]
    shared_by: Callable[[Any], str]
    bad_params: str
    errors: tuple[str, ...]
    destroys: bool
    repeatable: bool
    from_replica: bool


def page_operation(handler: Handler[P, A], name: str = "", **options: Unpack[Options]) -> Operation[P, A]:
    """The operation that runs ``handler``, with its types and, unless ``name`` is given, its name."""
    params, answer = _read_types(handler)
    return Operation(
        name or handler.__name__, "", "", params, answer, lambda call: handler(call.ctx, call.params),
        on_mcp=False, **options,
    )  # fmt: skip


def own_operation(handler: OwnHandler[P, A], name: str = "", **options: Unpack[Options]) -> Operation[P, A]:
    """The same for a handler of the visitor's account."""
    params, answer = _read_types(handler)
    return Operation(
        name or handler.__name__, "", "", params, answer,
        lambda call: handler(call.ctx, call.params, call.owner()), key=True, on_mcp=False, **options,
    )  # fmt: skip


def _read_types(handler: Callable[..., object]) -> tuple[Any, Any]:
    """The types of its parameters and of its answer."""
    hints = get_type_hints(handler)
    return hints["params"], get_args(hints["return"])[0]


def page_variant(row: Operation[P, Any], handler: Handler[P, A]) -> Operation[P, A]:
    """The operation with the limits of ``row`` that runs ``handler``, which answers more."""
    _, answer = _read_types(handler)
    return replace(
        row, name=handler.__name__, answer=answer, handler=lambda call: handler(call.ctx, call.params),
        path=None, path_answer=None, on_mcp=False,
    )  # fmt: skip


def own_variant(row: Operation[P, Any], handler: OwnHandler[P, A], name: str = "") -> Operation[P, A]:
    """The same for a handler of the visitor's account."""
    _, answer = _read_types(handler)
    return replace(
        row, name=name or handler.__name__, answer=answer, path=None, on_mcp=False,
        handler=lambda call: handler(call.ctx, call.params, call.owner()),
    )  # fmt: skip
