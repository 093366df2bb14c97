"""Where to look next, when the place where something begins is searched among many."""


def between(below: int, above: int, most: int) -> list[int]:
    """Up to ``most`` numbers above the one and below the other, evenly, in order."""
    gap = above - below
    count = min(most, gap - 1)
    return [below + gap * part // (count + 1) for part in range(1, count + 1)]
