"""Measures how long it takes to find the accounts that get an alert for an event, among few rules and many.

    make bench NAME=rules FLAGS="[--rules 10000 100000] [--happenings 20000]"

Rules of fifty an account, and what accounts follow, drawn by seed: a third by wallet, the others about
follows, deployers, tokens and anybody, most with a threshold; wallets and tokens are as unequally popular
among those who watch as among those who trade. Three mixes: drawn so; every rule in one bucket with its
threshold just above what happens; and everybody following one wallet, with a rule about it that it stays just
below. The last two are about nothing, so they should cost nothing. Printed: median, 95th percentile and worst
of a happening in processor time (and as waited for, which others on the machine lengthen), the share of one
core that 1,000 a second take, what ten times the rules cost, and beside it, in the same run, each rule and
follow tested. Compare the ratios: machines are noisy.
"""

import argparse
import gc
import itertools
import random
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from roundtrip.app.build import collect_garbage_rarely
from roundtrip.domain.base.events import Spot
from roundtrip.domain.base.types import Address, TxHash
from roundtrip.domain.watch.alerts import MAX_FOLLOWS, MAX_RULES
from roundtrip.domain.watch.rule_index import AlertSource, RuleIndex
from roundtrip.domain.watch.rules import (
    FOLLOWED_VERBS,
    Happening,
    Over,
    Rule,
    Unit,
    Verb,
    Watch,
    Who,
    WhoKind,
)

RULES, HAPPENINGS, SAMPLE = (10_000, 100_000), 20_000, 20
AIM_MS, A_SECOND = 1.0, 1_000
WALLETS, TOKENS = 200_000, 50_000
SUPPLY_RAW, USD = 10**27, 3_000
BLOCK = 1_000
VERB_WEIGHTS: dict[Verb, int] = {
    "buying": 44, "selling": 40, "moving": 12, "launching": 2, "draining": 1, "graduating": 1,
}  # fmt: skip
WHO_WEIGHTS: dict[WhoKind, int] = {"wallet": 4, "any": 4, "follow": 2, "deployer": 1, "creator": 1}
WATCHED_WEIGHTS: dict[Verb, int] = dict.fromkeys(VERB_WEIGHTS, 1) | {"buying": 3, "selling": 3}
TX_HASH = TxHash("0x" + "00" * 32)


@dataclass(slots=True)
class Watching:
    """Rules with the wallets that they cover, and the wallets that each account follows."""

    rules: list[tuple[AlertSource, Rule, Address | None]] = field(default_factory=list)
    follows: list[tuple[AlertSource, Address]] = field(default_factory=list)


Mix = Callable[[int, int], tuple[Watching, list[Happening]]]
"""Of so many rules and so many happenings."""


# --- drawn -----------------------------------------------------------------------------------------


def wallet(place: int) -> Address:
    """The most popular have the lowest places."""
    return Address(f"0x{place + 1:040x}")


def token(place: int) -> Address:
    """As of wallets; it is no wallet."""
    return Address(f"0x{(1 << 128) + place:040x}")


def popular(chance: random.Random, many: int) -> int:
    """A place: of 200,000 the first is drawn 1.7 % of the time, the first 25 are 5 % of the time."""
    return int(many * chance.random() ** 3)


def happened(verb: Verb, by: Address, of: Address, eth_wei: int, part_raw: int) -> Happening:
    """One, of which all is known."""
    spot = Spot(BLOCK, 0, 1_700_000_000, TX_HASH)
    return Happening(verb, spot, by, of, eth_wei, eth_wei * USD // 10**12, part_raw, SUPPLY_RAW)


def a_happening(chance: random.Random) -> Happening:
    """Half of the trades are below 0.05 eth, one of a hundred is above 1.6."""
    (verb,) = chance.choices(list(VERB_WEIGHTS), list(VERB_WEIGHTS.values()))
    eth_wei = int(0.05e18 * chance.lognormvariate(0, 1.5))
    by, of = wallet(popular(chance, WALLETS)), token(popular(chance, TOKENS))
    return happened(verb, by, of, eth_wei, int(SUPPLY_RAW * min(0.5, 0.001 * chance.lognormvariate(0, 1.5))))


def a_threshold(chance: random.Random, verb: Verb, anybodys: bool) -> Over | None:
    """Who watches anybody asks for much: half of them for more than 5 eth, or 5 %."""
    if not anybodys and chance.random() < 0.4:
        return None
    much = (5 if anybodys else 0.2) * chance.lognormvariate(0, 1)
    unit: Unit = chance.choice(("eth", "usd") if verb in ("launching", "graduating") else ("eth", "usd", "%"))
    raw = {"eth": int(much * 10**18), "usd": int(much * USD * 10**6), "%": int(much * 10_000)}
    return Over(unit, min(raw[unit], 999_999) if unit == "%" else raw[unit])


def a_rule(chance: random.Random) -> tuple[Rule, Address | None]:
    """With who is meant. A third of those about anybody are about a token, however much of it."""
    (kind,) = chance.choices(list(WHO_WEIGHTS), list(WHO_WEIGHTS.values()))
    (verb,) = chance.choices(list(WATCHED_WEIGHTS), list(WATCHED_WEIGHTS.values()))
    on = token(popular(chance, TOKENS)) if chance.random() < (0.5 if kind == "any" else 0.2) else None
    over = a_threshold(chance, verb, anybodys=kind == "any" and on is None)
    if kind in ("any", "follow"):
        return Rule(Who(kind), verb, over, on), None
    meant = wallet(popular(chance, WALLETS))
    who = Who(kind, meant if kind == "wallet" else token(popular(chance, TOKENS)))
    return Rule(who, verb, over, on), meant


def drawn(rules: int, happenings: int) -> tuple[Watching, list[Happening]]:
    """As it may be on a good day."""
    chance, watching, number = random.Random(11), Watching(), itertools.count(1)
    for id_ in range(rules):
        rule, meant = a_rule(chance)
        watching.rules.append((AlertSource("rule", id_, id_ // MAX_RULES, rule.text(), 0), rule, meant))
    for account_id in range(rules // MAX_RULES):
        followed_wallets = {wallet(popular(chance, WALLETS)) for _ in range(chance.randint(1, MAX_FOLLOWS))}
        for each in sorted(followed_wallets):
            watching.follows.append((AlertSource("follow", next(number), account_id, "somebody", 0), each))
    return watching, [a_happening(chance) for _ in range(happenings)]


def just_above(rules: int, happenings: int) -> tuple[Watching, list[Happening]]:
    """One bucket, and every threshold above what happens."""
    watching = Watching()
    for id_ in range(rules):
        rule = Rule(Who("any"), "buying", Over("eth", 10**18 + id_))
        watching.rules.append((AlertSource("rule", id_, id_ // MAX_RULES, rule.text(), 0), rule, None))
    return watching, [happened("buying", wallet(n), token(n), 10**18 - n, 1) for n in range(happenings)]


def one_followed(rules: int, happenings: int) -> tuple[Watching, list[Happening]]:
    """Everybody follows who moves tokens all day, and wants to know when it is more."""
    watching = Watching()
    for id_ in range(rules):
        rule = Rule(Who("follow"), "moving", Over("eth", 10**18 + id_))
        watching.rules.append((AlertSource("rule", id_, id_, rule.text(), 0), rule, None))
        watching.follows.append((AlertSource("follow", id_, id_, "somebody", 0), wallet(0)))
    return watching, [happened("moving", wallet(0), token(n), 10**18 - n, 1) for n in range(happenings)]


MIXES: dict[str, Mix] = {"drawn": drawn, "just above": just_above, "one followed": one_followed}


# --- measured --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Measured:
    """Of one mix with so many rules. ``times_ms``: of the processor; ``waited_ms``: by the clock on the wall.
    ``looked_ms``: an event with each rule and follow tested."""

    rules: int
    times_ms: list[float]
    waited_ms: list[float]
    matches: list[int]
    looked_ms: float

    @property
    def median_ms(self) -> float:
        return statistics.median(self.times_ms)

    @property
    def p95_ms(self) -> float:
        return p95(self.times_ms)


def p95(values: Sequence[float]) -> float:
    """Of twenty, one is higher."""
    return sorted(values)[int(len(values) * 0.95)]


def memory_mb() -> float:
    """What this process holds."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    return 0.0


def indexed(watching: Watching) -> RuleIndex:
    """All of them."""
    index = RuleIndex()
    for source, rule, meant in watching.rules:
        index.add_rule(source, rule, meant)
    for source, followed_wallet in watching.follows:
        index.add_follow(source, followed_wallet)
    return index


def looked_at(watching: Watching) -> Callable[[Happening], list[AlertSource]]:
    """The same without an index."""
    followed: dict[int, set[Address]] = {}
    for source, followed_wallet in watching.follows:
        followed.setdefault(source.account_id, set()).add(followed_wallet)
    watches: list[tuple[AlertSource, Watch]] = []
    for source, rule, meant in watching.rules:
        wallets = followed.get(source.account_id, set()) if rule.who.kind == "follow" else {meant}
        named = {each for each in wallets if each is not None}
        watches.append((source, Watch(rule, None if rule.who.kind == "any" else named)))

    def matching(seen: Happening) -> list[AlertSource]:
        number = seen.spot.block_number
        told = [source for source, watch in watches if watch.matches(seen) and source.from_number < number]
        if seen.verb in FOLLOWED_VERBS:
            told += [
                s
                for s, followed_wallet in watching.follows
                if followed_wallet == seen.wallet and s.from_number < number
            ]
        return told

    return matching


def looked_ms(watching: Watching, index: RuleIndex, seen: Sequence[Happening]) -> float:
    """The median of a sample; each time both have to tell the same."""
    looking, times_ms = looked_at(watching), []
    for each in seen:
        began = time.thread_time()
        told = looking(each)
        times_ms.append((time.thread_time() - began) * 1000)
        assert told == index.matching(each)
    return statistics.median(times_ms)


def measure(mix: Mix, rules: int, happenings: int) -> Measured:
    """Fills an index and asks it of one happening after the other."""
    watching, seen = mix(rules, happenings)
    gc.collect()
    before_mb, started = memory_mb(), time.perf_counter()
    index = indexed(watching)
    filled_s = time.perf_counter() - started
    print(
        f"  {rules:7,} rules, {len(watching.follows):7,} follows   filled in {filled_s:5.2f} s"
        f"   {memory_mb() - before_mb:4.0f} MB beside what is in it"
    )
    collect_garbage_rarely()
    times_ms, waited_ms, matches = [], [], []
    for each in seen:
        started, began = time.perf_counter(), time.thread_time()
        told = index.matching(each)
        times_ms.append((time.thread_time() - began) * 1000)
        waited_ms.append((time.perf_counter() - started) * 1000)
        matches.append(len(told))
    return Measured(rules, times_ms, waited_ms, matches, looked_ms(watching, index, seen[:SAMPLE]))


def tell(found: Measured) -> None:
    """Prints the time, the number of alerts, and how much slower it is to test all."""
    mean_ms, told = statistics.fmean(found.times_ms), found.matches
    print(
        f"  {found.rules:7,} rules   median {found.median_ms * 1000:6.1f} us"
        f"   p95 {found.p95_ms * 1000:6.1f} us (aim {AIM_MS * 1000:g})"
        f"   worst {max(found.times_ms) * 1000:7.0f} us"
        f"   waited, median {statistics.median(found.waited_ms) * 1000:6.1f} us"
        f" p95 {p95(found.waited_ms) * 1000:6.1f} us\n"
        f"          told to {statistics.median(told):.0f} in the median, p95 {p95(told):.0f}"
        f"   {mean_ms * A_SECOND / 10:.1f} % of a core at {A_SECOND:,} a second"
        f"   looking at all takes {found.looked_ms / mean_ms:,.0f} times as long",
        flush=True,
    )


def matching(sizes: Sequence[int], happenings: int) -> None:
    """Each mix with few rules and with many."""
    for name, mix in MIXES.items():
        print(f"{name}:")
        found = [measure(mix, rules, happenings) for rules in sizes]
        for each in found:
            tell(each)
        few, many = found[0], found[-1]
        if few is not many:
            median, p95 = many.median_ms / few.median_ms, many.p95_ms / few.p95_ms
            few_told, many_told = sum(few.matches), sum(many.matches)
            told = f"{many_told / few_told:.2f} times as many told" if few_told else "none told"
            print(f"  {many.rules / few.rules:g} times the rules: median {median:.2f}, p95 {p95:.2f}, {told}")
        if many.p95_ms >= AIM_MS:
            print(f"  MISSED: p95 {many.p95_ms:.2f} ms, not under {AIM_MS:g}")


def main() -> None:
    """What is to be told, found."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rules", type=int, nargs="+", default=list(RULES))
    parser.add_argument("--happenings", type=int, default=HAPPENINGS)
    asked = parser.parse_args()
    matching(asked.rules, asked.happenings)


if __name__ == "__main__":
    main()
