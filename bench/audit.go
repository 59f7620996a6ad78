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

// auditPolicy logs one line for each request of an agent, and nothing else. A watch is logged when it begins, other requests when they were
// answered.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  users: ["` + agentUser + `"]
- level: None
`

// audit is the API server's log of the agents' requests.
type audit struct {
	path string
	read int64       // number of bytes read
	seen []auditLine // the lines that were read
}

// auditLine is a request.
type auditLine struct {
	at  time.Time
	key string // such as "patch pods/status"
}

// prepareAudit writes the policy below dir, and returns the log with the API server's flags for it.
func prepareAudit(dir string) (*audit, []string, error) {
	a := &audit{path: filepath.Join(dir, "audit.log")}
	policy := filepath.Join(dir, "audit-policy.yaml")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		return nil, nil, fmt.Errorf("write audit policy: %w", err)
	}
	return a, []string{
		"--audit-policy-file=" + policy,
		"--audit-log-path=" + a.path,
		"--audit-log-mode=batch", // requests do not wait for their line
		"--audit-log-batch-buffer-size=1000000",
		"--audit-log-batch-max-size=1000",
		"--audit-log-batch-max-wait=" + auditDelay.String(),
		"--audit-log-batch-throttle-enable=false", // no event is dropped
		"--audit-log-maxsize=4096",                // MiB; one file, not several
	}, nil
}

// auditDelay is the longest time until a line is written.
const auditDelay = 500 * time.Millisecond

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

// requestKind returns the kind under which the request is counted, such as "patch pods/status".
func (e *auditEvent) requestKind() string {
	switch {
	case e.ObjectRef == nil:
		return e.Verb + " " + e.RequestURI
	case e.ObjectRef.Subresource != "":
		return e.Verb + " " + e.ObjectRef.Resource + "/" + e.ObjectRef.Subresource
	}
	return e.Verb + " " + e.ObjectRef.Resource
}

// isCounted reports whether this line counts: each request has one line that counts.
func (e *auditEvent) isCounted() bool { return (e.Verb == "watch") == (e.Stage == "ResponseStarted") }

// isHeartbeat reports whether a node also sends this request at rest.
func (l auditLine) isHeartbeat() bool {
	switch l.key {
	case "update leases", "patch leases", "get leases", "list leases", "patch nodes/status", "get nodes":
		return true
	}
	return false
}

// readNewLines reads the new lines.
func (a *audit) readNewLines() error {
	file, err := os.Open(a.path)
	if errors.Is(err, os.ErrNotExist) {
		return nil // there was no request
	}
	if err != nil {
		return fmt.Errorf("open audit log: %w", err)
	}
	defer file.Close()
	if _, err := file.Seek(a.read, io.SeekStart); err != nil {
		return fmt.Errorf("read audit log: %w", err)
	}
	return a.parseLines(file)
}

// parseLines reads complete lines. An incomplete last line is still being written.
func (a *audit) parseLines(log io.Reader) error {
	lines := bufio.NewReaderSize(log, 1<<20)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read audit log: %w", err)
		}
		a.read += int64(len(line))
		var e auditEvent
		if err := json.Unmarshal(line, &e); err != nil {
			return fmt.Errorf("read audit log: %w", err)
		}
		if e.isCounted() {
			a.seen = append(a.seen, auditLine{e.Time, e.requestKind()})
		}
	}
}

// countRequests counts the requests from one time to another.
func (a *audit) countRequests(from, to time.Time) requests {
	r := requests{}
	for _, line := range a.seen {
		if !line.at.Before(from) && line.at.Before(to) {
			r[line.key]++
		}
	}
	return r
}

// lastBusy returns the time of the last request other than heartbeats.
func (a *audit) lastBusy() time.Time {
	for i := len(a.seen) - 1; i >= 0; i-- {
		if !a.seen[i].isHeartbeat() {
			return a.seen[i].at
		}
	}
	return time.Time{}
}

// errRestless means that an agent did not stop sending requests.
var errRestless = errors.New("the agent did not stop sending requests")

const (
	quietFor   = 3 * time.Second
	quietLimit = 3 * time.Minute
)

// awaitQuiet returns when the agent has sent nothing but heartbeats for a while: events may go on long after the
// pods have reached their state.
func (a *audit) awaitQuiet(ctx context.Context, limit time.Duration) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errRestless)
	defer cancel()
	begin := time.Now()
	for {
		if err := a.readNewLines(); err != nil {
			return err
		}
		since := a.lastBusy()
		if since.Before(begin) {
			since = begin.Add(2*auditDelay - quietFor) // earlier requests may not be written yet
		}
		wait := time.Until(since.Add(quietFor))
		if wait <= 0 {
			return nil
		}
		if err := waitFor(ctx, max(wait, auditDelay)); err != nil {
			return err
		}
	}
}
