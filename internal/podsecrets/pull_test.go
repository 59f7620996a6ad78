// SPDX-License-Identifier: Apache-2.0

package podsecrets

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/internal/redact"
)

// vault has the Secrets of a namespace, and a record of the reads.
type vault struct {
	secrets map[string]*corev1.Secret
	read    []string
	err     error
}

func (v *vault) secret(_ context.Context, namespace, name string) (*corev1.Secret, error) {
	v.read = append(v.read, namespace+"/"+name)
	if v.err != nil {
		return nil, v.err
	}
	if s := v.secrets[name]; s != nil {
		return s, nil
	}
	return nil, apierrors.NewNotFound(corev1.Resource("secrets"), name)
}

func registrySecret(kind corev1.SecretType, key, data string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "1"}, Type: kind, Data: map[string][]byte{key: []byte(data)}}
}

func pulling(names ...string) *corev1.Pod {
	pod := podWith("1")
	for _, name := range names {
		pod.Spec.ImagePullSecrets = append(pod.Spec.ImagePullSecrets, corev1.LocalObjectReference{Name: name})
	}
	return pod
}

func TestSecurityC6APodGetsWhatItsPullSecretsName(t *testing.T) {
	auth := base64.StdEncoding.EncodeToString([]byte("bob:b0b:secret"))
	v := &vault{secrets: map[string]*corev1.Secret{
		"new":   registrySecret(corev1.SecretTypeDockerConfigJson, corev1.DockerConfigJsonKey, `{"auths":{"r.example":{"username":"ann","password":"ann-secret"},"r.example/team":{"auth":"`+auth+`"}}}`),
		"old":   registrySecret(corev1.SecretTypeDockercfg, corev1.DockerConfigKey, `{"old.example":{"username":"eve","password":"x","identitytoken":"id-secret"}}`),
		"plain": registrySecret(corev1.SecretTypeOpaque, "password", "no registry"),
		"bad":   registrySecret(corev1.SecretTypeDockerConfigJson, corev1.DockerConfigJsonKey, `{"auths": c4n4ry}`),
		"odd":   registrySecret(corev1.SecretTypeDockercfg, corev1.DockerConfigKey, `{"r":{"auth":"c4n4ry!"}}`),
		"not":   registrySecret(corev1.SecretTypeDockercfg, corev1.DockerConfigKey, `{"never.example":{"username":"u","password":"p"}}`),
	}}
	recorder := record.NewFakeRecorder(10)
	m := New(Config{Secret: v.secret, Recorder: recorder})
	pod := pulling("new", "missing", "", "old", "plain", "bad", "odd", "new")
	m.Track(pod)
	got, err := m.Logins(t.Context(), pulling("not"))
	if err != nil {
		t.Fatal(err)
	}
	want := "[{r.example/team bob b0b:secret  } {old.example eve x id-secret } {r.example ann ann-secret  }]"
	if s := fmt.Sprint(got); s != want {
		t.Errorf("got %s, want %s", s, want)
	}
	if s := fmt.Sprint(v.read); s != "[d/new d/missing d/old d/plain d/bad d/odd]" {
		t.Errorf("read %s", s)
	}
	close(recorder.Events)
	var events []string
	for e := range recorder.Events {
		events = append(events, e)
	}
	said := strings.Join(events, "\n")
	if len(events) != 4 || !strings.Contains(said, "Warning FailedToRetrieveImagePullSecret Unable to retrieve some image pull secrets (missing);") || strings.Contains(said, "c4n4ry") {
		t.Errorf("events:\n%s\nwant one about what is missing and three about what cannot be used, without its content", said)
	}
	for _, secret := range []string{"ann-secret", "b0b:secret", "id-secret", auth} {
		if s := redact.Text("cannot pull with "+secret, m.Values("1")); strings.Contains(s, secret) {
			t.Errorf("%q is not redacted", secret)
		}
	}
}

func TestSecurityC6NobodyElseGetsThem(t *testing.T) {
	v := &vault{secrets: map[string]*corev1.Secret{"s": registrySecret(corev1.SecretTypeDockercfg, corev1.DockerConfigKey, `{"r":{"username":"u","password":"p"}}`)}}
	m := New(Config{Secret: v.secret, Recorder: record.NewFakeRecorder(10)})
	pod := pulling("s")
	if _, err := m.Logins(t.Context(), pod); !errdefs.IsNotFound(err) {
		t.Errorf("a pod that is not of this node: %v", err)
	}
	m.Track(pod)
	other := pulling("s")
	other.UID = "2"
	if _, err := m.Logins(t.Context(), other); !errdefs.IsNotFound(err) {
		t.Errorf("another pod of that name: %v", err)
	}
	v.err = errors.New("no answer")
	if got, err := m.Logins(t.Context(), pod); err == nil {
		t.Errorf("got %v although nothing could be read", got)
	}
	v.err = nil
	m.End("1")
	if _, err := m.Logins(t.Context(), pod); !errdefs.IsNotFound(err) {
		t.Errorf("a pod that has ended: %v", err)
	}
}
