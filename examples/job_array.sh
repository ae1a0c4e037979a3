#!/usr/bin/env bash
# A job array without a scheduler of our own: each task trains a share of the labels.
#
#   sbatch --array=1-100 --mem=8G --time=2:00:00 examples/job_array.sh records.tsv tags.model --analyzer word
#   sublearn join tags.model          # when all tasks are done; says which are missing, if any
#
# A task that failed is run again alone, told how many there were:
#   PARTS=100 sbatch --array=17 examples/job_array.sh records.tsv tags.model --analyzer word
# Without SLURM, on one machine:
#   for k in 1 2 3 4; do SLURM_ARRAY_TASK_ID=$k SLURM_ARRAY_TASK_COUNT=4 examples/job_array.sh records.tsv tags.model & done
#   wait && sublearn join tags.model
set -euo pipefail
data=${1:?usage: job_array.sh DATA MODEL [options of sublearn fit text]}
model=${2:?usage: job_array.sh DATA MODEL [options of sublearn fit text]}
shift 2
part="${SLURM_ARRAY_TASK_ID:?run by sbatch --array=1-N}/${PARTS:-${SLURM_ARRAY_TASK_COUNT:?}}"
exec sublearn fit text "$data" --model "$model" --part "$part" \
  --n-jobs "${SLURM_CPUS_PER_TASK:-1}" --quiet "$@"
