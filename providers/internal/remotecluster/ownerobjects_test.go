// SPDX-License-Identifier: Apache-2.0

package remotecluster

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// answers are the answers of an API server, by the method and the beginning of the query.
type answers struct {
	t     *testing.T
	by    map[string]string
	asked string // path and body of the last request
}

// RoundTrip implements http.RoundTripper.
func (a *answers) RoundTrip(r *http.Request) (*http.Response, error) {
	a.asked = r.URL.Path
	if r.Body != nil {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		a.asked += " " + string(body)
	}
	key, code := r.Method, http.StatusOK
	if strings.Contains(r.URL.RawQuery, "watch=true") {
		key = "WATCH"
	}
	text := a.by[key]
	if strings.Contains(text, `"Failure"`) {
		code = http.StatusForbidden
	}
	return &http.Response{StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(text)), Request: r}, nil
}

// TestTypedOwners reads and writes objects of both shapes. Both contain the parts of a pod.
func TestTypedOwners(t *testing.T) {
	for shape, kind := range map[string]OwnerKind{
		`{"pod":SPEC}`: makerKind,
		`SPEC`:         {Resource: makerKind.Resource, Kind: makerKind.Kind, Spec: []string{"spec"}, Status: []string{"status"}},
	} {
		spec := strings.Replace(shape, "SPEC", `{"restartPolicy":"Never","containers":[{"name":"main","image":"web","new":1}]}`, 1)
		meta1 := `{"namespace":"r","name":"a","uid":"u","labels":{"l":"v"},"managedFields":[{"manager":"m"}]}`
		one := `{"apiVersion":"example.com/v1","kind":"Maker","metadata":` + meta1 + `,"spec":` + spec + `,"status":{"phase":"Running"}}`
		a := &answers{t: t, by: map[string]string{
			"GET":   `{"apiVersion":"example.com/v1","kind":"MakerList","metadata":{"resourceVersion":"7"},"items":[` + one + `]}`,
			"WATCH": `{"type":"MODIFIED","object":` + one + `}`,
			"POST":  one,
		}}
		typed, err := newTypedOwners(&rest.Config{Host: "http://remote.test", Transport: a, QPS: -1}, kind)
		if err != nil || typed == nil {
			t.Fatalf("%s: got %v, %v", shape, typed, err)
		}
		o := &owners{kind: kind, typed: typed}
		check := func(what string, object any) {
			t.Helper()
			for range 2 { // an informer may transform an object twice
				if object, err = o.convertObject(object); err != nil {
					t.Fatal(err)
				}
			}
			pod, ok := object.(*corev1.Pod)
			if !ok || !isOwner(pod) || pod.APIVersion != "example.com/v1" || pod.Name != "a" || pod.UID != "u" || pod.Labels["l"] != "v" || pod.ManagedFields != nil ||
				pod.Spec.RestartPolicy != corev1.RestartPolicyNever || pod.Spec.Containers[0].Image != "web" || pod.Status.Phase != corev1.PodRunning {
				t.Errorf("%s, %s: got %v", shape, what, object)
			}
		}
		list, err := typed.listObjects(t.Context(), "", metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		all, err := meta.ExtractList(list)
		if err != nil || len(all) != 1 || a.asked != "/apis/example.com/v1/makers" {
			t.Fatalf("%s: listed %v (%v) at %s", shape, all, err, a.asked)
		}
		check("listed", all[0])
		w, err := typed.watchObjects(t.Context(), "r", metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		event := <-w.ResultChan()
		check("watched", event.Object)
		w.Stop()
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "r", Name: "a", Labels: map[string]string{"l": "v"}}}
		pod.Spec.Containers = []corev1.Container{{Name: "main", Image: "web"}}
		made, err := o.create(t.Context(), pod)
		if err != nil {
			t.Fatal(err)
		}
		check("made", made)
		path, body, _ := strings.Cut(a.asked, " ")
		var sent struct {
			APIVersion, Kind string
			Spec             json.RawMessage
		}
		wantSpec := strings.Replace(shape, "SPEC", `{"containers":[{"name":"main","image":"web","resources":{}}]}`, 1)
		if err := json.Unmarshal([]byte(body), &sent); err != nil || path != "/apis/example.com/v1/namespaces/r/makers" ||
			sent.APIVersion != "example.com/v1" || sent.Kind != "Maker" || string(sent.Spec) != wantSpec {
			t.Errorf("%s: sent %s to %s (%v)", shape, body, path, err)
		}
		a.by["POST"] = `{"apiVersion":"v1","kind":"Status","status":"Failure","reason":"Forbidden","code":403,"message":"no"}`
		if _, err := o.create(t.Context(), pod); !apierrors.IsForbidden(err) {
			t.Errorf("%s: a create that is refused: got %v", shape, err)
		}
	}
	if typed, err := newTypedOwners(&rest.Config{}, OwnerKind{Spec: []string{"spec", "template", "spec"}}); typed != nil || err != nil {
		t.Errorf("of another shape: got %v, %v", typed, err)
	}
}
