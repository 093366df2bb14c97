"""Operations: one wallet."""

from roundtrip.services.support.answer_fields import WalletParams
from roundtrip.services.wallets.history import wallet_history
from roundtrip.services.wallets.history_answer import WalletHistory
from roundtrip.services.wallets.linked import LinkedWallets, linked_wallets

from .operation import AnyOperation, Operation

WALLETS: tuple[AnyOperation, ...] = (
    Operation(
        name="wallet_history",
        title="Wallet history",
        description=(
            "Returns a wallet's age and first funder, the tokens it launched and how they ended, its "
            "trading record over tokens it sold out of, and what it holds of what it bought, with balances "
            "read from the chain. Worth is at each token's last trade and does not prove that it sells: "
            "call check_token. Tokens it never traded are not listed."
        ),
        params=WalletParams,
        answer=WalletHistory,
        handler=lambda call: wallet_history(call.ctx, call.params),
        lane="checks",
        shared_by=lambda params: str(params.wallet()),
        from_replica=True,
        bad_params="bad_address",
    ),
    Operation(
        name="linked_wallets",
        title="Linked wallets",
        description=(
            "Returns wallets that may belong to the same person: they share a funder, one first sent eth "
            "to the other, or they bought the same tokens within ten blocks of each other in the last 30 "
            "days. Each has a score of 1 to 100 and its evidence. Exchanges and contracts are never "
            "linked. A score is a hint, not a proof."
        ),
        params=WalletParams,
        answer=LinkedWallets,
        handler=lambda call: linked_wallets(call.ctx, call.params),
        shared_by=lambda params: str(params.wallet()),
        from_replica=True,
        bad_params="bad_address",
        errors=("upstream", "budget_spent"),
    ),
)
