"""Train label blocks as a job array with submitit, run what died again, and join the parts.

    pip install submitit
    python examples/job_array_submitit.py --parts 4 --folder jobs  # processes of this machine
    python examples/job_array_submitit.py --parts 100 --folder /shared/jobs --cluster slurm

Every job reads the data itself and shares nothing with the others but the folder. The model is
that of a single process to the last bit.
"""

import argparse
from pathlib import Path

from sublearn.extreme import PPDSparseClassifier, TextTagger
from sublearn.io import load_quickstart
from sublearn.parts import join_parts, solve_part


def fit(model_path: Path, n_records: int) -> TextTagger:
    """The fit that all jobs have in common."""
    records = load_quickstart(n_records)
    classifier = PPDSparseClassifier(model_path=model_path, random_state=0)
    return TextTagger(classifier, analyzer="word").fit(records.train_texts, records.train_labels)


def fit_part(number: int, n_parts: int, model_path: Path, n_records: int) -> str:
    """What one job does."""
    with solve_part(number, n_parts) as part:
        fit(model_path, n_records)
    return f"part {number} of {n_parts}: {part.n_solved} of {part.n_labels} labels solved now"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--parts", type=int, default=4)
    parser.add_argument("--folder", type=Path, default=Path("jobs"), help="all machines see it")
    parser.add_argument("--cluster", default="local", help="local, slurm or debug")
    parser.add_argument("--records", type=int, default=2000)
    parser.add_argument("--tries", type=int, default=3, help="how often a part may die")
    options = parser.parse_args()

    import submitit

    model_path = options.folder.resolve() / "tags.model"
    executor = submitit.AutoExecutor(folder=options.folder / "logs", cluster=options.cluster)
    executor.update_parameters(timeout_min=60, cpus_per_task=1, mem_gb=4)
    left = list(range(1, options.parts + 1))
    for _ in range(options.tries):
        shared = options.parts, model_path, options.records
        jobs = {k: executor.submit(fit_part, k, *shared) for k in left}
        left = [k for k, job in jobs.items() if job.exception() is not None]
        for k, job in jobs.items():
            print(f"part {k} died" if k in left else job.result(), flush=True)
        if not left:
            break
    with join_parts():  # says which parts are missing, if one died every time
        tagger = fit(model_path, options.records)
        tagger.save(model_path)
    print(f"{model_path}: {len(tagger.classes_):,} labels")
    print(tagger.predict_top_k(["the history of inland navigation"], k=3)[0])


if __name__ == "__main__":
    main()
