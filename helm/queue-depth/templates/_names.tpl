{{/* Names, labels and other short texts that several objects share. */}}

{{- define "queue-depth.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 45 | trimSuffix "-" -}}
{{- else -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) | trunc 45 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "queue-depth.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{/* What selects one component's pods. Takes a dict of `root` and `component`. */}}
{{- define "queue-depth.selectorLabels" -}}
app.kubernetes.io/name: {{ include "queue-depth.name" .root | quote }}
app.kubernetes.io/instance: {{ .root.Release.Name | quote }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{/* Every label of an object. Takes a dict of `root`, `component` and, optionally, `extra`. */}}
{{- define "queue-depth.labels" -}}
{{- $labels := include "queue-depth.selectorLabels" . | fromYaml -}}
{{- $_ := set $labels "app.kubernetes.io/version" .root.Chart.AppVersion -}}
{{- $_ := set $labels "app.kubernetes.io/managed-by" .root.Release.Service -}}
{{- $_ := set $labels "helm.sh/chart" (printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" | trunc 63) -}}
{{- toYaml (merge $labels (default dict .extra) (default dict .root.Values.labels)) -}}
{{- end -}}

{{/*
Labels of a pod: without the chart's version, so that only what matters to a pod starts a new one. Takes what
`queue-depth.labels` takes.
*/}}
{{- define "queue-depth.podLabels" -}}
{{- toYaml (merge (include "queue-depth.selectorLabels" . | fromYaml) (default dict .extra) (default dict .root.Values.labels)) -}}
{{- end -}}

{{- define "queue-depth.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{- printf "%s@%s" .repository .digest -}}
{{- else -}}
{{- printf "%s:%s" .repository (default $.Chart.AppVersion .tag) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "queue-depth.serviceAccountName" -}}
{{- default (ternary (include "queue-depth.fullname" .) "default" .Values.serviceAccount.create) .Values.serviceAccount.name -}}
{{- end -}}

{{/* Where the exporter is asked. */}}
{{- define "queue-depth.url" -}}
{{- default (printf "http://%s.%s.svc:%d" (include "queue-depth.fullname" .) .Release.Namespace (int .Values.service.port)) .Values.exporter.url -}}
{{- end -}}

{{/* Name and key of the Secret with the token that clients present, as JSON; the name is empty where there is none. */}}
{{- define "queue-depth.clientSecret" -}}
{{- $secret := .Values.auth.clientSecret -}}
{{- $name := default (ternary (printf "%s-token" (include "queue-depth.fullname" .)) "" (not (empty .Values.auth.tokens))) $secret.name -}}
{{- dict "name" $name "key" $secret.key | toJson -}}
{{- end -}}

{{/* The files that the exporter reads its secrets from; no path where there are no tokens. */}}
{{- define "queue-depth.databaseFile" -}}
{{- default "/etc/queue-depth/database/database-url" .Values.database.urlFile -}}
{{- end -}}

{{- define "queue-depth.tokensFile" -}}
{{- with .Values.auth -}}
{{- if or .tokens .tokensSecret.name -}}
/etc/queue-depth/auth/tokens
{{- else -}}
{{- default "" .tokensFile -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* What every pod of the chart has in common. */}}
{{- define "queue-depth.podSecurity" -}}
automountServiceAccountToken: false
enableServiceLinks: false
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.exporter.podSecurityContext }}
securityContext:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}
