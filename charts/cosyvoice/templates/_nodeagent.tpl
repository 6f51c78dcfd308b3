{{/* What the node agent's DaemonSet selects: nothing of the operator's. */}}
{{- define "cosyvoice.agentSelectorLabels" -}}
app.kubernetes.io/name: cosyvoice-node-agent
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "cosyvoice.agentLabels" -}}
{{ include "cosyvoice.agentSelectorLabels" . }}
app.kubernetes.io/part-of: cosyvoice
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{/* All that the node agent may do at the API server. */}}
{{- define "cosyvoice.agentRules" -}}
- apiGroups: [""]
  resources: [pods] # which worker containers its node has, and what each is to have
  verbs: [list]
{{- end -}}
