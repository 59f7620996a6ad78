{{- /* SPDX-License-Identifier: Apache-2.0 */ -}}

{{- define "vk.name" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "vk.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
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
{{- range .Values.extraEnv -}}
{{- if has .name (list "VKUBELET_POD_IP" "DEFAULT_NODE_NAME" "VKUBELET_NODES" "VKUBELET_SHARE_NODES" "KUBECONFIG" "KUBELET_PORT" "APISERVER_CERT_LOCATION" "APISERVER_KEY_LOCATION" "APISERVER_CA_CERT_LOCATION") -}}
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
{{- if gt (int .Values.replicas) 1 -}}
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
{{- merge $own .Values.config | toYaml -}}
{{- end -}}
