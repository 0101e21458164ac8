{{/* The ScaledObject of one pool. Takes a dict of `root`, `pool`. */}}
{{- define "queue-depth.scaledObject" -}}
{{- $root := .root -}}
{{- $pool := .pool -}}
{{- $annotations := deepCopy $pool.annotations -}}
{{- if $pool.paused -}}
{{- $_ := set $annotations "autoscaling.keda.sh/paused" "true" -}}
{{- end -}}
{{- if hasKey $pool "pausedReplicaCount" -}}
{{- $_ := set $annotations "autoscaling.keda.sh/paused-replicas" (int $pool.pausedReplicaCount | toString) -}}
{{- end -}}
{{- if eq $pool.scaleIn.mode "frozen" -}}
{{- $_ := set $annotations "autoscaling.keda.sh/paused-scale-in" "true" -}}
{{- end -}}
{{- with $pool.hpaExcludedLabels -}}
{{- $_ := set $annotations "scaledobject.keda.sh/hpa-excluded-labels" (join "," .) -}}
{{- end -}}
{{- if eq $root.Values.contractCheck.as "argocd" -}}
{{- $_ := set $annotations "argocd.argoproj.io/sync-wave" "2" -}}
{{- end -}}
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata:
  name: {{ $pool.name | quote }}
  namespace: {{ $pool.namespace | quote }}
  labels:
    {{- include "queue-depth.labels" (dict "root" $root "component" "scaling" "extra" $pool.labels) | nindent 4 }}
  {{- with $annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  scaleTargetRef:
    {{- toYaml $pool.target | nindent 4 }}
  minReplicaCount: {{ int $pool.minReplicaCount }}
  maxReplicaCount: {{ int $pool.maxReplicaCount }}
  {{- if hasKey $pool "idleReplicaCount" }}
  idleReplicaCount: {{ int $pool.idleReplicaCount }}
  {{- end }}
  {{- if $pool.canBeIdle }}
  # At one pod or more the HPA asks every 15 seconds; these are for the steps from and to zero.
  pollingInterval: {{ int $pool.pollingInterval }}
  cooldownPeriod: {{ int $pool.cooldownPeriod }}
  initialCooldownPeriod: {{ int $pool.initialCooldownPeriod }}
  {{- end }}
  fallback:
    failureThreshold: {{ int $pool.fallback.failureThreshold }}
    replicas: {{ int $pool.fallback.replicas }}
    behavior: {{ $pool.fallback.behavior }}
  advanced:
    horizontalPodAutoscalerConfig:
      behavior:
        {{- include "queue-depth.behavior" . | nindent 8 }}
  triggers:
    {{- $raw := eq $pool.mode "raw" }}
    {{- $target := ternary (default 0 $pool.workerConcurrency | int) 1 $raw }}
    {{- $fields := ternary (dict "backlog" "queue_length" "in-flight" "in_flight") (dict "backlog" "wanted_replicas" "in-flight" "floor_replicas") $raw }}
    {{- range $name, $field := $fields }}
    - type: metrics-api
      name: {{ $name | quote }}
      metricType: AverageValue
      metadata:
        url: {{ $pool.url | quote }}
        valueLocation: {{ $field | quote }}
        targetValue: {{ $target | quote }}
        activationTargetValue: "0"
        {{- if include "queue-depth.authenticationRef" $pool }}
        authMode: "bearer"
        {{- end }}
      {{- with include "queue-depth.authenticationRef" $pool }}
      authenticationRef:
        {{- . | nindent 8 }}
      {{- end }}
    {{- end }}
    {{- with $pool.extraTriggers }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
{{- end -}}

{{/* What a pool's triggers authenticate with, or nothing: an existing object, or the one that the chart makes. */}}
{{- define "queue-depth.authenticationRef" -}}
{{- if .authenticationRef -}}
{{- toYaml .authenticationRef -}}
{{- else if .tokenSecret.name -}}
name: {{ .name | quote }}
{{- end -}}
{{- end -}}

{{/* The scaled pools as manifests, for the check of the contract. */}}
{{- define "queue-depth.scaledObjects" -}}
{{- range (include "queue-depth.scaledPools" . | fromJson).pools }}
---
{{ include "queue-depth.scaledObject" (dict "root" $ "pool" .) }}
{{- end }}
{{- end -}}
