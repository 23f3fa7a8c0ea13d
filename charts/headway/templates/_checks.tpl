{{/* Values that contradict each other; what one value may be is in values.schema.json. */}}
{{- define "headway.checkValues" -}}
{{- $prometheus := .Values.prometheus -}}
{{- if not $prometheus.url -}}
{{- if $prometheus.tokenSecret.name -}}
{{- fail "prometheus.tokenSecret.name is set and prometheus.url is not: set the URL of the Prometheus the token is for" -}}
{{- end -}}
{{- if $prometheus.caSecret.name -}}
{{- fail "prometheus.caSecret.name is set and prometheus.url is not: set the URL of the Prometheus the certificates are for" -}}
{{- end -}}
{{- end -}}
{{- if and $prometheus.caSecret.name (hasPrefix "http://" $prometheus.url) -}}
{{- fail "prometheus.caSecret.name is set and prometheus.url is http://: no certificate is checked there; use https:// or remove the Secret" -}}
{{- end -}}
{{- end -}}
