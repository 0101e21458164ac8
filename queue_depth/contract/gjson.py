r"""What KEDA's metrics-api scaler reads from a JSON answer.

KEDA looks `valueLocation` up with the Go library gjson (1.19.0 in KEDA 2.21) without checking the JSON first, and takes
a number, or a string that Kubernetes parses as a Quantity; anything else is an error. This module asks gjson.rs, by the
same author, through its binding. The two agree on keys, escapes, indices, `#` and `#(...)` queries over valid JSON; a
test compares them on a table made with the Go library. Where they are known to differ (modifiers, multipaths, literals,
wildcards in keys, a key that begins with `#`, a query for an
empty string, a trailing backslash) this module says `Undecided` and gives no value.
"""

import re
from dataclasses import dataclass

import pygjson

from queue_depth.contract.published import strict_json

# Kubernetes' resource.ParseQuantity: a decimal number with at most one SI suffix, binary suffix or exponent. It reads
# a quantity without any digit, such as "k" or "-", as 0.
_QUANTITY = re.compile(
    r"(?P<number>[+-]?[0-9]*\.?[0-9]*)(?:(?P<suffix>[KMGTPE]i|[numkMGTPE])|[eE](?P<exponent>[+-]?[0-9]+))?"
)
_SUFFIXES = {
    "": 1.0,
    "n": 1e-9,
    "u": 1e-6,
    "m": 1e-3,
    "k": 1e3,
    "M": 1e6,
    "G": 1e9,
    "T": 1e12,
    "P": 1e15,
    "E": 1e18,
} | {f"{letter}i": 1024.0**power for power, letter in enumerate("KMGTPE", start=1)}

_QUERY = re.compile(r'#\((?:"(?:[^"\\]|\\.)*"|[^"()])*\)#?')

# Patterns over a path whose queries are cut to `#` and whose escaped characters to `_`.
_DOUBTS = (
    (re.compile(r"^$"), "the path is empty"),
    (re.compile(r"\\$"), "the path ends with a backslash"),
    (re.compile(r"[*?]"), "a wildcard takes the first field that matches, which may be a field added later"),
    (re.compile(r"(?:^|[.|])[@\[{!]"), "modifiers, multipaths and literals are not supported"),
    (re.compile(r"(?:^|[.|])#[^.|]"), 'a `#` must stand alone or begin a query `#(name=="...")`'),
    (re.compile(r"(?:^|[.|])(?:[.|]|$)"), "a part of the path is empty"),
)


@dataclass(frozen=True, slots=True)
class NotANumber:
    """KEDA reports an error and the HPA holds: `found` says what stands at the path."""

    found: str


@dataclass(frozen=True, slots=True)
class Undecided:
    """The path or the body is outside what is proven to be read here as KEDA reads it; `why` says what."""

    why: str


def read(body: str, path: str) -> float | NotANumber | Undecided:
    """The number that KEDA takes from `body` at the gjson `path`.

    Args:
        body: The HTTP answer's body.
        path: The trigger's `valueLocation`.
    """
    try:
        strict_json(body)
    except ValueError as error:
        return Undecided(f"the answer is not JSON ({error})")
    doubt = _doubt(path)
    if doubt is not None:
        return Undecided(doubt)
    found = pygjson.get(body, path)
    kind = found.type_
    if kind in (int, float):
        return _bounded(found.to_float())
    if kind is str:
        return _quantity(found.to_str())
    if kind is None:
        return NotANumber("null" if found.exists() else "nothing")
    return NotANumber({bool: "true or false", list: "an array"}.get(kind, "an object"))


def _quantity(text: str) -> float | NotANumber | Undecided:
    parsed = _QUANTITY.fullmatch(text)
    if not text or parsed is None:
        return NotANumber("a string that is no quantity")
    if not any(character.isdigit() for character in parsed["number"]):
        return Undecided("the string has no digits, which Kubernetes reads as the quantity 0")
    number = float(f"{parsed['number']}e{parsed['exponent'] or 0}")
    return _bounded(number * _SUFFIXES[parsed["suffix"] or ""])


def _bounded(number: float) -> float | Undecided:
    # A Quantity is cut at 2**63 - 1, in some notations only.
    return number if abs(number) < 2.0**63 else Undecided("the number is too large")


def _doubt(path: str) -> str | None:
    """Why gjson and its Rust sibling may read the path differently, or None."""
    if '""' in path:
        return "a query for an empty string is not supported"
    plain = re.sub(r"\\.", "_", _QUERY.sub("#", path))
    return next((why for pattern, why in _DOUBTS if pattern.search(plain)), None)
