#!/bin/sh
# A sweep on all cores of one machine, or of many, by GNU parallel.
#
#   examples/sweep/gnu-parallel.sh STUDY.toml FOLDER [SHARDS] [options of parallel]
#   examples/sweep/gnu-parallel.sh examples/sweep/study.toml /tmp/sweep 32 --sshloginfile hosts
#
# Run it again after an interruption: every shard goes on where its file ends. On other hosts,
# FOLDER must be a folder that all of them share. PUNCTUAL names the command where it is not in
# the path.
set -eu

study=${1:?name the study}
folder=${2:?name a folder for the results}
shards=${3:-8}
[ $# -lt 3 ] && shift 2 || shift 3
punctual=${PUNCTUAL:-punctual}

mkdir -p "$folder"
# One thread each: the parallelism is here.
seq "$shards" | parallel --halt soon,fail=1 "$@" \
    "$punctual" sweep "$study" --quiet --threads 1 \
    --shard "{}/$shards" --out "$folder/part-{}.jsonl"

"$punctual" sweep merge "$folder"/part-*.jsonl \
    --out "$folder/whole.jsonl" --plot "$folder/whole.svg"
