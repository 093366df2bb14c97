"""A transaction as nodes tell of it, and nodes that do."""

from typing import Any

from roundtrip.chain.blocks.bloom import address_bits, topic_bits

CHAIN = 4663


TX, BLOCK, PARENT, ELSE = ("0x" + digit * 32 for digit in ("11", "22", "33", "44"))


ALICE, BOB, TOKEN, MINER = ("0x" + digit * 20 for digit in ("a1", "b0", "70", "c0"))


TOPICS = ["0x" + "dd" * 32, "0x" + "ee" * 32]


Json = dict[str, Any]


def bloom(*logs: Json) -> str:
    found = 0
    for log in logs:
        found |= address_bits(log["address"])[1]
        for topic in log["topics"]:
            found |= topic_bits(topic)[1]
    return f"0x{found:0512x}"


def a_log(index: int, **more: Any) -> Json:
    own = {"address": TOKEN, "topics": TOPICS, "data": "0x01", "blockHash": BLOCK, "transactionHash": TX}
    own |= {"blockNumber": "0x9", "transactionIndex": "0x1"}
    return own | {"logIndex": hex(index), "removed": False} | more


def a_tx(**more: Any) -> Json:
    answer = {
        "hash": TX, "from": ALICE, "to": BOB, "value": "0x5", "input": "0x1234", "gas": "0x5208",
        "nonce": "0x0", "blockHash": BLOCK, "blockNumber": "0x9", "transactionIndex": "0x1", "type": "0x2",
        "chainId": hex(CHAIN),
    }  # fmt: skip
    return answer | more


def a_receipt(*logs: Json, **more: Any) -> Json:
    answer = {
        "transactionHash": TX, "blockHash": BLOCK, "blockNumber": "0x9", "transactionIndex": "0x1",
        "from": ALICE, "to": BOB, "status": "0x1", "gasUsed": "0x5208", "effectiveGasPrice": "0x2",
        "logs": list(logs), "logsBloom": bloom(*logs), "contractAddress": None,
    }  # fmt: skip
    return answer | more
