"""Operations: one wallet."""

from roundtrip.services.support.wallet_params import WalletParams
from roundtrip.services.wallets.history import wallet_history
from roundtrip.services.wallets.history_answer import WalletHistory
from roundtrip.services.wallets.linked import LinkedWallets, linked_wallets

from .operation import AnyOperation, Operation

WALLETS: tuple[AnyOperation, ...] = (
    Operation(
        name="wallet_history",
        title="A wallet's history",
        description=(
            "Where a wallet comes from and what it did: its age and who first sent it eth, the tokens it "
            "launched and how they ended, its trading record over tokens that it sold out of, and what it "
            "holds of what it bought, with balances read from the chain. Worth is by each token's last "
            "trade and no proof that it sells: check_token tells that. Tokens it never traded are not "
            "listed. Answers are shared for 15 seconds."
        ),
        params=WalletParams,
        answer=WalletHistory,
        handler=lambda call: wallet_history(call.ctx, call.params),
        lane="checks",
        shared_by=lambda params: str(params.wallet()),
        bad_params="bad_address",
    ),
    Operation(
        name="linked_wallets",
        title="Linked wallets",
        description=(
            "Wallets that may be the same person's: they share the wallet's funder, one first sent eth to "
            "the other, or they bought the same tokens within ten blocks of each other, of the last 30 "
            "days. Each has a score of 1 to 100 and the evidence it comes from. Exchanges and contracts "
            "are never linked. A score is a hint and no proof; answers are shared for 15 seconds."
        ),
        params=WalletParams,
        answer=LinkedWallets,
        handler=lambda call: linked_wallets(call.ctx, call.params),
        shared_by=lambda params: str(params.wallet()),
        bad_params="bad_address",
        errors=("upstream", "budget_spent"),
    ),
)
