// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

// healthPage serves the combined result of several checks.
type healthPage struct {
	name   string // name of the path
	checks []HealthCheck
}

// attach adds the route of the page, and one route for each check below it.
func (p healthPage) attach(r router) {
	r.handle("/"+p.name, answerErrors(p.all), http.MethodGet)
	r.handle("/"+p.name+"/{check}", answerErrors(p.one), http.MethodGet)
}

// all answers "ok", or 500 with the failed checks. As with the pages of the Kubernetes components, ?verbose
// shows each check and ?exclude=NAME leaves a check out.
func (p healthPage) all(w http.ResponseWriter, req *http.Request) error {
	query := req.URL.Query()
	var lines strings.Builder
	well := true
	for _, check := range p.checks {
		if slices.Contains(query["exclude"], check.Name) {
			fmt.Fprintf(&lines, "[+]%s excluded: ok\n", check.Name)
			continue
		}
		err := recoverPanic(req.Context(), func() error { return check.Check(req.Context()) })
		if err != nil {
			well = false
			fmt.Fprintf(&lines, "[-]%s failed: %v\n", check.Name, err)
			continue
		}
		fmt.Fprintf(&lines, "[+]%s ok\n", check.Name)
	}
	switch {
	case !well:
		http.Error(w, lines.String()+p.name+" check failed", http.StatusInternalServerError)
	case verbose(query.Get("verbose"), query.Has("verbose")):
		writeText(w, lines.String()+p.name+" check passed\n")
	default:
		writeText(w, "ok")
	}
	return nil
}

// verbose reads a flag that may have no value.
func verbose(value string, given bool) bool {
	on, err := strconv.ParseBool(value)
	return given && (on || err != nil)
}

func (p healthPage) one(w http.ResponseWriter, req *http.Request) error {
	name := pathValue(req, "check")
	for _, check := range p.checks {
		if check.Name != name {
			continue
		}
		if err := recoverPanic(req.Context(), func() error { return check.Check(req.Context()) }); err != nil {
			// Not wrapped: the error kind of the cause must not decide on the status code.
			return errors.New(name + " failed: " + err.Error())
		}
		writeText(w, "ok")
		return nil
	}
	return errdefs.NotFoundf("%s has no check %.80q", p.name, name)
}

// attachHealth adds /healthz, /readyz and /livez. /livez fails only when the process must be restarted.
func (p PodHandlerConfig) attachHealth(r router) {
	ready, live := p.readyChecks(), []HealthCheck{pingCheck}
	if p.Live != nil {
		live = append(live, HealthCheck{"node", p.Live})
	}
	healthPage{"healthz", ready}.attach(r)
	healthPage{"readyz", ready}.attach(r)
	healthPage{"livez", live}.attach(r)
}

// pingCheck always passes: a response is enough proof.
var pingCheck = HealthCheck{"ping", func(context.Context) error { return nil }}

// readyChecks returns the checks of /healthz, /readyz and /metrics/slis.
func (p PodHandlerConfig) readyChecks() []HealthCheck {
	checks := []HealthCheck{pingCheck}
	if p.Health != nil {
		checks = append(checks, HealthCheck{"node", p.Health})
	}
	return append(checks, p.HealthChecks...)
}

// writeText answers with a text.
func writeText(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	_, _ = w.Write([]byte(text)) // an error means that the client has disconnected
}
