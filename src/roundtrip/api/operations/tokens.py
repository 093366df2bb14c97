"""Operations: one token; lookups by transaction, address, name or symbol; simulating and preparing
transactions before they are signed; one wallet."""

from roundtrip.api.operations.operation import AnyOperation, account_operation, service_operation
from roundtrip.services.check.handler import check
from roundtrip.services.check.proof import check_proof
from roundtrip.services.check.schema import CheckParams
from roundtrip.services.holders.handlers import launch_bundle, smart_money, token_holders
from roundtrip.services.holders.schema import Holders
from roundtrip.services.liquidity.handler import check_with_liquidity, read_liquidity
from roundtrip.services.lookup.explain import explain
from roundtrip.services.lookup.look_up import find, shared_as
from roundtrip.services.lookup.look_up_answer import read_pasted_query
from roundtrip.services.runtime.context import Context, UseCaseAnswer
from roundtrip.services.support.check_answer import Check
from roundtrip.services.trade.prepare import prepare_buy, prepare_sell
from roundtrip.services.trade.simulate import simulate
from roundtrip.services.trade.simulate_params import SentParams
from roundtrip.services.trade.wallet_transaction import WALLET_FIELDS, read_wallet_transaction
from roundtrip.services.verdicts.history import MAX_CHECKS, CheckLine, check_history, list_tokens
from roundtrip.services.verdicts.news import StreamEvent, plan_stream
from roundtrip.services.wallets.history import wallet_history
from roundtrip.services.wallets.linked import linked_wallets

_READING = (
    "not_a_token", "upstream", "holders_failed", "budget_spent", "holders_busy", "holders_budget",
    "holders_no_archive",
)  # fmt: skip
"""Error codes of reading a token's holders."""


async def _check(ctx: Context, params: CheckParams) -> UseCaseAnswer[Check]:
    checked = check(ctx, params)
    return await (check_with_liquidity(ctx, params.token(), checked) if params.asks_deep() else checked)


_CHECK = service_operation(
    _check,
    name="check_token",
    title="Check a token",
    description=(
        "Buys the token with 0.1 eth and sells it straight back, and again later, inside a simulation of the "
        "latest block: whether you can sell it, now and within a day, and what the round trip costs. Nothing "
        "is sent on the chain. Level unknown means that it could not find out: treat it as a no."
    ),
    lane="checks",
    path="/v1/check/{address}",
    shared_by=lambda params: params.shared_as(),
    bad_params="bad_address",
    query=("deep", "amount"),
    errors=("upstream", "budget_spent"),
    takes_min_block=True,
)

TOKENS: tuple[AnyOperation, ...] = (
    _CHECK,
    service_operation(
        list_tokens,
        name="check_tokens",
        title="Check many tokens",
        description=(
            f"Checks up to {MAX_CHECKS} tokens, four at a time. The answer has one line for each, in the "
            "order in which they are ready: the answer of GET /v1/check/{address}, or an error. Each check "
            "counts as one call, and is refused alone once a limit is reached; a repeated address counts "
            "once. If you disconnect, the rest is not started."
        ),
        path_answer=CheckLine,
        method="POST",
        path="/v1/checks",
        on_mcp=False,
        each=_CHECK,
    ),
    service_operation(
        check_proof,
        title="Prove a check",
        description=(
            "Returns the newest check of a token within the last day with everything needed to repeat it: "
            "its evidence, and the exact JSON-RPC requests, round trip by round trip. Where there is none, "
            "or its block left the chain, it makes a new check. roundtrip verify sends the requests to "
            "your own node and judges again."
        ),
        lane="checks",
        path="/v1/check/{address}/proof",
        on_mcp=False,
        shared_by=lambda params: str(params.token()),
        bad_params="bad_address",
        errors=("upstream", "budget_spent"),
    ),
    service_operation(
        check_history,
        title="Past verdicts of a token",
        description=(
            "Returns how the verdict of a token changed from one stored check to the next: code, level, "
            "loss, block, and what changed. A loss counts as changed from one percent on. It makes no check, "
            "and has only checks of the usual size. A block of an old check may have left the chain since."
        ),
        path="/v1/check/{address}/history",
        on_mcp=False,
        shared_by=lambda params: str(params.token()),
        bad_params="bad_address",
    ),
    service_operation(
        token_holders,
        title="Token holders",
        description=(
            "Returns who holds a token: the ten biggest holders, launch snipers and bundles, what the "
            "deployer did, and which winning wallets hold it, from the token's transfers and pool trades "
            "since its first block. Status reading: a busy token, only its launch is there yet; ask again in "
            "half a minute. Shares are of the total supply."
        ),
        path_answer=Holders,
        lane="checks",
        path="/v1/holders/{address}",
        shared_by=lambda params: str(params.token()),
        bad_params="bad_address",
        errors=_READING,
    ),
    service_operation(
        read_liquidity,
        name="token_liquidity",
        title="Token liquidity",
        description=(
            "Returns who can withdraw a token's liquidity: each position of its venues with its share of the "
            "liquidity in range, who holds it, what keeps it and until when, and unclaimed fees. A contract "
            "that holds a position is tried in a simulation: its functions are called as its owner and as "
            "those it names, now and when its lock ends. ifItLeft: what a buyer gets back after the largest "
            "party has withdrawn everything."
        ),
        lane="checks",
        path="/v1/liquidity/{address}",
        on_mcp=False,
        shared_by=lambda params: str(params.token()),
        bad_params="bad_address",
        errors=("upstream", "budget_spent"),
        takes_min_block=True,
    ),
    service_operation(
        smart_money,
        title="Smart money",
        description=(
            "Returns wallets of the winners boards (24h, 7d, 30d, all) that hold the token, with rank, entry "
            "and best closed trade, and how many winners bought it and sold all. Only wallets in profit "
            "rank; past profit does not predict the next trade. Statuses are those of token_holders."
        ),
        lane="checks",
        shared_by=lambda params: str(params.token()),
        bad_params="bad_address",
        errors=_READING,
    ),
    service_operation(
        launch_bundle,
        title="Launch bundle",
        description=(
            "Returns the wallets that bought in the token's first three seconds (the launch block and "
            "thirty after), grouped by funder or by the transaction that filled them, with what each group "
            "bought and still holds. Three or more in a group are a bundle; wallets funded by an exchange, "
            "a bridge or an account bundler are not grouped. Shares are of the total supply. Statuses are "
            "those of token_holders."
        ),
        lane="checks",
        shared_by=lambda params: str(params.token()),
        bad_params="bad_address",
        errors=_READING,
    ),
    account_operation(
        plan_stream,
        name="stream",
        title="Stream events",
        description=(
            "Sends server-sent events as they happen: verdicts that changed, launches and graduations of the "
            "tokens that you name or of all, and your alerts. With Last-Event-ID it resumes within an hour, "
            "and says where something is missing. A reader that is too slow is cut, with a reason. Opening a "
            "stream counts against the minute only; an account has at most five open."
        ),
        path_answer=StreamEvent,
        path="/v1/stream",
        on_mcp=False,
        counts="minute",
        bad_params="bad_address",
        query=("tokens", "events", "lastEventId"),
        streams=True,
    ),
)


LOOKUPS: tuple[AnyOperation, ...] = (
    service_operation(
        explain,
        name="explain_transaction",
        title="Explain a transaction",
        description=(
            "Explains any transaction of the chain in plain words, failed and pending ones included: who "
            "paid what, what they got, on which pool or curve, with transfers, approvals and launches. "
            "Amounts are whole units, raw is in base units, the fee is in eth. Token amounts are as their "
            "contracts report them; the answer says what it could not find out."
        ),
        lane="checks",
        shared_by=lambda params: str(params.tx_hash()),
        from_replica=True,
        errors=("not_found", "upstream", "budget_spent"),
    ),
    service_operation(
        find,
        name="look_up",
        title="Look up",
        description=(
            "Finds out what a symbol, wallet name, address, transaction hash or v4 pool id is. A symbol "
            "returns the newest launchpad token with it, how many others have it, and the oldest: identify "
            "a token by its address. A wallet's name, given by strangers, is searched where no launch has "
            "that symbol. Kind nothing means not found, and is not an error."
        ),
        lane="checks",
        shared_by=shared_as,
        from_replica=True,
        rewrite=read_pasted_query,
        errors=("upstream", "budget_spent"),
    ),
)


TRADES: tuple[AnyOperation, ...] = (
    service_operation(
        simulate,
        name="simulate_transaction",
        title="Simulate a transaction",
        description=(
            "Runs one transaction, or up to six calls in order, from a wallet on the latest block: what it "
            "spends, receives and approves, read from balances and allowances. A token it buys is sold "
            "straight back in the same simulation. Nothing is sent on the chain, and gas is not part of "
            "spent. Level unknown is not a pass: treat it as a no."
        ),
        lane="calls",
        takes_min_block=True,
        method="POST",
        path="/v1/simulate",
        tool_requires=("to",),
        errors=("budget_spent",),
        needs_one_of=("to", "calls"),
        rewrite=read_wallet_transaction,
        rewritten=SentParams,
        unlisted=WALLET_FIELDS,
    ),
    service_operation(
        prepare_buy,
        title="Prepare a buy",
        description=(
            "Writes the unsigned transactions that buy a token from your wallet, with exact approvals and "
            "a minimum, after simulating them with a sell straight back. You sign and send them; the "
            "service holds no keys and sends nothing. refused true (no steps) means that the token is a "
            "trap or no sell was proven."
        ),
        lane="checks",
        takes_min_block=True,
        method="POST",
        path="/v1/prepare/buy",
        errors=("not_a_token", "no_route", "would_fail", "too_small", "upstream", "budget_spent"),
    ),
    service_operation(
        prepare_sell,
        title="Prepare a sell",
        description=(
            "Writes the unsigned transactions that sell a token from your wallet, with exact approvals and "
            "a minimum, after simulating them. You sign and send them; the service holds no keys and sends "
            "nothing. A sell is written whatever a check says. Give amount or percent."
        ),
        lane="checks",
        takes_min_block=True,
        method="POST",
        path="/v1/prepare/sell",
        errors=("no_route", "nothing_to_sell", "would_fail", "upstream", "budget_spent"),
        needs_one_of=("amount", "percent"),
    ),
)


WALLETS: tuple[AnyOperation, ...] = (
    service_operation(
        wallet_history,
        title="Wallet history",
        description=(
            "Returns a wallet's age and first funder, the tokens it launched and how they ended, its "
            "trading record over tokens it sold out of, and what it holds of what it bought, with balances "
            "read from the chain. Worth is at each token's last trade and does not prove that it sells: "
            "call check_token. Tokens it never traded are not listed."
        ),
        lane="checks",
        shared_by=lambda params: str(params.wallet()),
        from_replica=True,
        bad_params="bad_address",
    ),
    service_operation(
        linked_wallets,
        title="Linked wallets",
        description=(
            "Returns wallets that may belong to the same person: they share a funder, one first sent eth "
            "to the other, or they bought the same tokens within ten blocks of each other in the last 30 "
            "days. Each has a score of 1 to 100 and its evidence. Exchanges and contracts are never "
            "linked. A score is a hint, not a proof."
        ),
        shared_by=lambda params: str(params.wallet()),
        from_replica=True,
        bad_params="bad_address",
        errors=("upstream", "budget_spent"),
    ),
)
