#!/bin/sh
# Counts the instructions of a step with callgrind, on the AVX2 path, and compares them with a table: what a clock on a shared
# machine cannot see. A count may differ by 1 %; the table is kept per compiler, and another compiler is no failure. A step
# after 160 frames takes what it took after 80: its cost does not grow with history.
#   instructions.sh PROGRAM TABLE            compares
#   instructions.sh PROGRAM TABLE --update   writes this compiler's counts into the table
set -u
program=$1
table=$2
update=${3:-}
steps=40
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

command -v valgrind >/dev/null 2>&1 || { echo "SKIPPED: no valgrind"; exit 0; }
compiler=$("$program" bench --quick --plain --json floors 2>/dev/null |
  sed -n 's/.*"compiler": *"\([a-z]* [0-9]*\)[^"]*".*/\1/p')
[ -n "$compiler" ] || { echo "FAILED: exphil bench floors says no compiler"; exit 1; }
if [ -z "$update" ] && ! grep -q "^$compiler|" "$table"; then
  echo "SKIPPED: no counts for $compiler in the table"
  exit 0
fi

# total BLOCKS HIDDEN TYPE STEPS: instructions of so many steps, 0 if they did not run
total() {
  rm -rf "$work/case"
  mkdir -p "$work/case"
  printf 'run %d\nquit\n' "$(($4 - 1))" |
    EXPHIL_CPU_ISA=avx2 valgrind --tool=callgrind --callgrind-out-file="$work/out" --toggle-collect=exphil_session_step \
      "$program" bench --plain --folder "$work/case" serve decision "$1" "$2" "$3" >"$work/said" 2>&1
  sum=$(sed -n 's/^\(totals\|summary\): *\([0-9]*\).*/\2/p' "$work/out" 2>/dev/null | head -n 1)
  if [ -z "$sum" ] || ! grep -q '"ran"' "$work/said"; then
    tail -n 5 "$work/said" >&2
    echo 0
  else
    echo "$sum"
  fi
}

# count BLOCKS HIDDEN TYPE: instructions of one step
count() {
  echo $(($(total "$1" "$2" "$3" $steps) / steps))
}

failed=0
: >"$work/new"
while read -r blocks hidden type; do
  got=$(count "$blocks" "$hidden" "$type")
  echo "$compiler|$blocks $hidden $type|$got" >>"$work/new"
  wanted=$(sed -n "s/^$compiler|$(echo "$blocks" | sed 's/[*]/[*]/g') $hidden $type|//p" "$table")
  if [ "$got" -eq 0 ]; then
    echo "FAILED: $blocks $hidden $type did not run"
    failed=1
  elif [ -n "$update" ]; then
    echo "$blocks $hidden $type: $got instructions a step (was ${wanted:-unknown})"
  elif [ -z "$wanted" ]; then
    echo "FAILED: $blocks $hidden $type is not in the table"
    failed=1
  elif [ $((got * 100)) -gt $((wanted * 101)) ] || [ $((got * 100)) -lt $((wanted * 99)) ]; then
    echo "FAILED: $blocks $hidden $type: $got instructions a step, the table says $wanted; if that is meant: tools/bench --instructions"
    failed=1
  else
    echo "$blocks $hidden $type: $got instructions a step"
  fi
done <<CASES
lstm 256 f32
lstm 256 int8
gru 256 f32
mlp 256 f32
mamba*2 256 f32
mamba*2 256 bf16
mamba*2 256 int8
attention 256 f32
CASES

# The window of the attention block, 60 frames, is full by then.
for blocks in mamba attention; do
  early=$(total "$blocks" 64 f32 80) late=$(total "$blocks" 64 f32 160) last=$(total "$blocks" 64 f32 320)
  first=$(((late - early) / 80)) second=$(((last - late) / 160))
  echo "$blocks 64 f32: $first instructions a step after 80 frames, $second after 160"
  [ "$early" -gt 0 ] && [ "$first" -gt 0 ] && [ $((second * 100)) -le $((first * 101)) ] ||
    { echo "FAILED: a step of $blocks costs more the longer it has played"; failed=1; }
done

if [ -n "$update" ] && [ "$failed" -eq 0 ]; then
  { grep '^#' "$table" 2>/dev/null; { grep -v "^$compiler|" "$table" 2>/dev/null | grep -v '^#'; cat "$work/new"; } | sort; } >"$work/table"
  cp "$work/table" "$table"
fi
exit "$failed"
