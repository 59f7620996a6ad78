// SPDX-License-Identifier: Apache-2.0

package podenv

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	corev1listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/virtual-kubelet/virtual-kubelet/internal/podservices"
)

// memoryObjects has the objects of a namespace. If Err is set, every read returns it.
type memoryObjects struct {
	ConfigMaps map[string]map[string]string
	Secrets    map[string]map[string]string
	Err        error
	Reads      int
}

func (m *memoryObjects) ConfigMap(_ context.Context, _, name string) (*corev1.ConfigMap, error) {
	m.Reads++
	data, ok := m.ConfigMaps[name]
	switch {
	case m.Err != nil:
		return nil, m.Err
	case !ok:
		return nil, apierrors.NewNotFound(corev1.Resource("configmaps"), name)
	}
	return &corev1.ConfigMap{Data: data}, nil
}

func (m *memoryObjects) Secret(_ context.Context, _, name string) (*corev1.Secret, error) {
	m.Reads++
	data, ok := m.Secrets[name]
	switch {
	case m.Err != nil:
		return nil, m.Err
	case !ok:
		return nil, apierrors.NewNotFound(corev1.Resource("secrets"), name)
	}
	secret := &corev1.Secret{Data: map[string][]byte{}}
	for k, v := range data {
		secret.Data[k] = []byte(v)
	}
	return secret, nil
}

// events is a recorder that keeps its events.
type events struct {
	Reasons  []string
	Messages []string
}

func (e *events) Event(_ runtime.Object, kind, reason, message string) {
	e.Reasons = append(e.Reasons, kind+" "+reason)
	e.Messages = append(e.Messages, message)
}

func (e *events) Eventf(o runtime.Object, kind, reason, format string, args ...any) {
	e.Event(o, kind, reason, fmt.Sprintf(format, args...))
}

func (e *events) AnnotatedEventf(o runtime.Object, _ map[string]string, kind, reason, format string, args ...any) {
	e.Eventf(o, kind, reason, format, args...)
}

func services(t testing.TB, all ...*corev1.Service) Services {
	t.Helper()
	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	for _, s := range all {
		if err := indexer.Add(s); err != nil {
			t.Fatal(err)
		}
	}
	return podservices.Lister{ServiceLister: corev1listers.NewServiceLister(indexer)}
}

func service(namespace, name, ip string, ports ...corev1.ServicePort) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       corev1.ServiceSpec{ClusterIP: ip, Ports: ports},
	}
}

// podWith returns a pod with one container.
func podWith(c corev1.Container) *corev1.Pod {
	c.Name = "app"
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "web-0", UID: types.UID("1-2-3"),
			Labels:      map[string]string{"app": "web", "a": `say "hi"`},
			Annotations: map[string]string{"example.com/Note": "line1\nline2"},
		},
		Spec: corev1.PodSpec{
			NodeName: "vk", ServiceAccountName: "sa", SchedulerName: "default-scheduler",
			RestartPolicy: corev1.RestartPolicyAlways, Containers: []corev1.Container{c},
		},
	}
}

// lines formats an environment like env(1). A variable that the provider fills shows its source.
func lines(env []corev1.EnvVar) string {
	var out strings.Builder
	for _, v := range env {
		switch {
		case v.ValueFrom == nil:
			fmt.Fprintf(&out, "%s=%s\n", v.Name, v.Value)
		case v.ValueFrom.FieldRef != nil:
			fmt.Fprintf(&out, "%s<-%s\n", v.Name, v.ValueFrom.FieldRef.FieldPath)
		case v.ValueFrom.ResourceFieldRef != nil:
			fmt.Fprintf(&out, "%s<-%s\n", v.Name, v.ValueFrom.ResourceFieldRef.Resource)
		default:
			fmt.Fprintf(&out, "%s<-?\n", v.Name)
		}
	}
	return out.String()
}

func literal(name, value string) corev1.EnvVar { return corev1.EnvVar{Name: name, Value: value} }

func fieldRef(name, path string) corev1.EnvVar {
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: path}}}
}

func configMapKey(name, object, key string, optional *bool) corev1.EnvVar {
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{
		LocalObjectReference: corev1.LocalObjectReference{Name: object}, Key: key, Optional: optional}}}
}

func secretKey(name, object, key string, optional *bool) corev1.EnvVar {
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
		LocalObjectReference: corev1.LocalObjectReference{Name: object}, Key: key, Optional: optional}}}
}

func fromConfigMap(prefix, object string, optional *bool) corev1.EnvFromSource {
	return corev1.EnvFromSource{Prefix: prefix, ConfigMapRef: &corev1.ConfigMapEnvSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: object}, Optional: optional}}
}

func fromSecret(prefix, object string, optional *bool) corev1.EnvFromSource {
	return corev1.EnvFromSource{Prefix: prefix, SecretRef: &corev1.SecretEnvSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: object}, Optional: optional}}
}
