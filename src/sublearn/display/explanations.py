"""Why a label got its score: bars, and the words marked in their text."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from sublearn.display.base import Display
from sublearn.display.style import GREY, MINUS, PLUS, shortened

__all__ = ["ExplanationDisplay", "Highlight"]

_ANSI = {True: "\x1b[1;34m", False: "\x1b[33m"}  # blue in bold, and yellow as a terminal has it
_PLAIN = "\x1b[0m"
_LONGEST = 200_000  # letters of a text that is marked


class ExplanationDisplay(Display):
    """The parts of a score as bars: to the right what speaks for the label.

    Parameters
    ----------
    names : sequence
        Of the parts.
    contributions : array-like of shape (n_parts,)
        What each adds to the score.
    title : str, default=""
        Over the picture.
    """

    def __init__(self, names: Sequence[object], contributions: Sequence[float], *, title: str = ""):
        self.names = [str(name) for name in names]
        self.contributions = np.asarray(contributions, dtype=np.float64)
        self.title = title

    def _size(self) -> tuple[float, float]:
        return 7.0, 1.3 + 0.27 * len(self.names)

    def _draw(self) -> None:
        ax, values = self.ax_, self.contributions
        at = np.arange(len(values))
        ax.barh(at, values, color=[PLUS if value >= 0 else MINUS for value in values], height=0.7)
        reach = float(np.abs(values).max(initial=0.0)) or 1.0
        for place, value in zip(at, values, strict=True):
            side = 1 if value >= 0 else -1
            ax.annotate(
                f"{value:+.3g}", (value, place), xytext=(4 * side, 0), textcoords="offset points",
                va="center", ha="left" if side > 0 else "right", fontsize=8,
            )  # fmt: skip
        low, high = min(0.0, values.min(initial=0.0)), max(0.0, values.max(initial=0.0))
        ax.set_xlim(low - 0.16 * reach * (low < 0), high + 0.16 * reach)
        ax.axvline(0.0, color=GREY, lw=0.8)
        ax.set_yticks(at, [shortened(name) for name in self.names])
        ax.tick_params(axis="y", length=0)
        ax.spines["left"].set_visible(False)
        ax.invert_yaxis()
        ax.set_xlabel("contribution to the score")
        ax.set_title(self.title)


@dataclass(frozen=True)
class Highlight:
    """A text in which the words behind a score are marked; printing it colours a terminal.

    In a notebook it shows itself as HTML. Words are looked for as a whole, in any case; a part of
    several words may have other signs between them.

    Parameters
    ----------
    text : str
        The text.
    contributions : mapping of str to float
        By word, or words.
    label : str, default=""
        Whose score it is.
    """

    text: str
    contributions: Mapping[str, float]
    label: str = ""

    def __post_init__(self) -> None:
        """Refuse what cannot be marked."""
        if not isinstance(self.text, str):
            raise ValueError(f"highlight.text must be a string, got {type(self.text).__name__}")
        if len(self.text) > _LONGEST:
            raise ValueError(
                f"highlight.text must have at most {_LONGEST:,} letters, got {len(self.text):,}"
            )

    @property
    def spans(self) -> list[tuple[int, int, float]]:
        """Beginning and end of each marked piece, and what it adds to the score; none overlap.

        Where pieces overlap, the one that adds most counts.
        """
        found = sorted(self._matches(), key=lambda span: (-abs(span[2]), span[0]))
        kept: list[tuple[int, int, float]] = []
        taken = np.zeros(len(self.text), dtype=bool)
        for begin, end, value in found:
            if not taken[begin:end].any():
                taken[begin:end] = True
                kept.append((begin, end, value))
        return sorted(kept)

    def _matches(self) -> Iterator[tuple[int, int, float]]:
        for name, value in self.contributions.items():
            words = [re.escape(word) for word in re.findall(r"\w+", name)]
            if words and value:
                pattern = r"(?<!\w)" + r"\W+".join(words) + r"(?!\w)"
                for match in re.finditer(pattern, self.text, re.IGNORECASE):
                    yield (*match.span(), value)

    def to_html(self) -> str:
        """The text with `<mark>` elements: blue for what speaks for the label, orange against."""
        most = max((abs(value) for *_, value in self.spans), default=1.0)
        pieces = []
        for piece, value in self._pieces():
            safe = escape(piece)
            if value is not None:
                shade = "0,114,178" if value > 0 else "192,79,0"
                depth = 0.12 + 0.38 * abs(value) / most
                safe = (
                    f'<mark style="background:rgba({shade},{depth:.2f});color:inherit;'
                    f'border-radius:3px;padding:0 2px" title="{value:+.4g}">{safe}</mark>'
                )
            pieces.append(safe)
        head = f"<strong>{escape(self.label)}</strong><br>" if self.label else ""
        return f'<div style="white-space:pre-wrap;line-height:1.6">{head}{"".join(pieces)}</div>'

    def to_ansi(self) -> str:
        """The text for a terminal; signs that would control it are left out."""
        return "".join(
            _printable(piece) if value is None else f"{_ANSI[value > 0]}{_printable(piece)}{_PLAIN}"
            for piece, value in self._pieces()
        )

    def _pieces(self) -> Iterator[tuple[str, float | None]]:
        last = 0
        for begin, end, value in self.spans:
            yield self.text[last:begin], None
            yield self.text[begin:end], value
            last = end
        yield self.text[last:], None

    def _repr_html_(self) -> str:
        return self.to_html()

    def __str__(self) -> str:
        return self.to_ansi()


def _printable(text: str) -> str:
    return "".join(c for c in text if c in "\n\t" or unicodedata.category(c) not in ("Cc", "Cf"))
