#!/bin/sh
# Eight collectors, each with its part of the targets of prometheus.yml, as a Slurm array:
#   sbatch array.sh && scrapestat export shards/$ID/* -o bench-$ID
# ID is the number of the array. Every part is on a node of its own choice; which targets it
# has depends on their addresses alone.
#SBATCH --array=0-7
#SBATCH --cpus-per-task=1
#SBATCH --mem=1G
#SBATCH --time=00:30:00
set -eu
run=$SLURM_ARRAY_JOB_ID
mkdir -p "shards/$run"
exec scrapestat collect --shard auto --run-id "bench-$run" --config prometheus.yml --interval 1s --warmup 30s \
	--duration 5m -o "shards/$run/$SLURM_ARRAY_TASK_ID"
