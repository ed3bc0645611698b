#!/usr/bin/env bash
# Tests deploy/docker-compose.yml with a real engine: three nodes, a service registered
# on the first and called on the third, the second one killed and started again.
# `make cluster-test` builds what it needs. Where no engine runs and this is root, it
# starts an engine (Debian: apt-get install docker.io docker-compose) in a network namespace,
# which leaves the machine unchanged.
set -euo pipefail
cd "$(dirname "$0")/.."

compose=${COMPOSE:-docker-compose}
project=platform-compose-test
own=""

note() { printf '\n== %s\n' "$*"; }
cluster() { $compose -p "$project" -f deploy/docker-compose.yml "$@"; }

start_engine() {
  ip link set lo up
  own=$(mktemp -d)
  export DOCKER_HOST=unix://$own/docker.sock
  dockerd --data-root "$own/data" --exec-root "$own/exec" --pidfile "$own/pid" -H "$DOCKER_HOST" >"$own/log" 2>&1 &
  for _ in $(seq 100); do
    docker info >/dev/null 2>&1 && return
    sleep 0.2
  done
  tail -n 20 "$own/log" >&2
  echo "dockerd does not start" >&2
  return 1
}

clean_up() {
  docker rm -f "$project-greeter" >/dev/null 2>&1 || true
  cluster down -v --timeout 20 >/dev/null 2>&1 || true
  if [ -n "$own" ]; then
    kill "$(cat "$own/pid")" 2>/dev/null && while [ -e "$own/pid" ]; do sleep 0.1; done
    rm -rf "$own"
  fi
}
trap clean_up EXIT

# until_true LIMIT_SECONDS COMMAND...
until_true() {
  local end=$((SECONDS + $1))
  shift
  until "$@" >/dev/null 2>&1; do
    [ "$SECONDS" -lt "$end" ] || { echo "gave up: $*" >&2; return 1; }
    sleep 0.2
  done
}

healthy() { [ "$(docker inspect -f '{{.State.Health.Status}}' "$(cluster ps -q "$1")")" = healthy ]; }

if [ "${OWN_ENGINE:-}" = 1 ]; then
  start_engine
elif ! docker info >/dev/null 2>&1; then
  note "no engine is running, starting one"
  trap - EXIT
  OWN_ENGINE=1 exec unshare --net deploy/compose-test.sh
fi
docker build -q -t platform:local -f deploy/Dockerfile.scratch bin/image >/dev/null

note "versions"
docker version --format 'engine {{.Server.Version}}'
echo "$compose $($compose version --short)"

note "three nodes"
begin=$(date +%s%N)
cluster up -d
until_true 60 curl -sf localhost:9072/cluster-health
echo "first answer of /cluster-health after $((($(date +%s%N) - begin) / 1000000)) ms"
for n in n1 n2 n3; do until_true 60 healthy "$n"; done
cluster ps
PLATFORM_ADMIN_URL=http://localhost:9071 bin/platform cluster status --wait 30s

note "neither root, nor anything to write to but the volume"
docker inspect -f '{{.Config.User}} read-only={{.HostConfig.ReadonlyRootfs}} capabilities dropped={{.HostConfig.CapDrop}}' "$(cluster ps -q n1)"

note "the sample service, in a container of its own, registered on node 1"
docker run -d --name "$project-greeter" --network "${project}_default" --network-alias greeter --entrypoint /platform platform:local sample --listen :9080 >/dev/null
register() { curl -sf localhost:9070/deployments -H 'content-type: application/json' -d '{"uri":"http://greeter:9080"}'; }
until_true 20 register
register | head -c 200
echo

note "called on node 3"
curl -sf localhost:8082/Greeter/greet -H 'content-type: application/json' -d '"compose"'
echo
for _ in 1 2 3; do curl -sf localhost:8082/Counter/a/add -H 'content-type: application/json' -d 1; echo; done

note "node 2 is killed"
docker kill "$(cluster ps -q n2)" >/dev/null
failed=0
for i in $(seq 40); do
  port=$((i % 2 == 0 ? 8080 : 8082))
  curl -sf --max-time 10 "localhost:$port/Counter/key-$((i % 8))/add" -H 'content-type: application/json' -H "idempotency-key: $i" -d 1 >/dev/null || failed=$((failed + 1))
done
echo "40 calls through nodes 1 and 3, failed: $failed"
PLATFORM_ADMIN_URL=http://localhost:9070 bin/platform cluster status || true
[ "$failed" = 0 ]

note "and started again"
cluster up -d n2
until_true 60 healthy n2
PLATFORM_ADMIN_URL=http://localhost:9071 bin/platform cluster status --wait 60s
printf 'counter a, asked on node 2: '
curl -sf localhost:8081/Counter/a/get -X POST
echo

note "stopped in order"
begin=$(date +%s%N)
cluster stop
echo "took $((($(date +%s%N) - begin) / 1000000)) ms; exit codes: $(docker inspect -f '{{.State.ExitCode}}' $(cluster ps -q -a 2>/dev/null || cluster ps -q) | tr '\n' ' ')"
echo
echo "OK"
