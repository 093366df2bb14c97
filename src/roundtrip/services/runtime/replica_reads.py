"""Runs a use case that only reads, on a replica where one is fit."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TypeVar

from .context import Context

A = TypeVar("A")


async def read_from_replica(ctx: Context, run: Callable[[Context], Awaitable[A]]) -> A:
    """Returns what ``run`` returns, and raises as it does. All its reads of the index are of one replica. It
    runs again on the primary if the replica failed meanwhile, even where it made do with less."""
    loan = ctx.replicas.lend()
    if loan is None:
        return await run(ctx)
    try:
        answer = await run(replace(ctx, loan=loan))
    except Exception:
        if not loan.has_failed:
            raise
    else:
        if not loan.has_failed:
            return answer
    return await run(ctx)
