// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providers/admiralty"
)

// elected returns an elected pod with further annotations.
func elected(more ...string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", Annotations: map[string]string{annotationElect: ""}}}
	for _, key := range more {
		pod.Annotations[key] = ""
	}
	pod.Spec.SchedulerName = corev1.DefaultSchedulerName
	pod.Spec.NodeSelector = map[string]string{"disk": "ssd"}
	pod.Spec.Tolerations = []corev1.Toleration{{Key: "node.kubernetes.io/not-ready", Operator: corev1.TolerationOpExists}, {Key: "gpu"}}
	return pod
}

func TestElect(t *testing.T) {
	pod := elected()
	if changed, err := Elect(pod); !changed || err != nil {
		t.Fatal(changed, err)
	}
	if pod.Spec.SchedulerName != SchedulerName || len(pod.Spec.NodeSelector) != 1 || pod.Spec.NodeSelector[admiralty.LabelProvider] != "admiralty" ||
		len(pod.Spec.Tolerations) != 2 || pod.Spec.Tolerations[1].Key != admiralty.LabelProvider || len(pod.Finalizers) > 0 {
		t.Errorf("an elected pod has the spec %+v", pod.Spec)
	}
	if got, want := pod.Annotations[admiralty.AnnotationConstraints], `{"nodeSelector":{"disk":"ssd"},"tolerations":[{"key":"gpu"}]}`; got != want {
		t.Errorf("its constraints are %s, want %s", got, want)
	}
	if changed, err := Elect(pod); changed || err != nil {
		t.Errorf("elected again: changed %t (%v), want no change", changed, err)
	}
}

func TestElectByAnnotations(t *testing.T) {
	here := elected(annotationSpecIsHere)
	if _, err := Elect(here); err != nil || here.Spec.NodeSelector["disk"] != "ssd" || here.Annotations[admiralty.AnnotationConstraints] != "" || here.Spec.SchedulerName != SchedulerName {
		t.Errorf("with constraints of here: %+v, %v", here.Spec, err)
	}
	selects := elected()
	selects.Spec.NodeSelector = map[string]string{admiralty.LabelProvider: admiralty.ProviderName}
	selects.Spec.Tolerations = nil
	if changed, err := Elect(selects); !changed || err != nil || selects.Spec.SchedulerName != SchedulerName || selects.Annotations[admiralty.AnnotationConstraints] != "" {
		t.Errorf("a pod that selects nodes of targets itself: changed %t (%v), %+v", changed, err, selects.Spec)
	}
	unreserved := elected(annotationNoReserve)
	if _, err := Elect(unreserved); err != nil || unreserved.Spec.SchedulerName != corev1.DefaultSchedulerName || unreserved.Spec.NodeSelector[admiralty.LabelProvider] == "" {
		t.Errorf("without a reservation: %+v, %v", unreserved.Spec, err)
	}
	if _, err := Elect(elected(annotationProxy)); !errdefs.IsInvalidInput(err) {
		t.Errorf("with constraints of the proxy pod: got %v, want a refusal", err)
	}
	spread := elected()
	spread.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1}}
	if _, err := Elect(spread); !errdefs.IsInvalidInput(err) {
		t.Errorf("with topologySpreadConstraints: got %v, want a refusal", err)
	}
	other := elected()
	other.Annotations = nil
	if changed, err := Elect(other); changed || err != nil || other.Spec.SchedulerName != corev1.DefaultSchedulerName {
		t.Errorf("a pod that is not elected: changed %t (%v), want no change", changed, err)
	}
}

// TestElectKeepsWhatIsOfNodesHere has a manifest with the toleration for nodes of targets.
func TestElectKeepsWhatIsOfNodesHere(t *testing.T) {
	pod := elected()
	pod.Spec.NodeSelector, pod.Spec.Tolerations = nil, []corev1.Toleration{ofTargets}
	if _, err := Elect(pod); err != nil || len(pod.Spec.Tolerations) != 1 || pod.Annotations[admiralty.AnnotationConstraints] != "" {
		t.Errorf("got %+v with constraints %q (%v), want its one toleration and no constraints", pod.Spec, pod.Annotations[admiralty.AnnotationConstraints], err)
	}
}

// TestElectAfterAnotherWebhook has another webhook that gives the pod its own scheduler and nodes. The API
// server then calls this webhook again.
func TestElectAfterAnotherWebhook(t *testing.T) {
	pod := elected()
	if _, err := Elect(pod); err != nil {
		t.Fatal(err)
	}
	pod.Spec.Tolerations = append(pod.Spec.Tolerations, corev1.Toleration{Key: "pool"})
	want := pod.DeepCopy()
	pod.Spec.SchedulerName = "other"
	if changed, err := Elect(pod); !changed || err != nil {
		t.Fatal(changed, err)
	}
	if diff := cmp.Diff(want, pod); diff != "" {
		t.Errorf("elected again it is another pod (-want +got):\n%s", diff)
	}
}

// TestElectRefusesWhatTheAgentDoesNotLookAt has constraints on the nodes here, which the agent would ignore.
func TestElectRefusesWhatTheAgentDoesNotLookAt(t *testing.T) {
	terms := []corev1.PodAffinityTerm{{TopologyKey: corev1.LabelHostname}}
	for name, constrain := range map[string]func(*corev1.PodSpec){
		"spec.topologySpreadConstraints": func(s *corev1.PodSpec) {
			s.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, WhenUnsatisfiable: corev1.DoNotSchedule}}
		},
		"spec.affinity.podAffinity": func(s *corev1.PodSpec) {
			s.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms}}
		},
		"spec.affinity.podAntiAffinity": func(s *corev1.PodSpec) {
			s.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms}}
		},
	} {
		pod := elected(annotationSpecIsHere)
		constrain(&pod.Spec)
		if _, err := Elect(pod); !errdefs.IsInvalidInput(err) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: got %v, want a refusal", name, err)
		}
		pod = elected(annotationSpecIsHere, annotationNoReserve)
		constrain(&pod.Spec)
		if _, err := Elect(pod); err != nil {
			t.Errorf("%s with kube-scheduler: %v", name, err)
		}
	}
	soft := elected(annotationSpecIsHere)
	soft.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, WhenUnsatisfiable: corev1.ScheduleAnyway}}
	soft.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{}, PodAffinity: &corev1.PodAffinity{}, PodAntiAffinity: &corev1.PodAntiAffinity{}}
	if _, err := Elect(soft); err != nil {
		t.Errorf("wishes: %v", err)
	}
}

func TestWebhookAnswers(t *testing.T) {
	ask := func(pod *corev1.Pod) *admissionv1.AdmissionResponse {
		t.Helper()
		raw, err := json.Marshal(pod)
		if err != nil {
			t.Fatal(err)
		}
		review := admissionv1.AdmissionReview{Request: &admissionv1.AdmissionRequest{
			UID: "1", Operation: admissionv1.Create, Resource: metav1.GroupVersionResource{Version: "v1", Resource: "pods"}, Object: runtime.RawExtension{Raw: raw}}}
		body, err := json.Marshal(review)
		if err != nil {
			t.Fatal(err)
		}
		w := httptest.NewRecorder()
		Webhook().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "POST", "/elect", strings.NewReader(string(body))))
		var answer admissionv1.AdmissionReview
		if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || answer.Response == nil || answer.Response.UID != "1" {
			t.Fatalf("the webhook says %s (%v)", w.Body, err)
		}
		return answer.Response
	}
	if r := ask(elected()); !r.Allowed || *r.PatchType != admissionv1.PatchTypeJSONPatch || !strings.Contains(string(r.Patch), SchedulerName) {
		t.Errorf("of an elected pod it says %+v", r)
	}
	if r := ask(&corev1.Pod{}); !r.Allowed || r.Patch != nil {
		t.Errorf("of another pod it says %+v", r)
	}
	if r := ask(elected(annotationProxy)); r.Allowed || !strings.Contains(r.Result.Message, annotationProxy) {
		t.Errorf("of a pod that cannot be it says %+v", r)
	}
	w := httptest.NewRecorder()
	if Webhook().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "POST", "/elect", strings.NewReader("{}"))); w.Code != 400 {
		t.Errorf("of no review it says %d, want 400", w.Code)
	}
}
