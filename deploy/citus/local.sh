#!/bin/sh
# Starts, or stops, a coordinator and two workers on this machine, for tests and benches: nothing is durable, and
# everybody on this machine may connect.
#
#     deploy/citus/local.sh start|stop FOLDER [BIN] [PORT]
#
# FOLDER: where the data goes. BIN: the programs of a PostgreSQL that has Citus installed. PORT: the coordinator's; the
# workers have the next two. PostgreSQL does not run as root: under root its user "postgres" runs it.
set -eu
what=$1 folder=$2 bin=${3:-/usr/lib/postgresql/15/bin} port=${4:-9700}
as=''
[ "$(id -u)" != 0 ] || as='runuser -u postgres --'

for number in 0 1 2; do
    data=$folder/node$number
    if [ "$what" = stop ]; then
        $as "$bin/pg_ctl" -D "$data" -m fast stop || true
        continue
    fi
    if [ ! -f "$data/PG_VERSION" ]; then
        mkdir -p "$data"
        [ -z "$as" ] || chown postgres "$folder" "$data"
        $as "$bin/initdb" -D "$data" --username=roundtrip --auth=trust --locale=C --encoding=UTF8 --no-sync >/dev/null
        $as sh -c "cat >> '$data/postgresql.conf'" <<SETTINGS
shared_preload_libraries = 'citus'
wal_level = logical
listen_addresses = '127.0.0.1'
port = $((port + number))
unix_socket_directories = ''
max_connections = 200
max_prepared_transactions = 200
max_locks_per_transaction = 512
max_worker_processes = 64
shared_buffers = 128MB
jit = off
fsync = off
synchronous_commit = off
full_page_writes = off
citus.shard_count = ${SHARDS:-4}
SETTINGS
    fi
    $as "$bin/pg_ctl" -D "$data" -l "$data/log" -w start >/dev/null
    echo "postgresql://roundtrip@127.0.0.1:$((port + number))/postgres"
done
