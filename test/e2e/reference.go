// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// absent is the name of the missing ConfigMap and the missing Secret.
const absent = "e2e-does-not-exist"

// TestCreatePodWithOptionalInexistentSecrets checks that a pod runs without an optional Secret, with an event
// about it.
func (s *EndToEndTestSuite) TestCreatePodWithOptionalInexistentSecrets(t *testing.T) {
	s.runsWithout(t, secretKey(true), "OptionalSecretNotFound")
}

// TestCreatePodWithMandatoryInexistentSecrets checks that a pod does not reach the provider without a required
// Secret, and that an event has the reason.
func (s *EndToEndTestSuite) TestCreatePodWithMandatoryInexistentSecrets(t *testing.T) {
	s.waitsFor(t, secretKey(false), "MandatorySecretNotFound")
}

// TestCreatePodWithOptionalInexistentConfigMap checks that a pod runs without an optional ConfigMap, with an
// event about it.
func (s *EndToEndTestSuite) TestCreatePodWithOptionalInexistentConfigMap(t *testing.T) {
	s.runsWithout(t, configMapKey(true), "OptionalConfigMapNotFound")
}

// TestCreatePodWithMandatoryInexistentConfigMap checks that a pod does not reach the provider without a required
// ConfigMap, and that an event has the reason.
func (s *EndToEndTestSuite) TestCreatePodWithMandatoryInexistentConfigMap(t *testing.T) {
	s.waitsFor(t, configMapKey(false), "MandatoryConfigMapNotFound")
}

func (s *EndToEndTestSuite) runsWithout(t *testing.T, source *corev1.EnvVarSource, reason string) {
	t.Helper()
	pod := s.start(t, s.podWithVariable(source))
	s.waitForEvent(t, pod, reason)
	s.awaitCheck(t, "the provider has the pod", func(ctx context.Context) error { return s.checkRuns(ctx, pod, true) })
}

func (s *EndToEndTestSuite) waitsFor(t *testing.T, source *corev1.EnvVarSource, reason string) {
	t.Helper()
	pod := s.createPod(t, s.podWithVariable(source))
	s.waitForEvent(t, pod, reason)
	if listed, err := s.getPods(t.Context(), "/runningpods/"); err != nil {
		t.Error(err)
	} else if err := checkWaits(listed, pod); err != nil {
		t.Error(err)
	}
	s.waitForPod(t, pod, "is Pending", func(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodPending })
}

func (s *EndToEndTestSuite) podWithVariable(source *corev1.EnvVarSource) *corev1.Pod {
	pod := s.newPod("reference", "one")
	pod.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "VALUE", ValueFrom: source}}
	return pod
}

func secretKey(optional bool) *corev1.EnvVarSource {
	return &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
		LocalObjectReference: corev1.LocalObjectReference{Name: absent}, Key: "key", Optional: &optional,
	}}
}

func configMapKey(optional bool) *corev1.EnvVarSource {
	return &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{
		LocalObjectReference: corev1.LocalObjectReference{Name: absent}, Key: "key", Optional: &optional,
	}}
}

// checkWaits returns an error if the provider runs an incomplete pod. A provider with its own reader of objects already has the pod, and
// delays its containers.
func checkWaits(listed []corev1.Pod, pod *corev1.Pod) error {
	for i := range listed {
		if p := &listed[i]; isSamePod(p, pod) && p.Status.Phase != corev1.PodPending {
			return fmt.Errorf("pod %s waits for something that does not exist, and the provider's list says that it is %q, want it Pending or not in the list", p.Name, p.Status.Phase)
		}
	}
	return nil
}
