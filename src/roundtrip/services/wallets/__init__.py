"""What a wallet did, who it is linked with, what it is called."""
