// SPDX-License-Identifier: Apache-2.0

package remotecluster

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

// Target has the other inputs of Translate.
type Target struct {
	Home Home
	// Namespace is the remote namespace, ServiceAccount the service account of remote pods; "" is its default.
	Namespace, ServiceAccount string
	Place                     Placement
	// Annotations reports whether an annotation is copied to the remote pod. Nil means none, because remote
	// programs may act on annotations.
	Annotations func(key string) bool
	// Labels are additional labels of the remote pod.
	Labels map[string]string
	// Services are the environment variables of the home cluster's services, by container.
	Services map[string][]corev1.EnvVar
	// Claims are the names of remote claims, by volume.
	Claims map[string]string
	// Restarts are the earlier restart counts, by container.
	Restarts map[string]int32
	// Maker is the UID of the home cluster for annotationHome, or "" if the pod does not need the annotation.
	Maker types.UID
}

// Ref is a reference of a pod to a ConfigMap or Secret of the home cluster.
type Ref struct {
	Kind, Namespace, Name string
	// Optional is true if the pod can run without the object.
	Optional bool
}

// Kinds of a Ref.
const (
	KindConfigMap = "ConfigMap"
	KindSecret    = "Secret"
	kindClaim     = "PersistentVolumeClaim"
)

// Translation is a remote pod with the objects that it needs.
type Translation struct {
	Pod *corev1.Pod
	// Refs are the ConfigMaps and Secrets to copy, without duplicates.
	Refs []Ref
	// Files and Tokens are the data of the pod's Secret, by key. If both are empty, the pod has no Secret.
	Files  map[string][]byte
	Tokens map[string]*corev1.ServiceAccountTokenProjection
}

// Translate returns the remote form of a pod. It does not change the pod.
func Translate(pod *corev1.Pod, t Target) (*Translation, error) {
	tr := &translator{home: pod, target: t, out: &Translation{Files: map[string][]byte{}, Tokens: map[string]*corev1.ServiceAccountTokenProjection{}}}
	if err := tr.translatePod(); err != nil {
		return nil, err
	}
	return tr.out, nil
}

type translator struct {
	home   *corev1.Pod
	target Target
	out    *Translation
}

func (t *translator) translatePod() error {
	in := t.home.Spec.DeepCopy()
	spec := corev1.PodSpec{
		RestartPolicy: in.RestartPolicy, TerminationGracePeriodSeconds: in.TerminationGracePeriodSeconds,
		DNSPolicy: in.DNSPolicy, DNSConfig: in.DNSConfig, HostAliases: in.HostAliases,
		Hostname: t.homeHostname(), Subdomain: in.Subdomain, SetHostnameAsFQDN: in.SetHostnameAsFQDN, HostnameOverride: in.HostnameOverride,
		SecurityContext: in.SecurityContext, ShareProcessNamespace: in.ShareProcessNamespace, HostUsers: in.HostUsers,
		OS: in.OS, Resources: in.Resources,

		ServiceAccountName: t.target.ServiceAccount, AutomountServiceAccountToken: ptr.To(false), EnableServiceLinks: ptr.To(false),
		NodeSelector: t.target.Place.NodeSelector, Tolerations: t.target.Place.Tolerations, Affinity: t.target.Place.Affinity,
	}
	if t.target.Place.OwnAffinity {
		var err error
		if spec.Affinity, err = t.target.Home.narrowAffinity(t.home.Namespace, spec.Affinity); err != nil {
			return err
		}
	}
	for i := range in.Volumes {
		v, err := t.rewriteVolume(&in.Volumes[i])
		if err != nil {
			return err
		}
		spec.Volumes = append(spec.Volumes, v)
	}
	for _, list := range []struct {
		from []corev1.Container
		to   *[]corev1.Container
	}{{in.InitContainers, &spec.InitContainers}, {in.Containers, &spec.Containers}} {
		for i := range list.from {
			c := list.from[i]
			if hostProcess(in.SecurityContext, c.SecurityContext) {
				return errdefs.InvalidInputf("container %q: windowsOptions.hostProcess: pods get nothing of the nodes of the remote cluster", c.Name)
			}
			if err := t.rewriteEnv(&c); err != nil {
				return err
			}
			*list.to = append(*list.to, c)
		}
	}
	for _, s := range in.ImagePullSecrets {
		if s.Name != "" {
			spec.ImagePullSecrets = append(spec.ImagePullSecrets, corev1.LocalObjectReference{Name: t.addRef(KindSecret, s.Name, true)})
		}
	}
	t.out.Pod = &corev1.Pod{ObjectMeta: t.remoteMetadata(), Spec: spec}
	return nil
}

// hostProcess reports whether a container is a Windows HostProcess container.
func hostProcess(pod *corev1.PodSecurityContext, c *corev1.SecurityContext) bool {
	asks := func(w *corev1.WindowsSecurityContextOptions) bool { return w != nil && ptr.Deref(w.HostProcess, false) }
	return pod != nil && asks(pod.WindowsOptions) || c != nil && asks(c.WindowsOptions)
}

// homeHostname sets the host name of the home pod, because programs can see it.
func (t *translator) homeHostname() string {
	name := t.home.Spec.Hostname
	if name == "" {
		name = shortenName(t.home.Name, 63)
	}
	if len(validation.IsDNS1123Label(name)) > 0 || t.home.Spec.HostnameOverride != nil {
		return t.home.Spec.Hostname
	}
	return name
}

// sent has the keys and images from the home pod. A third party in the remote cluster may have replaced the
// images.
type sent struct {
	Labels      []string          `json:"labels,omitempty"`
	Annotations []string          `json:"annotations,omitempty"`
	Images      map[string]string `json:"images,omitempty"` // by container
}

// sentOf returns the content of annotationSent. It is empty if a third party damaged the annotation.
func sentOf(remote *corev1.Pod) (s sent) {
	_ = json.Unmarshal([]byte(remote.Annotations[annotationSent]), &s)
	return s
}

func (s sent) jsonText() string {
	text, _ := json.Marshal(s) // marshaling strings never fails
	return string(text)
}

func (t *translator) remoteMetadata() metav1.ObjectMeta {
	foreign := func(in map[string]string) map[string]string {
		out := maps.Clone(in)
		maps.DeleteFunc(out, func(k, _ string) bool {
			return strings.HasPrefix(k, prefix) || k == corev1.LastAppliedConfigAnnotation // this annotation has the spec of the home pod
		})
		return out
	}
	labels, annotations := foreign(t.home.Labels), foreign(t.home.Annotations)
	maps.DeleteFunc(annotations, func(k, _ string) bool { return t.target.Annotations == nil || !t.target.Annotations(k) })
	keys := sent{slices.Sorted(maps.Keys(labels)), slices.Sorted(maps.Keys(annotations)), map[string]string{}}
	for _, c := range slices.Concat(t.home.Spec.InitContainers, t.home.Spec.Containers) {
		keys.Images[c.Name] = c.Image
	}
	o := metav1.ObjectMeta{
		Namespace: t.target.Namespace, Name: t.target.Home.PodName(t.home),
		Labels: map[string]string{LabelUID: string(t.home.UID)},
		Annotations: map[string]string{
			AnnotationNamespace: t.home.Namespace, AnnotationName: t.home.Name, annotationSent: keys.jsonText(),
		},
	}
	maps.Copy(o.Labels, labels)
	maps.Copy(o.Labels, t.target.Labels)
	maps.Copy(o.Labels, t.target.Home.Labels())
	maps.Copy(o.Labels, t.target.Home.namespaceLabels(t.home.Namespace))
	maps.Copy(o.Annotations, annotations)
	if t.target.Maker != "" {
		o.Annotations[annotationHome] = string(t.target.Maker)
	}
	if len(t.target.Restarts) > 0 {
		before, _ := json.Marshal(t.target.Restarts) // marshaling numbers never fails
		o.Annotations[annotationRestarts] = string(before)
	}
	return o
}

// addRef records that the pod needs an object, and returns the name of the copy.
func (t *translator) addRef(kind, name string, optional bool) string {
	r := Ref{Kind: kind, Namespace: t.home.Namespace, Name: name, Optional: optional}
	i := slices.IndexFunc(t.out.Refs, func(o Ref) bool { return o.Kind == r.Kind && o.Name == r.Name })
	if i < 0 {
		t.out.Refs = append(t.out.Refs, r)
	} else {
		t.out.Refs[i].Optional = t.out.Refs[i].Optional && optional
	}
	return t.target.Home.CopyName(kind, t.home.Namespace, name)
}

// rewriteEnv rewrites the variables of a container: references to objects become references to copies, and field
// references become the values of the home pod.
func (t *translator) rewriteEnv(c *corev1.Container) error {
	for i := range c.EnvFrom {
		switch from := &c.EnvFrom[i]; {
		case from.ConfigMapRef != nil:
			from.ConfigMapRef.Name = t.addRef(KindConfigMap, from.ConfigMapRef.Name, ptr.Deref(from.ConfigMapRef.Optional, false))
		case from.SecretRef != nil:
			from.SecretRef.Name = t.addRef(KindSecret, from.SecretRef.Name, ptr.Deref(from.SecretRef.Optional, false))
		}
	}
	for i := range c.Env {
		e := &c.Env[i]
		switch from := e.ValueFrom; {
		case from == nil:
		case from.ConfigMapKeyRef != nil:
			from.ConfigMapKeyRef.Name = t.addRef(KindConfigMap, from.ConfigMapKeyRef.Name, ptr.Deref(from.ConfigMapKeyRef.Optional, false))
		case from.SecretKeyRef != nil:
			from.SecretKeyRef.Name = t.addRef(KindSecret, from.SecretKeyRef.Name, ptr.Deref(from.SecretKeyRef.Optional, false))
		case from.FieldRef != nil && !strings.HasPrefix(from.FieldRef.FieldPath, "status."): // status fields are addresses, which the remote cluster sets
			value, err := fieldOf(t.home, from.FieldRef.FieldPath)
			if err != nil {
				return err
			}
			e.Value, e.ValueFrom = escapeLiteral(value), nil
		}
	}
	var services []corev1.EnvVar
	for _, e := range t.target.Services[c.Name] {
		services = append(services, corev1.EnvVar{Name: e.Name, Value: escapeLiteral(e.Value)})
	}
	c.Env = append(services, c.Env...)
	return nil
}

// escapeLiteral escapes a value so that a kubelet does not expand variables in it.
func escapeLiteral(value string) string { return strings.ReplaceAll(value, "$", "$$") }

// rewriteVolume rewrites a volume.
func (t *translator) rewriteVolume(v *corev1.Volume) (corev1.Volume, error) {
	switch {
	case v.ConfigMap != nil:
		v.ConfigMap.Name = t.addRef(KindConfigMap, v.ConfigMap.Name, ptr.Deref(v.ConfigMap.Optional, false))
	case v.Secret != nil:
		v.Secret.SecretName = t.addRef(KindSecret, v.Secret.SecretName, ptr.Deref(v.Secret.Optional, false))
	case v.DownwardAPI != nil:
		p := &corev1.ProjectedVolumeSource{DefaultMode: v.DownwardAPI.DefaultMode}
		var err error
		p.Sources, err = t.downwardSources(v.Name, 0, v.DownwardAPI.Items)
		return corev1.Volume{Name: v.Name, VolumeSource: corev1.VolumeSource{Projected: p}}, err
	case v.Projected != nil:
		p := &corev1.ProjectedVolumeSource{DefaultMode: v.Projected.DefaultMode}
		for i := range v.Projected.Sources {
			sources, err := t.rewriteSource(v.Name, i, v.Projected.Sources[i])
			if err != nil {
				return corev1.Volume{}, err
			}
			p.Sources = append(p.Sources, sources...)
		}
		return corev1.Volume{Name: v.Name, VolumeSource: corev1.VolumeSource{Projected: p}}, nil
	case t.target.Claims[v.Name] != "" && (v.PersistentVolumeClaim != nil || v.Ephemeral != nil):
		claim := &corev1.PersistentVolumeClaimVolumeSource{ClaimName: t.target.Claims[v.Name]}
		if v.PersistentVolumeClaim != nil {
			claim.ReadOnly = v.PersistentVolumeClaim.ReadOnly
		}
		return corev1.Volume{Name: v.Name, VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: claim}}, nil
	case v.EmptyDir != nil, v.Image != nil:
	default:
		return corev1.Volume{}, errdefs.InvalidInputf("volume %q: volumes of this kind are not taken to another cluster", v.Name)
	}
	return *v, nil
}

// rewriteSource rewrites a source of a projected volume.
func (t *translator) rewriteSource(volume string, i int, s corev1.VolumeProjection) ([]corev1.VolumeProjection, error) {
	switch {
	case s.ConfigMap != nil:
		s.ConfigMap.Name = t.addRef(KindConfigMap, s.ConfigMap.Name, ptr.Deref(s.ConfigMap.Optional, false))
	case s.Secret != nil:
		s.Secret.Name = t.addRef(KindSecret, s.Secret.Name, ptr.Deref(s.Secret.Optional, false))
	case s.DownwardAPI != nil:
		return t.downwardSources(volume, i, s.DownwardAPI.Items)
	case s.ServiceAccountToken != nil:
		key := fileKey(volume, i, 0)
		t.out.Tokens[key] = s.ServiceAccountToken
		return []corev1.VolumeProjection{t.filesSource([]corev1.KeyToPath{{Key: key, Path: s.ServiceAccountToken.Path}})}, nil
	default:
		return nil, errdefs.InvalidInputf("volume %q: projected sources of this kind are not taken to another cluster", volume)
	}
	return []corev1.VolumeProjection{s}, nil
}

// downwardSources rewrites downward API items: fields get the values of the home pod. Resource fields are
// unchanged, because they are the same in both clusters.
func (t *translator) downwardSources(volume string, i int, items []corev1.DownwardAPIVolumeFile) ([]corev1.VolumeProjection, error) {
	var fields []corev1.KeyToPath
	var resources []corev1.DownwardAPIVolumeFile
	for j := range items {
		item := items[j]
		if item.FieldRef == nil {
			resources = append(resources, item)
			continue
		}
		value, err := fieldOf(t.home, item.FieldRef.FieldPath)
		if err != nil {
			return nil, err
		}
		key := fileKey(volume, i, j)
		t.out.Files[key] = []byte(value)
		fields = append(fields, corev1.KeyToPath{Key: key, Path: item.Path, Mode: item.Mode})
	}
	var out []corev1.VolumeProjection
	if len(fields) > 0 {
		out = append(out, t.filesSource(fields))
	}
	if len(resources) > 0 {
		out = append(out, corev1.VolumeProjection{DownwardAPI: &corev1.DownwardAPIProjection{Items: resources}})
	}
	return out, nil
}

// filesSource returns a source with keys of the pod's Secret.
func (t *translator) filesSource(items []corev1.KeyToPath) corev1.VolumeProjection {
	name := t.target.Home.filesName(t.home)
	return corev1.VolumeProjection{Secret: &corev1.SecretProjection{LocalObjectReference: corev1.LocalObjectReference{Name: name}, Items: items}}
}

func fileKey(volume string, source, item int) string {
	return volume + "." + strconv.Itoa(source) + "." + strconv.Itoa(item)
}
