{{/* The check of the contract: the same pod before an upgrade and in `helm test`. */}}

{{/* The pod's spec. Takes a dict of `root`, `manifests` (a ConfigMap's name), `unknown` (whether pools may be new). */}}
{{- define "queue-depth.contractPod" -}}
{{- $url := include "queue-depth.url" .root -}}
{{- $client := include "queue-depth.clientSecret" .root | fromJson -}}
restartPolicy: Never
{{ include "queue-depth.podSecurity" .root }}
containers:
  - name: contract
    image: {{ include "queue-depth.image" .root | quote }}
    imagePullPolicy: {{ .root.Values.image.pullPolicy }}
    args:
      - contract
      - verify
      - /manifests/manifests.yaml
      - --url
      - {{ $url | quote }}
      {{- if .unknown }}
      - --allow-unknown
      {{- end }}
    env:
      - name: PYTHONDONTWRITEBYTECODE
        value: "1"
      {{- if $client.name }}
      - name: QUEUE_DEPTH_TOKEN
        valueFrom:
          secretKeyRef:
            name: {{ $client.name | quote }}
            key: {{ $client.key | quote }}
            # Where tokens come with this very upgrade, the running exporter asks for none.
            optional: true
      {{- end }}
    {{- with .root.Values.contractCheck.resources }}
    resources:
      {{- toYaml . | nindent 6 }}
    {{- end }}
    {{- with .root.Values.exporter.securityContext }}
    securityContext:
      {{- toYaml . | nindent 6 }}
    {{- end }}
    volumeMounts:
      - name: manifests
        mountPath: /manifests
        readOnly: true
volumes:
  - name: manifests
    configMap:
      name: {{ .manifests | quote }}
{{- with .root.Values.exporter.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.exporter.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* A ConfigMap with the rendered ScaledObjects. Takes a dict of `root`, `name`, `annotations`. */}}
{{- define "queue-depth.contractManifests" -}}
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .name | quote }}
  namespace: {{ .root.Release.Namespace | quote }}
  labels:
    {{- include "queue-depth.labels" (dict "root" .root "component" "contract-check") | nindent 4 }}
  {{- with .annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
data:
  manifests.yaml: |
    {{- include "queue-depth.scaledObjects" .root | nindent 4 }}
{{- end -}}
