"""Quantities are exact, or refused."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabbbr.errors import UnitError
from fabbbr.units import Duration, QueueSize, Rate, Ratio, Size, bdp_bytes, goodput_ceiling

KINDS = (Rate, Duration, Size, Ratio)


@pytest.mark.parametrize("kind", KINDS)
@given(base=st.integers(0, 10**12))
def test_reading_what_was_written_gives_the_same(kind, base):
    assert kind.parse(str(kind(base))) == kind(base)


@pytest.mark.parametrize("kind", KINDS)
@given(text=st.text(max_size=20))
def test_any_text_is_a_quantity_or_a_unit_error_and_nothing_else(kind, text):
    try:
        base = kind.parse(text).base
    except UnitError:
        return
    assert base >= 0


@given(number=st.integers(0, 10**6), unit=st.sampled_from(sorted(Duration.units)))
def test_a_unit_scales_by_its_meaning(number, unit):
    assert Duration.parse(f"{number} {unit}").ns == number * Duration.units[unit]


@pytest.mark.parametrize(
    ("kind", "text", "base"),
    [
        (Rate, "100 Mbit/s", 10**8), (Rate, "0.001kbit/s", 1), (Rate, "1e3 bit/s", 1000),
        (Rate, "1 Tbit/s", 10**12),
        (Duration, "0.3 ms", 300_000), (Duration, "1.5 h", 5_400 * 10**9), (Duration, "7 µs", 7_000),
        (Size, "1 KiB", 1024), (Size, "1 kB", 1000), (Size, ".5 MB", 500_000),
        (Ratio, "0.837 %", 8_370_000_000), (Ratio, "0.5", 5 * 10**11), (Ratio, "1 ppb", 1000),
        (Ratio, "100 %", 10**12),
    ],
)  # fmt: skip
def test_what_is_written_is_what_is_meant(kind, text, base):
    assert kind.parse(text).base == base


@pytest.mark.parametrize(
    ("kind", "text", "why"),
    [
        (Rate, "100", "no unit"), (Rate, "100 Mbps", "bits to people"),
        (Rate, "1 MB/s", "unknown unit 'MB/s'"),
        (Rate, "0.5 bit/s", "nothing is rounded"), (Rate, "-1 Mbit/s", "cannot be negative"),
        (Rate, "", "not a rate"),
        (Rate, "1_000 bit/s", "unknown unit"), (Rate, "nan bit/s", "not a rate"),
        (Rate, "inf bit/s", "not a rate"),
        (Duration, "1 m", "unknown unit"), (Duration, "0.1 ns", "nothing is rounded"),
        (Duration, "5", "no unit"),
        (Size, "1 KB", "1000 and as 1024"), (Size, "1 K", "kB"), (Size, "0.5 B", "nothing is rounded"),
        (Ratio, "1", "write '1 %' or '100 %'"), (Ratio, "1.0", "write '1 %' or '100 %'"),
        (Ratio, "101 %", "cannot exceed"), (Ratio, "1.1", "cannot exceed"), (Ratio, "1e-13", "finer than"),
        (Ratio, "-1 %", "negative"),
    ],
)  # fmt: skip
def test_what_is_ambiguous_or_not_whole_is_refused_with_the_reason(kind, text, why):
    with pytest.raises(UnitError, match=why):
        kind.parse(text)


@given(rate=st.integers(1, 10**12), rtt=st.integers(0, 10**10))
def test_the_bdp_is_rate_times_rtt_over_eight(rate, rtt):
    assert bdp_bytes(Rate(rate), Duration(rtt)) * 8 * 10**9 == rate * rtt


@pytest.mark.parametrize(
    ("text", "bytes_"),
    [
        ("250 kB", 250_000),
        ("100 packets", 151_400),
        ("1 packet", 1514),
        ("1 BDP", 2_500_000),
        ("0.25 BDP", 625_000),
        ("5 ms", 625_000),
        ("1.5 s", 187_500_000),
        ("3 ns", 0),
    ],
)
def test_a_buffer_in_any_unit_comes_to_its_bytes(text, bytes_):
    asked = QueueSize.parse(text)
    assert asked.bytes(rate=Rate.parse("1 Gbit/s"), rtt=Duration.parse("20 ms"), mtu_bytes=1500) == bytes_
    assert QueueSize.parse(str(asked)) == asked


@given(share=st.integers(1, 10**6), rate=st.integers(1, 10**9), rtt=st.integers(1, 10**9))
def test_a_fraction_of_a_byte_of_a_buffer_is_cut(share, rate, rtt):
    asked = QueueSize(bdp=Fraction(share, 1000))
    exact = asked.bdp * bdp_bytes(Rate(rate), Duration(rtt))
    assert 0 <= exact - asked.bytes(rate=Rate(rate), rtt=Duration(rtt), mtu_bytes=1500) < 1


@given(time=st.integers(1, 10**11), rate=st.integers(1, 10**10))
def test_a_buffer_of_a_time_drains_within_a_byte_of_it(time, rate):
    full = QueueSize(time=Duration(time)).bytes(rate=Rate(rate), rtt=Duration(7), mtu_bytes=1500)
    byte_ns = Fraction(8 * 10**9, rate)
    assert 0 <= time - full * byte_ns < byte_ns


@pytest.mark.parametrize(
    "text", ["0 BDP", "-1 kB", "0 ms", "-1 s", "5 m", "1.5 packets", "5", "1 KB", "1 bdps", "BDP"]
)
def test_a_buffer_that_holds_nothing_or_has_no_unit_is_refused(text):
    with pytest.raises(UnitError):
        QueueSize.parse(text)


@given(mtu=st.integers(576, 65_500))
def test_payload_never_fills_a_link_and_larger_frames_fill_more_of_it(mtu):
    assert goodput_ceiling(mtu) < goodput_ceiling(mtu + 1) < 1


def test_quantities_of_one_kind_are_ordered_by_size():
    assert Rate.parse("999 kbit/s") < Rate.parse("1 Mbit/s") < Rate.parse("1.1 Mbit/s")
