{{- define "headway.fullname" -}}
{{- if contains "headway" .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-headway" .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "headway.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "headway.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "headway.signingSecretName" -}}
{{- default (printf "%s-signing" (include "headway.fullname" .)) .Values.signingKey.existingSecret -}}
{{- end -}}

{{/* Labels that select the operator's pods: they never change with a version. */}}
{{- define "headway.selectorLabels" -}}
app.kubernetes.io/name: headway
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: operator
{{- end -}}

{{- define "headway.labels" -}}
{{ include "headway.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{/* One set of watches looks at the operator's own namespace too, where its Lease is; it serves nothing there. */}}
{{- define "headway.watchRules" -}}
- apiGroups: [headway.dev]
  resources: [inferenceservices]
  verbs: [list, watch]
- apiGroups: [apps]
  resources: [deployments]
  verbs: [list, watch]
- apiGroups: [""]
  resources: [pods, services, configmaps]
  verbs: [list, watch]
- apiGroups: [policy]
  resources: [poddisruptionbudgets]
  verbs: [list, watch]
- apiGroups: [networking.k8s.io]
  resources: [networkpolicies]
  verbs: [list, watch]
{{- end -}}
