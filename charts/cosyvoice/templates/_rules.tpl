{{/*
What the operator may do in the namespaces that it looks after, and nothing else.
It deletes nothing but its own revisions: children go with their owner.
*/}}
{{- define "cosyvoice.rules" -}}
- apiGroups: [cosyvoice.dev]
  resources: [cosyvoicemodels]
  verbs: [get, list, watch]
- apiGroups: [cosyvoice.dev]
  resources: [cosyvoicemodels/status]
  verbs: [update]
- apiGroups: [cosyvoice.dev]
  resources: [cosyvoicemodels/finalizers] # owner references that block the owner's deletion
  verbs: [update]
- apiGroups: [""]
  resources: [configmaps]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [""]
  resources: [services]
  verbs: [get, list, watch, create, patch]
- apiGroups: [apps]
  resources: [deployments]
  verbs: [get, list, watch, create, patch]
- apiGroups: [policy]
  resources: [poddisruptionbudgets]
  verbs: [get, list, watch, create, patch]
- apiGroups: [apps]
  resources: [replicasets]
  verbs: [list]
- apiGroups: [""]
  resources: [pods]
  verbs: [list, watch, patch] # patch: the annotation by which a pod is told to load another version in place
- apiGroups: [""]
  resources: [persistentvolumeclaims]
  verbs: [get]
- apiGroups: [""]
  resources: [nodes] # whether the node of a pod that does not become ready is; a Role grants nothing here
  verbs: [get]
- apiGroups: [""]
  resources: [events] # its own, and the kubelet's about volumes that cannot be mounted
  verbs: [create, list]
{{- end -}}

{{/*
Binds rules to a service account: cluster-wide, or in each watched namespace.
dict "root" $ "name" … "account" … "rules" … "annotations" (optional) "accountNamespace" (optional: the release's)
*/}}
{{- define "cosyvoice.grant" -}}
{{- $root := .root -}}
{{- $grant := . -}}
{{- $scopes := .root.Values.watchNamespaces | default (list "") -}}
{{- range $scope := $scopes }}
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ ternary "Role" "ClusterRole" (ne $scope "") }}
metadata:
  {{- include "cosyvoice.grantMetadata" (dict "grant" $grant "scope" $scope) | nindent 2 }}
rules:
  {{- $grant.rules | nindent 2 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ ternary "RoleBinding" "ClusterRoleBinding" (ne $scope "") }}
metadata:
  {{- include "cosyvoice.grantMetadata" (dict "grant" $grant "scope" $scope) | nindent 2 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {{ ternary "Role" "ClusterRole" (ne $scope "") }}
  name: {{ $grant.name }}
subjects:
  - kind: ServiceAccount
    name: {{ $grant.account }}
    namespace: {{ $grant.accountNamespace | default $root.Release.Namespace }}
---
{{- end }}
{{- end -}}

{{- define "cosyvoice.grantMetadata" -}}
name: {{ .grant.name }}
{{- with .scope }}
namespace: {{ . }}
{{- end }}
labels:
  {{- include "cosyvoice.labels" .grant.root | nindent 2 }}
{{- with .grant.annotations }}
annotations:
  {{- . | nindent 2 }}
{{- end }}
{{- end -}}
