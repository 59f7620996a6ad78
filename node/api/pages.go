// SPDX-License-Identifier: Apache-2.0

package api

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/gorilla/mux"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

// processStart is the start time of the process, as accurately as this package can tell.
var processStart = time.Now()

// pageHead warns against parsing the page.
const pageHead = "kubelet %s\nThis page is for people: its form may change at any time.\n\n"

// attachPages adds the routes of the pages about the node itself.
func (p PodHandlerConfig) attachPages(r router) {
	if p.GetConfig != nil {
		r.handle("/configz", answerErrors(func(w http.ResponseWriter, _ *http.Request) error {
			return writeJSON(w, map[string]any{"kubeletconfig": p.GetConfig()})
		}), http.MethodGet)
	}
	if p.GetFlags != nil {
		r.handle("/flagz", answerErrors(func(w http.ResponseWriter, _ *http.Request) error {
			writeText(w, flagsPage(p.GetFlags()))
			return nil
		}), http.MethodGet)
	}
	if p.SetVerbosity != nil {
		r.handle("/debug/flags/v", answerErrors(p.putVerbosity), http.MethodPut)
	}
	if p.GetDebug != nil {
		r.handle(DebugPath, DebugHandler(p.GetDebug), http.MethodGet)
	}
	r.handle("/statusz", answerErrors(func(w http.ResponseWriter, _ *http.Request) error {
		writeText(w, statusPage(p.Version, r.paths()))
		return nil
	}), http.MethodGet)
}

// maxVerbosity bounds the text of a verbosity.
const maxVerbosity = 20

// putVerbosity changes the log verbosity, as PUT /debug/flags/v of a kubelet does.
func (p PodHandlerConfig) putVerbosity(w http.ResponseWriter, req *http.Request) error {
	body, err := io.ReadAll(io.LimitReader(req.Body, maxVerbosity+1))
	if err != nil {
		return errdefs.InvalidInputf("read the verbosity: %v", err)
	}
	value := strings.TrimSpace(string(body))
	if err := p.SetVerbosity(value); err != nil {
		return errdefs.InvalidInputf("set the verbosity to %.*q: %v", maxVerbosity, value, err)
	}
	writeText(w, "successfully set the verbosity to "+value+"\n")
	return nil
}

func flagsPage(flags map[string]string) string {
	var b strings.Builder
	fmt.Fprintf(&b, pageHead, "flagz")
	for _, name := range slices.Sorted(maps.Keys(flags)) {
		fmt.Fprintf(&b, "%s=%s\n", name, flags[name])
	}
	return b.String()
}

func statusPage(version string, paths []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, pageHead, "statusz")
	up := time.Since(processStart)
	fmt.Fprintf(&b, "Started: %s\n", processStart.UTC().Format(time.UnixDate))
	fmt.Fprintf(&b, "Up: %d hr %02d min %02d sec\n", int(up.Hours()), int(up.Minutes())%60, int(up.Seconds())%60)
	fmt.Fprintf(&b, "Go version: %s\n", runtime.Version())
	fmt.Fprintf(&b, "Binary version: %s\n", version)
	fmt.Fprintf(&b, "Paths: %s\n", strings.Join(paths, " "))
	return b.String()
}

// paths returns the served paths without the trailing slash.
func (r router) paths() []string {
	served := map[string]bool{}
	_ = r.Walk(func(route *mux.Route, _ *mux.Router, _ []*mux.Route) error {
		path, err := route.GetPathTemplate()
		if err == nil {
			served[strings.TrimSuffix(path, "/")] = true
		}
		return nil // a route without a path does not belong to this package
	})
	return slices.Sorted(maps.Keys(served))
}
