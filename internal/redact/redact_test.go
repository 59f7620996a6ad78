// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
)

const canary = `c4n4ry/"p ss?word+&<c4n4ry>`

func known(values ...string) *Values {
	v := &Values{}
	for i, value := range values {
		v.Remember(fmt.Sprint("secret", i), "1", []byte(value))
	}
	return v
}

func asJSON(s string) string {
	data, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(data)
}

// TestResultsOfContainersStay: the termination message of a container is its own result, so only known values
// are redacted in it.
func TestResultsOfContainersStay(t *testing.T) {
	const result = `{"access_token":"of somebody else","image":"oci://image@sha256:1234"}`
	s := &corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{Message: result + canary},
	}}}}
	Status(s, known(canary))
	if got := s.ContainerStatuses[0].State.Terminated.Message; got != result+mark {
		t.Errorf("got %s, want the result without the value", got)
	}
}

func TestSecurityD2KnownValuesAreTakenOutInEveryForm(t *testing.T) {
	for name, form := range map[string]string{
		"plain":          canary,
		"base64":         base64.StdEncoding.EncodeToString([]byte(canary)),
		"base64 for URL": base64.RawURLEncoding.EncodeToString([]byte(canary)),
		"in a query":     url.QueryEscape(canary),
		"in a path":      url.PathEscape(canary),
		"quoted":         fmt.Sprintf("%q", canary),
		"in JSON":        asJSON(canary),
	} {
		got := Text("the backend says "+form+", twice: "+form+".", known(canary+"\n"))
		if strings.Contains(got, strings.Trim(form, `"`)) || strings.Contains(got, "c4n4ry") || !strings.HasPrefix(got, "the backend says ") {
			t.Errorf("%s: got %q, want the text without the value", name, got)
		}
	}
}

func TestSecurityD2TextsAreCut(t *testing.T) {
	for name, long := range map[string]string{
		"one word":   strings.Repeat("x", 1<<20) + canary,
		"characters": strings.Repeat("ä", Limit),
		"values":     strings.Repeat(canary, 1<<20/len(canary)+1),
		"bytes":      strings.Repeat("\xff", 2*Limit),
	} {
		got := Text(long, known(canary))
		if len(got) > Limit || !utf8.ValidString(got) || strings.Contains(got, "c4n4") {
			t.Errorf("%s: got %d bytes (%.80q), want at most %d, valid and without the value", name, len(got), got, Limit)
		}
	}
}

func TestSecurityD2CredentialsAreKnownByTheirLooks(t *testing.T) {
	jwt := "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJrdWJlcm5ldGVzIn0.c2lnbmF0dXJl"
	for said, want := range map[string]string{
		"token " + jwt + " is refused":                                         "token [redacted] is refused",
		"Authorization: Bearer abcdef":                                         "Authorization: [redacted]",
		`header "Authorization":["Basic dXNlcjpwYXNz"]`:                        `header "Authorization":["[redacted]"]`,
		"bearer 0123456789abcdef0123 has expired":                              "bearer [redacted] has expired",
		`Get "https://user:pass@host/path": no route`:                          `Get "https://[redacted]@host/path": no route`,
		"amqp://u:p@ss@broker:5672 is down":                                    "amqp://[redacted]@broker:5672 is down",
		"GET /blob?sv=2020&sig=abc%2Fdef&x=1":                                  "GET /blob?sv=2020&sig=[redacted]&x=1",
		"https://h/p?X-Amz-Security-Token=abc&b=c":                             "https://h/p?X-Amz-Security-Token=[redacted]&b=c",
		`{"username":"me","password":"a \" b","auth":1}`:                       `{"username":"me","password":[redacted],"auth":1}`,
		"connect: password=hunter2 host=db":                                    "connect: password=[redacted] host=db",
		"-----BEGIN RSA PRIVATE KEY-----\nMII\n-----END RSA PRIVATE KEY-----!": "[redacted]!",
		"-----BEGIN PRIVATE KEY-----\nMII":                                     "[redacted]",
	} {
		if got := Text(said); got != want {
			t.Errorf("%q:\n got %q\nwant %q", said, got, want)
		}
	}
	for _, harmless := range []string{
		"secret d/s does not exist; create it, or mark the reference optional",
		"bearer authentication is not possible here",
		`Get "https://10.0.0.1:6443/api/v1?timeout=5s": context deadline exceeded`,
		"the password is missing", "token: expired", "mail to a@b.example", "x=1&y=2",
	} {
		if got := Text(harmless); got != harmless {
			t.Errorf("%q became %q", harmless, got)
		}
	}
}

func TestOverlappingValuesLeaveNothing(t *testing.T) {
	if got := Text("<abcdefghijkl>", known("abcdefghi", "defghijkl")); got != "<[redacted]>" {
		t.Errorf("got %q", got)
	}
}

// TestShortValuesAreNotLookedFor: a short value in a Secret is probably a plain setting. The value and its longer forms are not redacted.
func TestShortValuesAreNotLookedFor(t *testing.T) {
	short := known("http", "prod", "true", "8080", "1", "on", "", "seven77", "prod\n\n\n\n\n", "    on    ", `"<&>"`)
	for _, said := range []string{
		"dial http://prod.example:8080: connection refused, verbose=true",
		"1 on 3, seven77 of them",
		"base64 of prod and true is " + base64.StdEncoding.EncodeToString([]byte("prod")) + " and " + base64.RawURLEncoding.EncodeToString([]byte("seven77")),
		"escaped: " + url.QueryEscape(`"<&>"`) + asJSON(`"<&>"`) + " prod\n\n\n\n\n and    on    ",
	} {
		if got := Text(said, short); got != said {
			t.Errorf("%q became %q", said, got)
		}
	}
}

// TestSecurityD2ShortestSecretIsTakenOutInEveryForm: a value of eight bytes or more is removed in every form.
func TestSecurityD2ShortestSecretIsTakenOutInEveryForm(t *testing.T) {
	const value = `a/"b<c&d`
	for name, form := range map[string]string{
		"plain":          value,
		"base64":         base64.StdEncoding.EncodeToString([]byte(value)),
		"base64 for URL": base64.RawURLEncoding.EncodeToString([]byte(value)),
		"in a query":     url.QueryEscape(value),
		"in a path":      url.PathEscape(value),
		"quoted":         fmt.Sprintf("%q", value),
		"in JSON":        asJSON(value),
	} {
		if got := Text("<"+form+">", known(" "+value+"\n")); !strings.Contains(got, mark) || strings.Contains(got, strings.Trim(form, `"=`)) {
			t.Errorf("%s: got %q, want the text without the value", name, got)
		}
	}
}

func TestLinesOfAKey(t *testing.T) {
	if got := Text("line 0123456789abcdefX is odd", known("first\n0123456789abcdefX\nlast\n")); got != "line [redacted] is odd" {
		t.Errorf("got %q", got)
	}
}

func TestOlderVersionsAreRemembered(t *testing.T) {
	v := &Values{}
	for i := range 5 {
		v.Remember("s", fmt.Sprint(i), fmt.Appendf(nil, "version%d", i))
	}
	if got := Text("version1 version2 version4", v); got != "version1 [redacted] [redacted]" {
		t.Errorf("got %q, want the last three redacted", got)
	}
}

func TestErrorsKeepTheirKind(t *testing.T) {
	err := fmt.Errorf("pull with %s: %w", canary, io.ErrUnexpectedEOF)
	got := Error(err, known(canary))
	if !errors.Is(got, io.ErrUnexpectedEOF) || strings.Contains(got.Error(), "c4n4ry") {
		t.Errorf("got %v", got)
	}
	if plain := errors.New("plain"); Error(plain, known(canary)) != plain {
		t.Error("an error without a secret was changed")
	}
	if Error(nil) != nil {
		t.Error("no error became one")
	}
}

func TestContextCarriesValues(t *testing.T) {
	v := known(canary)
	ctx := With(t.Context(), func() []*Values { return []*Values{v} })
	if got := Text(canary, From(ctx)...); got != mark {
		t.Errorf("got %q", got)
	}
	if got := From(context.WithoutCancel(t.Context())); got != nil {
		t.Errorf("got %v from a context without values", got)
	}
}

func TestSecurityD2StatusesAreRedacted(t *testing.T) {
	s := &corev1.PodStatus{
		Message:    "pull with " + canary,
		Conditions: []corev1.PodCondition{{Message: canary}},
		InitContainerStatuses: []corev1.ContainerStatus{{
			State:                corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Message: canary + strings.Repeat("x", 2*Limit)}},
			LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Message: canary + strings.Repeat("x", 2*Limit)}},
		}},
	}
	Status(s, known(canary))
	if text := s.String(); strings.Contains(text, "c4n4ry") {
		t.Errorf("the value is in %s", text)
	}
	if n := len(s.InitContainerStatuses[0].State.Waiting.Message); n > Limit {
		t.Errorf("the message of a container that waits has %d bytes", n)
	}
	if n := len(s.InitContainerStatuses[0].LastTerminationState.Terminated.Message); n <= 2*Limit {
		t.Errorf("a termination message was cut to %d bytes", n)
	}
}
