#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Writes the shell completions of the tool from its own help, so they know what it knows; called by the build.
#   tools/make_completions.sh PATH/rooftile FOLDER     makes FOLDER/rooftile.bash, FOLDER/_rooftile, FOLDER/rooftile.fish

# shellcheck disable=SC2016  # what stands in single quotes is for the shell that completes

set -euo pipefail
export LC_ALL=C.UTF-8
tool=$1 out=$2
mkdir -p "$out"

commands() { "$tool" --help | awk '/^  [a-z]+ / && $1 != "rooftile" { name = $1; $1 = ""; print name "\t" substr($0, 2) }'; }

# One line an option of a command: -x or nothing, --long or nothing, = where a value follows.
options() {
    "$tool" "$1" --help | awk '
        /^ +-/ {
            short = ""; long = ""; value = ""
            line = $0
            if (match(line, /^ +-[A-Za-z?]/)) short = substr(line, RLENGTH - 1, 2)
            if (match(line, /--[a-z][a-z-]*/)) {
                long = substr(line, RSTART, RLENGTH)
                if (substr(line, RSTART + RLENGTH, 1) == "=") value = "="
            } else if (line ~ /^ +-[a-z] [A-Z]/) value = "="
            if (short == "-?") short = ""
            print short "|" long "|" value
        }'
}

# All the words of a command, values or no values.
words() { options "$1" | awk -F'|' '{ if ($1 != "") printf "%s ", $1; if ($2 != "") printf "%s ", $2 }'; }

names=$(commands | cut -f1 | tr '\n' ' ')
[ -n "$names" ] || { echo "$0: $tool --help lists no commands" >&2; exit 1; }

{
    echo '# Completion of rooftile for bash, made from the help of the tool.'
    echo '_rooftile() {'
    echo '    local word=${COMP_WORDS[COMP_CWORD]} words='
    echo "    if [ \"\$COMP_CWORD\" -eq 1 ]; then COMPREPLY=(\$(compgen -W '$names--help --version' -- \"\$word\")); return; fi"
    echo '    if [[ $word != -* ]]; then COMPREPLY=($(compgen -f -- "$word")); return; fi'
    echo '    case ${COMP_WORDS[1]} in'
    for name in $names; do echo "    $name) words='$(words "$name")' ;;"; done
    echo '    esac'
    echo '    COMPREPLY=($(compgen -W "$words" -- "$word"))'
    echo '}'
    echo 'complete -o filenames -F _rooftile rooftile'
} >"$out/rooftile.bash"

{
    echo '#compdef rooftile'
    echo '# Completion of rooftile for zsh, made from the help of the tool.'
    echo 'if (( CURRENT == 2 )); then'
    echo "    compadd -- $names--help --version"
    echo 'elif [[ $words[CURRENT] == -* ]]; then'
    echo '    case $words[2] in'
    for name in $names; do echo "    $name) compadd -- $(words "$name");;"; done
    echo '    esac'
    echo 'else'
    echo '    _files'
    echo 'fi'
} >"$out/_rooftile"

{
    echo '# Completion of rooftile for fish, made from the help of the tool.'
    commands | sed "s/'/\\\\'/g" | awk -F'\t' '{ printf "complete -c rooftile -n __fish_use_subcommand -f -a %s -d \x27%s\x27\n", $1, $2 }'
    for name in $names; do
        options "$name" | awk -F'|' -v name="$name" '{
            line = "complete -c rooftile -n \x27__fish_seen_subcommand_from " name "\x27"
            if ($1 != "") line = line " -s " substr($1, 2)
            if ($2 != "") line = line " -l " substr($2, 3)
            print line ($3 == "=" ? " -r" : "")
        }'
    done
} >"$out/rooftile.fish"
