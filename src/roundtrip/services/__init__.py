"""One use case a file, with its parameters and its answer: (context, parameters) -> answer."""
