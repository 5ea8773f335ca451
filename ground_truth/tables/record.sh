#!/usr/bin/env bash
# Records, on a machine with a real card, every table that this project ships.
#
#   ground_truth/tables/record.sh OUT [PROGRAM_DIR]
#
# OUT is a folder for the tables; PROGRAM_DIR has `ghostgpu` and `libghostgpu_calibrator.so`
# (target/release). PYTHON names another python than python3. Takes about 80 seconds.
# The parts run beside each other, each in a process of its own with a limit of its own: what fails
# is missing in OUT, and said in OUT/log.txt, and costs the others nothing.
set -u
out=$(mkdir -p "$1" && cd "$1" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
programs=$(cd "${2:-$here/../../target/release}" && pwd)
python=${PYTHON:-python3}
export PYTHONDONTWRITEBYTECODE=1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# recorded NAME SECONDS SCRIPT [ARGUMENTS]...: one table.
recorded() {
    local name=$1 limit=$2 table=$work/$1.tsv
    shift 2
    timeout -k 5 "$limit" "$programs/ghostgpu" calibrate -o "$table" -- "$python" "$@" \
        >"$work/$name.log" 2>&1
    echo "exit code $?" >>"$work/$name.log"
    if [ ! -s "$table" ]; then
        # Without the command around it: each process leaves its own part.
        mkdir "$work/$name.parts"
        GHOSTGPU_CALIBRATION_DIR="$work/$name.parts" \
            LD_PRELOAD="$programs/libghostgpu_calibrator.so${LD_PRELOAD:+:$LD_PRELOAD}" \
            timeout -k 5 "$limit" "$python" "$@" >>"$work/$name.log" 2>&1
        echo "once more without the command: exit code $?" >>"$work/$name.log"
        cat "$work/$name.parts"/*.tsv >"$table"
    fi
}

(
    timeout -k 5 75 "$python" "$here/../cudnn/explore_products.py" --out "$out" --seconds 52 \
        --processes 9 >"$work/products.log" 2>&1
    echo "exit code $?" >>"$work/products.log"
) &
recorded networks 40 "$here/networks.py" &
recorded solvers 70 "$here/solvers.py" --seconds 40 &
recorded transforms 75 "$here/transforms.py" --seconds 55 &
recorded dense 75 "$here/operations.py" dense --seconds 50 &
recorded spectral 75 "$here/operations.py" spectral --seconds 45 &
recorded sparse 75 "$here/operations.py" sparse --seconds 45 &
wait
for name in networks solvers transforms; do
    gzip -9c "$work/$name.tsv" >"$out/$name.tsv.gz"
done
cat "$work"/{dense,spectral,sparse}.tsv | gzip -9c >"$out/operations.tsv.gz"
for log in "$work"/*.log; do
    echo "== $(basename "$log" .log)"
    tail -n 60 "$log"
done >"$out/log.txt"
cat "$out/log.txt"
ls -l "$out"
