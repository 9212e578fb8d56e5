#!/bin/sh
# Makes libgomp.so.1 (with the versions that programs ask for) and libpunctual-openmp.so (without, for
# LD_PRELOAD) of the static library: `link.sh ARCHIVE FOLDER`.
set -eu
STRIP=${STRIP--Wl,-s}
here=$(dirname "$0")
archive=$1
folder=$2
mkdir -p "$folder"
# What a panic calls: ours takes its place, which needs no storage of threads (`src/mistake.rs`).
handler=$(readelf -sW "$archive" 2>/dev/null | grep -o '_R[^ ]*rust_begin_unwind$' | sort -u)
if [ "$(printf '%s\n' "$handler" | grep -c .)" != 1 ]; then
    echo "$archive: one handler of panics was expected, not '$handler'" >&2
    exit 1
fi
# The unwinder is a static one: no code of ours unwinds, and to load another library takes a tenth of the
# start of a program.
link() {
    cc -shared -o "$folder/$1" -Wl,-soname,libgomp.so.1 -Wl,--version-script="$here/$2" \
        -Wl,--defsym="$handler"=punctual_openmp_panicked \
        -Wl,-z,nodelete -Wl,-z,relro -Wl,-z,now -Wl,--gc-sections $STRIP \
        -Wl,--whole-archive "$archive" -Wl,--no-whole-archive -lgcc_eh -lpthread -ldl -lc
}
# Locks of programs from before OpenMP 3.0 have the same names, and a version that is not the default.
renamed=$(mktemp)
trap 'rm -f "$renamed"' EXIT
objcopy --redefine-syms="$here/old-locks.syms" "$archive" "$renamed"
link libpunctual-openmp.so preload.map
archive=$renamed
link libgomp.so.1 libgomp.map
