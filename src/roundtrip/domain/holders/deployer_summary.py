"""What the deployer of a token did with what reached him."""

from dataclasses import dataclass
from typing import Literal

from .book import InsiderLedger
from .findings import HolderInputs, balance_raw

Status = Literal["never_held", "holds_all", "holds_some", "sold_out", "moved_out", "burned_out"]


@dataclass(frozen=True, slots=True)
class DeployerDeeds:
    """What the deployer did with what reached him. ``received_raw``: no less than what he has and what left
    him, whether a transfer told of it or not."""

    status: Status
    received_raw: int
    bought_raw: int
    sold_raw: int
    moved_raw: int
    pooled_raw: int
    burned_raw: int
    held_raw: int


def deployer_deeds(told: HolderInputs) -> DeployerDeeds | None:
    """None: nobody knows who the deployer is, or the book did not follow what he did; or by transfers that
    do not add up he never had any, which says nothing."""
    if told.maker is None:
        return None
    deployer = told.maker.deployer
    ledger = told.book.ledgers.get(deployer)
    if ledger is None:
        if deployer not in told.book.beginning.insiders:
            return None
        ledger = InsiderLedger()
    held_raw = balance_raw(told, deployer)
    gone_raw = ledger.sold_raw + ledger.moved_raw + ledger.pooled_raw + ledger.burned_raw
    # What left him reached him: a token may have given it without a word.
    received_raw = max(ledger.received_raw, held_raw + gone_raw)
    status = _status(ledger, held_raw, received_raw)
    if told.drifts and status == "never_held":
        return None
    if told.drifts and status == "holds_all" and gone_raw > 0:
        status = "holds_some"
    return DeployerDeeds(
        status=status,
        received_raw=received_raw,
        bought_raw=ledger.bought_raw,
        sold_raw=ledger.sold_raw,
        moved_raw=ledger.moved_raw,
        pooled_raw=ledger.pooled_raw,
        burned_raw=ledger.burned_raw,
        held_raw=held_raw,
    )


def _status(ledger: InsiderLedger, held_raw: int, received_raw: int) -> Status:
    gone: dict[Status, int] = {
        "sold_out": ledger.sold_raw,
        "moved_out": ledger.moved_raw + ledger.pooled_raw,
        "burned_out": ledger.burned_raw,
    }
    most: Status = max(gone, key=lambda status: gone[status])
    if received_raw <= 0:
        return "never_held"
    if held_raw * 100 >= received_raw * 99:
        return "holds_all"
    if held_raw * 100 >= received_raw:
        return "holds_some"
    # The token itself took it from him: it is gone, and no transfer says that he sold.
    return most if gone[most] > 0 else "moved_out"
