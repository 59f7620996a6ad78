// SPDX-License-Identifier: Apache-2.0

package podenv

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

// canary is a value that no error and no event may contain.
const canary = "c4n4ry-v4lu3"

func TestMissingAndUnreadable(t *testing.T) {
	optional, unreachable := ptr.To(true), apierrors.NewTimeoutError("slow", 1)
	for _, tt := range []struct {
		reason  string // of the only event
		from    *corev1.EnvFromSource
		env     *corev1.EnvVar
		err     error // answers every read
		waits   bool  // NotReadyError
		retries bool  // another error
	}{
		{reason: "OptionalConfigMapNotFound", from: ptr.To(fromConfigMap("", "gone", optional))},
		{reason: "OptionalConfigMapNotFound", env: ptr.To(configMapKey("X", "gone", "k", optional))},
		{reason: "OptionalConfigMapKeyNotFound", env: ptr.To(configMapKey("X", "here", "nokey", optional))},
		{reason: "OptionalSecretNotFound", from: ptr.To(fromSecret("", "gone", optional))},
		{reason: "OptionalSecretNotFound", env: ptr.To(secretKey("X", "gone", "k", optional))},
		{reason: "OptionalSecretKeyNotFound", env: ptr.To(secretKey("X", "here", "nokey", optional))},
		{reason: "MandatoryConfigMapNotFound", from: ptr.To(fromConfigMap("", "gone", nil)), waits: true},
		{reason: "MandatoryConfigMapNotFound", env: ptr.To(configMapKey("X", "gone", "k", ptr.To(false))), waits: true},
		{reason: "MandatoryConfigMapKeyNotFound", env: ptr.To(configMapKey("X", "here", "nokey", nil)), waits: true},
		{reason: "MandatorySecretNotFound", from: ptr.To(fromSecret("", "gone", nil)), waits: true},
		{reason: "MandatorySecretNotFound", env: ptr.To(secretKey("X", "gone", "k", nil)), waits: true},
		{reason: "MandatorySecretKeyNotFound", env: ptr.To(secretKey("X", "here", "nokey", nil)), waits: true},
		{reason: "FailedToReadOptionalConfigMap", from: ptr.To(fromConfigMap("", "here", optional)), err: unreachable, retries: true},
		{reason: "FailedToReadOptionalConfigMap", env: ptr.To(configMapKey("X", "here", "k", optional)), err: unreachable, retries: true},
		{reason: "FailedToReadOptionalSecret", env: ptr.To(secretKey("X", "here", "k", optional)), err: unreachable, retries: true},
		{reason: "FailedToReadMandatoryConfigMap", env: ptr.To(configMapKey("X", "here", "k", nil)), err: unreachable, retries: true},
		{reason: "FailedToReadMandatorySecret", from: ptr.To(fromSecret("", "here", nil)), err: unreachable, retries: true},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			c := corev1.Container{}
			if tt.from != nil {
				c.EnvFrom = []corev1.EnvFromSource{*tt.from}
			}
			if tt.env != nil {
				c.Env = []corev1.EnvVar{*tt.env}
			}
			c.Env = append(c.Env, literal("AFTER", "yes"))
			pod, recorder := podWith(c), &events{}
			objects := &memoryObjects{
				ConfigMaps: map[string]map[string]string{"here": {"k": canary}},
				Secrets:    map[string]map[string]string{"here": {"k": canary}},
				Err:        tt.err,
			}
			err := Resolve(t.Context(), Config{Objects: objects, Recorder: recorder}, pod)
			if diff := cmp.Diff([]string{"Warning " + tt.reason}, recorder.Reasons); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
			notReady, waits := errors.AsType[*NotReadyError](err)
			switch {
			case tt.waits:
				if !waits || notReady.Reason != tt.reason || notReady.Container != "app" || errdefs.IsInvalidInput(err) {
					t.Errorf("error %#v, want NotReadyError with reason %s", err, tt.reason)
				}
			case tt.retries:
				if waits || !errors.Is(err, unreachable) {
					t.Errorf("error %v, want %v", err, unreachable)
				}
			case err != nil:
				t.Error(err)
			default:
				if got := lines(pod.Spec.Containers[0].Env); got != "AFTER=yes\n" {
					t.Errorf("environment %q, want the variable left out", got)
				}
			}
			if err != nil && strings.Contains(err.Error(), canary) || strings.Contains(strings.Join(recorder.Messages, " "), canary) {
				t.Errorf("a value got out: %v %q", err, recorder.Messages)
			}
		})
	}
}

func TestOptionalKeyKeepsTheValueOfEnvFrom(t *testing.T) {
	pod := podWith(corev1.Container{
		EnvFrom: []corev1.EnvFromSource{fromConfigMap("", "here", nil)},
		Env:     []corev1.EnvVar{secretKey("k", "gone", "k", ptr.To(true))},
	})
	objects := &memoryObjects{ConfigMaps: map[string]map[string]string{"here": {"k": "v"}}}
	if err := Resolve(t.Context(), Config{Objects: objects}, pod); err != nil {
		t.Fatal(err)
	}
	if got := lines(pod.Spec.Containers[0].Env); got != "k=v\n" {
		t.Errorf("environment %q, want k=v", got)
	}
}

func TestInvalidNames(t *testing.T) {
	recorder := &events{}
	pod := podWith(corev1.Container{EnvFrom: []corev1.EnvFromSource{fromConfigMap("", "odd", nil), fromSecret("p=", "one", nil)}})
	objects := &memoryObjects{
		ConfigMaps: map[string]map[string]string{"odd": {"1.digit-first": "a", "": canary, "with=sign": canary, "ümlaut": canary, "new\nline": canary, "sp ace": "b"}},
		Secrets:    map[string]map[string]string{"one": {"k": canary}},
	}
	if err := Resolve(t.Context(), Config{Objects: objects, Recorder: recorder}, pod); err != nil {
		t.Fatal(err)
	}
	if got, want := lines(pod.Spec.Containers[0].Env), "1.digit-first=a\nsp ace=b\n"; got != want {
		t.Errorf("environment %q, want %q", got, want)
	}
	want := []string{"Warning InvalidEnvironmentVariableNames", "Warning InvalidEnvironmentVariableNames"}
	if diff := cmp.Diff(want, recorder.Reasons); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	all := strings.Join(recorder.Messages, "\n")
	if strings.Contains(all, canary) || !strings.Contains(all, `"with=sign"`) || !strings.Contains(all, `"p=k"`) {
		t.Errorf("messages %q, want the names and no values", all)
	}
}

func TestStoppingIsNoEvent(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	recorder := &events{}
	pod := podWith(corev1.Container{Env: []corev1.EnvVar{secretKey("X", "s", "k", nil)}})
	err := Resolve(ctx, Config{Objects: &memoryObjects{Err: ctx.Err()}, Recorder: recorder}, pod)
	if !errors.Is(err, context.Canceled) || len(recorder.Reasons) != 0 {
		t.Errorf("error %v, events %q; want context.Canceled and no event", err, recorder.Reasons)
	}
}
