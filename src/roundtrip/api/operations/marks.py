"""Operations: marks and flags that accounts set on wallets and tokens."""

from roundtrip.services.community.proven_flags import ProvenCalls, ProvenParams, proven_calls
from roundtrip.services.support.index_reader import Nothing
from roundtrip.services.wallets.names import WalletNames, wallet_names

from .operation import AnyOperation, Operation

MARKS: tuple[AnyOperation, ...] = (
    Operation(
        name="wallet_names",
        title="Wallet names",
        description=(
            "Returns at most 50 wallets that at least three people gave the same name or mark (good, bad, "
            "scam). People are estimated by who funded their wallets; their accounts are at least seven "
            "days old, their wallets have traded, and they do not count for a wallet that may be their own. "
            "A name is no proof of who a wallet is: identify it by its address."
        ),
        params=Nothing,
        answer=WalletNames,
        handler=lambda call: wallet_names(call.ctx, call.params),
        shared_by=lambda params: "",
    ),
    Operation(
        name="proven_calls",
        title="Proven flags",
        description=(
            "Returns token flags that proved right within seven days, who made each and how many seconds "
            "before: runs (what 0.1 eth bought sold for 0.3 eth), drains (half of the liquidity left, or "
            "the deployer sold half), dead (no trade for a day and down 90 %). With an address: that "
            "token's flags and those still waiting; without: the latest 50 of all. Compare accuracy with "
            "baseRate, what chance alone proved."
        ),
        params=ProvenParams,
        answer=ProvenCalls,
        handler=lambda call: proven_calls(call.ctx, call.params),
        shared_by=lambda params: str(params.token() or ""),
        bad_params="bad_address",
    ),
)
