// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/identity"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/podspec"
)

// Inputs is a pod with all data from other objects.
type Inputs struct {
	Pod *corev1.Pod
	// Name is a name for the instance and a token for its create. It never changes for a pod. Tags identify the
	// owner of the instance.
	Name string
	Tags map[string]string
	// Containers has the containers and init containers of the pod by name, with their environment resolved.
	Containers map[string]*corev1.Container
	// Files has the files of volumes whose content comes from the API, by volume. RenewAt is the time to replace the first of the tokens
	// among them; zero without tokens.
	Files   map[string][]podspec.File
	RenewAt time.Time
	// Logins has the credentials of the image pull secrets, in the order in which to try them.
	Logins []node.RegistryCredential
	// Claimed has the claimed PersistentVolumes of the pod, by volume, if the provider has Config.Claims.
	Claimed map[string]*corev1.PersistentVolume
	// Objects reads further objects for the pod, and Tokens makes tokens for it: for volumes left to the driver
	// by Config.Skips; the driver then sets RenewAt. Tokens is nil on a node without tokens.
	Objects node.PodObjects
	Tokens  node.PodTokens

	hidden []string
}

// Hide keeps further texts out of errors. The pod's texts from other objects are always hidden.
func (in *Inputs) Hide(texts ...string) { in.hidden = append(in.hidden, texts...) }

// Login returns the credentials for an image; false if there are none.
func (in *Inputs) Login(image string) (node.RegistryCredential, bool) {
	for _, login := range in.Logins {
		if login.Matches(image) {
			return login, true
		}
	}
	return node.RegistryCredential{}, false
}

// ReadOnly reports whether no container may write to a volume with a PersistentVolume claim. The reason is in the pod, in the source of the
// volume, or in read-only access modes.
func (in *Inputs) ReadOnly(v *corev1.Volume) bool {
	if v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ReadOnly {
		return true
	}
	volume := in.Claimed[v.Name]
	if volume == nil {
		return false
	}
	s, modes := volume.Spec.PersistentVolumeSource, volume.Spec.AccessModes
	return s.CSI != nil && s.CSI.ReadOnly || s.NFS != nil && s.NFS.ReadOnly || s.AzureFile != nil && s.AzureFile.ReadOnly ||
		len(modes) == 1 && modes[0] == corev1.ReadOnlyMany
}

// VolumeSecret reads the Secret of a volume. The Secret of a PersistentVolume may be in another namespace than
// the pod. An empty namespace is the namespace of the pod.
func (in *Inputs) VolumeSecret(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
	of := in.Pod
	if namespace != "" && namespace != of.Namespace {
		of = of.DeepCopy()
		of.Namespace = namespace
	}
	return in.Objects.Secret(ctx, of, name)
}

// Containers calls f with every init container and container of a pod, with its path, until f fails.
func Containers(pod *corev1.Pod, f func(c *corev1.Container, init bool, at *field.Path) error) error {
	for i := range pod.Spec.InitContainers {
		if err := f(&pod.Spec.InitContainers[i], true, field.NewPath("spec", "initContainers").Index(i)); err != nil {
			return err
		}
	}
	for i := range pod.Spec.Containers {
		if err := f(&pod.Spec.Containers[i], false, field.NewPath("spec", "containers").Index(i)); err != nil {
			return err
		}
	}
	return nil
}

// resolver reads the other objects of pods.
type resolver struct {
	config Config
	renews bool // the driver replaces tokens

	// Set before RunInBackground, then constant.
	objects     node.PodObjects
	tokens      node.PodTokens
	credentials node.PullCredentials
	claims      node.PodClaims
}

// resolve returns a pod with all data from other objects. A missing object is an error.
func (r *resolver) resolve(ctx context.Context, pod *corev1.Pod) (*Inputs, error) {
	if r.objects == nil {
		return nil, errors.New("this node has nothing of the API yet")
	}
	objects, of := r.objects, identity.Of(pod)
	if r.config.Objects != nil {
		objects = r.config.Objects(objects)
	}
	in := &Inputs{
		Pod: pod, Name: r.config.Owner.Name(of), Tags: r.config.Owner.Tags(of), Objects: objects, Tokens: r.tokens,
		Containers: map[string]*corev1.Container{}, Files: map[string][]podspec.File{}, Claimed: map[string]*corev1.PersistentVolume{},
	}
	err := Containers(pod, func(c *corev1.Container, _ bool, _ *field.Path) error {
		full, err := objects.Container(ctx, pod, c.Name)
		if err != nil {
			return fmt.Errorf("container %s: %w", c.Name, err)
		}
		in.Containers[c.Name] = full
		in.hideEnvironment(c, full)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if err := r.claimed(ctx, in); err != nil {
		return nil, err
	}
	if err := r.files(ctx, in); err != nil {
		return nil, err
	}
	if len(pod.Spec.ImagePullSecrets) > 0 && r.credentials != nil && !r.config.NoLogins {
		if in.Logins, err = r.credentials.PullCredentials(ctx, pod); err != nil {
			return nil, err
		}
	}
	for _, l := range in.Logins {
		in.Hide(l.Password, l.IdentityToken, l.RegistryToken)
	}
	return in, nil
}

// fresh returns the inputs of a pod with only its tokens, because Secrets may have changed or been deleted since the pod was created.
func (r *resolver) fresh(ctx context.Context, pod *corev1.Pod) (*Inputs, error) {
	objects, of := r.objects, identity.Of(pod)
	if r.config.Objects != nil {
		objects = r.config.Objects(objects)
	}
	in := &Inputs{Pod: pod.DeepCopy(), Name: r.config.Owner.Name(of), Tags: r.config.Owner.Tags(of), Objects: objects, Tokens: r.tokens,
		Files: map[string][]podspec.File{}}
	for i := range in.Pod.Spec.Volumes {
		v := &in.Pod.Spec.Volumes[i]
		if v.Projected != nil {
			v.Projected.Sources = slices.DeleteFunc(v.Projected.Sources, func(s corev1.VolumeProjection) bool { return s.ServiceAccountToken == nil })
		}
		if v.Projected == nil || len(v.Projected.Sources) == 0 {
			v.VolumeSource = corev1.VolumeSource{}
		}
	}
	err := r.files(ctx, in)
	in.Pod = pod
	return in, err
}

// files reads the files of the volumes of a pod.
func (r *resolver) files(ctx context.Context, in *Inputs) error {
	sources := podspec.Sources{Objects: in.Objects, Tokens: r.tokens, Allocatable: r.config.Allocatable, Lasting: !r.renews}
	for i := range in.Pod.Spec.Volumes {
		v := &in.Pod.Spec.Volumes[i]
		if !podspec.Written(v) || r.config.Skips != nil && r.config.Skips(v) {
			continue
		}
		files, renew, err := sources.Files(ctx, in.Pod, v, field.NewPath("spec", "volumes").Index(i))
		if err != nil {
			return fmt.Errorf("volume %s: %w", v.Name, err)
		}
		in.Files[v.Name] = files
		if !renew.IsZero() && (in.RenewAt.IsZero() || renew.Before(in.RenewAt)) {
			in.RenewAt = renew
		}
		for _, f := range files {
			in.Hide(string(f.Data), strings.TrimSpace(string(f.Data)), base64.StdEncoding.EncodeToString(f.Data))
		}
	}
	return nil
}

// hideEnvironment hides the values of variables, except for literal values of the spec.
func (in *Inputs) hideEnvironment(spec, full *corev1.Container) {
	written := map[string]bool{}
	for i := range spec.Env {
		if spec.Env[i].ValueFrom == nil {
			written[spec.Env[i].Value] = true
		}
	}
	for i := range full.Env {
		if value := full.Env[i].Value; !written[value] {
			in.Hide(value)
		}
	}
}

// claims reports whether a volume uses a PersistentVolumeClaim.
func claims(v *corev1.Volume) bool { return v.PersistentVolumeClaim != nil || v.Ephemeral != nil }

// claimed finds the PersistentVolumes of a pod. An unbound claim is a temporary error.
func (r *resolver) claimed(ctx context.Context, in *Inputs) error {
	for i := range in.Pod.Spec.Volumes {
		v := &in.Pod.Spec.Volumes[i]
		if !r.config.Claims || !claims(v) {
			continue
		}
		if r.claims == nil {
			return errors.New("this node finds no PersistentVolumes yet")
		}
		volume, err := r.claims.PersistentVolume(ctx, in.Pod, v.Name)
		if err != nil {
			return fmt.Errorf("volume %s: %w", v.Name, err)
		}
		if mode := volume.Spec.VolumeMode; mode != nil && *mode != corev1.PersistentVolumeFilesystem {
			return errdefs.InvalidInputf("%s: PersistentVolume %s has the volumeMode %s, and %s mounts file systems", field.NewPath("spec", "volumes").Index(i), volume.Name, *mode, r.config.Service)
		}
		in.Claimed[v.Name] = volume
	}
	return nil
}

// RegistryLogin returns the user name and password for an image, with only the host of its registry, for
// services that take these. It returns false if there is no such login.
func (in *Inputs) RegistryLogin(image string) (login node.RegistryCredential, ok bool) {
	for _, login = range in.Logins {
		if login.Username == "" || !login.Matches(image) {
			continue
		}
		if _, host, isURL := strings.Cut(login.Registry, "://"); isURL {
			login.Registry = host
		}
		login.Registry, _, _ = strings.Cut(login.Registry, "/")
		if strings.Contains(login.Registry, "*") {
			login.Registry, _, _ = strings.Cut(image, "/")
		}
		return login, true
	}
	return node.RegistryCredential{}, false
}
