#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The first program of a container, in namespaces of its own: when it ends the kernel ends all that
# is in there. It stays root, for a change of user would undo that it dies with the lab; the loads
# run as nobody, without capabilities. What they are is told by loads.py in the environment (`cpu`,
# `io`, `network`; empty: not of this load), and how long in `seconds`. On standard output it says
# `up` and `bogo-ops TOTAL`; why it ended goes to standard error.
fail() {
    echo "$1" >&2
    exit 1
}
# Nothing is to be written but what is in memory here, and that is the group's.
mount -o remount,bind,ro / || fail 'mount: / cannot be made read-only'
for directory in /tmp /dev/shm; do
    mount -t tmpfs -o size=16m,mode=1777 tmpfs "$directory" || fail "mount: $directory"
done
if [ -d /sys/fs/cgroup ]; then
    mount -t tmpfs -o ro,size=4k tmpfs /sys/fs/cgroup || fail 'mount: /sys/fs/cgroup'
fi
cd /tmp || fail 'no /tmp'

# as_nobody COMMAND: by its words, which the lab has quoted.
as_nobody() {
    eval "exec setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all \
        --bounding-set=-all --no-new-privs $1" </dev/null
}
# last FILE: the end of what a program printed, on one line.
last() { grep . "$1" 2>/dev/null | tail -n 3 | tr -s '\n ' '; '; }

cpu_load() {
    total=0
    while :; do
        (as_nobody "$cpu") >/tmp/cpu.log 2>&1 || fail "stress-ng ended with $?: $(last /tmp/cpu.log)"
        slice=$(sed -n 's/^ *bogo-ops: *\([0-9][0-9]*\).*/\1/p' /tmp/cpu.yaml)
        total=$((total + ${slice:-0}))
        echo "bogo-ops $total"
    done
}
# whole NAME COMMAND: what runs for as long as the container.
whole() {
    (as_nobody "$2") >"/tmp/$1.log" 2>&1
    fail "$1 ended with $?: $(last "/tmp/$1.log")"
}

echo up
sleep "$seconds" &
if [ -n "$cpu" ]; then cpu_load & fi
if [ -n "$io" ]; then whole fio "$io" & fi
if [ -n "$network" ]; then whole iperf3 "$network" & fi
# Whichever ends first.
wait -n
