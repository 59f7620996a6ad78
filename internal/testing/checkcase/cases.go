// SPDX-License-Identifier: Apache-2.0

// Package checkcase has small pods that the command check once let pass and the mappings of providers refused.
//
// The promise: a test that goes through All asks of each provider whether check and node agree on pods that users have.
//
// What surprises: a provider may refuse one of these pods, or may have learned to run it.
package checkcase

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"
)

// Plain is the pod that every provider runs.
const Plain = "plain"

// specs are the specs of the pods by name. Source: shared/cases/clouds/check-says-can-run of issue 36, of 2026-11-28.
var specs = map[string]string{
	Plain:           `{containers: [{name: c, image: nginx, command: [sleep, "60"], resources: {requests: {cpu: 500m, memory: 1Gi}}}]}`,
	"defaultmode":   `{containers: [{name: a, image: nginx, volumeMounts: [{name: v, mountPath: /v}]}], volumes: [{name: v, secret: {secretName: s, defaultMode: 0400}}]}`,
	"dropall":       `{containers: [{name: c, image: nginx, securityContext: {capabilities: {drop: [ALL]}}}]}`,
	"emptyenv":      `{containers: [{name: c, image: nginx, env: [{name: A, value: ""}, {name: b.c, value: x}]}]}`,
	"grace1":        `{terminationGracePeriodSeconds: 1, containers: [{name: a, image: nginx}]}`,
	"grace300":      `{terminationGracePeriodSeconds: 300, containers: [{name: a, image: nginx}]}`,
	"liveness-exec": `{containers: [{name: c, image: nginx, livenessProbe: {exec: {command: ["true"]}}}]}`,
	"liveness":      `{containers: [{name: c, image: nginx, livenessProbe: {tcpSocket: {port: 80}}}]}`,
	"startup":       `{containers: [{name: c, image: nginx, startupProbe: {httpGet: {port: 80}}}]}`,
	"twojobs":       `{restartPolicy: Never, containers: [{name: a, image: nginx}, {name: b, image: nginx}]}`,
	"workingdir":    `{containers: [{name: c, image: nginx, workingDir: /tmp}]}`,
}

// All returns the pods by name, as an API server has them before a node does.
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
