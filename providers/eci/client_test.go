// SPDX-License-Identifier: Apache-2.0

package eci

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/sign"
)

func aKey(context.Context) (sign.Key, error) { return sign.Key{Access: "AK", Secret: "SK"}, nil }

func TestEncode(t *testing.T) {
	empty, zero := "", int64(0)
	got := encode(createRequest{
		ContainerGroupName: "g", CPU: 0.25, AutoCreateEIP: true, TerminationGracePeriodSeconds: &zero,
		Container: []container{{Name: "a", Command: []string{"sh", ""}, EnvironmentVar: []variable{{Key: "K", Value: &empty}}}, {
			LivenessProbe: &probe{HTTPGet: httpGet{Path: "/", Port: 80}}, SecurityContext: security{RunAsUser: &zero},
		}},
	})
	want := url.Values{
		"ContainerGroupName": {"g"}, "Cpu": {"0.25"}, "AutoCreateEip": {"true"}, "TerminationGracePeriodSeconds": {"0"},
		"Container.1.Name": {"a"}, "Container.1.Command.1": {"sh"}, "Container.1.Command.2": {""},
		"Container.1.EnvironmentVar.1.Key": {"K"}, "Container.1.EnvironmentVar.1.Value": {""},
		"Container.2.LivenessProbe.HttpGet.Path": {"/"}, "Container.2.LivenessProbe.HttpGet.Port": {"80"}, "Container.2.SecurityContext.RunAsUser": {"0"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestCall(t *testing.T) {
	var got http.Header
	var body string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data, _ := io.ReadAll(r.Body)
		got, body = r.Header, string(data)
		_, _ = w.Write([]byte(`{"RequestId":"r","ContainerGroupId":"eci-1"}`))
	}))
	defer server.Close()
	var answer createAnswer
	c := newClient(server.URL, "cn-hangzhou", http.DefaultTransport, aKey, nil)
	if err := c.call(t.Context(), "CreateContainerGroup", createRequest{ContainerGroupName: "g h"}, &answer); err != nil || answer.ContainerGroupID != "eci-1" {
		t.Fatalf("got %+v, %v", answer, err)
	}
	if body != "ContainerGroupName=g+h&RegionId=cn-hangzhou" || got.Get(sign.HeaderACSAction) != "CreateContainerGroup" ||
		got.Get(sign.HeaderACSVersion) != "2018-08-08" || !strings.HasPrefix(got.Get("Authorization"), "ACS3-HMAC-SHA256 Credential=AK,") {
		t.Errorf("sent %q with %v", body, got)
	}
}

// TestErrors checks the kind of each error of ECI. Undocumented codes have no kind.
func TestErrors(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name   string
		status int
		body   string
		header string // the value of Retry-After
		kind   string
		says   string
		undone bool
	}{
		{"throttled", 400, `{"Code":"Throttling.User","Message":"Request was denied due to user flow control."}`, "", "again 10s", "Throttling.User", true},
		{"throttled, and how long", 429, `{}`, "42", "again 42s", "429", false},
		{"no quota", 403, `{"Code":"QuotaExceeded","Message":"m"}`, "", "again 30s", "quota", true},
		{"no stock", 403, `{"Code":"NoStock"}`, "", "again 30s", "size", true},
		{"no group", 404, `{"Code":"ContainerGroup.NotFound","RequestId":"req-7"}`, "", "absent", "req-7", true},
		{"no switch", 404, `{"Code":"InvalidVSwitchId.NotFound"}`, "", "", "InvalidVSwitchId", true},
		{"a proxy that knows nothing", 404, `<html>`, "", "", "404", false},
		{"a wrong field", 400, `{"Code":"InvalidParameter.ValueExceeded","Message":"Container.1.Cpu"}`, "", "refused", "Container.1.Cpu", true},
		{"a field that is missing", 400, `{"Code":"MissingParameter"}`, "", "refused", "", true},
		{"an unknown code", 400, `{"Code":"SomethingNew"}`, "", "", "SomethingNew", true},
		{"no right", 403, `{"Code":"Forbidden.RAM"}`, "", "", "the right eci:Act", true},
		{"an old key", 400, `{"Code":"InvalidSecurityToken.Expired"}`, "", "", "has ended", true},
		{"a wrong clock", 400, `{"Code":"InvalidTimeStamp.Expired"}`, "", "", "is 1h0m0s off", true},
		{"a fault", 500, `{"Code":"InternalError"}`, "", "", "InternalError", false},
		{"a fault in the words of an absence", 502, `{"Code":"ContainerGroup.NotFound"}`, "", "", "", false},
		{"a fault in the words of a refusal", 503, `{"Code":"InvalidParameter"}`, "", "", "", false},
		{"not now", 503, `{"Code":"ServiceUnavailable"}`, "5", "again 5s", "", false},
		{"another address", 302, ``, "", "", "302", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Date", now.Add(time.Hour).Format(http.TimeFormat))
				w.Header().Set("Location", "http://127.0.0.1:1/")
				if c.header != "" {
					w.Header().Set("Retry-After", c.header)
				}
				w.WriteHeader(c.status)
				_, _ = w.Write([]byte(c.body))
			}))
			defer server.Close()
			err := newClient(server.URL, "r", http.DefaultTransport, aKey, func() time.Time { return now }).call(t.Context(), "Act", nil, nil)
			kind := ""
			switch after, again := errdefs.RetryAfterOf(err); {
			case again:
				kind = "again " + after.String()
			case errdefs.IsNotFound(err):
				kind = "absent"
			case errdefs.IsInvalidInput(err):
				kind = "refused"
			}
			if err == nil || kind != c.kind || !strings.Contains(err.Error(), c.says) || undone(err) != c.undone {
				t.Errorf("got kind %q, undone %t, %v", kind, undone(err), err)
			}
		})
	}
}

func TestSilenceIsDoubt(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	defer server.Close()
	err := newClient(server.URL, "r", http.DefaultTransport, aKey, nil).call(t.Context(), "Act", nil, nil)
	if err == nil || undone(err) || errdefs.IsNotFound(err) || errdefs.IsInvalidInput(err) {
		t.Errorf("got %v", err)
	}
}

func TestAnAnswerThatIsNotUnderstood(t *testing.T) {
	for _, body := range []string{`{"ContainerGroupId":{"secret":"canary"}}`, `canary`} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(body)) }))
		err := newClient(server.URL, "r", http.DefaultTransport, aKey, nil).call(t.Context(), "Act", nil, &createAnswer{})
		server.Close()
		if err == nil || strings.Contains(err.Error(), "canary") || undone(err) {
			t.Errorf("%s: got %v", body, err)
		}
	}
}

func TestKeysAreRenewed(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	asked := 0
	var fails error
	source := renewed("ask", func(context.Context) (credentials, error) {
		asked++
		return credentials{AccessKeyID: "AK", AccessKeySecret: "secret", SecurityToken: "token", Expiration: now.Add(time.Hour)}, fails
	}, func() time.Time { return now })
	for _, step := range []struct {
		after time.Duration
		fails error
		asked int
		ok    bool
	}{
		{0, nil, 1, true},
		{50 * time.Minute, nil, 1, true},
		{5 * time.Minute, errors.New("dark"), 2, true}, // valid for another five minutes
		{time.Second, nil, 2, true},                    // and not requested again each time
		{keyRetry, nil, 3, true},
		{2 * time.Hour, errors.New("dark"), 4, false},
		{time.Second, nil, 4, false},
		{keyRetry, nil, 5, true},
	} {
		now, fails = now.Add(step.after), step.fails
		_, err := source(t.Context())
		if asked != step.asked || (err == nil) != step.ok {
			t.Errorf("at %v: asked %d times, %v; want %+v", now, asked, err, step)
		}
	}
}
