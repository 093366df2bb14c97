"""Operations: the holdings of the account's wallet."""

from roundtrip.services.portfolio.bag import MyBag, my_bag
from roundtrip.services.support.index_reader import Nothing

from .operation import AnyOperation, Operation

BAG: tuple[AnyOperation, ...] = (
    Operation(
        name="my_bag",
        title="My bag",
        description=(
            "What the key's wallet holds of the tokens that the index knows, the newest 50: what selling all "
            "of each would bring this wallet now, simulated, its cost, gain or loss by the wallet's own "
            "trades, and what changed since it bought: what the deployer sold, liquidity that left, taxes "
            "and verdict then and now. Amounts are in eth. What the chain does not answer is null and sells "
            "is unknown, which is no yes. Tokens that never traded through the index and were not given "
            "within seven days are not listed."
        ),
        params=Nothing,
        answer=MyBag,
        handler=lambda call: my_bag(call.ctx, call.params, call.owner()),
        lane="checks",
        key=True,
    ),
)
