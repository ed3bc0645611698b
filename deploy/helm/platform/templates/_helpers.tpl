{{- define "platform.name" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 48 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 48 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "platform.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "platform.labels" -}}
{{ include "platform.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "platform.peers" -}}
{{- $name := include "platform.name" . -}}
{{- $peers := list -}}
{{- range $i := until (int .Values.replicas) -}}
{{- $peers = append $peers (printf "%s-%d.%s-nodes.%s.svc:5122" $name $i $name $.Release.Namespace) -}}
{{- end -}}
{{- toJson $peers -}}
{{- end -}}

{{/* Nine tenths of a quantity of memory, such as 4Gi, for GOMEMLIMIT. */}}
{{- define "platform.memoryLimit" -}}
{{- $quantity := toString . -}}
{{- if not (regexMatch "^[0-9]+([.][0-9]+)?([KMGT]i|[kMGT])?$" $quantity) -}}
{{- fail (printf "resources.limits.memory: expected a quantity such as 4Gi or 4000M, got %s" $quantity) -}}
{{- end -}}
{{- $units := dict "" 1 "k" 1e3 "M" 1e6 "G" 1e9 "T" 1e12 "Ki" 1024 "Mi" 1048576 "Gi" 1073741824 "Ti" 1099511627776 -}}
{{- $number := regexFind "^[0-9.]+" $quantity | float64 -}}
{{- $unit := get $units (regexFind "[A-Za-z]*$" $quantity) | float64 -}}
{{- printf "%.0fMiB" (floor (divf (mulf $number $unit 0.9) 1048576)) -}}
{{- end -}}
