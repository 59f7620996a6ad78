// SPDX-License-Identifier: Apache-2.0

package api

import (
	"bytes"
	"context"
	_ "embed" // the style
	"encoding/json"
	"fmt"
	"html"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

// shownPods bounds the pods of a node in HTML. JSON has all pods.
const shownPods = 500

//go:embed debugpage.css
var debugStyle string

// htmlWriter writes HTML with escaped values. The package html/template would double the size of programs: the linker then keeps every
// exported method. It does not escape for attributes, scripts or styles, so no value may be placed there.
type htmlWriter struct{ out *bytes.Buffer }

// write writes constant HTML and replaces each verb by an escaped value.
func (w htmlWriter) write(constant string, values ...any) {
	for i, value := range values {
		values[i] = html.EscapeString(fmt.Sprint(value))
	}
	fmt.Fprintf(w.out, constant, values...)
}

// writeDebugPage writes the page as HTML.
func writeDebugPage(out *bytes.Buffer, page DebugPage) {
	w := htmlWriter{out}
	w.write(`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>%s - virtual-kubelet</title>
<style>
`, count(len(page.Nodes), "node"))
	out.WriteString(debugStyle)
	w.write(`</style>
</head>
<body>
<h1>virtual-kubelet %s</h1>
<p><small>%s &middot; %s &middot; <a href="?format=json">JSON</a></small></p>
`, page.Version, utc(page.At), count(page.Streams, "stream"))
	for _, node := range page.Nodes {
		w.writeNode(node, page.At)
	}
	if len(page.Nodes) == 0 {
		w.write("<p>This process has no node.</p>\n")
	}
	if len(page.Counts) > 0 {
		w.write("<section>\n<h2>Since the start of the process</h2>\n<table>\n")
		for _, c := range page.Counts {
			w.write("<tr><td>%s <span class=\"rest\">%s</span></td><td>%v</td></tr>\n", c.Name, c.Labels, c.Value)
		}
		w.write("</table>\n</section>\n")
	}
	w.write("</body>\n</html>\n")
}

func (w htmlWriter) writeNode(node DebugNode, now time.Time) {
	w.write("<section>\n<h2>%s</h2>\n", node.Name)
	if node.Holder != "" {
		w.write("<p>Standby: the %s acts for this node.</p>\n", node.Holder)
	}
	if node.Healthy {
		w.write("<p>Provider: <span class=\"good\">%s</span>", node.Provider)
	} else {
		w.write("<p>Provider: <span class=\"bad\">%s</span>", node.Provider)
	}
	if !node.Since.IsZero() {
		w.write(" for %s", since(node.Since, now))
	}
	waiting := 0
	for _, pod := range node.Pods {
		if pod.WaitsFor != "" {
			waiting++
		}
	}
	w.write("</p>\n<p>%s, %v waiting. Queues:", count(len(node.Pods), "pod"), waiting)
	for _, name := range slices.Sorted(maps.Keys(node.Queues)) {
		w.write(" %s %v", name, node.Queues[name])
	}
	w.write(".</p>\n")
	for _, pod := range node.Pods[:min(len(node.Pods), shownPods)] {
		w.writePod(pod, now)
	}
	if more := len(node.Pods) - shownPods; more > 0 {
		w.write("<p>%v more pods are in <a href=\"?format=json\">JSON</a>.</p>\n", more)
	}
	w.write("</section>\n")
}

func (w htmlWriter) writePod(pod DebugPod, now time.Time) {
	switch {
	case pod.Error != "":
		w.write("<article class=\"fails\">\n")
	case pod.WaitsFor != "":
		w.write("<article class=\"waits\">\n")
	default:
		w.write("<article>\n")
	}
	w.write("<p><strong>%s/%s</strong> %s <small>%s</small></p>\n", pod.Namespace, pod.Name, pod.Phase, pod.UID)
	if pod.WaitsFor != "" {
		w.write("<p>Waits for %s", pod.WaitsFor)
		if !pod.Since.IsZero() {
			w.write(", since %s (%s)", utc(pod.Since), since(pod.Since, now))
		}
		w.write(".</p>\n")
	}
	if pod.Error != "" {
		w.write("<p class=\"bad\">%s</p>\n", pod.Error)
	}
	if pod.Tries > 0 {
		tries := "tries"
		if pod.Tries == 1 {
			tries = "try"
		}
		w.write("<p>%v failed %s", pod.Tries, tries)
		if !pod.NextTry.IsZero() {
			w.write("; the next is at %s", utc(pod.NextTry))
		}
		w.write(".</p>\n")
	}
	w.write("</article>\n")
}

// count returns a count with the noun in the singular or plural.
func count(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprintf("%d %s", n, thing)
}

func utc(at time.Time) string { return at.UTC().Format(time.RFC3339) }

func since(at, now time.Time) string { return now.Sub(at).Truncate(time.Second).String() }

// DebugHandler returns a handler that serves the result of get as a page, or as JSON if the query has format=json or the client accepts
// only JSON.
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
			writeDebugPage(&body, page)
		}
		if err != nil {
			return fmt.Errorf("write the page about pods: %w", err)
		}
		_, _ = w.Write(body.Bytes()) // the client may have disconnected
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
