// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/virtual-kubelet/virtual-kubelet/internal/podenv"
)

// collector reads what the files of a volume are to be.
type collector struct {
	v     *Volumes
	pod   *corev1.Pod
	files map[string]file
	again time.Time // when the first token is to be replaced

	// What files have that do not say.
	mode int32
	user *int64
}

func (c *collector) collect(ctx context.Context, volume *corev1.Volume, at *field.Path) error {
	switch {
	case volume.ConfigMap != nil:
		s := volume.ConfigMap
		c.defaults(s.DefaultMode, s.DefaultUser)
		return c.configMap(ctx, s.Name, s.Items, s.Optional)
	case volume.Secret != nil:
		s := volume.Secret
		c.defaults(s.DefaultMode, s.DefaultUser)
		return c.secret(ctx, s.SecretName, s.Items, s.Optional)
	case volume.DownwardAPI != nil:
		s := volume.DownwardAPI
		c.defaults(s.DefaultMode, s.DefaultUser)
		return c.downward(s.Items, at.Child("downwardAPI", "items"))
	default:
		s := volume.Projected
		c.defaults(s.DefaultMode, s.DefaultUser)
		return c.projected(ctx, s.Sources, at.Child("projected", "sources"))
	}
}

func (c *collector) defaults(mode *int32, user *int64) {
	c.mode, c.user = 0o644, user // as the API server would set it
	if mode != nil {
		c.mode = *mode
	}
}

// projected collects all sources, and says of all what is wrong.
func (c *collector) projected(ctx context.Context, sources []corev1.VolumeProjection, at *field.Path) error {
	var failed []error
	for i := range sources {
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
		}
		if err != nil {
			failed = append(failed, err)
		}
	}
	return aggregate(failed)
}

func (c *collector) configMap(ctx context.Context, name string, items []corev1.KeyToPath, optional *bool) error {
	if c.v.objects == nil {
		return fmt.Errorf("configmap %q: nothing can be read yet", name)
	}
	data := map[string][]byte{}
	object, err := c.v.objects.ConfigMap(ctx, c.pod, name)
	if err != nil && (!apierrors.IsNotFound(err) || !isTrue(optional)) {
		return missing(err, "configmap", name)
	}
	if err == nil {
		for key, value := range object.Data {
			data[key] = []byte(value)
		}
		for key, value := range object.BinaryData {
			data[key] = value
		}
	}
	return c.keys(data, items, optional, "configmap references non-existent config key: %s")
}

func (c *collector) secret(ctx context.Context, name string, items []corev1.KeyToPath, optional *bool) error {
	if c.v.objects == nil {
		return fmt.Errorf("secret %q: nothing can be read yet", name)
	}
	var data map[string][]byte
	object, err := c.v.objects.Secret(ctx, c.pod, name)
	if err != nil && (!apierrors.IsNotFound(err) || !isTrue(optional)) {
		return missing(err, "secret", name)
	}
	if err == nil {
		data = object.Data
	}
	return c.keys(data, items, optional, "references non-existent secret key: %s")
}

// keys adds the keys of an object that are wanted; without items, all.
func (c *collector) keys(data map[string][]byte, items []corev1.KeyToPath, optional *bool, absent string) error {
	if len(items) == 0 {
		for key, value := range data {
			c.add(key, value, nil, nil)
		}
		return nil
	}
	for i := range items {
		value, ok := data[items[i].Key]
		switch {
		case ok:
			c.add(items[i].Path, value, items[i].Mode, items[i].User)
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
			value, err = podenv.Resource(c.pod, item.ResourceFieldRef, c.v.cfg.Allocatable, p.Child("resourceFieldRef"))
		}
		if err != nil {
			failed = append(failed, err)
			continue
		}
		c.add(path.Clean(item.Path), []byte(value), item.Mode, item.User)
	}
	return aggregate(failed)
}

// token adds a token. It is for the containers' user alone if they have one user, or one group: else for
// whom the volume is.
func (c *collector) token(ctx context.Context, source *corev1.ServiceAccountTokenProjection) error {
	if c.v.tokens == nil {
		return errors.New("token: nothing can be asked yet")
	}
	token, err := c.v.tokens.Token(ctx, c.pod, source)
	if err != nil {
		return err
	}
	if c.again.IsZero() || token.RefreshAt.Before(c.again) {
		c.again = token.RefreshAt
	}
	user := fileUser(c.pod)
	for _, u := range []*int64{c.user, source.User} {
		if u != nil {
			user = u
		}
	}
	mode := c.mode
	if user != nil || fsGroup(c.pod) != nil {
		mode = 0o600
	}
	c.files[source.Path] = file{data: []byte(token.Token), mode: unixMode(mode), user: user}
	return nil
}

func (c *collector) add(name string, data []byte, mode *int32, user *int64) {
	f := file{data: data, mode: unixMode(c.mode), user: c.user}
	if mode != nil {
		f.mode = unixMode(*mode)
	}
	if user != nil {
		f.user = user
	}
	c.files[name] = f
}

// missing says that an object does not exist as a kubelet does, with the kind in the singular.
func missing(err error, kind, name string) error {
	if apierrors.IsNotFound(err) {
		return apierrors.NewNotFound(corev1.Resource(kind), name)
	}
	return err
}

// aggregate joins errors as a kubelet shows them: in brackets if there are several.
func aggregate(failed []error) error {
	switch len(failed) {
	case 0:
		return nil
	case 1:
		return failed[0]
	}
	texts := make([]string, 0, len(failed))
	for _, err := range failed {
		texts = append(texts, err.Error())
	}
	return &several{text: "[" + strings.Join(texts, ", ") + "]", errs: failed}
}

// several is more than one error.
type several struct {
	text string
	errs []error
}

func (s *several) Error() string   { return s.text }
func (s *several) Unwrap() []error { return s.errs }

func isTrue(b *bool) bool { return b != nil && *b }
