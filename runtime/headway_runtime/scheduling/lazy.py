"""Sequences that are computed only where they are looked at."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
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
    """Another sequence whose items are computed once, however often they are looked at."""

    def __init__(self, items: Sequence[_Item]) -> None:
        self._length = len(items)
        self._known = _Known(items)

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, index: int) -> _Item: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[_Item]: ...
    def __getitem__(self, index: int | slice) -> _Item | Sequence[_Item]:
        if isinstance(index, slice):
            return [self[each] for each in range(*index.indices(self._length))]
        return self._known[index]

    def __iter__(self) -> Iterator[_Item]:
        return map(self._known.__getitem__, range(self._length))


class _Known(dict[int, _Item]):
    """What is known of a sequence, by index."""

    def __init__(self, items: Sequence[_Item]) -> None:
        super().__init__()
        self._items = items

    def __missing__(self, index: int) -> _Item:
        found = self[index] = self._items[index]
        return found


def merged(
    items: Sequence[_Item], others: Sequence[_Item], positions: Sequence[int]
) -> Sequence[_Item]:
    """The items with the others among them, each at its position in the result.

    Args:
        items: items that keep their order.
        others: items put in.
        positions: where each of the others is in the result, ascending.
    """

    def item(index: int) -> _Item:
        before = bisect_left(positions, index)
        if before < len(positions) and positions[before] == index:
            return others[before]
        return items[index - before]

    return Lazy(len(items) + len(others), item) if others else items
