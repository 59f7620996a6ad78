// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"encoding/json"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// record is the line that a stream leaves in the log of the node.
type record struct {
	User, Verb, Protocol, Pod, PodUID, Container, Outcome string
	BytesIn, BytesOut                                     int64
	ExitCode                                              *int
}

// records returns the records of a pod so far.
func (c *child) records(pod string) (out []record) {
	for line := range strings.Lines(c.said.String()) {
		var r record
		if strings.Contains(line, "Stream has ended") && json.Unmarshal([]byte(line), &r) == nil && r.Pod == c.namespace+"/"+pod {
			out = append(out, r)
		}
	}
	return out
}

// awaitRecords waits for the records of each kind of stream over each protocol. A record over WebSocket shows
// that the API server does not translate the stream.
func (c *child) awaitRecords(pod string, uid types.UID) {
	c.Helper()
	missing := map[[2]string]bool{
		{"exec", "SPDY"}: true, {"exec", "WebSocket"}: true,
		{"attach", "SPDY"}: true, {"attach", "WebSocket"}: true,
		{"portForward", "SPDY"}: true, {"portForward", "SPDY in WebSocket"}: true,
	}
	deadline := time.After(patience)
	for {
		records := c.records(pod)
		exits := false
		for _, r := range records {
			delete(missing, [2]string{r.Verb, r.Protocol})
			exits = exits || r.Verb == "exec" && r.ExitCode != nil && *r.ExitCode == 7
			if r.User == "" || r.PodUID != string(uid) || r.BytesOut == 0 {
				c.Errorf("the record of a stream is not complete: %+v", r)
			}
		}
		if len(missing) == 0 && exits {
			return
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-deadline:
			c.Fatalf("there are no records of %v; those that there are (of an exit code 7: %t): %+v", missing, exits, records)
		}
	}
}
