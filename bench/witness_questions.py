"""What a witness asks, in the order in which it asks: a story of some people on the local chain.

Each phase has its own time. ``before``: keys are made, eight days before the chain's end. ``history``,
``pages``: what the built chain has. ``trade``: a wallet trades by prepared calls. ``crowd``, ``winners``:
accounts follow, watch and practise; a crowd trades. ``account``: somebody who is signed in to the console.
``later``: boards and alerts after all that. ``errors``: what is refused.
"""

import json
import re
import threading
from collections.abc import Callable
from urllib.parse import quote

from roundtrip_development.devnet.actors import DUMPER, LAUNCHERS, SERIAL, SNIPERS
from roundtrip_development.devnet.demo.crowd import CrowdTokens, DemoCrowd, visitor
from roundtrip_development.devnet.demo.wallet import DemoWallet
from roundtrip_development.devnet.trading import actor_address

from .witness_service import BEFORE_S, Witness

BOARDS = (
    "moving_now", "graduating_soon", "winners", "newest_verdicts", "signals", "wallet_names", "proven_calls",
)  # fmt: skip
BOARD_TOOLS = (
    "moving_now", "graduating_soon", "winners", "signals", "chain_vitals", "wallet_names", "proven_calls",
    "league",
)  # fmt: skip
OWN_TOOLS = (
    "my_mite", "inbox", "list_rules", "list_channels", "practice_account", "practice_trades", "my_bag",
)  # fmt: skip
ROOMS = ("overview", "inbox", "watch", "channels", "bag", "unlocks", "practice", "marks", "keys")
WHOLE = (
    "plain", "owner_only_sell", "fee_on_sell", "heavy_fee_on_buy", "two_pools", "v4_fee_on_sell",
    "hook_takes_tenth", "hook_allow_list", "curve", "curve_taxed", "graduated", "first_graduated", "no_pool",
    "not_a_token", "strange_name", "max_transaction",
)  # fmt: skip
"""Tokens of which everything is asked; of the others only a check, a proof and two pages."""
PAGES = (
    "/", "/status", "/operations", "/tools", "/scorecard", "/scorecard/report", "/boards", "/league",
    "/league?who=agents", "/trade", "/simulate", "/sign-in", "/docs", "/search?q=", "/nowhere",
)  # fmt: skip
DOCUMENTS = ("/v1/health", "/v1/tools.json", "/v1/openapi.json", "/llms.txt", "/robots.txt", "/ready")
STREAMED = ("plain", "owner_only_sell", "curve")
NOBODY = "0x" + "12" * 20
NO_HASH = "0x" + "34" * 32
PEOPLE, CLERK, TRADER = (1, 2, 3, 4), 5, 6
"""The node's own accounts: of callers with a key, of who is signed in to the console, of who trades."""


def ask_everything(witness: Witness) -> None:
    """All phases, in order."""
    head_s = witness.built.head_s
    wallets = {number: DemoWallet(witness.built, number) for number in (*PEOPLE, CLERK, TRADER)}
    people = [wallets[number] for number in PEOPLE]
    witness.begin("before", head_s - BEFORE_S)
    keys = [_make_key(witness, wallet) for wallet in (*people, wallets[TRADER])]
    witness.begin("history", head_s + 60)
    _check_tokens(witness)
    witness.begin("pages", head_s + 120)
    _show_tokens(witness)
    _ask_wallets(witness)
    _ask_boards(witness, "")
    for path in (*PAGES, *DOCUMENTS):
        witness.ask("GET", path)
    _ask_documents(witness)
    witness.begin("trade", head_s + 180)
    _trade(witness, wallets[TRADER], keys[-1])
    witness.begin("crowd", head_s + 240)
    crowd = _play(witness, people, keys[: len(PEOPLE)])
    # Jobs count who bought a token, and so whether it counts.
    witness.begin("winners", head_s + 360)
    _win(witness, crowd.tokens, people, keys[: len(PEOPLE)])
    witness.begin("account", head_s + 600)
    _visit_account(witness, wallets[CLERK], crowd.tokens.crowded.token)
    witness.begin("later", head_s + 720)
    _ask_boards(witness, keys[0])
    for tool in OWN_TOOLS:
        witness.tool(tool, keys[0])
    witness.answers["later: deliveries"] = witness.receiver.rows()
    witness.begin("errors", head_s + 780)
    _ask_wrongly(witness, keys[0])
    tokens = list(witness.built.tokens.values())
    witness.ask("POST", "/v1/checks", {"addresses": [*tokens[:12], NOBODY, "0x12"]})


def _make_key(witness: Witness, wallet: DemoWallet) -> str:
    text = witness.ask("POST", "/v1/keys/nonce", {"address": wallet.address})
    given = {"address": wallet.address, "signature": wallet.sign_text(text["message"]), "label": "first"}
    return str(witness.ask("POST", "/v1/keys", given)["key"])


def _check_tokens(witness: Witness) -> None:
    for name, token in witness.built.tokens.items():
        witness.ask("GET", f"/v1/check/{token}")
        witness.ask("GET", f"/v1/check/{token}/proof")
        if name in WHOLE:
            for path in (
                "/v1/check/{}?deep=1",
                "/v1/check/{}?amount=0.5",
                "/v1/holders/{}",
                "/v1/liquidity/{}",
            ):
                witness.ask("GET", path.format(token))


def _show_tokens(witness: Witness) -> None:
    # A page shows of holders and liquidity what is there in a moment: so these are asked before it.
    for name, token in witness.built.tokens.items():
        for path in ("/v1/holders/{}", "/v1/liquidity/{}", "/token/{}", "/t/{}/card.svg"):
            witness.ask("GET", path.format(token))
        if name not in WHOLE:
            continue
        witness.ask("GET", f"/v1/check/{token}/history")
        for tool in ("check_token", "token_holders", "smart_money", "launch_bundle", "proven_calls"):
            witness.tool(tool, address=token)
        for piece in ("holders", "liquidity", "chart", "chart?span=1h", "trades", "flags", "request"):
            witness.ask("GET", f"/token/{token}/{piece}")
        for piece in ("holders", "liquidity", "flags"):
            witness.ask("GET", f"/token/{token}/{piece}", headers={"hx-request": "true"}, as_="as a piece")
        for path in ("/token/{}?deep=1", "/t/{}", "/t/{}/card.png", "/t/{}/badge.svg"):
            witness.ask("GET", path.format(token))
    for name in STREAMED:
        witness.stream(f"/token/{witness.built.tokens[name]}/steps?amount=0.2", {}, 30, 1.5)


def _ask_wallets(witness: Witness) -> None:
    trades: list[str] = []
    names = ("trader 2", "trader 10", LAUNCHERS[0], SNIPERS[0], SERIAL, DUMPER)
    for wallet in (*map(actor_address, names), witness.built.accounts[0], NOBODY):
        history = witness.tool("wallet_history", address=wallet)
        witness.tool("linked_wallets", address=wallet)
        for path in ("", "?sort=profit", "/linked"):
            witness.ask("GET", f"/wallet/{wallet}{path}")
        trades += re.findall(r"0x[0-9a-f]{64}", json.dumps(history))[:2]
    for hash_ in (*_transactions(witness), *dict.fromkeys(trades), NO_HASH):
        witness.tool("explain_transaction", hash=hash_)
        witness.ask("GET", f"/transaction/{hash_}")
    tokens = witness.built.tokens
    searched = (
        "PLAIN",
        "plain",
        "MOON",
        "SMPL",
        "Amber",
        "nothing like it",
        "x" * 80,
        "0x12",
        "$CAP",
        "cap ",
    )
    for query in (*searched, tokens["plain"], tokens["plain"].upper(), actor_address(DUMPER), *trades[:1]):
        witness.tool("look_up", query=query)
        witness.ask("GET", f"/search?q={quote(query)}")
        witness.ask("GET", f"/suggest?q={quote(query)}")


def _transactions(witness: Witness) -> list[str]:
    """One transaction of every fiftieth block."""
    head = int(witness.chain.call("eth_blockNumber"), 16)
    blocks = (witness.chain.call("eth_getBlockByNumber", hex(n), False) for n in range(head, 0, -50))
    return [block["transactions"][0] for block in blocks if block["transactions"]]


def _ask_boards(witness: Witness, key: str) -> None:
    for tool in BOARD_TOOLS:
        witness.tool(tool, key)
    for who in ("agents", "people"):
        witness.tool("league", key, who=who)
    for board in BOARDS:
        for path in ("", "/rows", "?sort=token", "?dangers=hide&turned=1"):
            witness.ask("GET", f"/boards/{board}{path}")
    for board in ("moving_now", "winners"):
        witness.stream(f"/boards/{board}/live", {}, 4, 1.5)


def _ask_documents(witness: Witness) -> None:
    """Every tool's page; of the other documents only the links, because their text is no answer."""
    listed = witness.ask("POST", "/mcp", {"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
    for tool in listed["result"]["tools"]:
        witness.ask("GET", f"/tools/{tool['name']}")
    given = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "w", "version": "1"}}
    witness.ask("POST", "/mcp", {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": given})


def _trade(witness: Witness, wallet: DemoWallet, key: str) -> None:
    tokens, url = witness.built.tokens, witness.chain.url
    headers, sender = {"x-api-key": key}, wallet.address
    for name in WHOLE:
        given = {"token": tokens[name], "from": sender, "amount": "0.05"}
        answer = witness.ask("POST", "/v1/prepare/buy", given)
        witness.ask("POST", "/v1/prepare/buy", {**given, "amount": "200000", "fund": True})
        steps = answer.get("steps") or []
        calls = [{part: step[part] for part in ("to", "data", "value")} for step in steps]
        if not calls:
            continue
        witness.ask("POST", "/v1/simulate", {"from": sender, "calls": calls})
        wallet.send(url, steps)
        for share in ({"amount": "all"}, {"percent": 50}, {"amount": "1"}, {"amount": "999999999999"}):
            asked = {"token": tokens[name], "from": sender, **share}
            selling = witness.ask("POST", "/v1/prepare/sell", asked)
            if share == {"amount": "all"} and selling.get("steps"):
                calls = [{part: step[part] for part in ("to", "data", "value")} for step in selling["steps"]]
                witness.ask("POST", "/v1/simulate", {"from": sender, "calls": calls})
        form = {"token": tokens[name], "wallet": sender, "side": "sell", "percent": "100"}
        witness.ask("GET", "/trade?" + "&".join(f"{field}={value}" for field, value in form.items()))
    form = {"token": tokens["plain"], "wallet": sender, "side": "buy", "amount": "0.1", "slippage": "2"}
    witness.ask("GET", "/trade?" + "&".join(f"{field}={value}" for field, value in form.items()))
    word = "00" * 12
    approve = "0x095ea7b3" + word + NOBODY[2:]
    transfer = "0xa9059cbb" + word + NOBODY[2:] + f"{10**18:064x}"
    plain = tokens["plain"]
    for to, data, value in (
        (plain, approve + "f" * 64, "0"),
        (plain, approve + f"{10**18:064x}", "0"),
        (plain, "0xa22cb465" + word + NOBODY[2:] + f"{1:064x}", "0"),
        (plain, transfer, "0"),
        (plain, "0xdeadbeef", "0"),
        (NOBODY, "0xdeadbeef", "0"),
        (NOBODY, "0x", "1000"),
        (plain, "0x", "1000"),
    ):
        witness.ask("POST", "/v1/simulate", {"from": sender, "to": to, "data": data, "value": value})
        witness.ask("POST", "/simulate", {"from": sender, "to": to, "data": data, "value": value})
    witness.tool("simulate_transaction", key, **{"from": sender}, to=plain, data=transfer)
    witness.tool("prepare_buy", key, token=plain, **{"from": sender}, amount="0.1")
    witness.tool("prepare_sell", key, token=plain, **{"from": sender}, percent=10)
    witness.settle()
    for path in ("/v1/unlocks", "/v1/credits", "/v1/keys"):
        witness.ask("GET", path, headers=headers)
    witness.tool("my_bag", key)
    witness.tool("wallet_history", address=sender)


def _play(witness: Witness, people: list[DemoWallet], keys: list[str]) -> DemoCrowd:
    """People follow, set rules and practise; then a crowd trades, and a deployer sells."""
    crowd = DemoCrowd(witness.chain, witness.built, threading.Event())
    token, dumped = crowd.tokens.crowded.token, crowd.tokens.dumped.token
    rules = (
        f"any buying over 0.2 eth on {token}", f"any selling on {token}", "follow buying over 0.01 eth",
        f"deployer:{dumped} selling", "any launching", "any buying over 5% on", "nonsense",
    )  # fmt: skip
    webhook = f"http://127.0.0.1:{witness.receiver.server_port}/alerts"
    for url in (webhook, "http://example.org", "https://127.0.0.1/x", "https://a:b@example.org/"):
        witness.tool("set_webhook", keys[0], url=url)
    for wallet in people:
        given = {"token": witness.built.tokens["plain"], "from": wallet.address, "amount": "0.01"}
        wallet.send(witness.chain.url, witness.ask("POST", "/v1/prepare/buy", given)["steps"])
    witness.settle()
    for key in keys:
        for number in range(2):
            witness.tool("follow_wallet", key, address=visitor(number), name=f"Visitor{number}")
        witness.tool("practice_buy", key, token=token, eth="0.3")
        witness.tool("practice_buy", key, token=witness.built.tokens["owner_only_sell"], eth="0.1")
    for rule in rules:
        witness.tool("test_rule", keys[0], rule=rule)
        witness.tool("create_rule", keys[0], rule=rule)
    witness.tool("mark_as_agent", keys[0], name="Early bird")
    opened = witness.open("/v1/stream", {"x-api-key": keys[0]}, 3.0)
    with witness.stopped():
        crowd.run_crowd()
        crowd.sell_deployers_tokens()
    witness.settle()
    witness.ask("GET", f"/v1/check/{token}")
    witness.keep_events("GET /v1/stream", *opened, 200)
    return crowd


def _win(witness: Witness, traded: CrowdTokens, people: list[DemoWallet], keys: list[str]) -> None:
    """People sell what they practised with, and agree on two wallets."""
    token = traded.crowded.token
    parts = ((20, 50, 100), (20, 50, 100), (20, 50, 100), (10, 20, 30))
    for wallet, key, percents in zip(people, keys, parts, strict=True):
        for percent in percents:
            witness.tool("practice_sell", key, token=token, percent=percent)
        for tool in OWN_TOOLS:
            witness.tool(tool, key)
        send = _sign_in(witness, wallet)[1]
        send(f"/wallet/{visitor(0)}/said", name="Early visitor", mark="good")
        send("/account/do/mark_wallet", address=actor_address(DUMPER), mark="scam")
    _ask_boards(witness, keys[0])
    for path in (
        f"/token/{token}",
        f"/token/{token}/chart",
        f"/token/{token}/trades",
        f"/wallet/{visitor(0)}",
    ):
        witness.ask("GET", path)
    for path in (f"/v1/holders/{token}", f"/v1/liquidity/{token}", f"/v1/check/{traded.dumped.token}"):
        witness.ask("GET", path)
    witness.tool("unfollow_wallet", keys[0], address=visitor(1))
    witness.tool("delete_rule", keys[0], id=1)
    witness.tool("remove_channel", keys[0], id=99)
    witness.ask("POST", "/v1/credits", {"tx": NO_HASH}, {"x-api-key": keys[0]})


def _sign_in(witness: Witness, wallet: DemoWallet) -> tuple[dict[str, str], Callable[..., str]]:
    """Signs in to the console; the headers of its pages, and what sends a form."""
    text = witness.ask("POST", "/sign-in/text", {"address": wallet.address})
    signed = {"address": wallet.address, "signature": wallet.sign_text(text["message"])}
    witness.ask("POST", "/sign-in", signed)
    answer = witness.answers[f"{witness.phase}: POST /sign-in {json.dumps(signed, sort_keys=True)}"]
    headers = {"cookie": answer["headers"]["set-cookie"].partition(";")[0]}
    page = str(witness.ask("GET", "/account", headers=headers, as_=f"as {wallet.address}"))
    (csrf,) = set(re.findall('name="csrf" value="([0-9a-f]{64})"', page))

    def send(path: str, **form: str) -> str:
        return str(witness.ask("POST", path, {"csrf": csrf, **form}, headers))

    return headers, send


def _visit_account(witness: Witness, wallet: DemoWallet, token: str) -> None:
    tokens = witness.built.tokens
    witness.ask("POST", "/sign-in", {"address": wallet.address, "signature": "0x12"})
    headers, send = _sign_in(witness, wallet)
    plain, once = tokens["plain"], "0123456789abcdef" * 2
    send("/account/do/follow_wallet", address=actor_address("trader 2"), name="Two")
    send("/account/do/create_rule", rule="any buying over 1 eth")
    send("/account/do/create_rule", verb="selling", who="any", amount="1", unit="eth", token=plain)
    send("/account/do/test_rule", rule="any buying over 1 eth")
    for act in ("pause_rule", "resume_rule", "delete_rule"):
        send(f"/account/do/{act}", id="999")
    send("/account/do/watch_token", address=plain)
    send("/account/do/practice_buy", token=plain, eth="0.2", once=once)
    send("/account/do/practice_sell", token=plain, percent="50", once=once[::-1])
    send("/account/do/mark_wallet", address=actor_address(DUMPER), name="Dumper", mark="scam")
    send("/account/do/set_webhook", url="https://127.0.0.1/", seen="")
    send("/account/do/mark_as_agent", name="Clerk")
    send("/account/do/redeem_payment", tx=NO_HASH)
    send("/account/do/nothing")
    for flagged in (plain, token):
        send(f"/token/{flagged}/flags", kind="runs")
    send(f"/token/{plain}/flags", kind="flies")
    send(f"/token/{tokens['v4_eth']}/watch")
    send(f"/wallet/{actor_address(SERIAL)}/said", name="Serial", mark="bad")
    send("/scorecard/report", token=plain, hash=NO_HASH, note="It did not sell.")
    send("/account/keys/text")
    witness.settle()
    for room in (*ROOMS, "nowhere"):
        witness.ask("GET", f"/account/{room}", headers=headers)
    for path in (f"/v1/holders/{plain}", f"/v1/liquidity/{plain}"):
        witness.ask("GET", path)
    for path in ("/", f"/token/{plain}", f"/token/{plain}/flags", f"/wallet/{actor_address(SERIAL)}"):
        witness.ask("GET", path, headers=headers, as_="signed in")
    witness.ask("POST", "/account/do/follow_wallet", {"address": NOBODY}, headers, "without a csrf token")
    send("/sign-out")
    for room in ROOMS:
        witness.ask("GET", f"/account/{room}", headers=headers, as_="signed out")


def _ask_wrongly(witness: Witness, key: str) -> None:
    document = witness.ask("GET", "/v1/openapi.json")
    for path, methods in document["paths"].items():
        for wrong in {"get", "post", "delete", "put"} - set(methods):
            witness.ask(wrong.upper(), re.sub("{[a-z]+}", NOBODY, path))
        for method in methods:
            body: dict[str, str] | None = {} if method == "post" else None
            for address in ("0x12", NOBODY):
                filled = re.sub("{[a-z]+}", address, path)
                witness.ask(method.upper(), filled + "?strange=1", body)
                witness.ask(method.upper(), filled, body, {"x-api-key": "rt_wrong"}, "a wrong key")
            if body is not None:
                witness.ask("POST", path, {"strange": 1})
                witness.ask("POST", path, [1])
    listed = witness.ask("POST", "/mcp", {"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
    for tool in listed["result"]["tools"]:
        witness.tool(tool["name"])
        witness.tool(tool["name"], key, strange=1)
        witness.tool(tool["name"], key, **dict.fromkeys(tool["inputSchema"].get("required", []), "0x12"))
    witness.tool("no_such_tool")
    for method in ("resources/list", "prompts/list", "ping", "strange"):
        witness.ask("POST", "/mcp", {"jsonrpc": "2.0", "id": 1, "method": method})
    for path in ("/token/0x12", "/wallet/0x12", "/transaction/0x12", "/boards/strange", "/docs/strange"):
        witness.ask("GET", path)
        witness.ask("POST", path, {})
    witness.ask("POST", "/mcp/rt_wrong", {"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
