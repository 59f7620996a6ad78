{{- /* SPDX-License-Identifier: Apache-2.0 */ -}}

{{- define "vk.chart" -}}
{{- .Values.nameOverride | default .Chart.Name -}}
{{- end -}}

{{- define "vk.name" -}}
{{- $chart := include "vk.chart" . -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride -}}
{{- else if contains $chart .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $chart | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "vk.selector" -}}
app.kubernetes.io/name: {{ include "vk.chart" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "vk.labels" -}}
{{ include "vk.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{- /* Objects of the cluster carry the namespace in their names: there may be several releases. */ -}}
{{- define "vk.clusterName" -}}
{{- printf "%s:%s" .Release.Namespace (include "vk.name" .) -}}
{{- end -}}

{{- /* Not empty if the node asks for certificates, which it keeps. */ -}}
{{- define "vk.requests" -}}
{{- if or .Values.identity.bootstrapSecret (eq .Values.serving.mode "request") -}}yes{{- end -}}
{{- end -}}

{{- /* Not empty if several pods share nodes. Several pods of one node need nothing: those without its lease stand by. */ -}}
{{- define "vk.shares" -}}
{{- if and .Values.nodes (gt (int .Values.replicas) 1) -}}yes{{- end -}}
{{- end -}}

{{- /* Nine tenths of the limit of memory, in bytes: Go collects more often before the kernel ends the process. Empty for other than whole numbers. */ -}}
{{- define "vk.memory" -}}
{{- $limit := dig "limits" "memory" "" .Values.resources | toString -}}
{{- $units := dict "" 1 "k" 1000 "M" 1000000 "G" 1000000000 "Ki" 1024 "Mi" 1048576 "Gi" 1073741824 "Ti" 1099511627776 -}}
{{- if regexMatch "^[0-9]+(k|M|G|Ki|Mi|Gi|Ti)?$" $limit -}}
{{- div (mul (regexFind "^[0-9]+" $limit | int64) (get $units (regexFind "[a-zA-Z]+$" $limit)) 9) 10 -}}
{{- end -}}
{{- end -}}

{{- define "vk.image" -}}
{{ .Values.image.repository }}{{ if .Values.image.digest }}@{{ .Values.image.digest }}{{ else }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}
{{- end -}}

{{- define "vk.securityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{- /* Refuses values in the place of what the chart sets itself. */ -}}
{{- define "vk.refuse" -}}
{{- range $key := keys .Values.podLabels | sortAlpha -}}
{{- if has $key (keys (include "vk.labels" $ | fromYaml)) -}}
{{- fail (printf "podLabels: the chart sets %s itself: remove it" $key) -}}
{{- end -}}
{{- end -}}
{{- if hasKey .Values.podAnnotations "checksum/config" -}}
{{- fail "podAnnotations: the chart sets checksum/config itself: remove it" -}}
{{- end -}}
{{- if and (gt (int .Values.replicas) 1) .Values.config.disableLeaseGuard -}}
{{- fail "config.disableLeaseGuard: with several replicas each would act for the node: remove it, or set replicas to 1" -}}
{{- end -}}
{{- range .Values.extraEnv -}}
{{- if has .name (list "GOMEMLIMIT" "VKUBELET_POD_IP" "DEFAULT_NODE_NAME" "VKUBELET_NODES" "VKUBELET_SHARE_NODES" "KUBECONFIG" "KUBELET_PORT" "APISERVER_CERT_LOCATION" "APISERVER_KEY_LOCATION" "APISERVER_CA_CERT_LOCATION") -}}
{{- fail (printf "extraEnv: %s goes before a setting that the chart makes from other values: remove it, and set those" .name) -}}
{{- end -}}
{{- end -}}
{{- range .Values.extraVolumes -}}
{{- if or (has .name (list "config" "identity" "certificates" "serving" "client-ca")) (hasPrefix "provider-secret-" .name) -}}
{{- fail (printf "extraVolumes: the chart has a volume %s itself: take another name" .name) -}}
{{- end -}}
{{- end -}}
{{- range .Values.extraVolumeMounts -}}
{{- $path := printf "%s/" (clean .mountPath | trimSuffix "/") -}}
{{- range $own := list "/etc/virtual-kubelet/config" "/etc/virtual-kubelet/identity" "/etc/virtual-kubelet/serving" "/etc/virtual-kubelet/client-ca" "/etc/virtual-kubelet/secrets" "/var/lib/virtual-kubelet" -}}
{{- if or (hasPrefix $path (printf "%s/" $own)) (hasPrefix (printf "%s/" $own) $path) -}}
{{- fail (printf "extraVolumeMounts: %s: the chart has its own files in %s: take another path" $path $own) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "vk.config" -}}
{{- $own := dict "apiVersion" "virtual-kubelet.io/v1alpha1" "kind" "VirtualKubeletConfiguration" "provider" .Values.provider -}}
{{- if .Values.nodes -}}
{{- $_ := set $own "nodes" .Values.nodes -}}
{{- else -}}
{{- $_ := set $own "nodeName" .Values.nodeName -}}
{{- end -}}
{{- if include "vk.shares" . -}}
{{- $_ := set $own "shareNodes" (include "vk.name" . | replace "." "-" | trunc 40 | trimSuffix "-") -}}
{{- end -}}
{{- if .Values.providerConfig -}}
{{- $_ := set $own "providerConfig" "/etc/virtual-kubelet/config/provider" -}}
{{- end -}}
{{- if and (eq .Values.identity.mode "node") .Values.identity.bootstrapSecret -}}
{{- $_ := set $own "bootstrapKubeconfig" "/etc/virtual-kubelet/identity/bootstrap-kubeconfig" -}}
{{- $_ := set $own "kubeconfig" "/var/lib/virtual-kubelet/kubeconfig" -}}
{{- else if eq .Values.identity.mode "node" -}}
{{- $_ := set $own "kubeconfig" "/etc/virtual-kubelet/identity/kubeconfig" -}}
{{- end -}}
{{- if include "vk.requests" . -}}
{{- $_ := set $own "certDir" "/var/lib/virtual-kubelet" -}}
{{- end -}}
{{- if eq .Values.serving.mode "none" -}}
{{- $_ := set $own "disableKubeletAPI" true -}}
{{- else -}}
{{- $_ := set $own "port" (int .Values.serving.port) -}}
{{- if .Values.serving.clientCAConfigMap -}}
{{- $_ := set $own "clientCAFile" "/etc/virtual-kubelet/client-ca/ca.crt" -}}
{{- end -}}
{{- if eq .Values.serving.mode "secret" -}}
{{- $_ := set $own "tlsCertFile" "/etc/virtual-kubelet/serving/tls.crt" -}}
{{- $_ := set $own "tlsPrivateKeyFile" "/etc/virtual-kubelet/serving/tls.key" -}}
{{- else if eq .Values.serving.mode "request" -}}
{{- $_ := set $own "serverTLSBootstrap" true -}}
{{- else -}}
{{- $_ := set $own "selfSignedServingCertificate" true -}}
{{- end -}}
{{- end -}}
{{- /* For the probe, and for whoever is in the pod. */ -}}
{{- merge $own .Values.config (dict "metricsAddress" "127.0.0.1:10255") | toYaml -}}
{{- end -}}

{{- /* The files of the program, which the test of the release has too. */ -}}
{{- define "vk.mounts" -}}
- name: config
  mountPath: /etc/virtual-kubelet/config
  readOnly: true
{{- if eq .Values.identity.mode "node" }}
- name: identity
  mountPath: /etc/virtual-kubelet/identity
  readOnly: true
{{- end }}
{{- if include "vk.requests" . }}
- name: certificates
  mountPath: /var/lib/virtual-kubelet
{{- end }}
{{- if eq .Values.serving.mode "secret" }}
- name: serving
  mountPath: /etc/virtual-kubelet/serving
  readOnly: true
{{- end }}
{{- if and (ne .Values.serving.mode "none") .Values.serving.clientCAConfigMap }}
- name: client-ca
  mountPath: /etc/virtual-kubelet/client-ca
  readOnly: true
{{- end }}
{{- range $i, $name := .Values.providerSecrets }}
- name: provider-secret-{{ $i }}
  mountPath: /etc/virtual-kubelet/secrets/{{ $name }}
  readOnly: true
{{- end }}
{{- end -}}

{{- define "vk.volumes" -}}
- name: config
  projected:
    defaultMode: 0440
    sources:
      - configMap:
          name: {{ include "vk.name" . }}
      {{- if .Values.providerConfig }}
      - secret:
          name: {{ include "vk.name" . }}-provider
      {{- end }}
{{- if eq .Values.identity.mode "node" }}
- name: identity
  secret:
    secretName: {{ .Values.identity.bootstrapSecret | default .Values.identity.kubeconfigSecret }}
    defaultMode: 0440
{{- end }}
{{- if include "vk.requests" . }}
- name: certificates
  emptyDir:
    medium: Memory # keys are never on a disk
    sizeLimit: 1Mi
{{- end }}
{{- if eq .Values.serving.mode "secret" }}
- name: serving
  secret:
    secretName: {{ .Values.serving.secretName }}
    defaultMode: 0440
{{- end }}
{{- if and (ne .Values.serving.mode "none") .Values.serving.clientCAConfigMap }}
- name: client-ca
  configMap:
    name: {{ .Values.serving.clientCAConfigMap }}
{{- end }}
{{- range $i, $name := .Values.providerSecrets }}
- name: provider-secret-{{ $i }}
  secret:
    secretName: {{ $name }}
    defaultMode: 0440
{{- end }}
{{- end -}}
