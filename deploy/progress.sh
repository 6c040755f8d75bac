# Sourced by the scripts beside it: messages, and commands that say how far they
# are once they take longer than 2 s.

die() {
  printf '%s: %s\n' "$(basename "$0")" "$*" >&2
  exit 1
}

# help: the comment at the head of the script that sourced this, without its "# ".
help() { sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; }

# usage MESSAGE: says what is wrong with the call, and how it goes.
usage() {
  printf '%s: %s\n\n' "$(basename "$0")" "$*" >&2
  help >&2
  exit 2
}

say() { printf '%s\n' "$*"; }

# run_with_progress LABEL LOG COMMAND...: the command's output goes to LOG. When
# it takes longer than 2 s, says LABEL and how long it has run, with the last
# line of the log: every second on a terminal, else every 20 s. When it fails,
# prints the end of the log and returns its status.
run_with_progress() {
  local label=$1 log=$2 began=$SECONDS status=0 every=20 shown=-1 pid line
  shift 2
  [ -t 1 ] && every=1
  "$@" >"$log" 2>&1 </dev/null &
  pid=$!
  while kill -0 "$pid" 2>/dev/null; do
    sleep 0.2
    local elapsed=$((SECONDS - began))
    if [ "$elapsed" -ge 2 ] && { [ "$shown" -lt 0 ] || [ $((elapsed - shown)) -ge "$every" ]; }; then
      shown=$elapsed
      line=$(tail -n 1 "$log" | tr -cd '[:print:]' | cut -c1-60)
      if [ -t 1 ]; then
        printf '\r\033[K%s: %d s  %s' "$label" "$elapsed" "$line"
      else
        printf '%s: %d s  %s\n' "$label" "$elapsed" "$line"
      fi
    fi
  done
  wait "$pid" || status=$?
  if [ "$shown" -ge 0 ] && [ -t 1 ]; then printf '\r\033[K'; fi
  if [ "$status" -ne 0 ]; then
    printf '%s: failed with status %d; the end of %s:\n' "$label" "$status" "$log" >&2
    tail -n 40 "$log" >&2
  elif [ "$shown" -ge 0 ]; then
    printf '%s: done in %d s\n' "$label" $((SECONDS - began))
  fi
  return "$status"
}

# require_space FOLDER MIB WHAT: ends with a clear message when FOLDER's file
# system has less than MIB mebibytes free.
require_space() {
  local free
  free=$(df -Pm "$1" | awk 'NR == 2 {print $4}')
  [ "$free" -ge "$2" ] || die "$3 needs $2 MiB in $1, only $free MiB are free"
}
