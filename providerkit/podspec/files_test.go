// SPDX-License-Identifier: Apache-2.0

package podspec_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/podspec"
)

var refresh = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// world has a ConfigMap m, a Secret s, and tokens.
type world struct{}

func (world) ConfigMap(_ context.Context, _ *corev1.Pod, name string) (*corev1.ConfigMap, error) {
	if name != "m" {
		return nil, apierrors.NewNotFound(corev1.Resource("configmaps"), name)
	}
	return &corev1.ConfigMap{Data: map[string]string{"a": "1", "b": "2"}, BinaryData: map[string][]byte{"c": {0, 255}}}, nil
}

func (world) Secret(_ context.Context, _ *corev1.Pod, name string) (*corev1.Secret, error) {
	switch name {
	case "s":
		return &corev1.Secret{Data: map[string][]byte{"k": []byte("secret")}}, nil
	case "dark":
		return nil, errors.New("the API server does not answer")
	}
	return nil, apierrors.NewNotFound(corev1.Resource("secrets"), name)
}

func (world) Token(_ context.Context, _ *corev1.Pod, source *corev1.ServiceAccountTokenProjection) (node.PodToken, error) {
	return node.PodToken{Token: "token for " + source.Audience, RefreshAt: refresh.Add(time.Duration(len(source.Audience)) * time.Hour)}, nil
}

func pod(change func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "d", Name: "p", UID: "u", Labels: map[string]string{"app": "x"}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main"}, {Name: "other"}}}}
	if change != nil {
		change(p)
	}
	return p
}

func maps(name string, items ...corev1.KeyToPath) *corev1.ConfigMapVolumeSource {
	return &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}, Items: items}
}

func projected(sources ...corev1.VolumeProjection) corev1.VolumeSource {
	return corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: sources, DefaultMode: ptr.To[int32](0o640)}}
}

func mapOf(name string, items ...corev1.KeyToPath) corev1.VolumeProjection {
	s := maps(name, items...)
	return corev1.VolumeProjection{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: s.LocalObjectReference, Items: items}}
}

func secretOf(name string, items ...corev1.KeyToPath) corev1.VolumeProjection {
	return corev1.VolumeProjection{Secret: &corev1.SecretProjection{LocalObjectReference: corev1.LocalObjectReference{Name: name}, Items: items}}
}

func token(audience, path string) corev1.VolumeProjection {
	return corev1.VolumeProjection{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Audience: audience, Path: path}}
}

func runAs(user int64) *corev1.SecurityContext { return &corev1.SecurityContext{RunAsUser: &user} }

func TestFiles(t *testing.T) {
	name := corev1.DownwardAPIVolumeFile{Path: "dir/./name", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}, Mode: ptr.To[int32](0o4400)}
	for _, tt := range []struct {
		name   string
		source corev1.VolumeSource
		pod    *corev1.Pod
		want   string // path mode data @source owner, one a line
		again  time.Time
	}{
		{name: "all keys of a ConfigMap", source: corev1.VolumeSource{ConfigMap: maps("m")},
			want: "a -rw-r--r-- 1 @0\nb -rw-r--r-- 2 @0\nc -rw-r--r-- \x00\xff @0\n"},
		{name: "items with modes", source: corev1.VolumeSource{ConfigMap: func() *corev1.ConfigMapVolumeSource {
			m := maps("m", corev1.KeyToPath{Key: "b", Path: "x/y", Mode: ptr.To[int32](0o400)}, corev1.KeyToPath{Key: "a", Path: "z"})
			m.DefaultMode = ptr.To[int32](0o600)
			return m
		}()}, want: "x/y -r-------- 2 @0\nz -rw------- 1 @0\n"},
		{name: "an optional ConfigMap that is not there", source: corev1.VolumeSource{ConfigMap: func() *corev1.ConfigMapVolumeSource {
			m := maps("no")
			m.Optional = ptr.To(true)
			return m
		}()}},
		{name: "an optional key that is not there", source: corev1.VolumeSource{ConfigMap: func() *corev1.ConfigMapVolumeSource {
			m := maps("m", corev1.KeyToPath{Key: "no", Path: "no"}, corev1.KeyToPath{Key: "a", Path: "a"})
			m.Optional = ptr.To(true)
			return m
		}()}, want: "a -rw-r--r-- 1 @0\n"},
		{name: "a Secret", source: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "s"}}, want: "k -rw-r--r-- secret @0\n"},
		{name: "fields of the pod", source: corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{Items: []corev1.DownwardAPIVolumeFile{name}}},
			want: "dir/name ur-------- p @0\n"},
		{name: "the last source of a path counts", source: projected(mapOf("m", corev1.KeyToPath{Key: "a", Path: "f"}), secretOf("s", corev1.KeyToPath{Key: "k", Path: "f"})),
			want: "f -rw-r----- secret @1\n"},
		{name: "tokens, of users that are not known", source: projected(token("far", "t1"), token("x", "t2")), again: refresh.Add(time.Hour),
			want: "t1 -rw-r----- token for far @0\nt2 -rw-r----- token for x @1\n"},
		{name: "a token of one user", source: projected(token("x", "t")), again: refresh.Add(time.Hour), want: "t -rw------- token for x @0 of 7\n",
			pod: pod(func(p *corev1.Pod) {
				p.Spec.SecurityContext = &corev1.PodSecurityContext{RunAsUser: ptr.To[int64](7)}
				p.Spec.InitContainers = []corev1.Container{{Name: "init", SecurityContext: runAs(7)}}
			})},
		{name: "a token of two users", source: projected(token("x", "t")), again: refresh.Add(time.Hour), want: "t -rw-r----- token for x @0\n",
			pod: pod(func(p *corev1.Pod) {
				p.Spec.Containers[0].SecurityContext, p.Spec.Containers[1].SecurityContext = runAs(7), runAs(8)
			})},
		{name: "a token of a user and of whom the image says", source: projected(token("x", "t")), again: refresh.Add(time.Hour), want: "t -rw-r----- token for x @0\n",
			pod: pod(func(p *corev1.Pod) { p.Spec.Containers[1].SecurityContext = runAs(7) })},
		{name: "a token of a group", source: projected(token("x", "t")), again: refresh.Add(time.Hour), want: "t -rw------- token for x @0\n",
			pod: pod(func(p *corev1.Pod) { p.Spec.SecurityContext = &corev1.PodSecurityContext{FSGroup: ptr.To[int64](9)} })},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.pod == nil {
				tt.pod = pod(nil)
			}
			volume := &corev1.Volume{Name: "v", VolumeSource: tt.source}
			if !podspec.Written(volume) {
				t.Error("Written is false")
			}
			files, again, err := podspec.Sources{Objects: world{}, Tokens: world{}}.Files(t.Context(), tt.pod, volume, field.NewPath("v"))
			var got strings.Builder
			for _, f := range files {
				fmt.Fprintf(&got, "%s %v %s @%d", f.Path, f.Mode, f.Data, f.Source)
				if f.User != nil {
					fmt.Fprintf(&got, " of %d", *f.User)
				}
				got.WriteByte('\n')
			}
			if got.String() != tt.want || err != nil || !again.Equal(tt.again) {
				t.Errorf("got %q, again at %v, %v\nwant %q, again at %v", got.String(), again, err, tt.want, tt.again)
			}
		})
	}
}

func TestFilesThatCannotBeHad(t *testing.T) {
	full := podspec.Sources{Objects: world{}, Tokens: world{}}
	for _, tt := range []struct {
		name    string
		from    podspec.Sources
		source  corev1.VolumeSource
		want    string
		is      func(error) bool
		written bool
	}{
		{"no such ConfigMap", full, corev1.VolumeSource{ConfigMap: maps("no")}, `configmap "no" not found`, apierrors.IsNotFound, true},
		{"no such Secret", full, corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "no"}}, `secret "no" not found`, apierrors.IsNotFound, true},
		{"silence is not absence", full, corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "dark", Optional: ptr.To(true)}},
			"the API server does not answer", nil, true},
		{"no such key", full, corev1.VolumeSource{ConfigMap: maps("m", corev1.KeyToPath{Key: "no", Path: "p"})},
			"configmap references non-existent config key: no", nil, true},
		{"all that is wrong", full, projected(mapOf("no"), secretOf("none"), token("x", "t")), `[configmap "no" not found, secret "none" not found]`, apierrors.IsNotFound, true},
		{"nothing to read from", podspec.Sources{}, corev1.VolumeSource{ConfigMap: maps("m")}, `configmap "m": nothing can be read yet`, nil, true},
		{"nothing to ask for tokens", podspec.Sources{}, projected(token("x", "t")), "token: nothing can be asked yet", nil, true},
		{"a source that is not known here", full, projected(corev1.VolumeProjection{}), "at.projected.sources[0]: projected sources of this kind are not known here",
			errdefs.IsInvalidInput, true},
		{"a volume of another kind", full, corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{}},
			`at: volume "v": nothing in the API has the files of volumes of this kind`, errdefs.IsInvalidInput, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			volume := &corev1.Volume{Name: "v", VolumeSource: tt.source}
			if got := podspec.Written(volume); got != tt.written {
				t.Errorf("Written is %v", got)
			}
			files, _, err := tt.from.Files(t.Context(), pod(nil), volume, field.NewPath("at"))
			if err == nil || err.Error() != tt.want || files != nil {
				t.Fatalf("got %v, %v\nwant %s", files, err, tt.want)
			}
			if tt.is != nil && !tt.is(err) {
				t.Errorf("%v has lost its kind", err)
			}
		})
	}
}

func TestMode(t *testing.T) {
	if got, want := podspec.Mode(0o7751), fs.ModeSetuid|fs.ModeSetgid|fs.ModeSticky|0o751; got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}
