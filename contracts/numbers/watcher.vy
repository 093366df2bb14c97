# pragma version 0.4.3
# pragma evm-version cancun
"""
@title Tells whether the code of whoever asks is what it was at first
"""

seen: HashMap[address, bytes32]


@external
def isSame() -> bool:
    if self.seen[msg.sender] == empty(bytes32):
        self.seen[msg.sender] = msg.sender.codehash
    return self.seen[msg.sender] == msg.sender.codehash
