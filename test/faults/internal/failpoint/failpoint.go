// SPDX-License-Identifier: Apache-2.0

// Package failpoint kills the process at chosen points of its work: before and after the calls of its provider,
// and before and after its requests to the API server.
//
// The guarantee: the process dies as by kill -9, at the n-th pass of the point. Production code is not changed:
// the package wraps the provider and the HTTP transport.
//
// Note: "after" a request is after its response has arrived, but before any code has read it: the write has taken effect, and the
// process does not know.
package failpoint

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
)

// Variable is the environment variable that names the point and after a colon the
// number of times, as in "after CreatePod:3".
const Variable = "VK_FAULT_FAILPOINT"

// calls and requests have points before and after them.
var (
	calls    = []string{"CreatePod", "UpdatePod", "DeletePod", "GetPod", "GetPodStatus", "GetPods", "report"}
	requests = []string{"patch pod status", "remove pod", "write lease", "patch node", "write event"}
)

// Names returns all points.
func Names() (names []string) {
	for _, what := range slices.Concat(calls, requests) {
		names = append(names, "before "+what, "after "+what)
	}
	return names
}

// Plan is the point and time of the death. The zero value lives.
type Plan struct {
	point string
	nth   int64
	times atomic.Int64
}

// FromEnvironment returns the plan of Variable.
func FromEnvironment() (*Plan, error) {
	text := os.Getenv(Variable)
	if text == "" {
		return &Plan{}, nil
	}
	point, number, _ := strings.Cut(text, ":")
	nth, err := strconv.ParseInt(number, 10, 64)
	if err != nil || nth < 1 || !slices.Contains(Names(), point) {
		return nil, fmt.Errorf("$%s: %q is no point and number", Variable, text)
	}
	return &Plan{point: point, nth: nth}, nil
}

// passPoint kills the process if the plan says so.
func (p *Plan) passPoint(when, what string) {
	if p.point == when+" "+what && p.times.Add(1) == p.nth {
		_ = syscall.Kill(syscall.Getpid(), syscall.SIGKILL)
		select {} // waits for the signal
	}
}

// callBetween calls do between the points before and after it.
func (p *Plan) callBetween(what string, do func()) {
	p.passPoint("before", what)
	do()
	p.passPoint("after", what)
}
