// SPDX-License-Identifier: Apache-2.0

package interlink

import (
	"encoding/json"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/identity"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/podspec"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
	"github.com/virtual-kubelet/virtual-kubelet/providers/interlink/internal/wire"
)

// kubeRootCA is the ConfigMap with the authority of the API server. Every namespace has this ConfigMap.
const kubeRootCA = "kube-root-ca.crt"

// objects holds the ConfigMaps and Secrets of volumes, by name. An optional object may be missing.
type objects struct {
	configMaps map[string]*corev1.ConfigMap
	secrets    map[string]*corev1.Secret
}

// offloaded refuses a pod if a part of it must stay in the cluster. Nothing here can run that part.
func offloaded(pod *corev1.Pod) error {
	for _, key := range []string{"interlink.eu/disable-offload-containers", "interlink.eu/disable-offload-init-containers"} {
		if pod.Annotations[key] != "" {
			return errdefs.InvalidInputf("annotation %s: all containers of a pod go to the plugin: remove it, or make them a pod of another node", key)
		}
	}
	return nil
}

// check refuses the pods that Create would refuse, as far as the pod alone shows the reason.
func check(pod *corev1.Pod) error {
	if err := offloaded(pod); err != nil {
		return err
	}
	_, err := service.Unread(identity.Owner{}, pod)
	return err
}

// request builds the create request of a pod. It does not modify its arguments.
func request(in *service.Inputs, has objects, c Config) wire.Create {
	pod := in.Pod
	sent := &corev1.Pod{ObjectMeta: metadata(pod), Spec: *pod.Spec.DeepCopy()}
	for _, list := range [][]corev1.Container{sent.Spec.InitContainers, sent.Spec.Containers} {
		for i := range list {
			if resolved := in.Containers[list[i].Name]; resolved != nil {
				resolved.DeepCopyInto(&list[i])
			}
			list[i].EnvFrom = nil // resolved, too
			c.KubernetesAPI.tell(&list[i])
		}
	}
	out := wire.Create{Pod: sent, ConfigMaps: []corev1.ConfigMap{}, Secrets: []corev1.Secret{}, Projected: []corev1.ConfigMap{}, JobScriptURL: c.JobScriptURL}
	configMaps, secrets := map[string]keys{}, map[string]keys{}
	for i := range sent.Spec.Volumes {
		switch v := &sent.Spec.Volumes[i]; {
		case v.ConfigMap != nil:
			configMaps[v.ConfigMap.Name] = configMaps[v.ConfigMap.Name].with(v.ConfigMap.Items)
		case v.Secret != nil:
			secrets[v.Secret.SecretName] = secrets[v.Secret.SecretName].with(v.Secret.Items)
		case v.DownwardAPI != nil: // the protocol has files for projected volumes only
			d := v.DownwardAPI
			v.VolumeSource = corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
				DefaultMode: d.DefaultMode, Sources: []corev1.VolumeProjection{{DownwardAPI: &corev1.DownwardAPIProjection{Items: d.Items}}},
			}}
			out.Projected = append(out.Projected, projected(v.Name, in.Files[v.Name]))
		case v.Projected != nil && !c.NoProjectedVolumes:
			out.Projected = append(out.Projected, projected(v.Name, in.Files[v.Name]))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(configMaps)) {
		if m := has.configMaps[name]; m != nil {
			out.ConfigMaps = append(out.ConfigMaps, corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: name},
				Data:       only(configMaps[name], m.Data), BinaryData: only(configMaps[name], m.BinaryData),
			})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(secrets)) {
		if s := has.secrets[name]; s != nil {
			out.Secrets = append(out.Secrets, corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: name}, Data: only(secrets[name], s.Data), Type: s.Type,
			})
		}
	}
	return out
}

// keys is the set of keys of an object that volumes use. The key "" stands for all keys.
type keys map[string]bool

func (k keys) with(items []corev1.KeyToPath) keys {
	if k == nil {
		k = keys{}
	}
	if len(items) == 0 {
		k[""] = true
	}
	for _, item := range items {
		k[item.Key] = true
	}
	return k
}

// only returns the entries of data that k selects.
func only[V any](k keys, data map[string]V) map[string]V {
	out := map[string]V{}
	for key, value := range data {
		if k[""] || k[key] {
			out[key] = value
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// metadata returns the metadata of a pod for the server and the plugin. It leaves out the annotation of kubectl,
// which repeats the spec.
func metadata(pod *corev1.Pod) metav1.ObjectMeta {
	m := metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, CreationTimestamp: pod.CreationTimestamp}
	for k, v := range pod.Labels {
		metav1.SetMetaDataLabel(&m, k, v)
	}
	for k, v := range pod.Annotations {
		if k != corev1.LastAppliedConfigAnnotation {
			metav1.SetMetaDataAnnotation(&m, k, v)
		}
	}
	return m
}

// projected encodes a projected volume as the protocol requires: a ConfigMap whose keys are paths.
func projected(volume string, files []podspec.File) corev1.ConfigMap {
	m := corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: volume}, Data: map[string]string{}}
	modes := map[string]fs.FileMode{}
	for _, f := range files {
		modes[f.Path] = f.Mode.Perm()
		if utf8.Valid(f.Data) {
			m.Data[f.Path] = string(f.Data)
			continue
		}
		if m.BinaryData == nil {
			m.BinaryData = map[string][]byte{}
		}
		m.BinaryData[f.Path] = f.Data
	}
	text, _ := json.Marshal(modes) // of numbers: never fails
	m.Annotations = map[string]string{wire.AnnotationModes: string(text)}
	return m
}

// tell writes the configured address of the cluster's API server into the environment of a container. Without a configured address,
// tell does nothing.
func (k KubernetesAPI) tell(c *corev1.Container) {
	if k.Address == "" {
		return
	}
	whole := "tcp://" + k.Address + ":" + k.Port
	c.Env = slices.DeleteFunc(c.Env, func(e corev1.EnvVar) bool {
		return e.Name == "KUBERNETES_PORT" || strings.HasPrefix(e.Name, "KUBERNETES_PORT_443_TCP") || e.Name == "KUBERNETES_SERVICE_PORT" ||
			e.Name == "KUBERNETES_SERVICE_PORT_HTTPS" || e.Name == "KUBERNETES_SERVICE_HOST"
	})
	c.Env = append(c.Env,
		corev1.EnvVar{Name: "KUBERNETES_PORT", Value: whole},
		corev1.EnvVar{Name: "KUBERNETES_SERVICE_PORT", Value: k.Port},
		corev1.EnvVar{Name: "KUBERNETES_PORT_443_TCP_ADDR", Value: k.Address},
		corev1.EnvVar{Name: "KUBERNETES_PORT_443_TCP_PORT", Value: k.Port},
		corev1.EnvVar{Name: "KUBERNETES_PORT_443_TCP_PROTO", Value: "tcp"},
		corev1.EnvVar{Name: "KUBERNETES_PORT_443_TCP", Value: whole},
		corev1.EnvVar{Name: "KUBERNETES_SERVICE_PORT_HTTPS", Value: k.Port},
		corev1.EnvVar{Name: "KUBERNETES_SERVICE_HOST", Value: k.Address},
	)
}

// stub returns the part of a pod that identifies it in a request: its names, its UID and its containers. The
// server already has the rest. The environment is not sent again, because it has secrets.
func stub(pod *corev1.Pod) *corev1.Pod {
	s := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID}}
	names := func(list []corev1.Container) (out []corev1.Container) {
		for i := range list {
			out = append(out, corev1.Container{Name: list[i].Name, Image: list[i].Image})
		}
		return out
	}
	s.Spec = corev1.PodSpec{Containers: names(pod.Spec.Containers), InitContainers: names(pod.Spec.InitContainers), RestartPolicy: pod.Spec.RestartPolicy}
	s.Status.Phase = corev1.PodRunning // for other phases, the server answers from memory without a request to the plugin
	return s
}

// deletion returns the part of a pod that a request to stop it needs.
func deletion(pod *corev1.Pod) *corev1.Pod {
	s := stub(pod)
	s.ObjectMeta = metadata(pod)
	s.DeletionTimestamp, s.DeletionGracePeriodSeconds = pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds
	s.Spec.TerminationGracePeriodSeconds = pod.Spec.TerminationGracePeriodSeconds
	return s
}

func stubs(pods []*corev1.Pod) (out []*corev1.Pod) {
	for _, p := range pods {
		out = append(out, stub(p))
	}
	return out
}
