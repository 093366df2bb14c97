"""A wallet's own calls, payments, transactions and signatures."""
