"""Chooses the records of `sublearn quickstart` from the data set yso_en and writes them compressed.

    python tools/make_quickstart_data.py FOLDER_OF_YSO_EN src/sublearn/data/quickstart.tsv.xz

Library records have a very long tail of headings: half of those in yso_en stand on fewer than
seven records. A set small enough to ship must still let most headings be learnt, so

1. the N_FREQUENT headings with the most training records are candidates;
2. a record qualifies if at least MIN_SHARE of its headings are candidates;
3. N_TRAIN and N_TEST qualifying records are drawn from yso_en's own training and test part;
4. headings with fewer than MIN_RECORDS drawn training records are dropped, then records without
   any heading left.

A line of the result is `part TAB text TAB heading | heading | ...`, part being train or test.
"""

import argparse
import lzma
import random
from collections import Counter
from pathlib import Path

N_FREQUENT = 4500
MIN_SHARE = 2 / 3
MIN_RECORDS = 5
N_TRAIN, N_TEST = 13_000, 2_000
SEED = 0

Record = tuple[str, list[str]]  # text, headings


def main() -> None:
    arguments = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    arguments.add_argument("source", type=Path)
    arguments.add_argument("output", type=Path)
    options = arguments.parse_args()
    write_records(options.output, choose(read_records(options.source)))


def read_records(folder: Path) -> dict[str, list[Record]]:
    names = {row[1]: row[2] for row in read_table(folder / "yso_en_labels.tsv.xz")}

    def headings(identifiers: str) -> list[str]:
        """Names instead of identifiers; two headings may have one name."""
        return list(dict.fromkeys(names[i] for i in identifiers.split() if i in names))

    return {
        part: [
            (" ".join(text.split()), headings(identifiers))
            for text, identifiers in read_table(folder / f"yso_en_{part}.raw.tsv.xz")
        ]
        for part in ("train", "test")
    }


def read_table(path: Path) -> list[list[str]]:
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        return [line.rstrip("\n").split("\t") for line in lines]


def choose(records: dict[str, list[Record]]) -> dict[str, list[Record]]:
    frequent = {name for name, _ in count(records["train"]).most_common(N_FREQUENT)}
    random_stream = random.Random(SEED)
    drawn = {
        part: random_stream.sample(qualifying(records[part], frequent), n)
        for part, n in (("train", N_TRAIN), ("test", N_TEST))
    }
    counts = count(drawn["train"])
    learnable = {name for name in frequent if counts[name] >= MIN_RECORDS}
    return {part: restrict(rows, learnable) for part, rows in drawn.items()}


def count(records: list[Record]) -> Counter[str]:
    return Counter(name for _, names in records for name in names)


def qualifying(records: list[Record], frequent: set[str]) -> list[Record]:
    return [
        (text, names)
        for text, names in records
        if names and sum(name in frequent for name in names) >= MIN_SHARE * len(names)
    ]


def restrict(records: list[Record], allowed: set[str]) -> list[Record]:
    kept = ((text, [name for name in names if name in allowed]) for text, names in records)
    return [(text, names) for text, names in kept if names]


def write_records(path: Path, records: dict[str, list[Record]]) -> None:
    with lzma.open(path, "wt", encoding="utf-8", newline="\n", preset=9) as lines:
        for part, rows in records.items():
            for text, names in rows:
                lines.write(f"{part}\t{text}\t{' | '.join(names)}\n")


if __name__ == "__main__":
    main()
