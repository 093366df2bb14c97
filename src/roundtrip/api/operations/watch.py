"""Operations: an account's inbox, followed wallets, coming unlocks and standing rules."""

from roundtrip.services.liquidity.unlocks import list_unlocks
from roundtrip.services.watch.inbox import inbox
from roundtrip.services.watch.rule_backtest import replay_rule
from roundtrip.services.watch.rules import (
    create_rule,
    delete_rule,
    follow_wallet,
    list_rules,
    unfollow_wallet,
)

from .operation import AnyOperation, account_operation

WATCH: tuple[AnyOperation, ...] = (
    account_operation(
        inbox,
        title="Inbox",
        description=(
            "Returns the account's alerts of the last seven days, the newest first, at most 500: rule "
            "hits, followed wallets' trades, launches and large removals, warnings of what it holds or "
            "watches (bag_guard), unlocks, and channel news. verb retracted: a reorg removed the event. "
            "Counts against the minute only."
        ),
        counts="minute",
    ),
    account_operation(
        list_unlocks,
        name="unlock_calendar",
        title="Coming unlocks",
        description=(
            "Returns when locked liquidity can be withdrawn within 30 days, and by whom: of tokens that the "
            "account's wallet holds, tokens that its rules name, and launches of wallets that it follows. "
            "Unlock times are those that the last reading of each token's liquidity found."
        ),
        path="/v1/unlocks",
        on_mcp=False,
    ),
    account_operation(
        follow_wallet,
        title="Follow a wallet",
        description=(
            "Sends an alert for every buy, sell, launch and large removal of a wallet, to the inbox and the "
            "channels, at most 20 alerts a minute. At most 200 wallets; following one again with another "
            "name renames it. list_rules lists them."
        ),
        writes=True,
        repeatable=True,
        errors=("bad_address",),
    ),
    account_operation(
        unfollow_wallet,
        title="Unfollow a wallet",
        description=(
            "Stops the alerts for a wallet; alerts already raised stay in the inbox. If you do not follow "
            "it, nothing changes and the answer says so."
        ),
        writes=True,
        destroys=True,
        repeatable=True,
        bad_params="bad_address",
    ),
    account_operation(
        list_rules,
        title="List rules",
        description=(
            "Returns the account's rules with their hits since each was made, and the wallets it follows, "
            "the oldest first. At most 50 rules and 200 wallets."
        ),
    ),
    account_operation(
        create_rule,
        title="Create a rule",
        description=(
            "Sets a rule that sends an alert for each hit from now on, to the inbox and the channels. "
            'Form: <who> <verb> [over <n> eth|usd|%] [on <token>], such as "any buying over 0.5 eth". '
            "deployer and creator stay the wallets they are now; % is of the token's supply, for draining "
            "of the pool's liquidity, for removing of its active part; moving works for launchpad tokens "
            "only. At most 50 rules, and 20 alerts a minute for each; an equal rule returns the existing one."
        ),
        writes=True,
        repeatable=True,
    ),
    account_operation(
        replay_rule,
        name="test_rule",
        title="Test a rule",
        description=(
            "Replays the last seven days for a rule, written as for create_rule, without setting it: how "
            "often it would have hit, and its last ten hits. atLeast true: hits is a floor. A replay that "
            "takes too long is refused with busy."
        ),
    ),
    account_operation(
        delete_rule,
        title="Delete a rule",
        description=(
            "Deletes the rule with an id from list_rules; it raises no more alerts. Alerts already raised "
            "stay in the inbox. Counts against the minute only."
        ),
        writes=True,
        destroys=True,
        counts="minute",
    ),
)
