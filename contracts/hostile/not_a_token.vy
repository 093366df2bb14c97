# pragma version 0.4.3
# pragma evm-version cancun
"""
@title Not a token
@notice A contract that has nothing to do with tokens: it keeps a message.
        Whoever takes its address for a token's gets no sensible answer.
"""

event Said:
    speaker: indexed(address)
    text: String[128]

# The last thing anybody said. It has no getter on purpose.
last: String[128]


@external
def say(text: String[128]) -> uint256:
    """
    @notice Replace the message.
    @param text The new message.
    @return How many bytes it has.
    """
    self.last = text
    log Said(speaker=msg.sender, text=text)
    return len(text)
