// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"encoding/json"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// maxReview is the size limit of a request to the webhook. An object of the API server has at most 3 MiB.
const maxReview = 4 << 20

// Webhook returns a handler that answers AdmissionReviews for created pods, at the path /elect.
func Webhook() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /elect", func(w http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxReview)).Decode(&review); err != nil || review.Request == nil {
			http.Error(w, fmt.Sprintf("want an AdmissionReview of admission.k8s.io/v1 (%v)", err), http.StatusBadRequest)
			return
		}
		review.Response = reviewResponse(review.Request)
		review.Request = nil
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(review) // an error means that the caller has gone
	})
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok")) })
	return mux
}

// reviewResponse returns the response of the webhook to one request.
func reviewResponse(request *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	out := &admissionv1.AdmissionResponse{UID: request.UID, Allowed: true}
	if request.Operation != admissionv1.Create || request.Resource.Resource != "pods" || request.SubResource != "" {
		return out
	}
	refuse := func(err error) *admissionv1.AdmissionResponse {
		out.Allowed = false
		out.Result = &metav1.Status{Status: metav1.StatusFailure, Message: "elect: " + err.Error(), Reason: metav1.StatusReasonInvalid, Code: http.StatusUnprocessableEntity}
		return out
	}
	var pod corev1.Pod
	if err := json.Unmarshal(request.Object.Raw, &pod); err != nil {
		return refuse(err)
	}
	changed, err := Elect(&pod)
	if err != nil {
		return refuse(err)
	}
	if !changed {
		return out
	}
	if out.Patch, err = patchOf(&pod); err != nil {
		return refuse(err)
	}
	out.PatchType = ptr.To(admissionv1.PatchTypeJSONPatch)
	return out
}

// patchOf returns a patch that replaces the fields that Elect changes. All other fields, including unknown ones,
// stay unchanged.
func patchOf(pod *corev1.Pod) ([]byte, error) {
	type operation struct {
		Op    string `json:"op"`
		Path  string `json:"path"`
		Value any    `json:"value"`
	}
	return json.Marshal([]operation{ // add replaces an existing value
		{"add", "/metadata/annotations", pod.Annotations},
		{"add", "/spec/nodeSelector", pod.Spec.NodeSelector},
		{"add", "/spec/affinity", pod.Spec.Affinity},
		{"add", "/spec/tolerations", pod.Spec.Tolerations},
		{"add", "/spec/schedulerName", pod.Spec.SchedulerName},
	})
}
