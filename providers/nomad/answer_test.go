// SPDX-License-Identifier: Apache-2.0

package nomad

import (
	"io"
	"net/http"
	"testing"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

// TestWordsOfNomad checks that not-found counts only in the words of Nomad's own handlers.
func TestWordsOfNomad(t *testing.T) {
	for text, want := range map[string]bool{
		"job not found": true, "variable not found": true, "alloc not found": true, "rpc error: job not found": true,
		`Unknown allocation "5b2c7f7e-0000-4000-8000-000000000001"`: true, `task "main" not started yet. No logs available`: true,
		`log entry for task "main" and log type "stdout" not found`: true,
		"": false, "404 page not found": false, "not found": false, "The job not found here was moved": false, "no Route matched with those values": false,
	} {
		if got := errdefs.IsNotFound(&answerError{code: http.StatusNotFound, text: text}); got != want {
			t.Errorf("404 with %q is of the kind not-found: %t, want %t", text, got, want)
		}
	}
}

// foreign are answers of proxies before Nomad, or of other servers at its address.
var foreign = map[string]http.HandlerFunc{
	"page that is not found": func(w http.ResponseWriter, _ *http.Request) { page(w, http.StatusNotFound, "<h1>job not found</h1>") },
	"route that is unknown":  http.NotFound,
	"page with a login":      func(w http.ResponseWriter, _ *http.Request) { page(w, http.StatusOK, "<form>") },
	"page that refuses":      func(w http.ResponseWriter, _ *http.Request) { page(w, http.StatusBadRequest, "<h1>too large</h1>") },
	"page that forbids":      func(w http.ResponseWriter, _ *http.Request) { page(w, http.StatusForbidden, "<h1>blocked</h1>") },
	"page of a failure": func(w http.ResponseWriter, _ *http.Request) {
		page(w, http.StatusInternalServerError, "An error occurred: the upstream does not exist")
	},
	"listener that wants TLS": func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Content-Type"] = nil
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, "Client sent an HTTP request to an HTTPS server.")
	},
}

func page(w http.ResponseWriter, code int, text string) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(code)
	_, _ = io.WriteString(w, text)
}

// TestForeignAnswersSayNothing checks that an answer of another server at Nomad's address makes no pod, job or
// Variable gone, refused or written.
func TestForeignAnswersSayNothing(t *testing.T) {
	for name, answer := range foreign {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, p := openDouble(t, objects{secret: map[string][]byte{"a": []byte("1")}})
			pod, other := keysPod(), keysPod()
			if err := p.CreatePod(t.Context(), pod); err != nil {
				t.Fatal(err)
			}
			e := p.d.store.pods[pod.UID]
			d.set(func() { d.instead = answer })
			for what, do := range map[string]func() error{
				"create":          func() error { return p.CreatePod(t.Context(), other) },
				"delete":          func() error { return p.DeletePod(t.Context(), pod) },
				"delete unknown":  func() error { return p.DeletePod(t.Context(), other) },
				"forget":          func() error { return p.d.forget(t.Context(), e) },
				"purge":           func() error { _, err := p.d.client.purge(t.Context(), e.jobID); return err },
				"list":            func() error { _, err := p.d.client.list(t.Context(), "vk-"); return err },
				"write":           func() error { return p.d.client.put(t.Context(), d.variables[variablePath(e.jobID, "main")]) },
				"register":        func() error { _, err := p.d.client.register(t.Context(), d.jobs[e.jobID]); return err },
				"remove Variable": func() error { return p.d.client.removeVariable(t.Context(), "x", 0) },
				"exec": func() error {
					_, err := p.d.client.exec(t.Context(), "a", "main", []string{"true"}, false)
					return err
				},
				"logs": func() error {
					l := logReader{d: p.d, ctx: t.Context(), alloc: "x", task: "main"}
					_, err := l.read("stdout", "start", 0)
					return err
				},
			} {
				if err := do(); err == nil || errdefs.IsNotFound(err) || errdefs.IsInvalidInput(err) || final(err) {
					t.Errorf("%s: got %v, want an error of no kind", what, err)
				}
			}
			if p.d.store.pods[pod.UID] != e || e.stopping {
				t.Errorf("the pod is known as %+v", p.d.store.pods[pod.UID])
			}
			d.set(func() { d.instead = nil })
			if err := p.DeletePod(t.Context(), pod); err != nil {
				t.Error(err)
			}
		})
	}
}
