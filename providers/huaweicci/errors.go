// SPDX-License-Identifier: Apache-2.0

package huaweicci

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// tolerated is the maximum clock skew: the gateway of CCI refuses older signatures.
const tolerated = 15 * time.Minute

// explained is a transport that converts each error response to a Kubernetes Status. The Status contains the
// details from CCI or its gateway: the code, the request ID and the retry delay.
type explained struct {
	next http.RoundTripper
	now  func() time.Time
}

// RoundTrip implements http.RoundTripper.
func (t explained) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := t.next.RoundTrip(r)
	if err == nil && answer.StatusCode >= 300 && answer.StatusCode < 400 { // otherwise the client would send the credentials to the redirect's target
		_ = answer.Body.Close()
		return nil, fmt.Errorf("CCI answers %s %s with %s to another address, which is not followed", r.Method, r.URL.Path, answer.Status)
	}
	if err != nil || answer.StatusCode < 400 {
		return answer, err
	}
	data, err := io.ReadAll(io.LimitReader(answer.Body, 1<<20))
	_ = answer.Body.Close()
	if err != nil {
		return nil, fmt.Errorf("read the error of CCI for %s %s: %w", r.Method, r.URL.Path, err)
	}
	status := statusOf(answer, data, t.now())
	if data, err = json.Marshal(status); err != nil {
		return nil, err
	}
	// The node retries, not the client: otherwise pods would hang without a message.
	answer.Header.Del("Retry-After")
	answer.Header.Set("Content-Type", "application/json")
	setBody(answer, data)
	return answer, nil
}

// said is the body of an error response: a Status of CCI with a code, or an error of the gateway.
type said struct {
	metav1.Status
	ErrorCode string `json:"errorCode"`

	GatewayCode    string `json:"error_code"`
	GatewayMessage string `json:"error_msg"`
	RequestID      string `json:"request_id"`
}

// statusOf converts an error response to a Kubernetes Status.
func statusOf(answer *http.Response, data []byte, now time.Time) metav1.Status {
	var s said
	_ = json.Unmarshal(data, &s) // a body other than JSON has no fields
	status := s.Status
	if status.Kind != "Status" || status.Message == "" {
		status = metav1.Status{Message: s.GatewayMessage}
	}
	if status.Message == "" {
		status.Message = "CCI answers " + answer.Status
	}
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	status.Status, status.Code = metav1.StatusFailure, int32(answer.StatusCode)
	if status.Reason == "" {
		status.Reason = reasons[answer.StatusCode]
	}
	for _, code := range []string{s.ErrorCode, s.GatewayCode} {
		if code != "" {
			status.Message += " (" + code + ")"
		}
	}
	if s.RequestID != "" {
		status.Message += ", request " + s.RequestID
	}
	if apart := clockSkew(answer.Header, now); answer.StatusCode == http.StatusUnauthorized && apart != 0 {
		status.Message += fmt.Sprintf(": the clock of this machine is %s off that of CCI: set it, as signatures have a time", apart)
	}
	if seconds := retryAfter(answer.Header); seconds > 0 {
		if status.Details == nil {
			status.Details = &metav1.StatusDetails{}
		}
		status.Details.RetryAfterSeconds = seconds
	}
	return status
}

// reasons maps status codes to the reason for responses without one.
var reasons = map[int]metav1.StatusReason{
	http.StatusBadRequest: metav1.StatusReasonBadRequest, http.StatusUnauthorized: metav1.StatusReasonUnauthorized,
	http.StatusForbidden: metav1.StatusReasonForbidden, http.StatusNotFound: metav1.StatusReasonNotFound,
	http.StatusConflict: metav1.StatusReasonConflict, http.StatusGone: metav1.StatusReasonGone,
	http.StatusUnprocessableEntity: metav1.StatusReasonInvalid, http.StatusTooManyRequests: metav1.StatusReasonTooManyRequests,
	http.StatusInternalServerError: metav1.StatusReasonInternalError, http.StatusServiceUnavailable: metav1.StatusReasonServiceUnavailable,
}

// clockSkew returns the difference between the clocks of this machine and CCI, or 0 if it is small or unknown.
func clockSkew(h http.Header, now time.Time) time.Duration {
	there, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		return 0
	}
	if off := now.Sub(there).Round(time.Second); off.Abs() >= tolerated {
		return off.Abs()
	}
	return 0
}

func retryAfter(h http.Header) int32 {
	seconds, err := strconv.ParseInt(h.Get("Retry-After"), 10, 32)
	if err != nil {
		return 0
	}
	return int32(seconds)
}

// errNoNetwork is the error for a namespace without a network.
var errNoNetwork = errors.New("the namespace has no network, so pods cannot start: make one, or configure network")
