#!/bin/sh
# Event subscriptions on this machine, until Ctrl-C: a Kafka broker, one node with the sample
# service, a topic, a subscription and a few records. Needs Java 17 and the jars of
# `make kafka-jars`, or KAFKA_JARS. With ONCE=1 it ends after the result.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
jars=${KAFKA_JARS:-$root/test/kafka/target/lib}
port=${KAFKA_PORT:-9092} controller=${KAFKA_CONTROLLER_PORT:-9093}
platform=${PLATFORM:-$root/bin/platform}
export PLATFORM_INGRESS_URL="${PLATFORM_INGRESS_URL:-http://127.0.0.1:8080}" PLATFORM_ADMIN_URL="${PLATFORM_ADMIN_URL:-http://127.0.0.1:9070}"

fail() { echo "quickstart: $*" >&2; exit 1; }
command -v java >/dev/null || fail "java was not found: install a JDK, version 17 or later"
ls "$jars"/kafka-tools-[0-9]*.jar >/dev/null 2>&1 || fail "no Kafka in $jars: run \`make kafka-jars\`, which needs Maven, or set KAFKA_JARS to the directory libs of a Kafka distribution"
[ -x "$platform" ] || fail "$platform does not exist: run \`make build\`"

dir=$(mktemp -d)
pids=
end() { # shellcheck disable=SC2086
	[ -z "$pids" ] || kill $pids 2>/dev/null || true
	wait 2>/dev/null || true
	rm -rf "$dir"
}
trap end EXIT
trap 'exit 130' INT TERM

kafka() { java -cp "$jars/*" -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Dorg.slf4j.simpleLogger.defaultLogLevel=error "$@"; }
# until_ok waits up to a minute until a command succeeds.
until_ok() {
	tries=0
	until "$@" >"$dir/last" 2>&1; do
		tries=$((tries + 1))
		[ "$tries" -lt 120 ] || fail "$* did not succeed: $(tail -3 "$dir/last")"
		sleep 0.5
	done
}

cat >"$dir/server.properties" <<END
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:$controller
listeners=PLAINTEXT://127.0.0.1:$port,CONTROLLER://127.0.0.1:$controller
advertised.listeners=PLAINTEXT://127.0.0.1:$port
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs=$dir/kafka
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
group.initial.rebalance.delay.ms=0
auto.create.topics.enable=false
END
echo "Starting a Kafka broker on port $port ..."
id=$(head -c 16 /dev/urandom | od -An -v -tx1 | tr -d ' \n' | cut -c1-22)
kafka kafka.tools.StorageTool format -t "$id" -c "$dir/server.properties" >"$dir/format.log" 2>&1 || fail "$(cat "$dir/format.log")"
java -cp "$jars/*" -Xmx256m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Dorg.slf4j.simpleLogger.defaultLogLevel=error kafka.Kafka "$dir/server.properties" >"$dir/broker.log" 2>&1 &
pids="$pids $!"
until_ok kafka org.apache.kafka.tools.ClusterTool cluster-id --bootstrap-server "127.0.0.1:$port"
grep -q "$id" "$dir/last" || fail "another broker uses port $port: stop it, or set KAFKA_PORT and KAFKA_CONTROLLER_PORT"

# shellcheck disable=SC2086
"$platform" dev --sample ${DEV_FLAGS:-} >"$dir/dev.log" 2>&1 &
server=$!
pids="$pids $server"
until grep -q "All processes are running" "$dir/dev.log"; do # another server may respond
	kill -0 "$server" 2>/dev/null || fail "the server has ended: $(cat "$dir/dev.log")"
	sleep 0.2
done

kafka org.apache.kafka.tools.TopicCommand --bootstrap-server "127.0.0.1:$port" --create --topic numbers --partitions 2
"$platform" kafka-clusters create main bootstrap.servers="127.0.0.1:$port"
"$platform" subscriptions create kafka://main/numbers service://Counter/add --check
echo "Producing ada:1, ada:2 and bob:5 ..."
printf 'ada:1\nada:2\nbob:5\n' | kafka org.apache.kafka.tools.ConsoleProducer --bootstrap-server "127.0.0.1:$port" --topic numbers \
	--reader-property parse.key=true --reader-property key.separator=:
delivered() { [ "$("$platform" call Counter/ada/get)$("$platform" call Counter/bob/get)" = 35 ]; }
until_ok delivered
echo "The counters: ada is $("$platform" call Counter/ada/get), bob is $("$platform" call Counter/bob/get)."
"$platform" subscriptions list
[ -z "${ONCE:-}" ] || exit 0
cat <<END

The web UI shows the subscription under Events: $PLATFORM_ADMIN_URL/ui/subscriptions
To produce more (records without a key block their topic partition, see docs/events.md):

  java -cp '$jars/*' org.apache.kafka.tools.ConsoleProducer --bootstrap-server 127.0.0.1:$port --topic numbers \\
    --reader-property parse.key=true --reader-property key.separator=:

Ctrl-C ends everything and deletes the data.
END
wait
