// SPDX-License-Identifier: Apache-2.0

package main

import (
	"maps"
	"strings"
	"testing"
	"time"
)

func TestRequestsAreCountedOnceAndInTheirSpan(t *testing.T) {
	const log = `{"stage":"ResponseStarted","requestURI":"/api/v1/pods?watch=true","verb":"watch","objectRef":{"resource":"pods"},"requestReceivedTimestamp":"2026-01-01T00:00:01.000000Z"}
{"stage":"ResponseComplete","requestURI":"/api/v1/pods?watch=true","verb":"watch","objectRef":{"resource":"pods"},"requestReceivedTimestamp":"2026-01-01T00:00:01.000000Z"}
{"stage":"ResponseComplete","verb":"patch","objectRef":{"resource":"pods","subresource":"status"},"requestReceivedTimestamp":"2026-01-01T00:00:02.000000Z"}
{"stage":"ResponseComplete","verb":"patch","objectRef":{"resource":"pods","subresource":"status"},"requestReceivedTimestamp":"2026-01-01T00:00:10.000000Z"}
{"stage":"ResponseComplete","requestURI":"/version","verb":"get","requestReceivedTimestamp":"2026-01-01T00:00:19.999999Z"}
{"stage":"ResponseComplete","verb":"delete","objectRef":{"resource":"pods"},"requestReceivedTimestamp":"2026-01-01T00:00:20.000000Z"}
`
	at := func(second int) time.Time { return time.Date(2026, 1, 1, 0, 0, second, 0, time.UTC) }
	spans, err := countRequests(strings.NewReader(log), at(0), at(10), at(20))
	if err != nil {
		t.Fatal(err)
	}
	want := []requests{
		{"watch pods": 1, "patch pods/status": 1},
		{"patch pods/status": 1, "get /version": 1},
	}
	for i := range want {
		if !maps.Equal(spans[i], want[i]) {
			t.Errorf("span %d: got %v, want %v", i, spans[i], want[i])
		}
	}
}

func TestBrokenAuditLogIsAnError(t *testing.T) {
	if _, err := countRequests(strings.NewReader("{\"stage\":\n"), time.Time{}, time.Time{}); err == nil {
		t.Error("a log that cannot be read was counted")
	}
}
