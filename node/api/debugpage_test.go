// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// markup is text that would be an element, a script, an attribute or a link if it were not escaped.
const markup = `"><script>document.title='owned'</script><img src=x onerror="document.title='owned'"> {{.}} javascript:alert(1)`

func debugPageOf(pods ...DebugPod) DebugPage {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	return DebugPage{
		Version: "v1.2.3", At: at, Streams: 1,
		Nodes: []DebugNode{
			{Name: "n1", Provider: "healthy", Healthy: true, Since: at.Add(-time.Hour), Queues: map[string]int{"sync": 2}, Pods: pods},
			{Name: "n2", Holder: "process 7 on host h", Provider: "dial tcp: " + markup, Since: at.Add(-time.Minute), Pods: []DebugPod{}},
		},
		Counts: []DebugCount{{Name: "Sync errors", Labels: "timeout", Value: 3}},
	}
}

func waitingPod() DebugPod {
	at := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	return DebugPod{
		Namespace: "default", Name: "web", UID: "u-1", Phase: "Pending", WaitsFor: "the backend to create the pod", Since: at,
		Error: "create pod default/web: " + markup, Tries: 3, NextTry: at.Add(5 * time.Minute),
	}
}

// serveDebugPage returns the URL of the page.
func serveDebugPage(t *testing.T, page DebugPage) string {
	t.Helper()
	srv := httptest.NewServer(PodHandler(PodHandlerConfig{GetDebug: func(context.Context) DebugPage { return page }}, false))
	t.Cleanup(srv.Close)
	return srv.URL + DebugPath
}

func getPage(t *testing.T, url, accept string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", accept)
	response, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, string(body)
}

// TestDebugPageSaysWhatPodsWaitFor holds that the page shows all pods with their details, escaped.
func TestDebugPageSaysWhatPodsWaitFor(t *testing.T) {
	odd := DebugPod{Namespace: "d", Name: markup, Phase: markup, UID: markup, WaitsFor: markup}
	response, body := getPage(t, serveDebugPage(t, debugPageOf(waitingPod(), odd)), "text/html,application/xhtml+xml,*/*;q=0.8")
	for _, want := range []string{
		"<title>2 nodes - virtual-kubelet</title>", "virtual-kubelet v1.2.3", `name="viewport"`, "1 stream ", "<h2>n1</h2>", "healthy</span> for 1h0m0s",
		"2 pods, 2 waiting. Queues: sync 2.", "Standby: the process 7 on host h acts for this node.", "<strong>default/web</strong> Pending",
		"Waits for the backend to create the pod, since 2026-01-02T03:00:00Z (4m5s).", "create pod default/web: &#34;&gt;&lt;script&gt;",
		"3 failed tries; the next is at 2026-01-02T03:05:00Z.", `Sync errors <span class="rest">timeout</span></td><td>3</td>`, "{{.}}",
	} {
		if !strings.Contains(body, want) {
			t.Errorf("%q is not in the page", want)
		}
	}
	for _, never := range []string{"<script", "<img", "href=\"javascript", "onerror=\""} {
		if strings.Contains(body, never) {
			t.Errorf("%q is in the page", never)
		}
	}
	if csp := response.Header.Get("Content-Security-Policy"); !strings.HasPrefix(csp, "default-src 'none';") || response.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("the headers are %v", response.Header)
	}
	if t.Failed() {
		t.Log(body)
	}
}

// TestDebugPageIsJSONWhereItIsAskedFor requests JSON by the query and by the header Accept.
func TestDebugPageIsJSONWhereItIsAskedFor(t *testing.T) {
	url := serveDebugPage(t, debugPageOf(waitingPod()))
	for _, test := range []struct {
		query, accept, kind string
		status              int
	}{
		{"", "*/*", "text/html", 200},
		{"", "application/json", "application/json", 200},
		{"", "text/html, application/json", "text/html", 200},
		{"?format=json", "text/html", "application/json", 200},
		{"?format=html", "application/json", "text/html", 200},
		{"?format=xml", "", "text/plain", 400},
	} {
		response, body := getPage(t, url+test.query, test.accept)
		if response.StatusCode != test.status || !strings.HasPrefix(response.Header.Get("Content-Type"), test.kind) {
			t.Errorf("%q, Accept %q: got %s %s\n%s", test.query, test.accept, response.Status, response.Header.Get("Content-Type"), body)
		}
		if test.kind != "application/json" {
			continue
		}
		var page DebugPage
		if err := json.Unmarshal([]byte(body), &page); err != nil || page.Nodes[0].Pods[0] != waitingPod() || strings.Contains(body, "<script") {
			t.Errorf("%q: got %v, %s", test.query, err, body)
		}
	}
}

// TestDebugPageIsBounded: the page of ten thousand pods shows some of them, and the JSON has all.
func TestDebugPageIsBounded(t *testing.T) {
	pods := make([]DebugPod, 10000)
	for i := range pods {
		pods[i] = DebugPod{Namespace: "d", Name: fmt.Sprint("p", i), Phase: "Running"}
	}
	url := serveDebugPage(t, debugPageOf(pods...))
	_, body := getPage(t, url, "text/html")
	if n := strings.Count(body, "<article"); n != shownPods || !strings.Contains(body, "9500 more pods are in") {
		t.Errorf("the page has %d pods", n)
	}
	if _, body = getPage(t, url+"?format=json", ""); strings.Count(body, `"namespace"`) != len(pods) {
		t.Error("JSON lacks pods")
	}
}

// TestDebugPageInABrowser loads the page into Chromium, with the width of a phone. No text of a pod becomes an element or a script.
// VK_SCREENSHOT is the file name for the screenshot in the documentation.
func TestDebugPageInABrowser(t *testing.T) {
	browser, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("chromium is not installed: apt-get install chromium")
	}
	page := debugPageOf(waitingPod(), DebugPod{Namespace: "d", Name: markup, Phase: "Running", UID: strings.Repeat("x", 300)})
	shot := os.Getenv("VK_SCREENSHOT")
	if shot != "" {
		page.Nodes[0].Pods = []DebugPod{
			{Namespace: "default", Name: "batch-7", UID: "5b0c", Phase: "Pending", WaitsFor: "the backend to create the pod", Since: page.At.Add(-4 * time.Minute),
				Error: "create pod default/batch-7: the quota of 10 CPUs is used up; it is tried again", Tries: 3, NextTry: page.At.Add(time.Minute)},
			{Namespace: "default", Name: "web", UID: "91fe", Phase: "Running"},
		}
		page.Nodes = page.Nodes[:1]
	}
	args := []string{"--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--user-data-dir=" + filepath.Join(t.TempDir(), "profile"),
		"--window-size=412,915", "--virtual-time-budget=2000"}
	if shot != "" {
		args = append(args, "--screenshot="+shot, "--hide-scrollbars")
	} else {
		args = append(args, "--dump-dom")
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, browser, append(args, serveDebugPage(t, page))...).Output()
	if err != nil {
		t.Fatalf("%s: %v", browser, err)
	}
	if shot != "" {
		return
	}
	dom := string(out)
	if !strings.Contains(dom, "<title>2 nodes - virtual-kubelet</title>") || strings.Contains(dom, "<script") || strings.Contains(dom, "<img") {
		t.Errorf("a text of a pod became a part of the page:\n%s", dom)
	}
	for _, want := range []string{"<strong>default/web</strong>", "Waits for the backend to create the pod"} {
		if !strings.Contains(dom, want) {
			t.Errorf("%q is not in the DOM:\n%s", want, dom)
		}
	}
}
