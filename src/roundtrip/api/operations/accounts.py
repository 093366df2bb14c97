"""Operations: keys for a signature, the key's account, and paid calls."""

from roundtrip.services.accounts.credits import (
    CreditsStatus,
    PaymentParams,
    Redeemed,
    credits_status,
    redeem_payment,
)
from roundtrip.services.accounts.issue_key import KeyMade, KeyParams, TextToSign, make_key, text_to_sign
from roundtrip.services.accounts.profile import MyMite, my_mite
from roundtrip.services.support.index_reader import Nothing
from roundtrip.services.support.wallet_params import WalletParams

from .operation import AnyOperation, Operation

ACCOUNTS: tuple[AnyOperation, ...] = (
    Operation(
        name="key_nonce",
        title="The text to sign for a key",
        description=(
            "The text that a wallet signs to get a key, by EIP-4361. It is good for ten minutes from its "
            "Issued At on; asking again within that minute gives the same. A wallet that is a contract signs "
            "claimMessage instead, which is another one at each asking. Signing moves nothing and costs "
            "nothing."
        ),
        params=WalletParams,
        answer=TextToSign,
        handler=lambda call: text_to_sign(call.ctx, call.params),
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
            "most five that are live. A contract wallet signs claimMessage by EIP-1271, and sends its claim. "
            "A signature brings one key."
        ),
        params=KeyParams,
        answer=KeyMade,
        handler=lambda call: make_key(call.ctx, call.params),
        lane="calls",
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
        handler=lambda call: my_mite(call.ctx, call.params, call.owner()),
        key=True,
        counts="minute",
    ),
    Operation(
        name="credits",
        title="Paid calls",
        description=(
            "Calls past the day's limit that the account of the key has paid for and not made yet, whether "
            "payments are taken and how, and the limits that hold without paying. Every key is free up to "
            "its daily limit either way. Counts against the minute only."
        ),
        params=Nothing,
        answer=CreditsStatus,
        handler=lambda call: credits_status(call.ctx, call.params, call.owner()),
        path="/v1/credits",
        key=True,
        on_mcp=False,
        counts="minute",
    ),
    Operation(
        name="redeem_payment",
        title="Count a payment",
        description=(
            "Counts a payment for calls past the day's limit: a transaction, already sent, in which the "
            "key's own wallet transfers usdg to the address of GET /v1/credits. It has to be final; until "
            "it is, no_such_tx says so, and nothing is used up. A transaction counts once, for ever. "
            "Counts against the minute only."
        ),
        params=PaymentParams,
        answer=Redeemed,
        handler=lambda call: redeem_payment(call.ctx, call.params, call.owner()),
        method="POST",
        path="/v1/credits",
        key=True,
        writes=True,
        on_mcp=False,
        counts="minute",
        errors=(
            "not_open",
            "already_used",
            "no_such_tx",
            "tx_failed",
            "no_payment",
            "upstream",
            "budget_spent",
        ),
    ),
)
