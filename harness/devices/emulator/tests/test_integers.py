"""Integer arithmetic on any operands against Python's integers."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from harness.devices.emulator.tests.ptx_text import run_lanes


def signed(bits: int, width: int) -> int:
    """Return the value of the low `width` bits with the highest as the sign."""
    return int.from_bytes((bits % (1 << width)).to_bytes(8, "big")[-width // 8 :], signed=True)


integers = st.integers(0, 2**64 - 1)


@given(integers, integers, st.sampled_from([32, 64]))
def test_division_truncates_toward_zero(a: int, b: int, width: int) -> None:
    a, b = signed(a, width), signed(b, width) or 1
    kind = f"s{width}"
    quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    line = f"div.{kind} %d, %a, %b; rem.{kind} %e, %a, %b;"
    (found,), (rest,) = run_lanes(line, f"{kind} {kind} -> {kind} {kind}", [a], [b])
    assert (found, rest) == (signed(quotient, width), a - quotient * b)


@given(integers, integers, st.sampled_from([32, 64]))
def test_the_halves_of_a_product_are_the_product(a: int, b: int, width: int) -> None:
    for kind, x, y in (
        (f"s{width}", signed(a, width), signed(b, width)),
        (f"u{width}", a % 2**width, b % 2**width),
    ):
        line = f"mul.lo.{kind} %d, %a, %b; mul.hi.{kind} %e, %a, %b;"
        (low,), (high,) = run_lanes(line, f"{kind} {kind} -> u{width} {kind}", [x], [y])
        assert int(high) * 2**width + int(low) == x * y


@given(integers, integers, st.integers(0, 70), st.integers(0, 70), st.sampled_from([32, 64]))
def test_a_bit_field_is_inserted_bit_by_bit(
    field: int, a: int, start: int, length: int, width: int
) -> None:
    expected = a % 2**width
    for i in range(length):
        if start + i < width:
            bit = field >> i & 1 if i < width else 0
            expected = expected & ~(1 << (start + i)) | bit << (start + i)
    kind = f"b{width}"
    line = f"bfi.{kind} %d, %a, %b, {start}, {length};"
    (found,) = run_lanes(line, f"{kind} {kind} -> {kind}", [field % 2**width], [a % 2**width])
    assert found[0] == expected


@given(integers, st.integers(0, 80), st.sampled_from([16, 32, 64]))
def test_shifts_clamp_their_amount(a: int, amount: int, width: int) -> None:
    bits = a % 2**width
    line = f"shl.b{width} %d, %a, {amount}; shr.s{width} %e, %a, {amount};"
    (left,), (right,) = run_lanes(line, f"b{width} -> b{width} s{width}", [bits])
    assert (left, right) == ((bits << amount) % 2**width, signed(bits, width) >> amount)


@given(integers, st.sampled_from([32, 64]))
def test_bits_are_counted_and_reversed_as_their_string_says(a: int, width: int) -> None:
    bits = f"{a % 2**width:0{width}b}"
    line = f"popc.b{width} %d, %a; clz.b{width} %e, %a; brev.b{width} %f, %a;"
    found = run_lanes(line, f"b{width} -> u32 u32 b{width}", [int(bits, 2)])
    expected = bits.count("1"), len(bits) - len(bits.lstrip("0")), int(bits[::-1], 2)
    assert tuple(int(values[0]) for values in found) == expected
