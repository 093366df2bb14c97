"""The steps of the tour: every tool once, in an order in which each has something to show."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from roundtrip.api.operations.catalog import tools
from roundtrip.api.operations.operation import AnyOperation
from roundtrip_development.devnet.actors import DUMPER, SNIPERS, TRADERS
from roundtrip_development.devnet.demo.crowd import choose_tokens, visitor
from roundtrip_development.devnet.deploy import calldata
from roundtrip_development.devnet.trading import POOL_FEE, actor_address
from roundtrip_development.devnet.world import Built

Arguments = dict[str, Any]
Answer = dict[str, Any]
_BUY_WEI = 10**17
_SINGLE = "exactInputSingle((address,address,uint24,address,uint256,uint256,uint160))"


@dataclass(frozen=True, slots=True)
class TourGround:
    """The data of the steps: the built chain, the wallet with the key, the address of its webhook, and the
    answers of earlier tools."""

    built: Built
    wallet: str
    receiver_url: str
    answers: dict[str, Answer] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TourStep:
    """One call. ``shows``: the field of the answer that must not be empty, its path with dots. ``is_sent``:
    the transactions in its answer are signed and sent. ``varies``: fields that differ between runs, beside
    those that always do."""

    tool: str
    why: str
    arguments: Callable[[TourGround], Arguments]
    shows: str
    is_sent: bool = False
    varies: tuple[str, ...] = ()


def steps() -> list[tuple[TourStep, AnyOperation]]:
    """The steps with an existing tool, in order."""
    by_name = {tool.name: tool for tool in tools()}
    return [(step, by_name[step.tool]) for step in STEPS if step.tool in by_name]


def _no_arguments(ground: TourGround) -> Arguments:
    return {}


def _with_arguments(**arguments: Any) -> Callable[[TourGround], Arguments]:
    return lambda ground: arguments


def _address(token: Callable[[TourGround], str]) -> Callable[[TourGround], Arguments]:
    return lambda ground: {"address": token(ground)}


def _crowded_token(ground: TourGround) -> str:
    return choose_tokens(ground.built).crowded.token


def _sniped_token(ground: TourGround) -> str:
    """The first launch, which snipers bought."""
    return next(str(listed["token"]) for listed in ground.built.market["tokens"] if listed["kind"] == "curve")


def _buy(ground: TourGround) -> Arguments:
    weth, router = ground.built.contracts["weth"], ground.built.contracts["swapRouter02"]
    swap = (weth, ground.built.tokens["plain"], POOL_FEE, ground.wallet, _BUY_WEI, 0, 0)
    data = calldata(_SINGLE, swap)
    return {"from": ground.wallet, "to": router, "data": data, "value": str(_BUY_WEI)}


def _trade_arguments(**arguments: Any) -> Callable[[TourGround], Arguments]:
    return lambda ground: {"token": ground.built.tokens["plain"], "from": ground.wallet, **arguments}


def _practice_arguments(**arguments: Any) -> Callable[[TourGround], Arguments]:
    return lambda ground: {"token": _crowded_token(ground), **arguments}


def _rule(ground: TourGround) -> str:
    return f"any buying over 0.05 eth on {ground.built.tokens['plain']}"


def _hash(ground: TourGround) -> Arguments:
    """The last trade that test_rule found: the newest of the history."""
    return {"hash": ground.answers["test_rule"]["last"][0]["tx"]}


STEPS: tuple[TourStep, ...] = (
    TourStep(
        "check_token",
        "Start here: can you sell this token again, and what does the round trip cost?",
        lambda ground: {"address": ground.built.tokens["plain"]},
        "verdict.text",
    ),
    TourStep(
        "winners",
        "Which wallets closed the most profit today, without profit that is easy to fake?",
        _no_arguments,
        "rows",
    ),
    TourStep("league", "Who leads this week's practice league?", _no_arguments, "rows"),
    TourStep(
        "wallet_names",
        "How do people name and mark wallets, where enough of them agree?",
        _no_arguments,
        "rows",
    ),
    TourStep("proven_calls", "Who predicted what happened to a token?", _no_arguments, "rows"),
    TourStep(
        "chain_vitals",
        "How is the chain doing, and how far behind is the service?",
        _no_arguments,
        "ethUsd",
        varies=("gasPriceWei", "gasPriceGwei", "blockTimeMs", "tradesPerMinute"),
    ),
    TourStep(
        "look_up",
        "A symbol does not identify a token: which token has this one, and which others do?",
        _with_arguments(query="ARC"),
        "address",
    ),
    TourStep(
        "simulate_transaction",
        "What would this transaction do, before you sign it? It is a buy.",
        _buy,
        "received",
    ),
    TourStep("token_holders", "Who holds the token, and who bought first?", _address(_crowded_token), "top"),
    TourStep("smart_money", "Do winning wallets hold it?", _address(_crowded_token), "wallets"),
    TourStep(
        "launch_bundle",
        "Who bought in the first three seconds, and who funded them?",
        _address(_sniped_token),
        "groups",
    ),
    TourStep(
        "wallet_history",
        "Who funded a wallet, and how does it trade?",
        lambda ground: {"address": actor_address(TRADERS[3])},
        "holdings.rows",
    ),
    TourStep(
        "linked_wallets",
        "Which other wallets may belong to the same person?",
        lambda ground: {"address": actor_address(SNIPERS[0])},
        "linked",
    ),
    TourStep("moving_now", "Which tokens do people buy right now?", _no_arguments, "tokens"),
    TourStep("graduating_soon", "Which launches are close to their pool?", _no_arguments, "curves"),
    TourStep("signals", "Which warnings did the last hour bring?", _no_arguments, "signals"),
    TourStep(
        "my_mite",
        "With a key: which account is it, and how many calls does it have left?",
        _no_arguments,
        "text",
    ),
    TourStep(
        "follow_wallet",
        "Get an alert when this wallet buys, sells or launches.",
        lambda ground: {"address": visitor(0), "name": "Winner"},
        "text",
    ),
    TourStep(
        "create_rule",
        "Get an alert for every buy of this token above a size.",
        lambda ground: {"rule": _rule(ground)},
        "rule",
    ),
    TourStep(
        "test_rule",
        "How often would a rule have hit in the last seven days?",
        lambda ground: {"rule": f"{actor_address(DUMPER)} selling"},
        "last",
    ),
    TourStep(
        "explain_transaction",
        "What did a transaction do? This one is a hit of the rule above.",
        _hash,
        "paid",
    ),
    TourStep("list_rules", "Which rules do I have?", _no_arguments, "rules"),
    TourStep(
        "set_webhook",
        "Send my alerts to a url. The answer has the secret that signs them, once.",
        lambda ground: {"url": ground.receiver_url},
        "channel.id",
    ),
    TourStep("list_channels", "Where do my alerts go, and do they arrive?", _no_arguments, "channels"),
    TourStep(
        "prepare_buy",
        "Prepare a buy for my wallet. The tour signs and sends it.",
        _trade_arguments(amount="0.1"),
        "steps",
        is_sent=True,
    ),
    TourStep(
        "inbox",
        "My alerts: the buy that was just sent is a hit of my rule.",
        _no_arguments,
        "rows",
        varies=("id",),
    ),
    TourStep(
        "my_bag", "What does my wallet hold, and what changed since it bought?", _no_arguments, "holdings"
    ),
    TourStep(
        "prepare_sell",
        "Prepare a sell of half of it. It stays unsigned.",
        _trade_arguments(percent=50),
        "steps",
    ),
    TourStep(
        "practice_buy",
        "Buy with practice eth, at the price of a real buy.",
        _practice_arguments(eth="0.1"),
        "text",
    ),
    TourStep(
        "practice_account",
        "How much practice eth is left, and what would each position sell for now?",
        _no_arguments,
        "positions",
    ),
    TourStep(
        "practice_sell",
        "Sell half of it, at the price of a real sell.",
        _practice_arguments(percent=50),
        "text",
    ),
    TourStep("practice_trades", "My practice trades, with the profit of each sell.", _no_arguments, "trades"),
    TourStep(
        "mark_as_agent",
        "Tag my account as a program; the league shows it.",
        _with_arguments(name="Tour guide"),
        "text",
    ),
    TourStep(
        "delete_rule", "Remove the rule.", lambda ground: {"id": ground.answers["create_rule"]["id"]}, "text"
    ),
    TourStep("unfollow_wallet", "Stop following the wallet.", lambda ground: {"address": visitor(0)}, "text"),
    TourStep(
        "remove_channel",
        "Remove the webhook.",
        lambda ground: {"id": ground.answers["set_webhook"]["channel"]["id"]},
        "text",
    ),
)
"""Steps that depend on other actors' activity come first: the tour waits for it there. ``steps`` leaves out
tools that do not exist."""
