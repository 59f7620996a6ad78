// SPDX-License-Identifier: Apache-2.0

package testapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// auditPolicy records the requests of nodes and service accounts, with the bodies of requests and answers.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: RequestResponse
  userGroups: ["system:nodes", "system:serviceaccounts"]
- level: None
`

// audited is the audited API of this test process, started by its first user.
var audited struct {
	mu  sync.Mutex
	api *API
	err error
}

// StartAudited returns an API server that all tests of this process share and that keeps an audit log of the
// requests of nodes and service accounts, for [API.Audit].
func StartAudited(t testing.TB) *API {
	t.Helper()
	binary := requireBinary(t)
	audited.mu.Lock()
	defer audited.mu.Unlock()
	if audited.api == nil && audited.err == nil {
		audited.api, audited.err = startAudited(binary)
	}
	if audited.err != nil {
		t.Fatalf("start the audited API server: %v", audited.err)
	}
	if err := audited.api.cluster.endReason(); err != nil {
		t.Fatalf("the audited API server is gone: %v", err)
	}
	return audited.api
}

func startAudited(binary string) (*API, error) {
	dir, err := os.MkdirTemp(parentDir(), "vk-testapi-")
	if err != nil {
		return nil, err
	}
	c := &cluster{binary: binary, base: filepath.Dir(dir), name: filepath.Base(dir), args: []string{"--keep=false"}}
	policy := filepath.Join(dir, "audit-policy.yaml")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		return nil, err
	}
	c.args = append(c.args, "--apiserver-arg=--audit-policy-file="+policy, "--apiserver-arg=--audit-log-path="+auditLog(c))
	return c.openCluster()
}

func auditLog(c *cluster) string { return filepath.Join(c.dataDir(), "audit.log") }

// Audit returns the events about a user in the audit log of an API from [StartAudited], oldest first. An
// unfinished request may be missing. The event of an answered request is there when the answer is, or a moment
// later.
func (a *API) Audit(t testing.TB, user string) []auditv1.Event {
	t.Helper()
	if a.cluster == nil {
		t.Fatal("this API server has no audit log: use one from testapi.StartAudited")
	}
	data, err := os.ReadFile(auditLog(a.cluster))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("read the audit log: %v", err)
	}
	var events []auditv1.Event
	for line := range bytes.Lines(data) {
		if !bytes.HasSuffix(line, []byte("\n")) {
			break // the API server is still writing this line
		}
		var e auditv1.Event
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatalf("read the audit log: %v", err)
		}
		if e.User.Username == user {
			events = append(events, e)
		}
	}
	return events
}
