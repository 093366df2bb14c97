"""Operations: keys for a signature, the key's account, and paid calls."""

from roundtrip.services.accounts.credits import (
    CreditsStatus,
    PaymentParams,
    Redeemed,
    credits_status,
    redeem_payment,
)
from roundtrip.services.accounts.issue_key import KeyMade, KeyParams, TextToSign, make_key, text_to_sign
from roundtrip.services.accounts.manage_keys import (
    ListedKeys,
    RevokedKey,
    RevokeParams,
    list_keys,
    revoke_key,
)
from roundtrip.services.accounts.profile import MyMite, my_mite
from roundtrip.services.support.answer_fields import WalletParams
from roundtrip.services.support.index_reader import Nothing

from .operation import AnyOperation, Operation

ACCOUNTS: tuple[AnyOperation, ...] = (
    Operation(
        name="key_nonce",
        title="Get the text to sign for a key",
        description=(
            "Returns the text (EIP-4361) that your wallet signs to get a key. It is valid for ten minutes "
            "from its Issued At; asking again within that minute returns the same text. A contract wallet "
            "signs claimMessage instead, which is new in every answer. Signing moves nothing and costs "
            "nothing."
        ),
        params=WalletParams,
        answer=TextToSign,
        handler=lambda call: text_to_sign(call.ctx, call.params),
        method="POST",
        path="/v1/keys/nonce",
        ignores_key=True,
        on_mcp=False,
        counts="minute",
        bad_params="bad_address",
    ),
    Operation(
        name="make_key",
        title="Make a key",
        description=(
            "Returns a key for the signed text of POST /v1/keys/nonce, and makes the wallet an account if "
            "it is none. The key is shown once and does not expire; a wallet has at most five live keys. A "
            "contract wallet signs claimMessage (EIP-1271) and sends its claim. A signature makes one key."
        ),
        params=KeyParams,
        answer=KeyMade,
        handler=lambda call: make_key(call.ctx, call.params),
        lane="calls",
        method="POST",
        path="/v1/keys",
        ignores_key=True,
        writes=True,
        on_mcp=False,
        counts="minute",
        errors=("bad_signature", "too_many_keys", "upstream", "budget_spent"),
    ),
    Operation(
        name="list_keys",
        title="List your keys",
        description=(
            "Returns the keys of the key's account, live and revoked, by their first eight characters. "
            "Counts against the minute only."
        ),
        params=Nothing,
        answer=ListedKeys,
        handler=lambda call: list_keys(call.ctx, call.params, call.owner()),
        path="/v1/keys",
        key=True,
        on_mcp=False,
        counts="minute",
    ),
    Operation(
        name="revoke_key",
        title="Revoke a key",
        description=(
            "Revokes a key of the key's account at once, also the one that the request carries. "
            "Repeating the request changes nothing. It cannot end a session of the pages. "
            "Counts against the minute only."
        ),
        params=RevokeParams,
        answer=RevokedKey,
        handler=lambda call: revoke_key(call.ctx, call.params, call.owner()),
        method="DELETE",
        path="/v1/keys/{id}",
        key=True,
        writes=True,
        destroys=True,
        repeatable=True,
        on_mcp=False,
        counts="minute",
        errors=("not_found",),
    ),
    Operation(
        name="my_mite",
        title="My account",
        description=(
            "Returns the key's account: public name, wallet, level, accuracy, agent tag, limits, calls "
            "left today, and its live keys by their first eight characters. Counts against the minute "
            "only."
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
            "Returns the paid calls that the key's account has left, whether and how you can pay, and the "
            "limits without paying. Every key is free up to its daily limit. Counts against the minute "
            "only."
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
        title="Redeem a payment",
        description=(
            "Credits a payment for calls past the daily limit: a sent transaction in which the key's own "
            "wallet transfers usdg to the address from GET /v1/credits. Its block must be final; until "
            "then the answer is no_such_tx and nothing is used up. A transaction counts once. Counts "
            "against the minute only."
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
