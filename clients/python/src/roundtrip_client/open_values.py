"""``Literal`` for the models: strict for a type checker, any text when an answer is read, because a later
service may send values that this client does not know yet."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Literal as Literal
else:

    class Literal:
        """Stands for ``str`` in an annotation that msgspec reads."""

        def __class_getitem__(cls, values: object) -> type[str]:
            return str
