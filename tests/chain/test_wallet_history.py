import msgspec

from roundtrip.devnet.world import Built
from roundtrip.services.context import Context
from roundtrip.services.linked_wallets import linked_wallets
from roundtrip.services.wallet_history import wallet_history
from roundtrip.services.wallet_params import WalletParams
from support.cases.wallets import WALLETS


async def test_look(indexed: Context, built: Built) -> None:
    for name, case in WALLETS.items():
        for asked in (wallet_history, linked_wallets):
            got = await asked(indexed, WalletParams(**case(built)))
            print(name, msgspec.json.format(msgspec.json.encode(got.answer), indent=1).decode())
