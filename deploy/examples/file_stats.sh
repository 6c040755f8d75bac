#!/bin/sh
# Handler of the sample job: counts the lines, words and bytes of one file.
#
# stdin:  the file's name, as bytes; any name will do
# stdout: {"lines":10,"words":25,"bytes":120}, as wc counts them
#
# Exit status 66 ("no input", sysexits.h) says that another try cannot help.
set -u
export LC_ALL=C

# The x keeps line ends at the end of the name, which $(..) would drop.
path=$(cat; printf x)
path=${path%x}

if [ ! -f "$path" ] || [ ! -r "$path" ]; then
  printf 'not a file that can be read: %s\n' "$path" >&2
  exit 66
fi
counts=$(wc -lwc <"$path") || exit 1
# Unquoted: split into the three counts.
set -- $counts
printf '{"lines":%d,"words":%d,"bytes":%d}\n' "$1" "$2" "$3"
