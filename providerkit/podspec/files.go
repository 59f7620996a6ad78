// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/internal/lifecycle"
	"github.com/virtual-kubelet/virtual-kubelet/internal/podenv"
	"github.com/virtual-kubelet/virtual-kubelet/node/podinputs"
)

// Objects reads ConfigMaps and Secrets for pods; node.PodObjects is one.
type Objects interface {
	// ConfigMap returns a ConfigMap in the namespace of the pod. It is not changed.
	ConfigMap(ctx context.Context, pod *corev1.Pod, name string) (*corev1.ConfigMap, error)
	// Secret is like ConfigMap, for a Secret.
	Secret(ctx context.Context, pod *corev1.Pod, name string) (*corev1.Secret, error)
}

// Sources provides the files of volumes. The zero value supports only volumes of the kind downwardAPI.
type Sources struct {
	Objects Objects
	Tokens  podinputs.PodTokens
	Bundles podinputs.PodTrustBundles
	// Lasting makes tokens valid for the pod's activeDeadlineSeconds, for providers that do not replace tokens.
	Lasting bool
	// Certificates provides keys with certificates. Had returns the existing file of the volume at a path of the spec, or nil, so that a
	// valid key stays in use after a restart. Had may be nil.
	Certificates podinputs.PodCertificates
	Had          func(path string) []byte
	// Allocatable returns the allocatable resources of the node, the default of a limit. Nil means unknown.
	Allocatable func() corev1.ResourceList
}

// File is a file of a volume.
type File struct {
	// Path is relative to the volume, with slashes, as the spec has it: it may lead out of the volume, if the API server did not validate
	// it.
	Path string
	// Data is shared with its object; do not change it.
	Data []byte
	Mode fs.FileMode
	// User is the owner of a token, of certificates and of keys if all containers run as the same user; otherwise nil, and the owner is the
	// owner of the volume.
	User *int64
	// Source is the index of the source in a projected volume; 0 in others.
	Source int
}

// Written reports whether the files of a volume come from the API: configMap, secret, downwardAPI, projected.
func Written(v *corev1.Volume) bool {
	return v.ConfigMap != nil || v.Secret != nil || v.DownwardAPI != nil || v.Projected != nil
}

// Files returns the files of a volume of the pod for which Written is true, sorted by path. If two sources of a projected volume have the
// same path, the last source counts. The returned time is when a token among the files must be replaced; it is zero without tokens, and
// also valid with an error.
//
// For a source of an unknown kind, the error is of the kind invalid-input, and a retry is useless. Other errors name the missing object in
// a kubelet's words, and may be temporary.
func (s Sources) Files(ctx context.Context, pod *corev1.Pod, volume *corev1.Volume, at *field.Path) ([]File, time.Time, error) {
	c := collector{from: s, pod: pod, files: map[string]File{}}
	err := c.collect(ctx, volume, at)
	if err != nil {
		return nil, c.again, err
	}
	files := slices.Collect(maps.Values(c.files))
	slices.SortFunc(files, func(a, b File) int { return cmp.Compare(a.Path, b.Path) })
	return files, c.again, nil
}

// collector reads the files of a volume.
type collector struct {
	from  Sources
	pod   *corev1.Pod
	files map[string]File
	again time.Time // when the first token must be replaced

	mode   int32 // the default mode of files
	source int
}

func (c *collector) collect(ctx context.Context, volume *corev1.Volume, at *field.Path) error {
	switch {
	case volume.ConfigMap != nil:
		s := volume.ConfigMap
		c.defaults(s.DefaultMode)
		return c.configMap(ctx, s.Name, s.Items, s.Optional)
	case volume.Secret != nil:
		s := volume.Secret
		c.defaults(s.DefaultMode)
		return c.secret(ctx, s.SecretName, s.Items, s.Optional)
	case volume.DownwardAPI != nil:
		s := volume.DownwardAPI
		c.defaults(s.DefaultMode)
		return c.downward(s.Items, at.Child("downwardAPI", "items"))
	case volume.Projected != nil:
		s := volume.Projected
		c.defaults(s.DefaultMode)
		return c.projected(ctx, s.Sources, at.Child("projected", "sources"))
	}
	return errdefs.InvalidInputf("%s: volume %q: nothing in the API has the files of volumes of this kind", at, volume.Name)
}

func (c *collector) defaults(mode *int32) {
	c.mode = 0o644 // the default of the API server
	if mode != nil {
		c.mode = *mode
	}
}

// projected collects the files of all sources, and joins their errors.
func (c *collector) projected(ctx context.Context, sources []corev1.VolumeProjection, at *field.Path) error {
	var failed []error
	for i := range sources {
		c.source = i
		var err error
		switch s := &sources[i]; {
		case s.ConfigMap != nil:
			err = c.configMap(ctx, s.ConfigMap.Name, s.ConfigMap.Items, s.ConfigMap.Optional)
		case s.Secret != nil:
			err = c.secret(ctx, s.Secret.Name, s.Secret.Items, s.Secret.Optional)
		case s.DownwardAPI != nil:
			err = c.downward(s.DownwardAPI.Items, at.Index(i).Child("downwardAPI", "items"))
		case s.ServiceAccountToken != nil:
			err = c.token(ctx, s.ServiceAccountToken)
		case s.ClusterTrustBundle != nil:
			err = c.trustBundle(ctx, s.ClusterTrustBundle)
		case s.PodCertificate != nil:
			err = c.certificate(ctx, s.PodCertificate)
		default:
			err = errdefs.InvalidInputf("%s: projected sources of this kind are not known here", at.Index(i))
		}
		if err != nil {
			failed = append(failed, err)
		}
	}
	return aggregate(failed)
}

func (c *collector) configMap(ctx context.Context, name string, items []corev1.KeyToPath, optional *bool) error {
	if c.from.Objects == nil {
		return fmt.Errorf("configmap %q: nothing can be read yet", name)
	}
	data := map[string][]byte{}
	object, err := c.from.Objects.ConfigMap(ctx, c.pod, name)
	if err != nil && (!apierrors.IsNotFound(err) || !isTrue(optional)) {
		return missing(err, "configmap", name)
	}
	if err == nil {
		for key, value := range object.Data {
			data[key] = []byte(value)
		}
		maps.Copy(data, object.BinaryData)
	}
	return c.keys(data, items, optional, "configmap references non-existent config key: %s")
}

func (c *collector) secret(ctx context.Context, name string, items []corev1.KeyToPath, optional *bool) error {
	if c.from.Objects == nil {
		return fmt.Errorf("secret %q: nothing can be read yet", name)
	}
	var data map[string][]byte
	object, err := c.from.Objects.Secret(ctx, c.pod, name)
	if err != nil && (!apierrors.IsNotFound(err) || !isTrue(optional)) {
		return missing(err, "secret", name)
	}
	if err == nil {
		data = object.Data
	}
	return c.keys(data, items, optional, "references non-existent secret key: %s")
}

// keys adds the wanted keys of an object, or all keys without items.
func (c *collector) keys(data map[string][]byte, items []corev1.KeyToPath, optional *bool, absent string) error {
	if len(items) == 0 {
		for key, value := range data {
			c.add(key, value, nil)
		}
		return nil
	}
	for i := range items {
		value, ok := data[items[i].Key]
		switch {
		case ok:
			c.add(items[i].Path, value, items[i].Mode)
		case !isTrue(optional):
			return fmt.Errorf(absent, items[i].Key)
		}
	}
	return nil
}

func (c *collector) downward(items []corev1.DownwardAPIVolumeFile, at *field.Path) error {
	var failed []error
	for i := range items {
		item := &items[i]
		var value string
		var err error
		switch p := at.Index(i); {
		case item.FieldRef != nil:
			value, err = podenv.Field(c.pod, item.FieldRef, p.Child("fieldRef"))
		case item.ResourceFieldRef != nil:
			value, err = podenv.Resource(c.pod, item.ResourceFieldRef, c.from.Allocatable, p.Child("resourceFieldRef"))
		}
		if err != nil {
			failed = append(failed, err)
			continue
		}
		c.add(path.Clean(item.Path), []byte(value), item.Mode)
	}
	return aggregate(failed)
}

// token adds a token.
func (c *collector) token(ctx context.Context, source *corev1.ServiceAccountTokenProjection) error {
	if c.from.Tokens == nil {
		return errors.New("token: nothing can be asked yet")
	}
	if c.from.Lasting {
		source = lifecycle.LastingToken(c.pod, source)
	}
	token, err := c.from.Tokens.Token(ctx, c.pod, source)
	if err != nil {
		return err
	}
	if c.again.IsZero() || token.RefreshAt.Before(c.again) {
		c.again = token.RefreshAt
	}
	c.addPrivate(source.Path, []byte(token.Token))
	return nil
}

// addPrivate adds a file that only the containers' user can read if they have one user, or one group.
func (c *collector) addPrivate(name string, data []byte) {
	user := oneUser(c.pod)
	mode := c.mode
	if s := c.pod.Spec.SecurityContext; user != nil || s != nil && s.FSGroup != nil {
		mode = 0o600
	}
	c.files[name] = File{Path: name, Data: data, Mode: Mode(mode), User: user, Source: c.source}
}

func (c *collector) add(name string, data []byte, mode *int32) {
	f := File{Path: name, Data: data, Mode: Mode(c.mode), Source: c.source}
	if mode != nil {
		f.Mode = Mode(*mode)
	}
	c.files[name] = f
}

// missing returns a kubelet's error for a missing object. kind is singular.
func missing(err error, kind, name string) error {
	if apierrors.IsNotFound(err) {
		return apierrors.NewNotFound(corev1.Resource(kind), name)
	}
	return err
}

func isTrue(b *bool) bool { return b != nil && *b }
