{{/* The name of every object: the release's, ending in `operator`. */}}
{{- define "cosyvoice.fullname" -}}
{{- $name := .Release.Name -}}
{{- if not (contains "cosyvoice" $name) }}{{ $name = printf "%s-cosyvoice" $name }}{{ end -}}
{{- if not (hasSuffix "-operator" $name) }}{{ $name = printf "%s-operator" (trunc 45 $name | trimSuffix "-") }}{{ end -}}
{{- .Values.fullnameOverride | default $name -}}
{{- end -}}

{{/* What the operator's Deployment and Service select. */}}
{{- define "cosyvoice.selectorLabels" -}}
app.kubernetes.io/name: cosyvoice-operator
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "cosyvoice.labels" -}}
{{ include "cosyvoice.selectorLabels" . }}
app.kubernetes.io/part-of: cosyvoice
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{/* The reference of an image: dict "root" $ "image" .Values.images.operator */}}
{{- define "cosyvoice.image" -}}
{{- with .root.Values.images.registry }}{{ trimSuffix "/" . }}/{{ end -}}
{{- .image.repository -}}
{{- if .image.digest }}@{{ .image.digest }}{{ else }}:{{ .image.tag | default .root.Chart.AppVersion }}{{ end -}}
{{- end -}}
