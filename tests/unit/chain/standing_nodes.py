"""How nodes stand, and requests to them."""

from typing import Any

from roundtrip.chain.rpc.endpoints import SIMULATES, Moment, NodeEndpoint, NodeUrl, choose

DAY_S = 86_400.0


READS = frozenset({"eth_call"})


SIMULATIONS = frozenset({SIMULATES, "eth_call"})


SECRET = "s3cr3t"


def at(steady_s: float) -> Moment:
    return Moment(steady_s, 1_000 * DAY_S + steady_s)


def endpoints(*limits: dict[str, Any]) -> list[NodeEndpoint]:
    return [
        NodeEndpoint.of(NodeUrl(f"http://node{number}.test/{SECRET}", **one))
        for number, one in enumerate(limits)
    ]


def chosen(
    them: list[NodeEndpoint], now: Moment, methods: frozenset[str] = READS, calls: int = 10, **options: Any
) -> tuple[int, float] | None:
    choice = choose(them, methods, calls, now, options.pop("within_s", 5.0), **options)
    return None if choice is None else (choice.number, choice.wait_s)
