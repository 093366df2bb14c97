"""Operations: marks and flags that accounts set on wallets and tokens."""

from roundtrip.services.community.proven_flags import ProvenCalls, ProvenParams, proven_calls
from roundtrip.services.support.index_reader import Nothing
from roundtrip.services.wallets.names import WalletNames, wallet_names

from .operation import AnyOperation, Operation

MARKS: tuple[AnyOperation, ...] = (
    Operation(
        name="wallet_names",
        title="Names of wallets",
        description=(
            "Wallets that enough people gave the same name or mark (good, bad, scam), at most 50, what most "
            "said first. Enough are three different people, as far as can be told by who paid for their "
            "wallets, whose accounts are seven days old and whose wallets have traded; nobody counts for a "
            "wallet that may be his own. Names are strangers' words and no proof of who a wallet is: "
            "identify it by its address. Answers are shared for 15 seconds."
        ),
        params=Nothing,
        answer=WalletNames,
        handler=lambda call: wallet_names(call.ctx, call.params),
        shared_by=lambda params: "",
    ),
    Operation(
        name="proven_calls",
        title="Flags that proved right",
        description=(
            "Flags on tokens that proved right within seven days, with the account that made each and how "
            "many seconds before: runs (what 0.1 eth bought sold for 0.3 eth), drains (half of the liquidity "
            "left, or the deployer sold half of what he held), dead (no trade for a day and down 90 %). With "
            "a token's address its own and those still waiting; without the latest of all, at most 50. "
            "Beside each account's accuracy stands baseRate, what chance alone proved. Answers are shared "
            "for 15 seconds."
        ),
        params=ProvenParams,
        answer=ProvenCalls,
        handler=lambda call: proven_calls(call.ctx, call.params),
        shared_by=lambda params: str(params.token() or ""),
        bad_params="bad_address",
    ),
)
