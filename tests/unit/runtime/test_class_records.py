"""Histograms and totals of classes, and how they get from the engine to the sidecar."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway_runtime.exchange import statistics_file
from headway_runtime.exchange.block import CRC_BYTES, TornBlockError, seal
from headway_runtime.exchange.class_record import (
    CLASS_BYTES,
    WINDOW_NS,
    ClassRecord,
    Windows,
    pack_class,
    unpack_class,
)
from headway_runtime.exchange.histogram import BUCKETS, bucket_of, quantile, upper_bound
from headway_runtime.exchange.statistics_file import StatisticsWriter
from headway_runtime.exchange.statistics_record import HEADER_BYTES
from headway_runtime.executors.vllm.class_table import ClassTable
from headway_runtime.policy import MAX_CLASSES
from tests.unit.runtime.blocks import HEADER, flip

NOW_NS = 1_000 * WINDOW_NS

counts = st.dictionaries(st.integers(0, BUCKETS - 1), st.integers(0, 2**32 - 1), max_size=4).map(
    lambda found: tuple(found.get(bucket, 0) for bucket in range(BUCKETS))
)
histograms = st.builds(Windows, counts, counts)
totals = st.integers(0, 2**64 - 1)
class_records = st.builds(
    ClassRecord,
    name=st.from_regex(r"[a-z0-9]{1,63}", fullmatch=True),
    revision=totals,
    requests_total=totals,
    attained_total=totals,
    window_start_ns=totals,
    ttft=histograms,
    tpot=histograms,
)
ratios = st.floats(2.0**-4, 2.0**6)


@given(ratios)
def test_a_bucket_holds_what_is_up_to_its_bound_and_not_much_less(ratio: float) -> None:
    bound = upper_bound(bucket_of(ratio))
    assert ratio <= bound * (1 + 1e-12)
    assert bound <= ratio * 2 ** (1 / 16) * (1 + 1e-12)


@given(st.floats(allow_nan=False), st.floats(allow_nan=False))
def test_every_ratio_has_a_bucket_and_larger_ones_no_lower_one(one: float, other: float) -> None:
    low, high = sorted((one, other))
    assert 0 <= bucket_of(low) <= bucket_of(high) < BUCKETS


def test_exactly_on_target_is_told_from_just_above() -> None:
    assert upper_bound(bucket_of(1.0)) == 1.0
    assert upper_bound(bucket_of(math.nextafter(1.0, 2))) > 1.0


@given(st.lists(ratios, min_size=1, max_size=200), st.floats(0.01, 1))
def test_a_quantile_is_that_of_the_ratios_but_for_a_buckets_width(found: Any, share: Any) -> None:
    histogram = [0] * BUCKETS
    for ratio in found:
        histogram[bucket_of(ratio)] += 1
    exact = sorted(found)[math.ceil(share * len(found)) - 1]
    estimate = quantile(histogram, share)
    assert estimate is not None
    assert exact <= estimate * (1 + 1e-12)
    assert estimate <= exact * 2 ** (1 / 16) * (1 + 1e-12)


def test_nothing_has_no_quantile() -> None:
    assert quantile([0] * BUCKETS, 0.95) is None


@given(class_records)
def test_a_class_comes_back(record: ClassRecord) -> None:
    block = pack_class(record)
    assert len(block) == CLASS_BYTES
    assert unpack_class(block) == record


@given(class_records, st.data())
def test_a_changed_block_is_torn(record: ClassRecord, data: st.DataObject) -> None:
    block = pack_class(record)
    with pytest.raises(TornBlockError):
        unpack_class(flip(block, data.draw(st.integers(0, len(block) * 8 - 1))))


@pytest.mark.parametrize("length", [0, 4, CLASS_BYTES - 1, CLASS_BYTES])
def test_a_block_that_is_cut_short_or_was_never_written_is_torn(length: int) -> None:
    with pytest.raises(TornBlockError):
        unpack_class(bytes(length))


ONE_EACH = Windows((1,) + (0,) * (BUCKETS - 1), (0,) * (BUCKETS - 1) + (1,))


@pytest.mark.parametrize(
    ("age_ns", "current", "previous"),
    [
        (0, 1, 1),
        (WINDOW_NS - 1, 1, 1),
        (WINDOW_NS, 0, 1),
        (2 * WINDOW_NS - 1, 0, 1),
        (2 * WINDOW_NS, 0, 0),
        (10 * WINDOW_NS, 0, 0),
    ],
)
def test_a_reader_leaves_out_what_has_grown_too_old(
    age_ns: int, current: int, previous: int
) -> None:
    record = ClassRecord("c", window_start_ns=NOW_NS, ttft=ONE_EACH, tpot=ONE_EACH)
    for windows in (record.at(NOW_NS + age_ns).ttft, record.at(NOW_NS + age_ns).tpot):
        assert (sum(windows.current), sum(windows.previous)) == (current, previous)


@given(st.lists(st.integers(0, 5 * WINDOW_NS), min_size=1, max_size=30), st.integers(0, WINDOW_NS))
def test_what_was_counted_is_seen_for_15_to_30_seconds(ages: Any, later_ns: Any) -> None:
    """Whatever the engine has or has not rotated since."""
    table = ClassTable(1)
    table.set_classes(["c"])
    times = sorted(NOW_NS + age for age in ages)
    for each in times:
        table.entry("c").at(each).ttft.count(1.0)
    now_ns = times[-1] + later_ns
    seen = sum(table.entry("c").record(1).at(now_ns).ttft.both)
    assert sum(now_ns - each < WINDOW_NS for each in times) <= seen
    assert seen <= sum(now_ns - each < 2 * WINDOW_NS for each in times)


def written(table: ClassTable) -> dict[int, ClassRecord]:
    found: dict[int, ClassRecord] = {}
    table.write_changes(found.__setitem__)
    return found


def test_only_what_has_changed_is_written() -> None:
    table = ClassTable(4)
    table.set_classes(["a", "b"])
    assert {each.name for each in written(table).values()} == {"a", "b"}
    assert written(table) == {}
    table.entry("b").at(NOW_NS).requests += 1
    [record] = written(table).values()
    assert (record.name, record.requests_total) == ("b", 1)


def test_classes_that_stay_keep_their_totals() -> None:
    table = ClassTable(3)
    table.set_classes(["a", "b", "c"])
    for name in "abc":
        table.entry(name).at(NOW_NS).requests += 1
    table.set_classes(["c", "new", "a"])
    found = {each.name: each.requests_total for each in written(table).values()}
    assert found == {"a": 1, "c": 1, "new": 0}
    assert table.entry("b") is None


def test_a_class_that_is_gone_leaves_its_slot_empty() -> None:
    table = ClassTable(2)
    table.set_classes(["a", "b"])
    before = written(table)
    table.set_classes(["b"])
    [(slot, record)] = written(table).items()
    assert record.name == ""
    assert (before[slot].name, before[slot].revision < record.revision) == ("a", True)


@given(st.lists(st.lists(st.sampled_from("abcdef"), unique=True, max_size=3), max_size=10))
def test_a_reader_sees_the_classes_of_the_last_policy(policies: Any) -> None:
    table, slots = ClassTable(3), {}
    for names in policies:
        table.set_classes(names)
        for slot, record in written(table).items():
            assert record.revision == slots.get(slot, ClassRecord("")).revision + 1
            slots[slot] = record
    seen = sorted(each.name for each in slots.values() if each.name)
    assert seen == sorted(policies[-1] if policies else [])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / statistics_file.file_name(0)


@pytest.fixture
def writer(path: Path) -> Any:
    made = StatisticsWriter(path, HEADER)
    yield made
    made.close()


def classes_in(path: Path) -> list[ClassRecord]:
    return list(statistics_file.read(path, 0, with_classes=True).classes)


@pytest.mark.usefixtures("writer")
def test_a_fresh_file_has_no_classes(path: Path) -> None:
    assert classes_in(path) == []


def test_classes_are_read_where_they_are_asked_for(writer: Any, path: Path) -> None:
    records = [ClassRecord(f"c{slot}", 1, slot) for slot in range(MAX_CLASSES)]
    for slot, record in enumerate(records):
        writer.write_class(slot, record)
    assert classes_in(path) == records
    assert statistics_file.read(path, 0).classes == ()


def test_the_newest_record_of_a_class_is_read(writer: Any, path: Path) -> None:
    for revision in range(1, 8):
        writer.write_class(5, ClassRecord("c", revision, requests_total=revision))
        [record] = classes_in(path)
        assert record.requests_total == revision


def test_a_class_that_is_being_written_shows_what_it_was(writer: Any, path: Path) -> None:
    writer.write_class(0, ClassRecord("c", 1, requests_total=1))
    writer.write_class(0, ClassRecord("c", 2, requests_total=2))
    content = bytearray(path.read_bytes())
    # The third goes where the first was, and only half of it is there.
    start = content.index(pack_class(ClassRecord("c", 1, requests_total=1)))
    half = pack_class(ClassRecord("c", 3, requests_total=3))[: CLASS_BYTES // 2]
    content[start : start + len(half)] = half
    path.write_bytes(content)
    [record] = classes_in(path)
    assert record.requests_total == 2


def test_a_class_without_a_name_is_none(writer: Any, path: Path) -> None:
    writer.write_class(0, ClassRecord("c", 1))
    writer.write_class(0, ClassRecord("", 2))
    assert classes_in(path) == []


def test_a_file_of_the_format_before_is_refused(writer: Any, path: Path) -> None:
    writer.write_header(replace(HEADER, pid=1))
    content = bytearray(path.read_bytes())
    # The version stands behind the magic; its block's checksum is made good again.
    content[8:10] = (1).to_bytes(2, "little")
    content[:HEADER_BYTES] = seal(bytes(content[: HEADER_BYTES - CRC_BYTES]))
    path.write_bytes(content)
    with pytest.raises(statistics_file.StatisticsFileError, match="another format"):
        statistics_file.read(path, 0)
