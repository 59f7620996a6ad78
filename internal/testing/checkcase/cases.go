// SPDX-License-Identifier: Apache-2.0

// Package checkcase has small pods that the command check once accepted, although the mappings of providers
// refused them.
//
// The guarantee: a test that calls Compare proves that the command and the node agree about these common pods of
// users, for its provider.
//
// Note: a provider may refuse a pod of this package, or may have learned to run the pod.
package checkcase

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"
)

// Plain is a pod that runs at every provider.
const Plain = "plain"

// specs are the specs of the pods by name. They are a pod of the command check, a restricted pod, and a pod like Bitnami's charts.
var specs = map[string]string{
	Plain:           `{containers: [{name: c, image: nginx, command: [sleep, "60"], resources: {requests: {cpu: 500m, memory: 1Gi}}}]}`,
	"defaultmode":   `{containers: [{name: a, image: nginx, volumeMounts: [{name: v, mountPath: /v}]}], volumes: [{name: v, secret: {secretName: s, defaultMode: 0400}}]}`,
	"dropall":       `{containers: [{name: c, image: nginx, securityContext: {capabilities: {drop: [ALL]}}}]}`,
	"emptyenv":      `{containers: [{name: c, image: nginx, env: [{name: A, value: ""}, {name: b.c, value: x}]}]}`,
	"grace1":        `{terminationGracePeriodSeconds: 1, containers: [{name: a, image: nginx}]}`,
	"grace300":      `{terminationGracePeriodSeconds: 300, containers: [{name: a, image: nginx}]}`,
	"liveness-exec": `{containers: [{name: c, image: nginx, livenessProbe: {exec: {command: ["true"]}}}]}`,
	"liveness":      `{containers: [{name: c, image: nginx, livenessProbe: {tcpSocket: {port: 80}}}]}`,
	"restricted": `{securityContext: {runAsNonRoot: true, runAsUser: 1000, seccompProfile: {type: RuntimeDefault}}, containers: [{name: c, image: busybox,
		command: [sleep, "60"], securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}}]}`,
	"chart": `{securityContext: {fsGroup: 1001}, volumes: [{name: empty, emptyDir: {}}], containers: [{name: web, image: nginx, command: [/usr/sbin/nginx],
		args: ["--a=1", "--b=2", "--c=3", "--d=4", "--e=5", "--f=6", "--g=7", "--h=8", "--i=9", "--j=10", "--k=11"],
		env: [{name: EMPTY, value: ""}, {name: POD_NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}, {name: HOST_IP, valueFrom: {fieldRef: {fieldPath: status.hostIP}}},
			{name: DB_PASSWORD, valueFrom: {secretKeyRef: {name: db, key: password}}}],
		securityContext: {runAsUser: 1001, runAsNonRoot: true, allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}, seccompProfile: {type: RuntimeDefault}, readOnlyRootFilesystem: true},
		livenessProbe: {tcpSocket: {port: 8080}}, readinessProbe: {httpGet: {path: /, port: 8080}}, resources: {requests: {cpu: 100m, memory: 128Mi}, limits: {cpu: 150m, memory: 192Mi}},
		volumeMounts: [{name: empty, mountPath: /tmp, subPath: tmp-dir}]}]}`,
	"startup":    `{containers: [{name: c, image: nginx, startupProbe: {httpGet: {port: 80}}}]}`,
	"twojobs":    `{restartPolicy: Never, containers: [{name: a, image: nginx}, {name: b, image: nginx}]}`,
	"workingdir": `{containers: [{name: c, image: nginx, workingDir: /tmp}]}`,
}

// All returns the pods by name, as an API server stores them before a node changes them.
func All() map[string]*corev1.Pod {
	all := map[string]*corev1.Pod{}
	for name, spec := range specs {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("uid-of-" + name)}}
		if err := yaml.UnmarshalStrict([]byte(spec), &pod.Spec); err != nil {
			panic(err)
		}
		all[name] = pod
	}
	return all
}
