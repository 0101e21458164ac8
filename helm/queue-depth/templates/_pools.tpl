{{/* Pools: what is written, the defaults, and what the chart works out, in one place. */}}

{{/*
`over` laid over `base`, maps into maps, lists replaced; as JSON. Takes a dict of both.
Sprig's mergeOverwrite takes an explicit 0 or false for absent in some releases.
*/}}
{{- define "queue-depth.merged" -}}
{{- $result := deepCopy .base -}}
{{- range $key, $value := .over -}}
{{- if and (kindIs "map" $value) (kindIs "map" (get $result $key)) -}}
{{- $_ := set $result $key (include "queue-depth.merged" (dict "base" (get $result $key) "over" $value) | fromJson) -}}
{{- else -}}
{{- $_ := set $result $key $value -}}
{{- end -}}
{{- end -}}
{{- toJson $result -}}
{{- end -}}

{{/* Keys of a pool that are the exporter's configuration. All others are about its ScaledObject. */}}
{{- define "queue-depth.exporterKeys" -}}
queues application version executors hpa_tolerance
{{- end -}}

{{/*
`pools` of the exporter's configuration file, as JSON: every pool that is scaled, and those that others scale.
Where the HPA ignores small differences, the exporter asks for enough pods to be beyond them.
*/}}
{{- define "queue-depth.exporterPools" -}}
{{- $root := . -}}
{{- $keys := splitList " " (include "queue-depth.exporterKeys" .) -}}
{{- $pools := dict -}}
{{- range $name, $pool := .Values.pools -}}
{{- $known := dict -}}
{{- range $key := $keys -}}
{{- if hasKey $pool $key -}}
{{- $_ := set $known $key (get $pool $key) -}}
{{- end -}}
{{- end -}}
{{- $merged := include "queue-depth.merged" (dict "base" $root.Values.poolDefaults "over" $pool) | fromJson -}}
{{- $ignored := include "queue-depth.ignoredDifference" (dict "root" $root "pool" $merged) | float64 -}}
{{- if and $merged.scaled $ignored (not (hasKey $known "hpa_tolerance")) -}}
{{- $_ := set $known "hpa_tolerance" $ignored -}}
{{- end -}}
{{- $_ := set $pools $name $known -}}
{{- end -}}
{{- toJson $pools -}}
{{- end -}}

{{/* The scaled pools, in the order of their names, with everything filled in: {"pools": […]} as JSON. */}}
{{- define "queue-depth.scaledPools" -}}
{{- $root := . -}}
{{- $client := include "queue-depth.clientSecret" . | fromJson -}}
{{- $pools := list -}}
{{- range $name, $written := .Values.pools -}}
{{- $pool := include "queue-depth.merged" (dict "base" $root.Values.poolDefaults "over" $written) | fromJson -}}
{{- if $pool.scaled -}}
{{- $target := default dict $pool.target -}}
{{- $minimum := int $pool.minReplicaCount -}}
{{- $fallback := $pool.fallback -}}
{{- if not (hasKey $fallback "replicas") -}}
{{- $_ := set $fallback "replicas" (max 1 $minimum) -}}
{{- end -}}
{{- if not (hasKey $pool "initialCooldownPeriod") -}}
{{- $_ := set $pool "initialCooldownPeriod" $pool.cooldownPeriod -}}
{{- end -}}
{{- $_ := set $pool "key" $name -}}
{{- $_ := set $pool "name" (default $name $pool.name) -}}
{{- $_ := set $pool "namespace" (default $root.Release.Namespace $pool.namespace) -}}
{{- $_ := set $pool "target" (merge dict $target (dict "apiVersion" "apps/v1" "kind" "Deployment" "name" "")) -}}
{{- $_ := set $pool "tokenSecret" (merge dict (default dict $pool.tokenSecret) $client) -}}
{{- $_ := set $pool "canBeIdle" (or (eq $minimum 0) (hasKey $pool "idleReplicaCount")) -}}
{{- $path := printf "/v1/pools/%s" (include "queue-depth.segment" $name) -}}
{{- if $pool.queue -}}
{{- $path = printf "/dbos-queue-depth/%s" (include "queue-depth.segment" $pool.queue) -}}
{{- end -}}
{{- $_ := set $pool "url" (printf "%s%s" (include "queue-depth.url" $root) $path) -}}
{{- $pools = append $pools $pool -}}
{{- end -}}
{{- end -}}
{{- dict "pools" $pools | toJson -}}
{{- end -}}

{{/* A name as one segment of a URL's path. Go's query escape differs from a path's in the space alone. */}}
{{- define "queue-depth.segment" -}}
{{- urlquery . | replace "+" "%20" -}}
{{- end -}}

{{/* Tolerance 0 for scaling up, where the API server keeps the field: "true" or empty. Takes a dict of `root`, `pool`. */}}
{{- define "queue-depth.hasTolerance" -}}
{{- $version := .root.Capabilities.KubeVersion.Version -}}
{{- if or (eq .pool.scaleUpTolerance "always") (and (eq .pool.scaleUpTolerance "auto") (semverCompare ">=1.35.0-0" $version)) -}}
true
{{- end -}}
{{- end -}}

{{/*
The difference that the HPA ignores when it scales up, as a fraction: what was written, as a decimal or in thousandths
(50m), or nothing, or its own default. Takes a dict of `root`, `pool` (with the defaults).
*/}}
{{- define "queue-depth.ignoredDifference" -}}
{{- $up := default dict .pool.behavior.scaleUp -}}
{{- if hasKey $up "tolerance" -}}
{{- $written := toString $up.tolerance -}}
{{- ternary (divf (trimSuffix "m" $written | float64) 1000) (float64 $written) (hasSuffix "m" $written) -}}
{{- else -}}
{{- ternary "0" "0.1" (not (empty (include "queue-depth.hasTolerance" .))) -}}
{{- end -}}
{{- end -}}

{{/* Seconds of the HPA's scale-down window. Takes a pool (with the defaults). */}}
{{- define "queue-depth.window" -}}
{{- $down := default dict .behavior.scaleDown -}}
{{- default 0 (ternary $down.stabilizationWindowSeconds .scaleIn.stabilizationWindowSeconds (hasKey $down "stabilizationWindowSeconds")) -}}
{{- end -}}

{{/*
The HPA's behavior. wanted_replicas is a count of pods, so it is gone to at once: the HPA's own rules would double the
pods every 15 seconds instead. Takes a dict of `root`, `pool`.
*/}}
{{- define "queue-depth.behavior" -}}
{{- $pool := .pool -}}
{{- $up := dict "stabilizationWindowSeconds" 0 "policies" (list (dict "type" "Pods" "value" (int $pool.maxReplicaCount) "periodSeconds" 15)) -}}
{{- if include "queue-depth.hasTolerance" . -}}
{{- $_ := set $up "tolerance" "0" -}}
{{- end -}}
{{- $down := dict "stabilizationWindowSeconds" (int $pool.scaleIn.stabilizationWindowSeconds) -}}
{{- if eq $pool.scaleIn.mode "whenIdle" -}}
{{- $_ := set $down "selectPolicy" "Disabled" -}}
{{- end -}}
{{- $behavior := include "queue-depth.merged" (dict "base" (dict "scaleUp" $up "scaleDown" $down) "over" $pool.behavior) | fromJson -}}
{{- range $rules := $behavior -}}
{{- if hasKey $rules "tolerance" -}}
{{- /* A quantity: the API server takes text or an integer, and no fraction. */ -}}
{{- $_ := set $rules "tolerance" (toString $rules.tolerance) -}}
{{- end -}}
{{- end -}}
{{- toYaml $behavior -}}
{{- end -}}

{{/* The exporter's configuration file. */}}
{{- define "queue-depth.config" -}}
{{- $config := deepCopy .Values.config -}}
{{- with include "queue-depth.exporterPools" . | fromJson -}}
{{- $_ := set $config "pools" . -}}
{{- end -}}
{{- toYaml $config -}}
{{- end -}}
