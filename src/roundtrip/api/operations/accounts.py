"""Operations: keys for a signature, the key's account, and paid calls; the holdings of the account's wallet;
the channels to which an account's alerts are delivered; marks and flags that accounts set on wallets and
tokens; the service's own state."""

from roundtrip.api.operations.operation import AnyOperation, account_operation, service_operation
from roundtrip.services.accounts.credits import credits_status, redeem_payment
from roundtrip.services.accounts.issue_key import make_key, text_to_sign
from roundtrip.services.accounts.manage_keys import list_keys, revoke_key
from roundtrip.services.accounts.profile import my_mite
from roundtrip.services.community.proven_flags import proven_calls
from roundtrip.services.delivery.channels import list_channels, remove_channel, set_webhook
from roundtrip.services.portfolio.bag import my_bag
from roundtrip.services.system.status import health
from roundtrip.services.wallets.names import wallet_names

ACCOUNTS: tuple[AnyOperation, ...] = (
    service_operation(
        text_to_sign,
        name="key_nonce",
        title="Get the text to sign for a key",
        description=(
            "Returns the text (EIP-4361) that your wallet signs to get a key. It is valid for ten minutes "
            "from its Issued At; asking again within that minute returns the same text. A contract wallet "
            "signs claimMessage instead, which is new in every answer. Signing moves nothing and costs "
            "nothing."
        ),
        method="POST",
        path="/v1/keys/nonce",
        ignores_key=True,
        on_mcp=False,
        counts="minute",
        bad_params="bad_address",
    ),
    service_operation(
        make_key,
        title="Make a key",
        description=(
            "Returns a key for the signed text of POST /v1/keys/nonce, and makes the wallet an account if "
            "it is none. The key is shown once and does not expire; a wallet has at most five live keys. A "
            "contract wallet signs claimMessage (EIP-1271) and sends its claim. A signature makes one key."
        ),
        lane="calls",
        method="POST",
        path="/v1/keys",
        ignores_key=True,
        writes=True,
        on_mcp=False,
        counts="minute",
        errors=("bad_signature", "too_many_keys", "upstream", "budget_spent"),
    ),
    account_operation(
        list_keys,
        title="List your keys",
        description=(
            "Returns the keys of the key's account, live and revoked, by their first eight characters. "
            "Counts against the minute only."
        ),
        path="/v1/keys",
        on_mcp=False,
        counts="minute",
    ),
    account_operation(
        revoke_key,
        title="Revoke a key",
        description=(
            "Revokes a key of the key's account at once, also the one that the request carries. "
            "Repeating the request changes nothing. It cannot end a session of the pages. "
            "Counts against the minute only."
        ),
        method="DELETE",
        path="/v1/keys/{id}",
        writes=True,
        destroys=True,
        repeatable=True,
        on_mcp=False,
        counts="minute",
        errors=("not_found",),
    ),
    account_operation(
        my_mite,
        title="My account",
        description=(
            "Returns the key's account: public name, wallet, level, accuracy, agent tag, limits, calls left "
            "today, and its live keys by their first eight characters. Counts against the minute only."
        ),
        counts="minute",
    ),
    account_operation(
        credits_status,
        name="credits",
        title="Paid calls",
        description=(
            "Returns the paid calls that the key's account has left, whether and how you can pay, and the "
            "limits without paying. Every key is free up to its daily limit. Counts against the minute only."
        ),
        path="/v1/credits",
        on_mcp=False,
        counts="minute",
    ),
    account_operation(
        redeem_payment,
        title="Redeem a payment",
        description=(
            "Credits a payment for calls past the daily limit: a sent transaction in which the key's own "
            "wallet transfers usdg to the address from GET /v1/credits. Its block must be final; until "
            "then the answer is no_such_tx and nothing is used up. A transaction counts once. Counts "
            "against the minute only."
        ),
        method="POST",
        path="/v1/credits",
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


BAG: tuple[AnyOperation, ...] = (
    account_operation(
        my_bag,
        title="My bag",
        description=(
            "Returns the newest 50 tokens that the key's wallet holds: what a simulated sell of all of "
            "each brings now, its cost and gain from the wallet's own trades, and what changed since it "
            "bought (deployer's sells, liquidity taken out, taxes, verdict). Amounts are in eth. sells "
            "unknown is not a yes. Tokens that the index never saw traded are listed only if they arrived "
            "within seven days."
        ),
        lane="checks",
    ),
)


CHANNELS: tuple[AnyOperation, ...] = (
    account_operation(
        list_channels,
        title="List channels",
        description=(
            "Returns the account's alert channels (webhook, Discord, Telegram), each with its state and "
            "last error. Where the service has a Telegram bot, the answer has a link: open it within ten "
            "minutes to add that chat."
        ),
    ),
    account_operation(
        set_webhook,
        title="Set a webhook",
        description=(
            "Posts a test to an https url and, if it answers 2xx within ten seconds, sends alerts there "
            "from now on; otherwise saves nothing. The answer shows the signing secret once; a Discord "
            "webhook has none. Setting the same url again replaces its secret. An account has at most five "
            "channels and may try five targets in ten minutes."
        ),
        writes=True,
    ),
    account_operation(
        remove_channel,
        title="Remove a channel",
        description=(
            "Stops sending alerts to a channel, those still waiting for it included; the inbox keeps them. "
            "Removing it again changes nothing. Counts against the minute only."
        ),
        writes=True,
        counts="minute",
        destroys=True,
        repeatable=True,
    ),
)


MARKS: tuple[AnyOperation, ...] = (
    service_operation(
        wallet_names,
        title="Wallet names",
        description=(
            "Returns at most 50 wallets that at least three people gave the same name or mark (good, bad, "
            "scam). People are estimated by who funded their wallets; their accounts are at least seven "
            "days old, their wallets have traded, and they do not count for a wallet that may be their own. "
            "A name is no proof of who a wallet is: identify it by its address."
        ),
        shared_by=lambda params: "",
    ),
    service_operation(
        proven_calls,
        title="Proven flags",
        description=(
            "Returns token flags that proved right within seven days, who made each and how many seconds "
            "before: runs (what 0.1 eth bought sold for 0.3 eth), drains (half of the liquidity left, or "
            "the deployer sold half), dead (no trade for a day and down 90 %). With an address: that "
            "token's flags and those still waiting; without: the latest 50 of all. Compare accuracy with "
            "baseRate, what chance alone proved."
        ),
        shared_by=lambda params: str(params.token() or ""),
        bad_params="bad_address",
    ),
)


SYSTEM: tuple[AnyOperation, ...] = (
    service_operation(
        health,
        title="Health",
        description=(
            "Returns whether the service keeps up with the chain, and what does not work. Never fails."
        ),
        path="/v1/health",
        on_mcp=False,
        counts="never",
        has_own_place=True,
    ),
)
