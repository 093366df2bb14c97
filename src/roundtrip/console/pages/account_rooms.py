"""The rooms of an account's page, with their forms: its level and credits, inbox, rules, channels, bag,
coming unlocks, practice trades, marks and keys."""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from itertools import groupby

import msgspec
from markupsafe import Markup
from starlette.responses import Response

from roundtrip.api.operations.catalog import find_operation
from roundtrip.console.support.account_page import AccountForm, Room, Values
from roundtrip.console.support.page_operations import own_operation, own_variant
from roundtrip.console.support.page_request import Visit
from roundtrip.console.support.render import address, draw_curve, iso, render_sentence, stranger
from roundtrip.domain.check.refusals import REASON_WITHHELD
from roundtrip.domain.check.venue_code import Level
from roundtrip.domain.verdicts.risks import WORST_FIRST, warn_of_holding
from roundtrip.domain.verdicts.words import level_word
from roundtrip.services.accounts.credits import CreditsStatus
from roundtrip.services.accounts.manage_keys import (
    end_own,
    make_own_key,
    own_key_text,
    own_keys,
    own_usage,
    sign_out_everywhere,
)
from roundtrip.services.accounts.profile import MyMite
from roundtrip.services.community.flag_token import flag_token, own_flags
from roundtrip.services.community.mark_wallet import mark_wallet, own_marks, unmark_wallet
from roundtrip.services.delivery.channels import Channels, try_channel
from roundtrip.services.delivery.delivery_log import DeliveryRow, delivery_log, resend
from roundtrip.services.liquidity.unlocks import UnlockCalendar
from roundtrip.services.portfolio.bag import BagRow, MyBag
from roundtrip.services.portfolio.bag_page import BagPast, bag_past
from roundtrip.services.practice.account import practice_history
from roundtrip.services.practice.pricing import SELL_FAILS
from roundtrip.services.practice.schema import PositionListed, PracticeAccount, PracticeTrades
from roundtrip.services.support.alert_rows import AlertRow
from roundtrip.services.support.index_reader import Nothing
from roundtrip.services.support.shown_verdict import TokenState
from roundtrip.services.watch.inbox import Inbox, inbox_feed, unwatch_token, watch_token, watched_tokens
from roundtrip.services.watch.rule_backtest import draw_rule
from roundtrip.services.watch.rules import (
    HitRow,
    RuleParams,
    RulesListed,
    RuleTested,
    edit_rule,
    pause_rule,
    resume_rule,
    watch_around,
)

MY_MITE = find_operation("my_mite", Nothing, MyMite)
_CREDITS = find_operation("credits", Nothing, CreditsStatus)
_USAGE = own_operation(own_usage, counts="minute")


async def _read_overview(visit: Visit) -> Values:
    return {
        "mite": await visit.ask(MY_MITE),
        "credits": await visit.ask(_CREDITS),
        "usage": await visit.ask(_USAGE),
    }


INBOX_PAGE = 50
KINDS = {
    "rule": "Rule",
    "follow": "Followed wallet",
    "bag_guard": "Bag and watched tokens",
    "unlock": "Unlock",
    "service": "Service",
    "test": "Test",
}
FILTERS = ("kind", "rule", "token")
# The same answer as the tool's, with the state of each token.
_FEED = own_variant(find_operation("inbox", Nothing, Inbox), inbox_feed)
_TURN = re.compile(r"from (\w+)(?: \((\w+)\))? to (\w+)(?: \((\w+)\))?")
"""The old and the new verdict in the sentence of an alert: level and code."""


def tell_alert(row: AlertRow | HitRow, symbol: str | None) -> Markup:
    """The sentence of an alert as people read it: the token's symbol for its address, and words for levels
    and codes of verdicts."""
    text, token = row.text, row.token
    head, mark, tail = text, Markup(""), ""
    if token is not None and token in text:
        head, tail = text.split(token, 1)
        name = stranger(symbol) if symbol else address(token)
        mark = Markup('<a href="/token/{}" title="{}">{}</a>').format(token, token, name)
    turn = _TURN.search(tail) if row.verb == "verdict" else None
    if turn is None:
        return render_sentence(head) + mark + render_sentence(tail)
    old, new = (_show_level(level, code or "") for level, code in (turn.groups()[:2], turn.groups()[2:]))
    before, after = render_sentence(tail[: turn.start()]), render_sentence(tail[turn.end() :])
    return Markup("{}{}{}from {} to {}{}").format(render_sentence(head), mark, before, old, new, after)


def _show_level(level: str, code: str) -> Markup:
    return Markup('<strong class="t-{}">{}</strong>').format(level, level_word(level, code))


async def _read_inbox(visit: Visit) -> Values:
    """One page of the rows, by day. Query parameters: ``kind``, ``rule``, ``token``, and ``before`` (a row's
    id: shows older rows)."""
    inbox, query = await visit.ask(_FEED), visit.query
    rows, before = inbox.rows, query.get("before", "")
    chosen = {name: query[name] for name in FILTERS if query.get(name)}
    chosen = {name: value for name, value in chosen.items() if name != "kind" or value in KINDS}
    choices = {name: sorted({getattr(row, name) for row in rows if getattr(row, name)}) for name in FILTERS}
    rows = [row for row in rows if all(getattr(row, name) == value for name, value in chosen.items())]
    matching = len(rows)
    if before.isascii() and before.isdigit() and len(before) < 20:
        rows = [row for row in rows if row.id < int(before)]
    page_rows = rows[:INBOX_PAGE]
    states = {state.token.address: state for state in inbox.tokens}
    shown = [_show_row(row, states.get(row.token or "")) for row in page_rows]
    days = groupby(shown, lambda entry: entry[0].ts.date())
    return {
        "inbox": inbox,
        "days": [(day, list(entries)) for day, entries in days],
        "states": states,
        "kinds": KINDS,
        "choices": choices,
        "chosen": chosen,
        "older": {**chosen, "before": page_rows[-1].id} if len(rows) > INBOX_PAGE else None,
        "is_first": not before,
        "matching": matching,
    }


def _show_row(row: AlertRow, state: TokenState | None) -> tuple[AlertRow, TokenState | None, Markup]:
    """The alert with its token as it stands, and its sentence."""
    return row, state, tell_alert(row, row.symbol or (state.token.symbol if state else None))


_RULES = find_operation("list_rules", Nothing, RulesListed)
_AROUND = own_operation(watch_around, counts="never")
WATCHED = own_operation(watched_tokens, counts="never")
WATCH = own_operation(
    watch_token, method="POST", writes=True, repeatable=True, counts="minute", bad_params="bad_address"
)
UNWATCH = own_operation(
    unwatch_token, method="POST", writes=True, repeatable=True, counts="minute", bad_params="bad_address"
)
EDIT = own_operation(edit_rule, method="POST", writes=True, counts="minute")
PAUSE = own_operation(pause_rule, method="POST", writes=True, counts="minute")
RESUME = own_operation(resume_rule, method="POST", writes=True, counts="minute")
# The same replay, called instead of the tool: it counts as one call.
_DRAW = own_variant(find_operation("test_rule", RuleParams, RuleTested), draw_rule, "test_rule")
_SUBJECTS_OF_TOKEN, _WALLET_SUBJECT = ("deployer", "creator"), "wallet"


class RuleParts(msgspec.Struct):
    """The fields of the form from which a rule is composed."""

    verb: str
    who: str = ""
    whose: str = ""
    over: str = ""
    unit: str = ""
    token: str = ""


def compose_rule(form: Mapping[str, str]) -> Mapping[str, str]:
    """The form with ``rule`` composed of its parts; unchanged if the visitor wrote the rule as text. Invalid
    parts are reported when the rule is parsed."""
    if "verb" not in form or form.get("rule", "").strip():
        return form
    parts = msgspec.convert(form, RuleParts)
    subject, address = parts.who, parts.whose.strip()
    if subject in _SUBJECTS_OF_TOKEN:
        subject = f"{subject}:{address}"
    elif subject == _WALLET_SUBJECT:
        subject = address
    words = [subject, parts.verb]
    if over := parts.over.strip():
        words += ["over", over, parts.unit]
    if token := parts.token.strip():
        words += ["on", token]
    return {**form, "rule": " ".join(filter(None, words))}


async def _read_watch(visit: Visit) -> Values:
    """``typed``: the values with which another page's link prefills the form."""
    watched, around, query = await visit.ask(_RULES), await visit.ask(_AROUND), visit.query
    tokens = await visit.ask(WATCHED)
    typed = {name: query[name][:200] for name in ("rule", "address") if name in query}
    edited = next((rule for rule in watched.rules if str(rule.id) == query.get("edit")), None)
    if edited is not None:
        typed |= {"rule": edited.rule, "edit": str(edited.id)}
    return {
        "watched": watched,
        "around": around,
        "tokens": tokens,
        "words": {rule.id: rule.words for rule in around.rules},
        "paused": {rule.id for rule in around.rules if rule.paused},
        "typed": typed,
    }


_CHANNELS = find_operation("list_channels", Nothing, Channels)
_LOG = own_operation(delivery_log, counts="never")
_RESEND = own_operation(resend, method="POST", writes=True, counts="minute", errors=("rate_limited", "busy"))
_TRY = own_operation(
    try_channel, method="POST", writes=True, counts="minute", errors=("rate_limited", "busy")
)


async def _read_fingerprint(visit: Visit) -> str:
    return _fingerprint(await visit.ask(_CHANNELS))


def _fingerprint(channels: Channels) -> str:
    """Changes with every delivery: setting a webhook again would replace its secret, and sends a message."""
    delivered = ((channel.id, channel.last_delivered_at) for channel in channels.channels)
    return " ".join(f"{channel_id}@{at and iso(at)}" for channel_id, at in delivered)


async def _read_channels(visit: Visit) -> Values:
    """``last``: the newest message of each channel that was tried, by the channel's id."""
    channels, log = await visit.ask(_CHANNELS), await visit.ask(_LOG)
    last: dict[int, DeliveryRow] = {}
    for row in log.rows:
        if row.tries:
            last.setdefault(row.channel_id, row)
    return {"channels": channels, "log": log, "seen": _fingerprint(channels), "last": last}


_BAG = find_operation("my_bag", Nothing, MyBag)
_PAST = own_operation(bag_past, counts="never")


def list_warnings(row: BagRow) -> list[tuple[Level, str]]:
    """A holding's warnings, worst first: level and sentence."""
    changes = row.changes
    at_buy, newest, deployer = changes.then, changes.now, changes.deployer
    return warn_of_holding(
        row.sells,
        None if newest is None else (newest.level, newest.code),
        (None if at_buy is None else at_buy.fees_bps, None if newest is None else newest.fees_bps),
        0 if deployer is None else deployer.sold_bps,
        changes.liquidity_left_bps or 0,
    )


def sum_past(holdings: Sequence[BagRow], past: BagPast) -> list[tuple[datetime, Decimal | None]]:
    """The worth of all that can be sold now, at each time; None: a part of it is not known. Empty: nothing
    can be sold, or the past of nothing is known."""
    sold = {row.token.address for row in holdings if row.sells == "yes"}
    series = [token.values for token in past.tokens if token.address in sold]
    if not series:
        return []
    sums = (
        None if None in values else sum(map(Decimal, values), Decimal(0))
        for values in zip(*series, strict=True)
    )
    return list(zip(past.times, sums, strict=True))


async def _read_bag(visit: Visit) -> Values:
    bag, past = await visit.ask(_BAG), await visit.ask(_PAST)
    warned_rows = [(row, list_warnings(row)) for row in bag.holdings]
    warned = sorted(
        ((row, warnings) for row, warnings in warned_rows if warnings),
        key=lambda entry: WORST_FIRST.index(entry[1][0][0]),
    )
    values = sum_past(bag.holdings, past)
    known = [(at, value) for at, value in values if value is not None]
    return {
        "bag": bag,
        "past": past,
        "warned": warned,
        "guards": {guard.address: guard for guard in past.guards},
        "values": values,
        "curve": draw_curve(known),
        "ends": (known[0][0].isoformat(), known[-1][0].isoformat()) if known else None,
        "left_out": len(bag.holdings) - sum(row.sells == "yes" for row in bag.holdings),
    }


_CALENDAR = find_operation("unlock_calendar", Nothing, UnlockCalendar)


async def _read_unlocks(visit: Visit) -> Values:
    calendar = await visit.ask(_CALENDAR)
    days = groupby(calendar.unlocks, lambda unlock: unlock.at.date())
    return {"calendar": calendar, "days": [(day, list(unlocks)) for day, unlocks in days]}


_ACCOUNT = find_operation("practice_account", Nothing, PracticeAccount)
_TRADES = find_operation("practice_trades", Nothing, PracticeTrades)
_HISTORY = own_operation(practice_history, counts="never")


def is_refused(position: PositionListed) -> bool:
    """Whether a position is known not to sell now; False also where that could not be found out."""
    why = position.why or ""
    return position.worth is None and (position.stuck_at is not None or why.startswith(SELL_FAILS))


def gain_now(practice: PracticeAccount) -> str | None:
    """What the account is above what it was given, with its positions as they would sell now; None: a
    position's worth is not known."""
    if any(position.worth is None and not is_refused(position) for position in practice.positions):
        return None
    return f"{Decimal(practice.worth) + Decimal(practice.set_apart) - Decimal(practice.given):f}"


async def _read_practice(visit: Visit) -> Values:
    """``typed``: the token with which another page's link prefills the form. ``curve``: of the profit that
    was taken (``taken`` points), and of what it would be if all were sold now (``gain``). ``no_reason``:
    words that say no more than that it cannot be sold."""
    practice, trades = await visit.ask(_ACCOUNT), await visit.ask(_TRADES)
    history = await visit.ask(_HISTORY)
    values = [(point.at, Decimal(point.total)) for point in history.points]
    if trades.trades and history.is_all:
        # Before its first trade an account has neither gained nor lost.
        start = min(trade.made_at for trade in trades.trades)
        values.insert(0, (min([start, *(at for at, _ in values)]), Decimal(0)))
    taken, gain = len(values), gain_now(practice)
    if gain is not None and values:
        values.append((max(history.now, values[-1][0]), Decimal(gain)))
    return {
        "practice": practice,
        "trades": trades,
        "history": history,
        "typed": visit.query.get("token", "")[:42],
        "refused": {position.token.address for position in practice.positions if is_refused(position)},
        "gain": gain,
        "no_reason": REASON_WITHHELD,
        "curve": draw_curve(values),
        "taken": taken,
        "first": values[0][0].isoformat() if values else None,
    }


OWN_MARKS = own_operation(own_marks, counts="minute")
OWN_FLAGS = own_operation(own_flags, counts="minute", bad_params="bad_address")
MARK = own_operation(mark_wallet, method="POST", writes=True, repeatable=True, counts="minute")
UNMARK = own_operation(
    unmark_wallet, method="POST", writes=True, destroys=True, repeatable=True, counts="minute"
)
# It simulates a sell of the token, so it counts against the day.
FLAG = own_operation(flag_token, method="POST", writes=True)


async def _read_marks(visit: Visit) -> Values:
    return {
        "mite": await visit.ask(MY_MITE),
        "marks": await visit.ask(OWN_MARKS),
        "own": await visit.ask(OWN_FLAGS),
    }


_OWN_KEYS = own_operation(own_keys, counts="minute")
_KEY_TEXT = own_operation(own_key_text, method="POST", counts="minute")
_MAKE_KEY = own_operation(make_own_key, method="POST", writes=True, counts="minute")
_END_KEY = own_operation(end_own, method="POST", writes=True, destroys=True, counts="minute")
_EVERYWHERE = own_operation(sign_out_everywhere, method="POST", writes=True, destroys=True, counts="minute")


async def _read_keys(visit: Visit) -> Values:
    return {"own": await visit.ask(_OWN_KEYS, {"session": visit.session})}


async def send_text(visit: Visit) -> Response:
    """POST /account/keys/text: the text that the wallet has to sign, for the page's script."""
    return Response(await visit.ask_json(_KEY_TEXT, {}), media_type="application/json")


ROOMS: tuple[Room, ...] = (
    Room("overview", "Account", "See your calls and your limits, or sign out.", _read_overview),
    Room(
        "inbox",
        "Inbox",
        "Read your alerts: of your rules, of wallets that you follow, and of tokens that you hold or watch.",
        _read_inbox,
    ),
    Room(
        "watch",
        "Watch",
        "Set rules that alert you about trades, watch tokens, and follow wallets.",
        _read_watch,
    ),
    Room(
        "channels",
        "Channels",
        "Choose where alerts go besides your inbox: a webhook, Discord or Telegram.",
        _read_channels,
    ),
    Room(
        "bag", "Bag", "See what the tokens in your wallet are worth, and which of them went bad.", _read_bag
    ),
    Room(
        "unlocks",
        "Unlocks",
        "See when locked liquidity of your tokens can be withdrawn, in the next 30 days.",
        _read_unlocks,
    ),
    Room(
        "practice",
        "Practice",
        "Buy and sell real tokens with pretend eth, at prices of the chain.",
        _read_practice,
    ),
    Room(
        "marks", "Marks", "Name and mark wallets, and see how your flags on tokens turned out.", _read_marks
    ),
    Room(
        "keys", "Keys", "Make and revoke keys for programs, and end sessions of other browsers.", _read_keys
    ),
)
ACTS: tuple[AccountForm, ...] = (
    AccountForm("mark_as_agent", "overview", ("name",)),
    AccountForm("redeem_payment", "overview", ("tx",)),
    AccountForm("follow_wallet", "watch", ("address", "name")),
    AccountForm("unfollow_wallet", "watch", ("address",)),
    AccountForm(UNWATCH, "watch", ("address",)),
    AccountForm(WATCH, "watch", ("address",)),
    AccountForm("create_rule", "watch", ("rule",), parse=compose_rule),
    AccountForm(EDIT, "watch", ("id", "rule"), frozenset({"id"})),
    AccountForm(_DRAW, "watch", ("rule",), parse=compose_rule, piece="account/rule_preview.html"),
    AccountForm(PAUSE, "watch", ("id",), frozenset({"id"})),
    AccountForm(RESUME, "watch", ("id",), frozenset({"id"})),
    AccountForm("delete_rule", "watch", ("id",), frozenset({"id"})),
    AccountForm("set_webhook", "channels", ("url",), fingerprint=_read_fingerprint),
    AccountForm("remove_channel", "channels", ("id",), frozenset({"id"})),
    AccountForm(_TRY, "channels", ("id",), frozenset({"id"})),
    AccountForm(_RESEND, "channels", ("id", "ended"), frozenset({"id"})),
    AccountForm("practice_buy", "practice", ("token", "eth")),
    AccountForm("practice_sell", "practice", ("token", "percent"), frozenset({"percent"})),
    AccountForm(MARK, "marks", ("address", "name", "mark")),
    AccountForm(UNMARK, "marks", ("address",)),
    AccountForm(_MAKE_KEY, "keys", ("signature", "label", "claim")),
    AccountForm(_END_KEY, "keys", ("id",), frozenset({"id"})),
    AccountForm(_EVERYWHERE, "keys"),
)
