#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The first program of a guest, run by busybox. It takes what to do from the kernel's command line,
# works, tells of it on the console a line of JSON at a time (guest_console.py reads them), and
# powers off when it is told to (`stop`) or after linerate.seconds, whatever happens.
export PATH=/bin LC_ALL=C
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
exec </dev/ttyS0 >/dev/ttyS0 2>&1
# What is typed is not to come back as if it had been said here.
stty -echo

say() { echo "@linerate $1"; }
off() {
    say '{"say":"off"}'
    # Nothing of the disk is to be kept (-n), nor waited for.
    kill -9 -1
    poweroff -n -f
}
# fail WHY: the end. What would not be a string in JSON is left out of WHY.
fail() {
    say "{\"say\":\"failed\",\"why\":\"$(echo "$1" | tr -cd 'A-Za-z0-9 .:,_/()=-')\"}"
    off
}
say '{"say":"up"}'

load=idle seconds=60 address='' peer='' port=5201
for word in $(cat /proc/cmdline); do
    case $word in
        linerate.load=*) load=${word#*=} ;;
        linerate.seconds=*) seconds=${word#*=} ;;
        linerate.address=*) address=${word#*=} ;;
        linerate.peer=*) peer=${word#*=} ;;
        linerate.port=*) port=${word#*=} ;;
    esac
done
cpu='' io='' network=''
case $load in
    idle) ;;
    cpu) cpu=1 ;;
    io) io=1 ;;
    network) network=1 ;;
    mixed) cpu=1 io=1 network=1 ;;
    *) fail "no load is called $load" ;;
esac
(
    sleep "$seconds"
    off
) &

while read -r module; do
    insmod "/lib/modules/$module.ko" || fail "insmod $module"
done </etc/modules

# until_there FILE: a driver may take a moment to find its device.
until_there() {
    tries=0
    until [ -e "$1" ]; do
        tries=$((tries + 1))
        [ "$tries" -lt 50 ] || fail "no $1"
        sleep 0.1
    done
}
if [ -n "$address" ]; then
    until_there /sys/class/net/eth0
    # No route but that to the link itself.
    ip address add "$address" dev eth0 || fail "ip address add $address"
    ip link set eth0 up || fail 'ip link set eth0 up'
    say "{\"say\":\"network\",\"address\":\"$address\",\"routes\":\"$(ip route | tr -s '\n ' '; ' | sed 's/[; ]*$//')\"}"
fi

# last FILE: the end of what a program printed, on one line.
last() { grep . "$1" 2>/dev/null | tail -n 3 | tr -s '\n ' '; '; }

echo 0 >/tmp/bogo-ops
# stress-ng counts only what it has ended, so it works in slices.
cpu_load() {
    total=0
    while :; do
        stress-ng --cpu 1 --cpu-method int64 --cpu-ops 25 --metrics-brief --temp-path /tmp \
            --yaml /tmp/cpu.yaml >/tmp/cpu.log 2>&1 || fail "stress-ng: $(last /tmp/cpu.log)"
        slice=$(sed -n 's/^ *bogo-ops: *\([0-9][0-9]*\).*/\1/p' /tmp/cpu.yaml)
        total=$((total + ${slice:-0}))
        echo "$total" >/tmp/bogo-ops.new
        mv /tmp/bogo-ops.new /tmp/bogo-ops
    done
}
# Of blocks that were never written nothing is read from the device: all are written first.
io_fill() {
    read -r sectors </sys/block/vda/size
    dd if=/dev/zero of=/dev/vda bs=1M count=$((sectors / 2048)) conv=fsync 2>/tmp/fill.log ||
        fail "dd: $(last /tmp/fill.log)"
}
io_load() {
    fio --name=io --filename=/dev/vda --rw=randrw --bs=4k --direct=1 --ioengine=psync --thread \
        --norandommap --time_based --runtime="$seconds" --eta=never >/tmp/io.log 2>&1
    fail "fio ended with $?: $(last /tmp/io.log)"
}
network_load() {
    tries=0
    while [ "$tries" -lt 20 ]; do
        iperf3 --client "$peer" --port "$port" --time "$seconds" >/tmp/network.log 2>&1
        tries=$((tries + 1))
        sleep 0.5
    done
    fail "iperf3: $(last /tmp/network.log)"
}

# Since the guest began: operations and bytes of the disk, bytes of the interface.
io_count() {
    read -r reads _ read_sectors _ writes _ written_sectors _ </sys/block/vda/stat
    operations=$((reads + writes))
    io_bytes=$(((read_sectors + written_sectors) * 512))
}
network_count() {
    read -r received </sys/class/net/eth0/statistics/rx_bytes
    read -r sent </sys/class/net/eth0/statistics/tx_bytes
    network_bytes=$((received + sent))
}

if [ -n "$io" ]; then
    until_there /dev/vda
    io_fill
    io_count
    operations_before=$operations io_bytes_before=$io_bytes
    io_load &
fi
if [ -n "$network" ]; then
    network_count
    network_bytes_before=$network_bytes
    network_load &
fi
[ -z "$cpu" ] || cpu_load &

# Ready: every part has got something done, more than a handshake of the network's.
working() {
    if [ -n "$cpu" ] && [ "$(cat /tmp/bogo-ops)" -eq 0 ]; then return 1; fi
    if [ -n "$io" ]; then
        io_count
        [ "$operations" -gt "$operations_before" ] || return 1
    fi
    if [ -n "$network" ]; then
        network_count
        [ "$network_bytes" -gt $((network_bytes_before + 20000)) ] || return 1
    fi
}
until working; do sleep 0.2; done
# What was done until then is not counted.
[ -z "$cpu" ] || bogo_ops_before=$(cat /tmp/bogo-ops)
[ -z "$io" ] || operations_before=$operations io_bytes_before=$io_bytes
[ -z "$network" ] || network_bytes_before=$network_bytes
say "{\"say\":\"ready\",\"load\":\"$load\"}"

report() {
    read -r up _ </proc/uptime
    line="\"up_s\":$up"
    if [ -n "$cpu" ]; then
        line="$line,\"bogo_ops\":$(($(cat /tmp/bogo-ops) - bogo_ops_before))"
    fi
    if [ -n "$io" ]; then
        io_count
        line="$line,\"io_operations\":$((operations - operations_before)),\"io_bytes\":$((io_bytes - io_bytes_before))"
    fi
    if [ -n "$network" ]; then
        network_count
        line="$line,\"network_bytes\":$((network_bytes - network_bytes_before))"
    fi
    say "{\"say\":\"work\",$line}"
}
# A report each second, and at once when anything is typed.
while :; do
    word=''
    read -r -t 1 word
    report
    [ "$word" != stop ] || off
done
