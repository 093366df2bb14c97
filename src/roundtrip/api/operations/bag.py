"""Operations: the holdings of the account's wallet."""

from roundtrip.services.portfolio.bag import MyBag, my_bag
from roundtrip.services.support.index_reader import Nothing

from .operation import AnyOperation, Operation

BAG: tuple[AnyOperation, ...] = (
    Operation(
        name="my_bag",
        title="My bag",
        description=(
            "Returns the newest 50 tokens that the key's wallet holds: what a simulated sell of all of "
            "each brings now, its cost and gain from the wallet's own trades, and what changed since it "
            "bought (deployer's sells, liquidity taken out, taxes, verdict). Amounts are in eth. sells "
            "unknown is not a yes. Tokens that the index never saw traded are listed only if they arrived "
            "within seven days."
        ),
        params=Nothing,
        answer=MyBag,
        handler=lambda call: my_bag(call.ctx, call.params, call.owner()),
        lane="checks",
        key=True,
    ),
)
