#!/bin/sh
# Checks the chart with helm: lint and template over all sets of values in ci, and values that must
# be refused. Run by make helm-check, which sets HELM.
set -eu
chart=deploy/helm/platform
kube=1.30.0 # a helm that is built from source assumes an old one
for values in "$chart"/ci/*-values.yaml; do
	$HELM lint --strict --quiet --kube-version "$kube" "$chart" --values "$values"
	$HELM template check "$chart" --kube-version "$kube" --namespace apps --values "$values" >/dev/null
	echo "$values: correct"
done
digest=sha256:$(printf '%064d' 1)
$HELM template check "$chart" --kube-version "$kube" --set image.digest="$digest" | grep -q "image: \"platform@$digest\""
echo "an image by digest: correct"
$HELM template check "$chart" --kube-version "$kube" --values "$chart/ci/full-values.yaml" | grep -q "secretName: keys, defaultMode: 0440"
echo "files with secrets: correct"
monitor=$($HELM template check "$chart" --kube-version "$kube" --values "$chart/ci/full-values.yaml" --show-only templates/monitor.yaml)
echo "$monitor" | grep -q "credentials: {name: prometheus-token, key: token}"
if echo "$monitor" | grep -q admin-token; then
	echo "Prometheus gets the token of the administrator"
	exit 1
fi
echo "the token of Prometheus: correct"
limited() {
	want=$1
	shift
	$HELM template check "$chart" --kube-version "$kube" "$@" --show-only templates/statefulset.yaml | grep -A1 GOMEMLIMIT | tr -d '\n' | grep -Eq "GOMEMLIMIT, value: $want}|name: GOMEMLIMIT +value: $want" || {
		echo "GOMEMLIMIT is not $want: $*"
		exit 1
	}
}
limited 3686MiB
limited 7372MiB --set resources.limits.memory=8Gi
limited 1716MiB --set resources.limits.memory=2G
limited 3686MiB --values "$chart/ci/full-values.yaml"
limited 1GiB --set env[0].name=GOMEMLIMIT --set env[0].value=1GiB
echo "the limit of memory: correct"
refused() {
	if $HELM template check "$chart" --kube-version "$kube" "$@" >/dev/null 2>&1; then
		echo "not refused: $*"
		exit 1
	fi
}
refused --set replicas=0
refused --set replicas=1
refused --set cluster.replicas=3
refused --set cluster.name='a b'
refused --set service.ingressPort=70000
refused --set persistence.size=20GB
refused --set persistence.accessModes='{ReadWriteMany}'
refused --set env[0].name=otel
refused --set-string podDisruptionBudget.enabled=yes
refused --set image.digest=latest
refused --set resources.limits.memory=lots
refused --set unknown=1
echo "invalid values: refused"
