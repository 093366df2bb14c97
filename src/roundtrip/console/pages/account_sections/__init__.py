"""The rooms of an account: the operations that each shows, and its forms."""
