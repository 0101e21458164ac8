{{/*
What the schema cannot say: every mistake at once, each with its place, what would happen otherwise and how to mend it.
The other templates render something whatever is wrong, so that a mistake is told in these words and not in Go's.
*/}}
{{- define "queue-depth.guard" -}}
{{- $problems := concat (include "queue-depth.problems.release" . | fromJsonArray) (include "queue-depth.problems.pools" . | fromJsonArray) | uniq -}}
{{- if $problems -}}
{{- fail (printf "\n\nqueue-depth cannot be rendered:\n  * %s\n" (join "\n  * " $problems)) -}}
{{- end -}}
{{- end -}}

{{- define "queue-depth.problems.release" -}}
{{- $say := list -}}
{{- $exporter := .Values.exporter -}}
{{- $scaled := (include "queue-depth.scaledPools" . | fromJson).pools -}}

{{- if and $exporter.enabled (not (regexMatch "^[a-z]" (include "queue-depth.fullname" .))) -}}
{{- $say = append $say (printf "the name %q begins with a digit: the API server would refuse the exporter's Service. Set fullnameOverride, or name the release otherwise." (include "queue-depth.fullname" .)) -}}
{{- end -}}

{{- with .Values.image -}}
{{- if not .repository -}}
{{- if or $exporter.enabled $.Values.contractCheck.enabled -}}
{{- $say = append $say "image.repository is not set: there would be no image to pull. Set it to where your image of queue-depth is, without a tag." -}}
{{- end -}}
{{- else if or (contains "@" .repository) (contains ":" (base .repository)) -}}
{{- $say = append $say (printf "image.repository %q holds a tag or digest: another would be put behind it, which is no image. Set image.tag or image.digest." .repository) -}}
{{- end -}}
{{- if and .tag (eq .tag "latest") -}}
{{- $say = append $say "image.tag is \"latest\": two pods could run different versions, and no check of the contract would mean anything. Set a version, or image.digest." -}}
{{- end -}}
{{- if and .tag .digest -}}
{{- $say = append $say "image.tag and image.digest are both set: the tag would be ignored in silence. Set one of them." -}}
{{- end -}}
{{- end -}}

{{- if $exporter.enabled -}}
{{- with .Values.database -}}
{{- $given := compact (list (ternary "database.url" "" (not (empty .url))) (ternary "database.existingSecret.name" "" (not (empty .existingSecret.name))) (ternary "database.urlFile" "" (not (empty .urlFile)))) -}}
{{- if not $given -}}
{{- $say = append $say "no database is named: the exporter would not start. Set one of database.existingSecret.name (best), database.urlFile or database.url." -}}
{{- else if gt (len $given) 1 -}}
{{- $say = append $say (printf "%s are set together: only one would be read. Set one of them." (join " and " $given)) -}}
{{- end -}}
{{- if and .url (not (regexMatch "^postgres(ql)?(\\+\\w+)?://[^/]" .url)) -}}
{{- $say = append $say "database.url is no connection URL: the exporter would not start. Write postgresql://USER:PASSWORD@HOST:PORT/DATABASE." -}}
{{- else if and .url $.Values.networkPolicy.enabled -}}
{{- $hosts := regexReplaceAll "^[^:]+://([^/?]*@)?([^/?]*).*$" .url "${2}" -}}
{{- range splitList "," $hosts -}}
{{- $port := default "5432" (regexFind "[0-9]+$" (regexFind ":[0-9]+$" .)) -}}
{{- if ne $port (toString $.Values.networkPolicy.database.port) -}}
{{- $say = append $say (printf "database.url is at port %s and networkPolicy.database.port is %v: the exporter would not reach it. Set both to the same." $port $.Values.networkPolicy.database.port) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- range $exporter.extraEnv -}}
{{- if regexMatch "^(QUEUE_DEPTH_(CONFIG|LISTEN|TOKENS_FILE|POOLS|DATABASE_URL(_FILE)?)|PGPASSWORD)$" .name -}}
{{- $say = append $say (printf "exporter.extraEnv sets %s: it would win over what the chart mounts, and a secret in the environment cannot be rotated without a restart. Use database, auth, pools and exporter.listenHost." .name) -}}
{{- end -}}
{{- end -}}
{{- if le (int $exporter.terminationGracePeriodSeconds) (add 5 $exporter.preStopSeconds | int) -}}
{{- $say = append $say (printf "exporter.terminationGracePeriodSeconds is %d: the pod would be killed while it still answers. Set it above exporter.preStopSeconds plus 5." (int $exporter.terminationGracePeriodSeconds)) -}}
{{- end -}}
{{- else -}}
{{- if not $exporter.url -}}
{{- $say = append $say "exporter.enabled is false and exporter.url is not set: the triggers would ask nobody. Set it to the exporter's Service, such as http://queue-depth.queue-depth.svc:8080." -}}
{{- end -}}
{{- if not $scaled -}}
{{- $say = append $say "exporter.enabled is false and no pool is scaled: the release would do nothing. Add a pool to pools, or enable the exporter." -}}
{{- end -}}
{{- if or .Values.metrics.serviceMonitor.enabled .Values.metrics.podMonitor.enabled -}}
{{- $say = append $say "exporter.enabled is false and metrics are on: the monitor would select nothing. Enable it in the exporter's release." -}}
{{- end -}}
{{- if or .Values.auth.tokens .Values.auth.tokensSecret.name .Values.auth.tokensFile -}}
{{- $say = append $say "exporter.enabled is false and auth has the exporter's tokens: nobody would read them. Set auth.clientSecret.name to a Secret with the one token to present." -}}
{{- end -}}
{{- if or .Values.config .Values.database.url .Values.database.existingSecret.name .Values.database.urlFile -}}
{{- $say = append $say "exporter.enabled is false and config or database is set: nobody would read it. Set it in the exporter's release." -}}
{{- end -}}
{{- end -}}

{{- if and $exporter.url (not (regexMatch "^https?://[^/@?#\\s]+$" $exporter.url)) -}}
{{- $say = append $say (printf "exporter.url %q is not http(s)://HOST:PORT: the triggers' paths would not be the exporter's, which answers 404 and never redirects. Write it without a path, a slash at the end or credentials." $exporter.url) -}}
{{- end -}}

{{- with .Values.auth -}}
{{- $given := compact (list (ternary "auth.tokens" "" (not (empty .tokens))) (ternary "auth.tokensSecret.name" "" (not (empty .tokensSecret.name))) (ternary "auth.tokensFile" "" (not (empty .tokensFile)))) -}}
{{- if gt (len $given) 1 -}}
{{- $say = append $say (printf "%s are set together: only one would be read. Set one of them." (join " and " $given)) -}}
{{- end -}}
{{- if and .tokens .clientSecret.name -}}
{{- $say = append $say "auth.tokens and auth.clientSecret.name are set together: the chart would write one Secret and the triggers read another. With auth.tokens leave the name out." -}}
{{- end -}}
{{- if and (or .tokensSecret.name .tokensFile) (not .clientSecret.name) -}}
{{- if or $.Values.metrics.serviceMonitor.enabled $.Values.metrics.podMonitor.enabled -}}
{{- $say = append $say "the exporter has tokens and auth.clientSecret.name is not set: Prometheus would be answered 401. Name the Secret with the token to present." -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- with .Values.metrics -}}
{{- if and .serviceMonitor.enabled .podMonitor.enabled -}}
{{- $say = append $say "metrics.serviceMonitor and metrics.podMonitor are both enabled: every series would be there twice. Enable one." -}}
{{- end -}}
{{- range $kind, $monitor := dict "ServiceMonitor" .serviceMonitor "PodMonitor" .podMonitor -}}
{{- if and $monitor.enabled (not ($.Capabilities.APIVersions.Has (printf "monitoring.coreos.com/v1/%s" $kind))) -}}
{{- $say = append $say (printf "metrics.%s is enabled and the cluster has no %s: the API server would refuse the release halfway. Install the Prometheus Operator's CRDs first; with helm template add --api-versions monitoring.coreos.com/v1/%s." (untitle $kind) $kind $kind) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- if and $scaled (not (.Capabilities.APIVersions.Has "keda.sh/v1alpha1/ScaledObject")) -}}
{{- $say = append $say "pools are scaled and the cluster has no ScaledObject: the API server would refuse the release halfway. Install KEDA first; with helm template add --api-versions keda.sh/v1alpha1/ScaledObject." -}}
{{- end -}}
{{- toJson $say -}}
{{- end -}}

{{- define "queue-depth.problems.pools" -}}
{{- $root := . -}}
{{- $say := list -}}
{{- if not .Values.exporter.enabled -}}
{{- range $name, $pool := .Values.pools -}}
{{- range $key := splitList " " (include "queue-depth.exporterKeys" $root) -}}
{{- if hasKey $pool $key -}}
{{- $say = append $say (printf "pools.%s.%s is the exporter's configuration and exporter.enabled is false: nobody would read it. Set it in the exporter's release, under the same name." $name $key) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $objects := dict -}}
{{- $targets := dict -}}
{{- range (include "queue-depth.scaledPools" . | fromJson).pools -}}
{{- $at := printf "pools.%s" .key -}}
{{- $minimum := int .minReplicaCount -}}

{{- if gt (len .name) 54 -}}
{{- $say = append $say (printf "%s: the name %q has %d characters, and KEDA's HPA keda-hpa-… can have 63: nothing would be scaled. Set %s.name to at most 54." $at .name (len .name) $at) -}}
{{- else if not (regexMatch "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$" .name) -}}
{{- $say = append $say (printf "%s: %q is no name for a ScaledObject (lower case letters, digits, hyphens): the API server would refuse it. Set %s.name; the pool keeps its own." $at .name $at) -}}
{{- end -}}
{{- $object := printf "%s/%s" .namespace .name -}}
{{- with get $objects $object -}}
{{- $say = append $say (printf "%s and %s are both the ScaledObject %s: one would overwrite the other. Set %s.name." . $at $object $at) -}}
{{- end -}}
{{- $_ := set $objects $object $at -}}

{{- if not .target.name -}}
{{- $say = append $say (printf "%s.target.name is not set: nothing would be scaled. Name the workers' Deployment." $at) -}}
{{- else -}}
{{- $target := printf "%s %s/%s" .target.kind .namespace .target.name -}}
{{- with get $targets $target -}}
{{- $say = append $say (printf "%s and %s both scale %s: two HPAs would fight over it, and KEDA refuses the second. Make one pool of them, with the queues of both." . $at $target) -}}
{{- end -}}
{{- $_ := set $targets $target $at -}}
{{- end -}}

{{- if not (hasKey . "maxReplicaCount") -}}
{{- $say = append $say (printf "%s.maxReplicaCount is not set: KEDA would go up to 100 pods. Set what your database and your cluster can bear." $at) -}}
{{- else -}}
{{- if gt $minimum (int .maxReplicaCount) -}}
{{- $say = append $say (printf "%s.minReplicaCount %d is above maxReplicaCount %d: the API server would refuse it. Swap or correct them." $at $minimum (int .maxReplicaCount)) -}}
{{- else if gt (int .fallback.replicas) (int .maxReplicaCount) -}}
{{- $say = append $say (printf "%s.fallback.replicas %d is above maxReplicaCount %d: the HPA would never reach it. Lower it." $at (int .fallback.replicas) (int .maxReplicaCount)) -}}
{{- end -}}
{{- end -}}
{{- if hasKey . "idleReplicaCount" -}}
{{- if ne (int .idleReplicaCount) 0 -}}
{{- $say = append $say (printf "%s.idleReplicaCount is %d: an HPA cannot hold it, and only 0 works in KEDA. Set 0, or leave it out." $at (int .idleReplicaCount)) -}}
{{- else if eq $minimum 0 -}}
{{- $say = append $say (printf "%s.idleReplicaCount must be below minReplicaCount, which is 0: KEDA would refuse it. Leave it out, or raise minReplicaCount." $at) -}}
{{- end -}}
{{- end -}}

{{- if lt (int .fallback.replicas) 1 -}}
{{- $say = append $say (printf "%s.fallback.replicas is 0: while the exporter is away, KEDA would take busy pods to zero. Set at least 1." $at) -}}
{{- else if lt (int .fallback.replicas) $minimum -}}
{{- $say = append $say (printf "%s.fallback.replicas %d is below minReplicaCount %d: it would never be reached. Leave it out." $at (int .fallback.replicas) $minimum) -}}
{{- end -}}
{{- if not (has .fallback.behavior (list "currentReplicasIfHigher" "currentReplicas")) -}}
{{- $say = append $say (printf "%s.fallback.behavior %q would take busy pods away while the exporter is away. Write currentReplicasIfHigher." $at .fallback.behavior) -}}
{{- end -}}
{{- if and .canBeIdle (lt (int .initialCooldownPeriod) 1) -}}
{{- $say = append $say (printf "%s.initialCooldownPeriod is 0: a Deployment that runs already could go to zero with KEDA's first poll. Leave it out; it is then cooldownPeriod." $at) -}}
{{- end -}}

{{- if and .canBeIdle (lt (int .cooldownPeriod) (mul 3 .pollingInterval | int)) -}}
{{- $say = append $say (printf "%s.cooldownPeriod is %d: KEDA asks for the two numbers one after the other, perhaps two of the exporter's pods, so what starts in between is in neither, and its pod would go. Set at least three pollingInterval (%d)." $at (int .cooldownPeriod) (mul 3 .pollingInterval | int)) -}}
{{- end -}}
{{- if eq .mode "raw" -}}
{{- if not .workerConcurrency -}}
{{- $say = append $say (printf "%s.mode is raw and workerConcurrency is not set: KEDA would start a pod for every workflow. Set it to what one process runs at once, or use mode: replicas." $at) -}}
{{- end -}}
{{- else -}}
{{- $own := hasKey (get $root.Values.pools .key) "workerConcurrency" -}}
{{- /* Among the defaults it is for the pools that are raw, while others are not any more. */ -}}
{{- if and .workerConcurrency (or $own (ne $root.Values.poolDefaults.mode "raw")) -}}
{{- $say = append $say (printf "%s.workerConcurrency is for mode: raw: DBOS and the exporter know it already, and two places would drift apart. Take it out; where DBOS does not know it, set config.queues.<queue>.worker_concurrency." (ternary $at "poolDefaults" $own)) -}}
{{- end -}}
{{- if .queue -}}
{{- $say = append $say (printf "%s.queue is for mode: raw: a floor of one queue is too low for pods that serve others too. Take it out." $at) -}}
{{- end -}}
{{- end -}}
{{- if and .queue $root.Values.exporter.enabled -}}
{{- $say = append $say (printf "%s.queue is for exporters that know no pools: this release's own would be asked for less than it knows. Take it out, and write queues." $at) -}}
{{- end -}}

{{- if and (eq .scaleUpTolerance "always") (not (semverCompare ">=1.33.0-0" $root.Capabilities.KubeVersion.Version)) -}}
{{- $say = append $say (printf "%s.scaleUpTolerance is always and the cluster is %s: an HPA has no tolerance of its own before Kubernetes 1.33, and the field would be dropped in silence. Use auto." $at $root.Capabilities.KubeVersion.Version) -}}
{{- end -}}
{{- $up := default dict .behavior.scaleUp -}}
{{- range $way, $rules := .behavior -}}
{{- if and (hasKey $rules "tolerance") (not (semverCompare ">=1.33.0-0" $root.Capabilities.KubeVersion.Version)) -}}
{{- $say = append $say (printf "%s.behavior.%s.tolerance is set and the cluster is %s: an HPA has no tolerance of its own before Kubernetes 1.33, and the field would be dropped in silence. Take it out%s." $at $way $root.Capabilities.KubeVersion.Version (ternary "; scaleUpTolerance: auto does what this cluster can" "" (eq $way "scaleUp"))) -}}
{{- end -}}
{{- end -}}
{{- if eq (default "" $up.selectPolicy) "Disabled" -}}
{{- $say = append $say (printf "%s.behavior.scaleUp.selectPolicy is Disabled: work would wait for ever beside one pod. Take it out; to hold a pool for a while, set paused: true." $at) -}}
{{- end -}}
{{- $down := default dict .behavior.scaleDown -}}
{{- if eq .scaleIn.mode "whenIdle" -}}
{{- if not .canBeIdle -}}
{{- $say = append $say (printf "%s.scaleIn.mode is whenIdle and minReplicaCount is %d: pods would never go, as only zero is gone to when idle. Set minReplicaCount: 0 or idleReplicaCount: 0, or scaleIn.mode: frozen if that is meant." $at $minimum) -}}
{{- end -}}
{{- if and $down.selectPolicy (ne $down.selectPolicy "Disabled") -}}
{{- $say = append $say (printf "%s.scaleIn.mode is whenIdle and behavior.scaleDown.selectPolicy is %s: busy pods would go after all. Take one of them out." $at $down.selectPolicy) -}}
{{- end -}}
{{- else if and (eq .scaleIn.mode "floor") (eq (default "" $down.selectPolicy) "Disabled") -}}
{{- $say = append $say (printf "%s.behavior.scaleDown.selectPolicy is Disabled and scaleIn.mode is floor: pods would never go down to the floor. Set scaleIn.mode: whenIdle." $at) -}}
{{- end -}}
{{- if and (eq .scaleIn.mode "floor") (eq (include "queue-depth.window" . | int) 0) -}}
{{- $say = append $say (printf "%s.%s.stabilizationWindowSeconds is 0: a pod would go at every dip, and it may be a busy one, as Kubernetes chooses which. Set at least two of the HPA's syncs (30)." $at (ternary "behavior.scaleDown" "scaleIn" (hasKey $down "stabilizationWindowSeconds"))) -}}
{{- end -}}
{{- if and (hasKey . "pausedReplicaCount") (not .paused) -}}
{{- $say = append $say (printf "%s.pausedReplicaCount is set and paused is false: KEDA would pause all the same. Set paused: true, or take it out." $at) -}}
{{- end -}}
{{- $annotations := .annotations -}}
{{- range $key, $value := dict "autoscaling.keda.sh/paused" "paused" "autoscaling.keda.sh/paused-replicas" "pausedReplicaCount" "autoscaling.keda.sh/paused-scale-in" "scaleIn.mode: frozen" "scaledobject.keda.sh/hpa-excluded-labels" "hpaExcludedLabels" -}}
{{- if hasKey $annotations $key -}}
{{- $say = append $say (printf "%s.annotations has %s: it would work against what the values say. Use %s." $at $key $value) -}}
{{- end -}}
{{- end -}}

{{- $names := list "backlog" "in-flight" -}}
{{- range .extraTriggers -}}
{{- if and .name (has .name $names) -}}
{{- $say = append $say (printf "%s.extraTriggers: the name %q is taken: KEDA would refuse the ScaledObject. Write another." $at .name) -}}
{{- end -}}
{{- $names = append $names .name -}}
{{- if and (eq (default "" .metricType) "Utilization") (not (has .type (list "cpu" "memory"))) -}}
{{- $say = append $say (printf "%s.extraTriggers: metricType Utilization is for cpu and memory: KEDA would refuse the trigger, and with it all scaling of the pool. Write AverageValue." $at) -}}
{{- end -}}
{{- if eq (default "" .metricType) "Value" -}}
{{- $say = append $say (printf "%s.extraTriggers: metricType Value is multiplied by the ready pods at every sync, so a count compounds. Write AverageValue." $at) -}}
{{- end -}}
{{- end -}}

{{- if .authenticationRef -}}
{{- if $root.Values.pools | dig .key "tokenSecret" false -}}
{{- $say = append $say (printf "%s has authenticationRef and tokenSecret: the Secret would not be read. Take one of them out." $at) -}}
{{- end -}}
{{- else if and (include "queue-depth.tokensFile" $root) (not .tokenSecret.name) -}}
{{- $say = append $say (printf "%s: the exporter has tokens and KEDA has none: every poll would be answered 401, and nothing scaled. Set auth.clientSecret.name, %s.tokenSecret.name or %s.authenticationRef." $at $at $at) -}}
{{- end -}}
{{- end -}}
{{- toJson $say -}}
{{- end -}}
