// SPDX-License-Identifier: Apache-2.0

package api

import (
	"bytes"
	"context"
	_ "embed" // the template
	"encoding/json"
	"fmt"
	"html/template"
	"net/http"
	"strings"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

// DebugPath is the path of the page about the work of a process.
const DebugPath = "/debug/pods"

// DebugPage is the content of /debug/pods, as HTML for people and as JSON.
type DebugPage struct {
	Version string      `json:"version"`
	At      time.Time   `json:"at"`
	Nodes   []DebugNode `json:"nodes"`
	// Streams is the number of exec, attach and port-forward sessions under way.
	Streams int `json:"streams"`
	// Counts are counters of the process since its start: sync errors, provider calls, requests.
	Counts []DebugCount `json:"counts"`
}

// DebugNode is a node on the page.
type DebugNode struct {
	Name string `json:"name"`
	// Holder is the process that acts for the node, or "" if this process does.
	Holder string `json:"holder,omitempty"`
	// Provider is "healthy", "unknown" before the first Ping, or the error of the last Ping. Since is the begin of
	// this state.
	Provider string         `json:"provider"`
	Healthy  bool           `json:"healthy"`
	Since    time.Time      `json:"since,omitzero"`
	Queues   map[string]int `json:"queues"`
	Pods     []DebugPod     `json:"pods"`
}

// DebugPod is a pod on the page.
type DebugPod struct {
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	UID       string    `json:"uid"`
	Phase     string    `json:"phase"`
	WaitsFor  string    `json:"waitsFor,omitempty"`
	Since     time.Time `json:"since,omitzero"`
	Error     string    `json:"error,omitempty"`
	Tries     int       `json:"tries,omitempty"`
	NextTry   time.Time `json:"nextTry,omitzero"`
}

// DebugCount is a counter on the page.
type DebugCount struct {
	Name   string  `json:"name"`
	Labels string  `json:"labels,omitempty"`
	Value  float64 `json:"value"`
}

// shownPods bounds the pods of a node in HTML. JSON has all pods.
const shownPods = 500

//go:embed debugpage.html
var debugPageHTML string

var debugTemplate = template.Must(template.New("debug").Funcs(template.FuncMap{
	"ago":   func(at, now time.Time) string { return now.Sub(at).Truncate(time.Second).String() },
	"utc":   func(at time.Time) string { return at.UTC().Format(time.RFC3339) },
	"first": func(pods []DebugPod) []DebugPod { return pods[:min(len(pods), shownPods)] },
	"more":  func(pods []DebugPod) int { return max(0, len(pods)-shownPods) },
	"waiting": func(pods []DebugPod) (n int) {
		for _, pod := range pods {
			if pod.WaitsFor != "" {
				n++
			}
		}
		return n
	},
}).Parse(debugPageHTML))

// DebugHandler serves get as a page, or as JSON if the query has format=json or the client accepts only JSON.
func DebugHandler(get func(context.Context) DebugPage) http.HandlerFunc {
	return answerErrors(func(w http.ResponseWriter, req *http.Request) error {
		asJSON, err := wantsJSON(req)
		if err != nil {
			return err
		}
		header := w.Header()
		header.Set("Cache-Control", "no-store")
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Referrer-Policy", "no-referrer")
		header.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
		header.Set("Vary", "Accept")
		page := get(req.Context())
		var body bytes.Buffer
		if asJSON {
			header.Set("Content-Type", "application/json")
			err = json.NewEncoder(&body).Encode(page)
		} else {
			header.Set("Content-Type", "text/html; charset=utf-8")
			err = debugTemplate.Execute(&body, page)
		}
		if err != nil {
			return fmt.Errorf("write the page about pods: %w", err)
		}
		_, _ = w.Write(body.Bytes()) // a client that is gone needs no answer
		return nil
	})
}

func wantsJSON(req *http.Request) (bool, error) {
	switch format := req.URL.Query().Get("format"); format {
	case "json":
		return true, nil
	case "html":
		return false, nil
	case "":
		accept := req.Header.Get("Accept")
		return strings.Contains(accept, "application/json") && !strings.Contains(accept, "text/html"), nil
	default:
		return false, errdefs.InvalidInputf("format %q of the page: want html or json", format)
	}
}
