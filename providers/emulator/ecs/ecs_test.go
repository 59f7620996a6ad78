// SPDX-License-Identifier: Apache-2.0

package ecs

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestCheck(t *testing.T) {
	const task = `{"taskDefinition":"x"`
	for body, want := range map[string]string{
		task + `}`:                             "",
		`{}`:                                   "taskDefinition: is missing",
		task + `,"countt":1}`:                  "no field countt",
		task + `,"count":"1"}`:                 "want integer",
		task + `,"count":1.5}`:                 "want integer",
		task + `,"launchType":"LAMBDA"}`:       "want one of",
		task + `,"tags":{"key":"a"}}`:          "want a list",
		task + `,"tags":["a"]}`:                "want an object",
		task + `,"tags":[{"key":"a","val":1}]`: "no JSON",
		task + `,"networkConfiguration":{"awsvpcConfiguration":{}}}`: "subnets: is missing",
	} {
		err := Check("RunTask", []byte(body))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", body, err, want)
		}
	}
	if Check("CreateService", []byte(`{}`)) == nil {
		t.Error("an operation that is not there is let in")
	}
}

// TestForms checks that requests of the older protocol are read, and validated against their description.
func TestForms(t *testing.T) {
	for form, want := range map[string]string{
		"Action=DescribeSubnets&Version=2016-11-15&SubnetId.1=a&SubnetId.2=b": "",
		"Action=DescribeSubnets&Version=2016-11-15&Subnet.1=a":                "there is no field Subnet",
		"Action=GetRole&Version=2010-05-08":                                   "RoleName: is missing",
		"Action=DescribeSubnets&Version=2016-11-15&Filter.1.Name=a":           "lists of texts alone",
	} {
		_, operation := formTarget([]byte(form))
		body, err := formBody([]byte(form))
		if err == nil {
			err = Check(operation, body)
		}
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", form, err, want)
		}
	}
}

// TestQueue checks that a message is hidden after a read, appears again if it is not removed, and is removed by
// its receipt.
func TestQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Server{config: Config{Account: "1"}}
		s.queue.more = make(chan struct{}, 1)
		read := func(wait string) string {
			t.Helper()
			out, err := s.receiveMessage(t.Context(), []byte(`{"QueueUrl":"https://sqs/1/tasks","WaitTimeSeconds":`+wait+`}`))
			if err != nil {
				t.Fatal(err)
			}
			found, _ := out.(map[string]any)["Messages"].([]map[string]string)
			if len(found) == 0 {
				return ""
			}
			return found[0]["ReceiptHandle"]
		}
		begin := time.Now()
		if got := read("20"); got != "" || time.Since(begin) != 20*time.Second {
			t.Errorf("an empty queue: %q after %s", got, time.Since(begin))
		}
		s.queue.messages = append(s.queue.messages, &letter{receipt: "r"})
		time.Sleep(time.Second)
		if got := read("0"); got != "r" {
			t.Errorf("got %q", got)
		}
		if got := read("0"); got != "" {
			t.Errorf("it was read twice: %q", got)
		}
		time.Sleep(31 * time.Second)
		if got := read("0"); got != "r" {
			t.Errorf("it does not show again: %q", got)
		}
		if _, err := s.deleteMessageBatch([]byte(`{"QueueUrl":"https://sqs/1/tasks","Entries":[{"Id":"0","ReceiptHandle":"r"}]}`)); err != nil || len(s.queue.messages) != 0 {
			t.Errorf("%d are left, %v", len(s.queue.messages), err)
		}
		if _, err := s.receiveMessage(t.Context(), []byte(`{"QueueUrl":"https://sqs/1/other"}`)); err == nil {
			t.Error("a queue that is not there is read")
		}
	})
}

// signed returns a request with a signature of the vendor's own signer (aws-sdk-go-v2 v1.47.6, aws/signer/v4).
func signed() *http.Request {
	r := httptest.NewRequest(http.MethodPost, "https://ecs.eu-central-1.amazonaws.com/", nil)
	for name, value := range map[string]string{
		"X-Amz-Date": "20260102T030405Z", "X-Amz-Target": "AmazonEC2ContainerServiceV20141113.ListTasks", "Content-Type": "application/x-amz-json-1.1",
		"Authorization": "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20260102/eu-central-1/ecs/aws4_request, SignedHeaders=content-length;content-type;host;x-amz-date;x-amz-target, Signature=9f17ecc3e022282e18943bb94eecb420380c6dd6415d65c17be4cc623b650cea",
	} {
		r.Header.Set(name, value)
	}
	return r
}

func TestGate(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, c := range []struct {
		name, body string
		change     func(*http.Request, *gate)
		want       string
	}{
		{"as the vendor signs", "{}", func(*http.Request, *gate) {}, ""},
		{"another body", "{ }", func(*http.Request, *gate) {}, "InvalidSignatureException"},
		{"another operation", "{}", func(r *http.Request, _ *gate) {
			r.Header.Set("X-Amz-Target", "AmazonEC2ContainerServiceV20141113.StopTask")
		}, "InvalidSignatureException"},
		{"a header that is not signed", "{}", func(r *http.Request, _ *gate) { r.Header.Set("X-Amz-New", "x") }, "InvalidSignatureException"},
		{"late", "{}", func(_ *http.Request, g *gate) { g.now = func() time.Time { return at.Add(6 * time.Minute) } }, "InvalidSignatureException"},
		{"another region", "{}", func(_ *http.Request, g *gate) { g.region = "eu-west-1" }, "InvalidSignatureException"},
		{"another secret", "{}", func(_ *http.Request, g *gate) { g.keys = map[string]Key{"AKIDEXAMPLE": {Secret: "x"}} }, "InvalidSignatureException"},
		{"an unknown key", "{}", func(_ *http.Request, g *gate) { g.keys = nil }, "UnrecognizedClientException"},
		{"a key that has ended", "{}", func(_ *http.Request, g *gate) {
			g.keys = map[string]Key{"AKIDEXAMPLE": {Secret: "SKEXAMPLE/+=", Expires: at.Add(-time.Hour)}}
		}, "ExpiredTokenException"},
		{"no signature", "{}", func(r *http.Request, _ *gate) { r.Header.Del("Authorization") }, "MissingAuthenticationTokenException"},
	} {
		g := gate{keys: map[string]Key{"AKIDEXAMPLE": {Secret: "SKEXAMPLE/+="}}, region: "eu-central-1", now: func() time.Time { return at }}
		r := signed()
		c.change(r, &g)
		if got, message := g.refuseReason(r, []byte(c.body), "ecs"); got != c.want {
			t.Errorf("%s: got %q (%s), want %q", c.name, got, message, c.want)
		}
	}
}
