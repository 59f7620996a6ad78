// SPDX-License-Identifier: Apache-2.0

package main

import (
	"maps"
	"strings"
	"testing"
	"time"
)

const auditLog = `{"stage":"ResponseStarted","requestURI":"/api/v1/pods?watch=true","verb":"watch","objectRef":{"resource":"pods"},"requestReceivedTimestamp":"2026-01-01T00:00:01.000000Z"}
{"stage":"ResponseComplete","requestURI":"/api/v1/pods?watch=true","verb":"watch","objectRef":{"resource":"pods"},"requestReceivedTimestamp":"2026-01-01T00:00:01.000000Z"}
{"stage":"ResponseComplete","verb":"patch","objectRef":{"resource":"pods","subresource":"status"},"requestReceivedTimestamp":"2026-01-01T00:00:02.000000Z"}
{"stage":"ResponseComplete","verb":"patch","objectRef":{"resource":"pods","subresource":"status"},"requestReceivedTimestamp":"2026-01-01T00:00:10.000000Z"}
{"stage":"ResponseComplete","requestURI":"/version","verb":"get","requestReceivedTimestamp":"2026-01-01T00:00:11.000000Z"}
{"stage":"ResponseComplete","verb":"update","objectRef":{"resource":"leases"},"requestReceivedTimestamp":"2026-01-01T00:00:19.999999Z"}
{"stage":"ResponseComplete","verb":"delete","objectRef":{"resource":"pods"},"requestReceivedTimestamp":"2026-01-01T00:00:20.000000Z"}
{"stage":"ResponseComplete","verb":"delete","obj`

func TestRequestsAreCountedOnceAndInTheirSpan(t *testing.T) {
	a := &audit{}
	if err := a.parseLines(strings.NewReader(auditLog)); err != nil {
		t.Fatal(err)
	}
	if want := int64(strings.LastIndexByte(auditLog, '\n') + 1); a.read != want {
		t.Errorf("read %d bytes, want %d: a line that is being written is not read", a.read, want)
	}
	at := func(second int) time.Time { return time.Date(2026, 1, 1, 0, 0, second, 0, time.UTC) }
	for i, want := range []requests{
		{"watch pods": 1, "patch pods/status": 1},
		{"patch pods/status": 1, "get /version": 1, "update leases": 1},
	} {
		if got := a.countRequests(at(10*i), at(10*i+10)); !maps.Equal(got, want) {
			t.Errorf("span %d: got %v, want %v", i, got, want)
		}
	}
}

func TestHeartbeatsAreNotBusy(t *testing.T) {
	a := &audit{}
	lines := strings.SplitAfter(auditLog, "\n")
	if err := a.parseLines(strings.NewReader(strings.Join(lines[:6], ""))); err != nil {
		t.Fatal(err)
	}
	if got := a.lastBusy().Second(); got != 11 {
		t.Errorf("last busy at second %d, want 11", got)
	}
	r := a.countRequests(time.Time{}, time.Now())
	if r.podWrites() != 2 || r.countHeartbeats() != 1 || r.countAll() != 5 {
		t.Errorf("of %v, %d are writes of pods, %d heartbeats, %d all", r, r.podWrites(), r.countHeartbeats(), r.countAll())
	}
}

func TestBrokenAuditLogIsAnError(t *testing.T) {
	if err := (&audit{}).parseLines(strings.NewReader("{\"stage\":\n")); err == nil {
		t.Error("a log that cannot be read was counted")
	}
}
