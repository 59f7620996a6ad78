// SPDX-License-Identifier: Apache-2.0

package azlogin

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

// Refused is an error response.
type Refused struct {
	error
	Status int
	Code   string
}

// Unwrap lets errors.As see the error.
func (r Refused) Unwrap() error { return r.error }

// StatusOf returns the HTTP status of an error response, or 0 if there was no response.
func StatusOf(err error) int {
	var is Refused
	_ = errors.As(err, &is)
	return is.Status
}

// CodeOf returns the code of an error response, or "" if there was no response.
func CodeOf(err error) string {
	var is Refused
	_ = errors.As(err, &is)
	return is.Code
}

// Answered reports whether the service has refused a request, so that the request had no effect. After a failure
// of the service itself, the effect is unknown.
func Answered(err error) bool {
	status := StatusOf(err)
	return status != 0 && status < http.StatusInternalServerError && status != http.StatusRequestTimeout
}

// Errors explains the errors of a service of Azure.
type Errors struct {
	// Service is the name of the service.
	Service string
	// Advice is the advice for an error, by its code.
	Advice map[string]string
	// Said returns the code and the message in the body of a response.
	Said func(body []byte) (code, message string)
	// Kind returns the error with its kind, if it has one. The response has its request.
	Kind func(answer *http.Response, code string, err error) error
}

// Explain turns an error of the SDK into one line with the failed action and advice. The result is a Refused if the service has responded.
func (e Errors) Explain(what string, err error) error {
	var answer *azcore.ResponseError
	var login *azidentity.AuthenticationFailedError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &login):
		return fmt.Errorf("%s: %w", what, ExplainLogin(login))
	case !errors.As(err, &answer):
		return Unreached(fmt.Errorf("%s: %w", what, err))
	}
	raw := answer.RawResponse
	if raw == nil {
		raw = &http.Response{StatusCode: answer.StatusCode}
	}
	var code, message string
	if raw.Body != nil {
		if data, readErr := runtime.Payload(raw); readErr == nil { // the SDK keeps the body that it has read
			code, message = e.Said(data)
		}
	}
	code = cmp.Or(code, answer.ErrorCode)
	text := fmt.Sprintf("%s: %s answers %d %s", what, e.Service, answer.StatusCode, code)
	if message != "" {
		text += ": " + Line(message)
	}
	if do := e.Advice[code]; do != "" {
		text += ": " + do
	}
	if id := raw.Header.Get("x-ms-correlation-request-id"); id != "" {
		text += ", request " + id
	}
	if off := clockOffset(raw.Header, time.Now()); answer.StatusCode == http.StatusUnauthorized && off != 0 {
		text += fmt.Sprintf(": the clock of this machine is %s off that of Azure: set it", off)
	}
	out := e.Kind(raw, code, Refused{errors.New(text), answer.StatusCode, code})
	if after := RetryAfter(raw); after > 0 {
		out = errdefs.RetryAfter(out, after)
	}
	return out
}

// maxSaid is the maximum length of a message from Azure in an error.
const maxSaid = 600

// Line returns a text as one line of limited length.
func Line(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > maxSaid {
		text = strings.ToValidUTF8(text[:maxSaid], "") + "…"
	}
	return text
}

// RetryAfter returns the retry delay of a response. The header has seconds or milliseconds.
func RetryAfter(answer *http.Response) time.Duration {
	if answer == nil {
		return 0
	}
	for name, unit := range map[string]time.Duration{"Retry-After": time.Second, "retry-after-ms": time.Millisecond, "x-ms-retry-after-ms": time.Millisecond} {
		if n, err := strconv.ParseInt(answer.Header.Get(name), 10, 32); err == nil && n > 0 {
			return time.Duration(n) * unit
		}
	}
	return 0
}

// clockOffset returns the error of this machine's clock, or 0 if the error is small or unknown.
func clockOffset(h http.Header, now time.Time) time.Duration {
	there, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		return 0
	}
	if off := now.Sub(there).Round(time.Second); off.Abs() >= 5*time.Minute {
		return off.Abs()
	}
	return 0
}

// logins are the errors of Microsoft Entra about wrong credentials, by the codes in its messages.
var logins = []struct{ code, do string }{
	{"AADSTS7000222", "the secret of the service principal has expired: make a new one"},
	{"AADSTS7000215", "the secret of the service principal is wrong: the value is wanted, not the ID"},
	{"AADSTS700016", "credentials.clientID is not known in the tenant"},
	{"AADSTS90002", "credentials.tenantID is not known"},
	{"AADSTS700024", "look at the clock of this machine, and at the life of the token in credentials.tokenFile"},
	{"AADSTS70021", "the workload identity has no federated credential for this service account"},
	{"AADSTS700211", "the workload identity has no federated credential for the issuer of this cluster"},
	{"AADSTS700213", "the workload identity has no federated credential for this service account"},
}

// ExplainLogin returns the reason of a failed login, without the response, which has many lines.
func ExplainLogin(err *azidentity.AuthenticationFailedError) error {
	var said struct {
		Error       string `json:"error"`
		Description string `json:"error_description"`
	}
	if r := err.RawResponse; r != nil && r.Body != nil {
		data, readErr := runtime.Payload(r)
		if readErr == nil {
			_ = json.Unmarshal(data, &said) // a body other than JSON has no code
		}
	}
	text := "Microsoft Entra gives no token"
	if said.Error != "" {
		first, _, _ := strings.Cut(said.Description, " Trace ID")
		text += ": " + said.Error + ": " + Line(first)
	}
	for _, l := range logins {
		if strings.Contains(said.Description, l.code) {
			return errors.New(text + ": " + l.do)
		}
	}
	if said.Error == "" {
		text += ": " + Line(strings.TrimPrefix(err.Error(), "\n"))
	}
	return errors.New(text)
}

// Unreached adds advice about an endpoint that does not answer. It matches the text of the error, because the SDK drops the causes of a failed login.
func Unreached(err error) error {
	text := err.Error()
	switch {
	case strings.Contains(text, "no such host"):
		return fmt.Errorf("%w: look at cloud, and at the DNS of this machine", err)
	case strings.Contains(text, "x509: "):
		return fmt.Errorf("%w: check cloud.caFile, and proxies and firewalls between this machine and Azure", err)
	case strings.Contains(text, "connection refused"), strings.Contains(text, "i/o timeout"):
		return fmt.Errorf("%w: check cloud, and proxies and firewalls between this machine and Azure", err)
	}
	return err
}
