"""Operations: one token."""

from roundtrip.services.check.handler import check
from roundtrip.services.check.proof import check_proof
from roundtrip.services.check.proof_schema import CheckProof
from roundtrip.services.check.schema import Check, CheckParams
from roundtrip.services.holders.handlers import SmartMoney, launch_bundle, smart_money, token_holders
from roundtrip.services.holders.launch_bundle import LaunchBundle
from roundtrip.services.holders.schema import Holders, HoldersParams, TokenHolders

from .operation import AnyOperation, Operation

_READING = (
    "not_a_token", "upstream", "holders_failed", "budget_spent", "holders_busy", "holders_budget",
    "holders_no_archive",
)  # fmt: skip
"""Error codes of reading a token's holders."""

TOKENS: tuple[AnyOperation, ...] = (
    Operation(
        name="check_token",
        title="Check a token",
        description=(
            "Buys the token with 0.1 eth and sells it straight back, inside a simulation of the latest "
            "block, and tells whether it can be sold, at once and later, and what the round trip costs. "
            "Nothing is sent on the chain. Level unknown means it could not be found out: treat it as a "
            "no. Losses are in hundredths of a percent; answers are shared for 15 seconds."
        ),
        params=CheckParams,
        answer=Check,
        handler=lambda call: check(call.ctx, call.params),
        lane="checks",
        path="/v1/check/{address}",
        shared_by=lambda params: params.shared_as(),
        bad_params="bad_address",
        query=("deep",),
        errors=("upstream", "budget_spent"),
        takes_min_block=True,
    ),
    Operation(
        name="check_proof",
        title="Prove a check",
        description=(
            "The newest check of a token of the last day, and one made now where there is none or its "
            "block is no longer on the chain, with everything that is needed to make it again: its evidence, "
            "and the exact JSON-RPC requests that the evidence came of, trip by trip. roundtrip verify sends "
            "them to a node of your own and judges again."
        ),
        params=CheckParams,
        answer=CheckProof,
        handler=lambda call: check_proof(call.ctx, call.params),
        lane="checks",
        path="/v1/check/{address}/proof",
        on_mcp=False,
        shared_by=lambda params: str(params.token()),
        bad_params="bad_address",
        errors=("upstream", "budget_spent"),
    ),
    Operation(
        name="token_holders",
        title="Who holds a token",
        description=(
            "Who holds a token and how they came by it: the ten biggest holders, who sniped or bundled "
            "the launch, what the deployer did, which winning wallets hold it, read from the token's own "
            "transfers and the trades on its pools since its first block. A busy token is answered with "
            "status reading at first, with only its launch in it: ask again half a minute later. Status "
            "partial: counts are a floor, and the text says why. Shares are in hundredths of a percent of "
            "the total supply; answers are shared for 15 seconds."
        ),
        params=HoldersParams,
        answer=TokenHolders,
        path_answer=Holders,
        handler=lambda call: token_holders(call.ctx, call.params),
        lane="checks",
        path="/v1/holders/{address}",
        shared_by=lambda params: str(params.token()),
        bad_params="bad_address",
        errors=_READING,
    ),
    Operation(
        name="smart_money",
        title="Winners that hold a token",
        description=(
            "Wallets of the winners boards (24h, 7d, 30d, all) that hold the token, with where each "
            "ranks, what it bought at and the best trade it ever closed, and how many winners bought it "
            "and sold it all. Only wallets in profit rank; past profit says nothing of the next trade. "
            "Read as token_holders is, with its statuses."
        ),
        params=HoldersParams,
        answer=SmartMoney,
        handler=lambda call: smart_money(call.ctx, call.params),
        lane="checks",
        shared_by=lambda params: str(params.token()),
        bad_params="bad_address",
        errors=_READING,
    ),
    Operation(
        name="launch_bundle",
        title="Who bought at a token's launch",
        description=(
            "Wallets that bought in the token's first three seconds (the launch block and thirty after), "
            "grouped by who funded them or by the transaction that filled them, with what each group "
            "bought and still holds of the supply. Three or more in a group are a bundle; wallets of an "
            "exchange, a bridge or an account bundler are not grouped. Shares are in hundredths of a "
            "percent of the total supply."
        ),
        params=HoldersParams,
        answer=LaunchBundle,
        handler=lambda call: launch_bundle(call.ctx, call.params),
        lane="checks",
        shared_by=lambda params: str(params.token()),
        bad_params="bad_address",
        errors=_READING,
    ),
)
