"""A wallet of the local chain that signs and sends as people's wallets do."""

from typing import Any

from eth_account import Account
from eth_account.messages import encode_defunct

from roundtrip_development.devnet.deploy import DeployError, await_receipt
from roundtrip_development.devnet.sync_rpc import SyncRpc
from roundtrip_development.devnet.world import Built, describe

_PRIORITY_WEI = 10**9
_FINAL_BLOCKS = "0x41"
"""A block of the local chain is final once 64 blocks follow it."""


class DemoWallet:
    """One of the node's own accounts, by its index. Their keys are public."""

    def __init__(self, built: Built, number: int) -> None:
        self._account = Account.from_key(describe(built, "")["accounts"][number]["privateKey"])
        self.address = str(self._account.address).lower()

    def sign_text(self, text: str) -> str:
        """The signature of a text, as from ``personal_sign``."""
        return "0x" + bytes(self._account.sign_message(encode_defunct(text=text)).signature).hex()

    def send(self, rpc_url: str, steps: list[dict[str, Any]]) -> str:
        """Signs and sends the steps of a prepared trade, each after the previous one succeeded. Returns the
        hash of the last transaction. Raises DeployError, RpcFailure or OSError."""
        sent = ""
        with SyncRpc(rpc_url) as chain:
            for step in steps:
                transaction = {
                    "chainId": int(chain.call("eth_chainId"), 16),
                    "nonce": int(chain.call("eth_getTransactionCount", self.address, "latest"), 16),
                    "to": bytes.fromhex(step["to"][2:]),
                    "data": step["data"],
                    "value": int(step["value"]),
                    "gas": step["gas"],
                    "maxFeePerGas": int(chain.call("eth_gasPrice"), 16) * 2 + _PRIORITY_WEI,
                    "maxPriorityFeePerGas": _PRIORITY_WEI,
                }
                signed = bytes(self._account.sign_transaction(transaction).raw_transaction)
                sent = chain.call("eth_sendRawTransaction", "0x" + signed.hex())
                if await_receipt(chain, sent)["status"] != "0x1":
                    raise DeployError(f"step {step['n']} of the prepared trade failed")
        return str(sent)

    def send_finally(self, rpc_url: str, step: dict[str, Any]) -> str:
        """Sends one step and makes its block final; returns and raises like ``send``."""
        sent = self.send(rpc_url, [step])
        with SyncRpc(rpc_url) as chain:
            chain.call("anvil_mine", _FINAL_BLOCKS)
        return sent
