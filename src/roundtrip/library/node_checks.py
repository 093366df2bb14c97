"""Checks over one node. What only an index knows is left out: further pools, real holders, the deployer's
record, and marks of others. The verdict's text says that only the standard pools were checked."""

import contextlib
import math
from collections.abc import AsyncIterator, Callable
from typing import NamedTuple

import aiohttp

from roundtrip.chain.blocks.heads import Heads
from roundtrip.chain.rpc.client import MAX_WAIT_S, Meter, Node, RpcCall, RpcError, RpcNode, quantity
from roundtrip.chain.simulate.rates import Rates
from roundtrip.config.networks import Network
from roundtrip.domain.base.errors import CallerFault, NodeFault
from roundtrip.domain.base.policy import POLICY, Policy
from roundtrip.services.check.card import CheckCard, read_card
from roundtrip.services.check.schema import CheckParams
from roundtrip.services.engine.buy_round import BuyRoundResult
from roundtrip.services.engine.candidates import Candidates, KnownVenues, list_candidates
from roundtrip.services.engine.check_run import run_check
from roundtrip.services.engine.inputs import CheckInputs, role_of
from roundtrip.services.liquidity.findings import judge_liquidity
from roundtrip.services.liquidity.position_reader import PositionReader
from roundtrip.services.liquidity.sentence import UNREAD, add_sentence, describe_alone
from roundtrip.services.runtime.check_context import CheckContext
from roundtrip.services.support.cancel_on_error import at_once
from roundtrip.services.support.check_answer import Check, present
from roundtrip.services.support.money import ETH_DECIMALS, parse_amount

MIN_WEI, MAX_WEI = 10**15, 10**19
_OLDEST_S = 60.0
"""The greatest age of a node's newest block. The chain makes ten blocks a second, so with an older one the
node has stopped following it."""


class CheckWithCard(NamedTuple):
    """The check as the API answers it, and the further details that pages and the terminal show."""

    answer: Check
    card: CheckCard


class NodeChecks:
    """Checks over an open client. Used by one event loop."""

    def __init__(
        self, node: RpcNode, network: Network, now_s: Callable[[], float], entropy: Callable[[], bytes]
    ) -> None:
        self._node, self._network = node, network
        self._heads = make_heads(node, network, now_s)
        self._rates = Rates(node, network.contracts)
        self._now_s, self._entropy = now_s, entropy

    async def run(
        self, address: str, amount_eth: str | None, deep: bool, on_step: Callable[[str], None]
    ) -> CheckWithCard:
        """One check at the node's newest block. Raises CallerFault, NodeFault."""
        token, policy = CheckParams(address).token(), policy_for(amount_eth)
        contracts = self._network.contracts
        on_step("reading the newest block")
        head, _ = await at_once(self._heads.refresh(), check_network(self._node, self._network))
        known = Candidates((), others=0, left_out=0, complete=True)
        if role_of(token, contracts) == "token":
            known = list_candidates(KnownVenues(), contracts, token, policy.most_scouted)
        inputs = CheckInputs(head, token, self._entropy(), known, deep)
        context = CheckContext(self._network.chain_id, contracts, self._node, policy, self._rates)
        steps = {
            "buy round": "buying on every venue",
            "sell round": "selling at once, in an hour and in a day"
            + ("; trying what its owner may call" if deep else ""),
        }
        run = await run_check(context, inputs, Meter(), lambda next_round: on_step(steps[next_round]))
        answer = present(run.evidence, run.judgement, policy, self._now_s())
        if deep:
            on_step("withdrawing its liquidity")
            answer = add_sentence(answer, await self._read_liquidity(run.bought))
        return CheckWithCard(answer, read_card(run.evidence, run.judgement, deep, policy))

    async def _read_liquidity(self, bought: BuyRoundResult) -> str:
        """Who can withdraw the liquidity, from the pools' own logs."""
        reader = PositionReader(self._node, self._network.contracts, bought.run.head.block, bought.run.meter)
        try:
            return describe_alone(await judge_liquidity(bought, reader))
        except NodeFault:
            return UNREAD


def make_heads(node: RpcNode, network: Network, now_s: Callable[[], float]) -> Heads:
    """The chain's head. The clock of a local chain continues from its history, so its age is unlimited."""
    oldest_s = math.inf if network.look_back_blocks is None else _OLDEST_S
    return Heads(
        node,
        network.chain_id,
        network.contracts,
        wall=now_s,
        oldest_s=oldest_s,
        note_data_fee=node.note_data_fee if isinstance(node, Node) else None,
    )


async def check_network(node: RpcNode, network: Network) -> None:
    """Raises CallerFault (bad_input): the node's chain does not have the contracts that the check goes
    through. Raises nothing for a node that does not answer or is on another chain: ``Heads.refresh``, which
    runs beside it, does."""
    calls = [RpcCall("eth_chainId", []), RpcCall("eth_getCode", [network.contracts.v3_factory, "latest"])]
    try:
        chain, code = await node.batch(calls)
        if quantity(chain) != network.chain_id:
            return
    except NodeFault:
        return
    if not isinstance(code, RpcError) and bytes(code) == b'"0x"':
        raise CallerFault(
            "bad_input",
            "The node's chain has none of this network's contracts. For a local chain, give the file that "
            "describes it, such as --network var/devnet.json.",
        )


def policy_for(amount_eth: str | None) -> Policy:
    """The policy of a check that buys for ``amount_eth``, a decimal number of eth from 0.001 to 10. None: the
    standard policy, 0.1 eth. Raises CallerFault (bad_input)."""
    if amount_eth is None:
        return POLICY
    wei = parse_amount(amount_eth, ETH_DECIMALS, "eth")
    if not MIN_WEI <= wei <= MAX_WEI:
        raise CallerFault("bad_input", "amount must be between 0.001 and 10 eth.")
    if wei == POLICY.probe_wei:
        return POLICY
    return POLICY.at_size(wei)


@contextlib.asynccontextmanager
async def open_node(rpc_url: str, timeout_s: float) -> AsyncIterator[Node]:
    """A client that is closed afterwards. Raises CallerFault: ``rpc_url`` is no http or https URL."""
    if not rpc_url.startswith(("http://", "https://")):
        raise CallerFault("bad_input", "The node's URL must begin with http:// or https://.")
    async with aiohttp.ClientSession() as session:
        yield Node(rpc_url, session, timeout_s, patience_s=MAX_WAIT_S)


@contextlib.asynccontextmanager
async def open_checks(
    rpc_url: str, network: Network, timeout_s: float, now_s: Callable[[], float], entropy: Callable[[], bytes]
) -> AsyncIterator[NodeChecks]:
    """Checks over a client that is closed afterwards. Raises as ``open_node``."""
    async with open_node(rpc_url, timeout_s) as node:
        yield NodeChecks(node, network, now_s, entropy)
