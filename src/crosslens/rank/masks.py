"""Which of 64 scores reach a bound, as the bits of one number.

Loops that count can be left to the compiler, which vectorises them. A loop that asks *which* scores reach a bound
cannot: processors have these bits at once, but the compiler would make a number of each before it joins them. So the
comparison is written in the compiler's own language, for the vectors of any processor.

The cache of a compiled function depends on its own file alone: after a change here, remove ``__pycache__``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

LANES = 64
"""Scores that are compared at once."""

_MASK, _LANE = ir.IntType(LANES), ir.IntType(32)
_VECTOR = ir.VectorType(ir.FloatType(), LANES)
_ALL_FIRST = ir.Constant(ir.VectorType(_LANE, LANES), None)


def _comparison(operator: str) -> Callable[..., Any]:
    """The function (scores, start, bound) → a bit for each of the next ``LANES`` scores, or of those that are left.

    Scores are a contiguous array of float32; ``start`` is a multiple of ``LANES``; the bound is a number, or an array
    like the scores with a bound for each.
    """

    def typed(_: Any, scores: Any, start: Any, bound: Any) -> Any:
        bound = bound if isinstance(bound, types.Array) else types.float32
        arrays = [argument for argument in (scores, bound) if isinstance(argument, types.Array)]
        if all(array.layout == "C" and array.dtype is types.float32 for array in arrays):
            return types.uint64(scores, types.intp, bound), generate
        return None  # other arrays do not compile

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        scores, size, start, bound = array.data, builder.extract_value(array.shape, 0), arguments[1], arguments[2]
        each = isinstance(signature.args[2], types.Array)
        if each:
            bound = context.make_array(signature.args[2])(context, builder, bound).data
        mask = cgutils.alloca_once_value(builder, _MASK(0))
        # The last scores are compared together with some before them, whose bits are shifted out.
        last = builder.sub(size, start.type(LANES))
        first = builder.select(builder.icmp_signed("<", last, start), last, start)
        with builder.if_else(builder.icmp_signed(">=", last, start.type(0))) as (enough, few):
            with enough:
                right = _vector(builder, bound, first) if each else _repeated(builder, bound)
                reached = builder.fcmp_ordered(operator, _vector(builder, scores, first), right)
                builder.store(builder.lshr(builder.bitcast(reached, _MASK), builder.sub(start, first)), mask)
            with few, cgutils.for_range(builder, size) as loop:
                right = builder.load(builder.gep(bound, [loop.index])) if each else bound
                reached = builder.fcmp_ordered(operator, builder.load(builder.gep(scores, [loop.index])), right)
                bit = builder.shl(builder.zext(reached, _MASK), loop.index)
                builder.store(builder.or_(builder.load(mask), bit), mask)
        return builder.load(mask)

    return cast(Callable[..., Any], intrinsic(typed))


def _vector(builder: Any, numbers: Any, start: Any) -> Any:
    """``LANES`` numbers from ``start`` on."""
    return builder.load(builder.bitcast(builder.gep(numbers, [start]), _VECTOR.as_pointer()), align=4)


def _repeated(builder: Any, number: Any) -> Any:
    """The number in all lanes."""
    first = builder.insert_element(ir.Constant(_VECTOR, ir.Undefined), number, _LANE(0))
    return builder.shuffle_vector(first, first, _ALL_FIRST)


def _number_of(instruction: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """The function mask → number that an instruction computes."""

    def typed(_: Any, mask: Any) -> Any:
        return types.int64(types.uint64), generate

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return instruction(builder, arguments[0])

    return cast(Callable[..., Any], intrinsic(typed))


at_least, exceeds = _comparison(">="), _comparison(">")
number_of_bits = _number_of(lambda builder, mask: builder.ctpop(mask))
# The lowest bit that is set. The instruction need not say what it does with an empty mask: nobody asks.
lowest_bit = _number_of(lambda builder, mask: builder.cttz(mask, ir.IntType(1)(1)))
