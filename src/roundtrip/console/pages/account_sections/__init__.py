"""The rooms of an account: what each shows, and the forms in it."""
