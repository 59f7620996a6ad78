// SPDX-License-Identifier: Apache-2.0

package api

import (
	"bytes"
	"fmt"
	"net/http"
	"runtime/pprof"
	"strconv"
	"strings"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

const (
	// defaultProfileTime and maxProfileTime bound a CPU profile.
	defaultProfileTime = 30 * time.Second
	maxProfileTime     = 5 * time.Minute
)

// attachProfiling adds /debug/pprof, for go tool pprof. It does not use net/http/pprof, because importing that package registers its
// handlers in http.DefaultServeMux.
func attachProfiling(r router) {
	r.handle("/debug/pprof", answerErrors(listProfiles), http.MethodGet)
	r.handle("/debug/pprof/profile", answerErrors(profileCPU), http.MethodGet)
	r.handle("/debug/pprof/{profile}", answerErrors(writeProfile), http.MethodGet)
}

func listProfiles(w http.ResponseWriter, _ *http.Request) error {
	lines := []string{"profile"}
	for _, p := range pprof.Profiles() {
		lines = append(lines, p.Name())
	}
	writeText(w, strings.Join(lines, "\n")+"\n")
	return nil
}

// profileCPU profiles the process for ?seconds. Only one such profile can run at a time.
func profileCPU(w http.ResponseWriter, req *http.Request) error {
	length := defaultProfileTime
	if text := req.URL.Query().Get("seconds"); text != "" {
		seconds, err := strconv.Atoi(text)
		length = time.Duration(seconds) * time.Second
		if err != nil || seconds < 1 || seconds > int(maxProfileTime.Seconds()) {
			return errdefs.InvalidInputf("seconds is %.20q, want 1 to %d", text, int(maxProfileTime.Seconds()))
		}
	}
	var profile bytes.Buffer
	if err := pprof.StartCPUProfile(&profile); err != nil {
		return fmt.Errorf("start profile: %w", err)
	}
	_ = within(length, req.Context().Done())
	pprof.StopCPUProfile()
	writeBytes(w, profile.Bytes())
	return nil
}

// writeProfile writes a profile of the runtime, as text with ?debug=1.
func writeProfile(w http.ResponseWriter, req *http.Request) error {
	name := pathValue(req, "profile")
	profile := pprof.Lookup(name)
	if profile == nil {
		return errdefs.NotFoundf("there is no profile %.80q", name)
	}
	debug, err := strconv.Atoi(req.URL.Query().Get("debug"))
	if err != nil {
		debug = 0
	}
	var body bytes.Buffer
	if err := profile.WriteTo(&body, debug); err != nil {
		return fmt.Errorf("write profile %s: %w", name, err)
	}
	if debug > 0 {
		writeText(w, body.String())
	} else {
		writeBytes(w, body.Bytes())
	}
	return nil
}

func writeBytes(w http.ResponseWriter, body []byte) {
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	_, _ = w.Write(body) // an error means that the client has disconnected
}
