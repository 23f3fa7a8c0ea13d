"""Sequences that are computed only where they are looked at."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Generic, TypeVar, overload

_Item = TypeVar("_Item")


class Lazy(Sequence[_Item], Generic[_Item]):
    """A sequence of ``length`` items, each of which ``item`` gives when it is asked for."""

    def __init__(self, length: int, item: Callable[[int], _Item]) -> None:
        self._length = length
        self._item = item

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, index: int) -> _Item: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[_Item]: ...
    def __getitem__(self, index: int | slice) -> _Item | Sequence[_Item]:
        if isinstance(index, slice):
            return [self[each] for each in range(*index.indices(self._length))]
        if not -self._length <= index < self._length:
            raise IndexError
        return self._item(index % self._length)

    def __iter__(self) -> Iterator[_Item]:
        return map(self._item, range(self._length))


class Remembered(Sequence[_Item], Generic[_Item]):
    """Another sequence whose items are computed once, however often they are looked at.

    Nearly always from its front, in order.
    """

    def __init__(self, items: Sequence[_Item]) -> None:
        self._items = items
        self._length = len(items)
        self._front: list[_Item] = []
        self._behind: dict[int, _Item] = {}
        self._rest: Iterator[_Item] | None = None

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, index: int) -> _Item: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[_Item]: ...
    def __getitem__(self, index: int | slice) -> _Item | Sequence[_Item]:
        if isinstance(index, slice):
            return [self[each] for each in range(*index.indices(self._length))]
        if 0 <= index < len(self._front):
            return self._front[index]
        if index not in self._behind:
            self._behind[index] = self._items[index]
        return self._behind[index]

    def __iter__(self) -> Iterator[_Item]:
        front = self._front
        if self._rest is None:
            self._rest = iter(self._items)
        rest = self._rest
        for index in range(self._length):
            if index == len(front):
                front.append(next(rest))
            yield front[index]


def merged(
    items: Sequence[_Item], others: Sequence[_Item], positions: Sequence[int]
) -> Sequence[_Item]:
    """The items with the others among them, each at its position in the result.

    Args:
        items: items that keep their order.
        others: items put in.
        positions: where each of the others is in the result, ascending.
    """
    return _Merged(items, others, positions) if others else items


class _Merged(Sequence[_Item], Generic[_Item]):
    """See :func:`merged`."""

    def __init__(
        self, items: Sequence[_Item], others: Sequence[_Item], positions: Sequence[int]
    ) -> None:
        self._items = items
        self._others = others
        self._positions = positions

    def __len__(self) -> int:
        return len(self._items) + len(self._others)

    @overload
    def __getitem__(self, index: int) -> _Item: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[_Item]: ...
    def __getitem__(self, index: int | slice) -> _Item | Sequence[_Item]:
        if isinstance(index, slice):
            return [self[each] for each in range(*index.indices(len(self)))]
        if not -len(self) <= index < len(self):
            raise IndexError
        index %= len(self)
        before = bisect_left(self._positions, index)
        if before < len(self._positions) and self._positions[before] == index:
            return self._others[before]
        return self._items[index - before]

    def __iter__(self) -> Iterator[_Item]:
        rest = iter(self._items)
        at = 0
        for other, position in zip(self._others, self._positions, strict=True):
            yield from islice(rest, position - at)
            yield other
            at = position + 1
        yield from rest
