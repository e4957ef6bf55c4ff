# SPDX-License-Identifier: BSD-3-Clause
"""Describe instructions per packet in words: a table, the functions that changed, the answer,
notes.
"""

from __future__ import annotations

from collections.abc import Sequence

from linerate.experiments.instructions.functions import named
from linerate.experiments.instructions.record import Answer, Explanation, Function
from linerate.host.text import counted

_ROWS = (
    ("instructions", "instructions"),
    ("  its own", "program"),
    ("  DPDK's libraries", "dpdk"),
    ("  the link's driver", "driver"),
    ("  other libraries", "system"),
    ("conditional branches", "conditional_branches"),
    ("  mispredicted", "conditional_mispredicted"),
    ("indirect branches", "indirect_branches"),
    ("  mispredicted", "indirect_mispredicted"),
    ("L1 data misses", "l1_data_misses"),
    ("L1 instruction misses", "l1_instruction_misses"),
)
# Below this value a quotient is meaningless.
_LITTLE = 0.005


def table(found: Explanation) -> list[str]:
    """Return a line for each figure, per packet."""
    two = found.b is not None
    head = ["A", *(["B", "B over A"] if two else []), "A again"]
    lines = [_line("per packet", head)]
    for label, name in _ROWS:
        a, again = getattr(found.a, name), getattr(found.a_again, name)
        cells = [_figure(a)]
        if found.b is not None:
            b = getattr(found.b, name)
            cells += [_figure(b), _percent(a, b, 1)]
        lines.append(_line(label, [*cells, _percent(a, again, 2)]))
    return lines


def _line(label: str, cells: Sequence[str]) -> str:
    return f"{label:28}" + "".join(f"{cell:>11}" for cell in cells)


def _figure(value: float) -> str:
    return f"{max(value, 0.0):.2f}"


def _percent(a: float, b: float, digits: int) -> str:
    if a < _LITTLE or b < 0:
        return ""
    return f"{(b / a - 1) * 100:+.{digits}f} %"


def functions(found: Explanation) -> list[str]:
    """Return the functions that changed most; for one program alone those with most
    instructions.
    """
    two = found.b is not None
    if not found.functions:
        return ["no function changed" if two else "no function executes anything"]
    what = "changed most" if two else "execute most"
    head = ["A", *(["B", "change"] if two else [])]
    lines = [_line(f"functions that {what}", head)]
    for each in found.functions:
        cells = [_or_dash(each.a)]
        if two:
            cells += [_or_dash(each.b), f"{_change(each):+.2f}"]
        lines.append(_line("", cells) + f"   {named(each.name, each.object)}")
    if found.left_out:
        whole = "all changes" if two else "all instructions"
        lines.append(
            f"{counted(found.left_out, 'function')} more with {found.left_out_share:.1%} of {whole}"
        )
    return lines


def _or_dash(value: float | None) -> str:
    return "-" if value is None else _figure(value)


def _change(function: Function) -> float:
    return (function.b or 0.0) - (function.a or 0.0)


def answer(found: Explanation, most: float | None) -> Answer | None:
    """Decide if B executes more than `most` (a share) above A, beyond the tolerance."""
    if most is None or found.ratio is None:
        return None
    if found.tolerance > most:
        return "undecided"
    return "more" if found.ratio - 1 > most + found.tolerance else "not more"


def sentence(found: Explanation, names: Sequence[str], most: float | None = None) -> str:
    """Return the difference, and the answer if a limit was given."""
    tolerance = f"tolerance {found.tolerance * 100:.2f} %, by {names[0]} twice"
    if found.ratio is None:
        return f"{names[0]}: {found.a.instructions:.2f} instructions per packet ({tolerance})."
    share = found.ratio - 1
    much = f"{abs(share) * 100:.2f} % {'more' if share >= 0 else 'fewer'} instructions per packet"
    told = f"{names[1]} executes {much} than {names[0]} ({tolerance})"
    match answer(found, most):
        case "more":
            return f"{told}: more than {_limit(most)}."
        case "not more":
            return f"{told}: {_limit(most)} is not exceeded."
        case "undecided":
            return f"Not decided: {told}, and the tolerance is larger than {_limit(most)}."
    if abs(share) <= found.tolerance:
        return (
            f"{names[1]} executes as many instructions per packet as {names[0]}, within the "
            f"{tolerance}."
        )
    return f"{told}."


def _limit(most: float | None) -> str:
    return f"+{(most or 0.0) * 100:g} %"


def lines(found: Explanation) -> list[str]:
    """Return table, functions and notes."""
    return [*table(found), *functions(found), *(f"note: {note}" for note in found.notes)]
