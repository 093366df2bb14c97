"""What an answer on a token's holders has to say, counted slowly and obviously: from what wallets did as it
was written down, and from balances. Shares are rounded down."""

from collections.abc import Iterable, Sequence
from typing import Any

from roundtrip.domain.base.types import plain_decimal
from support.actors import What
from support.holding import DEAD, ZERO, Deed, Held

WINDOW = 30
GOT: tuple[What, ...] = ("bought", "got", "minted")
ETH_USD = 3500


def bps(part: int, whole: int) -> int:
    return min(10_000, part * 10_000 // whole) if whole else 0


def sum_of(deeds: Iterable[Deed]) -> int:
    return sum(deed.amount_raw for deed in deeds)


def did(held: Held, wallet: str, *what: What) -> int:
    """How much the wallet did of these."""
    return sum_of(deed for deed in held.deeds if deed.wallet == wallet and deed.what in what)


def holdings(held: Held) -> dict[str, int]:
    """What wallets have by the token's own word, the biggest first; of equals the lower address. What lies at
    the token itself nobody has."""
    nobody = held.nobody() | {held.token}
    found = {one: held.balance(one) for one in held.addresses() if one not in nobody}
    return dict(sorted(((a, b) for a, b in found.items() if b > 0), key=lambda one: (-one[1], one[0])))


def checked(held: Held) -> None:
    """The scene itself: what was written down of every wallet adds up to what it has. Of a token whose
    balances move by themselves it does not."""
    out: tuple[What, ...] = ("sold", "moved", "pooled", "burned")
    for wallet in {deed.wallet for deed in held.deeds}:
        assert did(held, wallet, *GOT) - did(held, wallet, *out) == held.balance(wallet), wallet


def counted(held: Held) -> dict[str, Any]:
    """``holders``, but for ages."""
    supply, has = held.supply(), holdings(held)
    return {
        "count": len(has),
        "countIsFloor": False,
        "top10Bps": bps(sum(list(has.values())[:10]), supply),
        "inPoolsBps": bps(held.in_pools(), supply),
        "burnedBps": bps(held.balance(ZERO) + held.balance(DEAD), supply),
    }


def top(held: Held) -> list[dict[str, Any]]:
    """``top``: addresses, balances, shares, and what was sold of all that came."""
    supply = held.supply()
    return [
        {
            "address": wallet,
            "balance": plain_decimal(balance, 18),
            "supplyBps": bps(balance, supply),
            "soldBps": bps(did(held, wallet, "sold"), did(held, wallet, *GOT)),
        }
        for wallet, balance in list(holdings(held).items())[:10]
    ]


def whole(held: Held, is_honest: bool = True) -> dict[str, Any]:
    """What the answer on any token says that was read to its end; ``is_honest``: its balances move by
    transfers alone, which the scene is held against first."""
    if is_honest:
        checked(held)
    return {
        "status": "complete",
        "transfersRead": held.transfers(),
        "token": {"decimals": 18, "totalSupply": plain_decimal(held.supply(), 18)},
        "holders": counted(held),
        "top": top(held),
    }


def entry_cap_usd(held: Held, wallet: str) -> float | None:
    """What it paid for a token on average, for the whole supply, in dollars; None: it never bought."""
    buys = [deed for deed in held.deeds if deed.wallet == wallet and deed.what == "bought"]
    if not buys:
        return None
    return sum(deed.paid_wei for deed in buys) / sum_of(buys) * held.supply() / 10**18 * ETH_USD


def deployer(held: Held, source: str, status: str, whose: str | None = None) -> dict[str, Any]:
    """``deployer``."""
    wallet, supply = whose or held.deployer, held.supply()
    return {
        "address": wallet,
        "source": source,
        "status": status,
        "receivedBps": bps(did(held, wallet, *GOT), supply),
        "boughtBps": bps(did(held, wallet, "bought"), supply),
        "soldBps": bps(did(held, wallet, "sold"), supply),
        "movedBps": bps(did(held, wallet, "moved"), supply),
        "pooledBps": bps(did(held, wallet, "pooled"), supply),
        "burnedBps": bps(did(held, wallet, "burned"), supply),
        "heldBps": bps(held.balance(wallet), supply),
    }


def launch_buys(held: Held, launch_number: int) -> dict[str, int]:
    """Who bought how much in the launch window, in the order of the first buys."""
    found: dict[str, int] = {}
    for deed in held.deeds:
        if deed.what == "bought" and launch_number <= deed.block_number <= launch_number + WINDOW:
            found[deed.wallet] = found.get(deed.wallet, 0) + deed.amount_raw
    return found


def snipers(held: Held, launch_number: int, sold_out: int = 0) -> dict[str, int]:
    """``snipers``."""
    buys = {who: raw for who, raw in launch_buys(held, launch_number).items() if who != held.deployer}
    supply = held.supply()
    return {
        "wallets": len(buys),
        "boughtBps": bps(sum(buys.values()), supply),
        "heldBps": bps(sum(held.balance(who) for who in buys), supply),
        "soldOut": sold_out,
    }


def bundle(
    held: Held, launch_number: int, wallets: Sequence[str], funder: str | None, same_transaction: bool
) -> dict[str, Any]:
    """``bundle`` of these."""
    buys, supply = launch_buys(held, launch_number), held.supply()
    return {
        "wallets": len(wallets),
        "funder": funder,
        "sameTransaction": same_transaction,
        "boughtBps": bps(sum(buys[who] for who in wallets), supply),
        "heldBps": bps(sum(held.balance(who) for who in wallets), supply),
    }


def differences(said: object, expected: object, where: str = "answer") -> list[str]:
    """Where an answer does not say what is expected. Of an object only the expected fields count; numbers
    that are no whole ones may be half a percent off."""
    if isinstance(expected, dict):
        if not isinstance(said, dict):
            return [f"{where}: {said!r} where there should be an object"]
        return [
            one
            for key, value in expected.items()
            for one in differences(said.get(key), value, f"{where}.{key}")
        ]
    if isinstance(expected, list):
        if not isinstance(said, list) or len(said) != len(expected):
            return [f"{where}: {said!r}, not {len(expected)} of them"]
        pairs = enumerate(zip(said, expected, strict=True))
        return [one for n, (a, b) in pairs for one in differences(a, b, f"{where}[{n}]")]
    if isinstance(expected, float) and isinstance(said, int | float) and not isinstance(said, bool):
        return [] if abs(said - expected) <= abs(expected) / 200 else [f"{where}: {said}, not {expected}"]
    same = said == expected and isinstance(said, bool) == isinstance(expected, bool)
    return [] if same else [f"{where}: {said!r}, not {expected!r}"]
