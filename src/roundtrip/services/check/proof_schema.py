"""The proof of a check, as stored and as answered: everything that is needed to repeat it."""

import re
import zlib
from dataclasses import fields
from datetime import UTC, datetime
from typing import Annotated

import msgspec

from roundtrip.chain.rpc.dialect import Dialect
from roundtrip.domain.check import canonical_json
from roundtrip.domain.check.evidence import Evidence
from roundtrip.domain.check.proof_input import ProofInputs
from roundtrip.domain.check.verdict import Verdict
from roundtrip.services.support.answer_fields import WRITTEN, VerdictAnswer, says
from roundtrip.store.check.evidence import KeptProof
from roundtrip.venues.base import Contracts


class RpcRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One JSON-RPC request, as it was sent."""

    jsonrpc: Annotated[str, says("Protocol version, 2.0.")]
    id: Annotated[int, says("Id of the request within its batch.")]
    method: Annotated[str, says("JSON-RPC method.")]
    params: Annotated[msgspec.Raw, says("Parameters of the method, a list.")]


def _camel(name: str) -> str:
    return re.sub(r"_([a-z0-9])", lambda match: match[1].upper(), name)


_CONTRACT = {"type": "string", "description": "Its address; several are separated by spaces."}


class ProofBlock(msgspec.Struct, frozen=True):
    """The block that all of it was asked of."""

    number: Annotated[int, says("Block number.")]
    hash: Annotated[str, says("Block hash.")]
    time: Annotated[datetime, says("Block time.")]


class CheckProof(msgspec.Struct, frozen=True, rename="camel"):
    """The newest check of a token: its evidence, and what was asked to have it."""

    address: Annotated[str, says("The token's address.")]
    chain_id: Annotated[int, says("Id of the chain; Robinhood Chain is 4663.")]
    block: Annotated[ProofBlock, says("The block that the check ran on.")]
    checked_at: Annotated[datetime, says("When the check was made.")]
    policy_version: Annotated[str, says("Version of the rules that judged the evidence.")]
    dialect: Annotated[
        str,
        msgspec.Meta(
            description="Kind of node: it decides block numbers, tips and gas in simulations.",
            extra_json_schema={"enum": ["anvil", "geth", "nitro"]},
        ),
    ]
    data_fee_wei: Annotated[
        int,
        says(
            "What the chain charged for the data of a call without any, in wei, by which gas "
            "limits were raised; 0: nothing."
        ),
    ]
    gas_pool: Annotated[
        int | None,
        says("The gas that the node gave all calls of one simulation, in which the requests fit; null: any."),
    ]
    contracts: Annotated[
        dict[str, str],
        msgspec.Meta(
            description="Addresses of the contracts that the calls go through, by name.",
            extra_json_schema={"properties": {_camel(field.name): _CONTRACT for field in fields(Contracts)}},
        ),
    ]
    verdict: Annotated[VerdictAnswer, says("The verdict that follows from the evidence.")]
    begun: Annotated[
        msgspec.Raw,
        says("Inputs of the check: the randomness that its wallets were drawn from, and the known venues."),
    ]
    evidence: Annotated[
        msgspec.Raw,
        says(f"The canonical document that the verdict is judged from. Reasons and texts in it: {WRITTEN}"),
    ]
    trips: Annotated[
        list[list[list[RpcRequest]]],
        says("The JSON-RPC requests: for each round trip to the node, the batches sent together."),
    ]


class _KeptBeginning(msgspec.Struct):
    """What is kept beside the evidence and the trips."""

    dialect: str
    data_fee_wei: int
    gas_pool: int | None
    contracts: dict[str, str]
    verdict: VerdictAnswer
    begun: msgspec.Raw


def name_contracts(contracts: Contracts) -> dict[str, str]:
    """The existing contracts by their names in ``devnet.json``."""
    addresses = {field.name: getattr(contracts, field.name) for field in fields(contracts)}
    return {_camel(name): at if isinstance(at, str) else " ".join(at) for name, at in addresses.items() if at}


def encode_proof_inputs(
    contracts: Contracts, dialect: Dialect, verdict: Verdict, inputs: ProofInputs
) -> bytes:
    """Encodes what is stored beside the evidence and the trips."""
    encoded = msgspec.Raw(canonical_json.dump(inputs))
    return msgspec.json.encode(
        _KeptBeginning(
            dialect.name,
            dialect.data_fee.wei,
            dialect.gas_pool,
            name_contracts(contracts),
            present_verdict(verdict),
            encoded,
        )
    )


def present_verdict(verdict: Verdict) -> VerdictAnswer:
    """The verdict in its form in answers."""
    return VerdictAnswer(verdict.code, verdict.level, verdict.text)  # type: ignore[arg-type]


def present(stored: KeptProof) -> CheckProof:
    """The answer from the stored proof."""
    evidence = canonical_json.load(Evidence, stored.evidence)
    beside = msgspec.json.decode(stored.began, type=_KeptBeginning)
    trips = [msgspec.json.decode(zlib.decompress(trip), type=list[list[RpcRequest]]) for trip in stored.trips]
    block = evidence.block
    return CheckProof(
        address=evidence.token,
        chain_id=evidence.chain_id,
        block=ProofBlock(block.number, block.hash, datetime.fromtimestamp(block.timestamp_s, UTC)),
        checked_at=stored.checked_at,
        policy_version=evidence.policy_version,
        dialect=beside.dialect,
        data_fee_wei=beside.data_fee_wei,
        gas_pool=beside.gas_pool,
        contracts=beside.contracts,
        verdict=beside.verdict,
        begun=beside.begun,
        evidence=msgspec.Raw(stored.evidence),
        trips=trips,
    )
