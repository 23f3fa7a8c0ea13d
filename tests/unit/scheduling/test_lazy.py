"""Sequences that are computed where they are looked at, and what is put among their items."""

from __future__ import annotations

from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway_runtime.scheduling.lazy import Lazy, Remembered, merged


@given(st.lists(st.integers()), st.lists(st.tuples(st.integers(0, 30), st.integers())))
def test_merged_sequences_are_what_inserting_one_by_one_gives(
    items: list[int], put_in: list[tuple[int, int]]
) -> None:
    places = sorted({place for place, _ in put_in if place <= len(items)})
    others = [number for _, number in put_in[: len(places)]]
    expected = list(items)
    for place, other in zip(places, others, strict=True):
        expected.insert(place, other)
    found = merged(Lazy(len(items), items.__getitem__), others, places)
    assert list(found) == expected
    assert [found[index] for index in range(len(found))] == expected
    assert found[-3:] == expected[-3:]
    with pytest.raises(IndexError):
        found[len(expected)]


@given(st.lists(st.integers(-6, 8), max_size=6), st.integers(0, 7), st.integers(0, 7))
def test_what_is_remembered_is_computed_once_however_it_is_looked_at(
    indexes: list[int], first: int, second: int
) -> None:
    computed: list[int] = []

    def item(index: int) -> int:
        computed.append(index)
        return index * index

    found = Remembered(Lazy(6, item))
    one, other = iter(found), iter(found)
    squares = [index * index for index in range(6)]
    assert list(islice(one, first)) == squares[:first]
    assert list(islice(other, second)) == squares[:second]
    assert list(one) == squares[first:]
    assert sorted(computed) == list(range(6))
    for index in indexes:
        if -6 <= index < 6:
            assert found[index] == squares[index]
        else:
            with pytest.raises(IndexError):
                found[index]
