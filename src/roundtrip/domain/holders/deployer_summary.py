"""What the deployer of a token did with the tokens that reached him."""

from dataclasses import dataclass
from typing import Literal

from .book import InsiderLedger
from .findings import HolderInputs, balance_raw

Status = Literal["never_held", "holds_all", "holds_some", "sold_out", "moved_out", "burned_out"]


@dataclass(frozen=True, slots=True)
class DeployerDeeds:
    """What the deployer did with the tokens that reached him. ``received_raw``: at least what he holds plus
    what left him, whether or not a transfer reported it."""

    status: Status
    received_raw: int
    bought_raw: int
    sold_raw: int
    moved_raw: int
    pooled_raw: int
    burned_raw: int
    held_raw: int


def deployer_deeds(inputs: HolderInputs) -> DeployerDeeds | None:
    """The deployer's deeds. None: he is not known; or the book did not track him; or the logs drift and show
    nothing that left him. What left him without a readable log is not known then, so neither that he never
    held any nor that he holds all is proven."""
    if inputs.maker is None:
        return None
    deployer = inputs.maker.deployer
    ledger = inputs.book.ledgers.get(deployer)
    if ledger is None:
        if deployer not in inputs.book.beginning.insiders:
            return None
        ledger = InsiderLedger()
    held_raw = balance_raw(inputs, deployer)
    gone_raw = ledger.sold_raw + ledger.moved_raw + ledger.pooled_raw + ledger.burned_raw
    # What left him must have reached him: a token may have credited it without a log.
    received_raw = max(ledger.received_raw, held_raw + gone_raw)
    status = _status(ledger, held_raw, received_raw)
    if inputs.drifts and status in ("never_held", "holds_all"):
        if gone_raw <= 0:
            return None
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
    outflows: dict[Status, int] = {
        "sold_out": ledger.sold_raw,
        "moved_out": ledger.moved_raw + ledger.pooled_raw,
        "burned_out": ledger.burned_raw,
    }
    largest: Status = max(outflows, key=lambda status: outflows[status])
    if received_raw <= 0:
        return "never_held"
    if held_raw * 100 >= received_raw * 99:
        return "holds_all"
    if held_raw * 100 >= received_raw:
        return "holds_some"
    # The token itself took it from him: the balance is gone, and no transfer is a sale.
    return largest if outflows[largest] > 0 else "moved_out"
