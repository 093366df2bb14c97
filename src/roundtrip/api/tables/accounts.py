"""Accounts: a key for a signature, and what a key's account is."""

from roundtrip.api.operation import Operation
from roundtrip.services.index_answer import Nothing
from roundtrip.services.keys import make_key, text_to_sign
from roundtrip.services.keys_answer import KeyMade, KeyParams, TextToSign
from roundtrip.services.my_mite import MyMite, my_mite
from roundtrip.services.wallet_params import WalletParams

ACCOUNTS: tuple[Operation, ...] = (
    Operation(
        name="key_nonce",
        title="The text to sign for a key",
        description=(
            "The text that a wallet signs to get a key, by EIP-4361. It is good for ten minutes from its "
            "Issued At on; asking again within that minute gives the same. Signing moves nothing and "
            "costs nothing."
        ),
        params=WalletParams,
        answer=TextToSign,
        handler=text_to_sign,
        method="POST",
        path="/v1/keys/nonce",
        on_mcp=False,
        counts="minute",
        bad_params="bad_address",
    ),
    Operation(
        name="make_key",
        title="Make a key",
        description=(
            "A key for the signature of the text of POST /v1/keys/nonce; the wallet becomes an account if "
            "it was none. The key is told once and never again; it does not expire, and a wallet has at "
            "most five that are live. A contract wallet signs by EIP-1271. A signature brings one key."
        ),
        params=KeyParams,
        answer=KeyMade,
        handler=make_key,
        method="POST",
        path="/v1/keys",
        writes=True,
        on_mcp=False,
        counts="minute",
        errors=("bad_signature", "too_many_keys", "upstream", "budget_spent"),
    ),
    Operation(
        name="my_mite",
        title="My account",
        description=(
            "The account of the key that is shown: its public designation, wallet, level, accuracy and "
            "agent tag, how many calls a minute and a day it may make, what is left of today's, and its "
            "live keys by their first eight characters. Counts against the minute only."
        ),
        params=Nothing,
        answer=MyMite,
        handler=my_mite,
        key=True,
        counts="minute",
    ),
)
