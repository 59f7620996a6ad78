// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// auditPolicy logs one line for each request of a node, and nothing else. A watch has its line
// when it begins, other requests when they were answered.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  userGroups: ["system:nodes"]
- level: None
`

// audit is the API server's log of what nodes asked for.
type audit struct{ path string }

// prepareAudit writes the policy below dir, and returns the log with the API server's flags for it.
func prepareAudit(dir string) (audit, []string, error) {
	a := audit{path: filepath.Join(dir, "audit.log")}
	policy := filepath.Join(dir, "audit-policy.yaml")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		return a, nil, fmt.Errorf("write audit policy: %w", err)
	}
	return a, []string{
		"--audit-policy-file=" + policy,
		"--audit-log-path=" + a.path,
		"--audit-log-mode=blocking", // written when the request is answered, and none dropped
		"--audit-log-maxsize=2048",  // MiB; one file, not several
	}, nil
}

// auditEvent is the part of a line that counts.
type auditEvent struct {
	Stage     string    `json:"stage"`
	Verb      string    `json:"verb"`
	Time      time.Time `json:"requestReceivedTimestamp"`
	ObjectRef *struct {
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
	} `json:"objectRef"`
	RequestURI string `json:"requestURI"`
}

// key is how the request is counted, such as "patch pods/status".
func (e *auditEvent) key() string {
	switch {
	case e.ObjectRef == nil:
		return e.Verb + " " + e.RequestURI
	case e.ObjectRef.Subresource != "":
		return e.Verb + " " + e.ObjectRef.Resource + "/" + e.ObjectRef.Subresource
	}
	return e.Verb + " " + e.ObjectRef.Resource
}

// counted says whether the line is the one of its request that counts.
func (e *auditEvent) counted() bool { return (e.Verb == "watch") == (e.Stage == "ResponseStarted") }

// requests are numbers of requests by verb and resource.
type requests map[string]int

// sum is the number of all requests.
func (r requests) sum() (n int) {
	for _, count := range r {
		n += count
	}
	return n
}

// add counts the requests of more too.
func (r requests) add(more requests) {
	for key, count := range more {
		r[key] += count
	}
}

// countRequests reads a log and counts the requests in each of the spans between two
// following times.
func countRequests(log io.Reader, times ...time.Time) ([]requests, error) {
	spans := make([]requests, len(times)-1)
	for i := range spans {
		spans[i] = requests{}
	}
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e auditEvent
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return nil, fmt.Errorf("read audit log: %w", err)
		}
		for i, span := range spans {
			if e.counted() && !e.Time.Before(times[i]) && e.Time.Before(times[i+1]) {
				span[e.key()]++
			}
		}
	}
	return spans, lines.Err()
}

const (
	quietFor   = 3 * time.Second // shorter than the time between two renewals of a node's lease
	quietLimit = 3 * time.Minute
)

// awaitQuiet returns when the nodes have sent no request for a while: events may go on
// long after the pods are where they should be.
func (a audit) awaitQuiet(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, quietLimit, errors.New("the node did not stop sending requests"))
	defer cancel()
	for last := int64(-1); ; {
		info, err := os.Stat(a.path)
		if err != nil {
			return fmt.Errorf("look at audit log: %w", err)
		}
		if info.Size() == last {
			return nil
		}
		last = info.Size()
		if err := idle(ctx, quietFor); err != nil {
			return err
		}
	}
}
