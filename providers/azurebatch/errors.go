// SPDX-License-Identifier: Apache-2.0

package azurebatch

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/azlogin"
)

// advice is what to do about an error of Batch, by its code. See "Batch Error Codes" of the REST reference, 2026-11-28.
var advice = map[string]string{
	"AuthenticationFailed":             "look at the clock of this machine, and at cloud.scope",
	"AuthorizationFailure":             "give the identity of this provider the role of its README",
	"AuthorizationPermissionMismatch":  "give the identity of this provider the role of its README, and wait some minutes",
	"AccountIsDisabled":                "the Batch account is disabled",
	"PoolNotFound":                     "make the pool, or correct pool",
	"ActiveJobAndScheduleQuotaReached": "raise the quota of active jobs of the Batch account, or remove jobs of others",
	"JobBeingDeleted":                  "wait until the job is deleted: it is made again then",
	"JobBeingTerminated":               "somebody has ended the job of this node: delete it, and it is made again",
	"JobCompleted":                     "somebody has ended the job of this node: delete it, and it is made again",
	"JobDisabled":                      "somebody has disabled the job of this node: enable it",
	"RequestBodyTooLarge":              "the task is too large",
	"InsufficientPermissions":          "give the identity of this provider the role of its README",
	"UnsupportedRequestVersion":        "the service of endpoint is too old",
	"InvalidAuthenticationInfo":        "look at cloud.scope and at the clock of this machine",
	"OperationTimedOut":                "it is tried again",
	"InvalidRequestPoolNotFound":       "make the pool, or correct pool",
	"ServerBusy":                       "Batch has too much to do: it is tried again",
}

// final are the codes of a create that say that the task cannot be, today and tomorrow.
var final = []string{"InvalidPropertyValue", "RequestBodyTooLarge", "PropertyValueTooLarge", "OutOfRangeInput"}

// refused is an answer that is an error.
type refused struct {
	error
	status int
	code   string
}

// Unwrap lets errors.As see the error.
func (r refused) Unwrap() error { return r.error }

// httpStatus and codeOf are of the answer that an error is; 0 and "" if there was none.
func httpStatus(err error) int {
	var is refused
	_ = errors.As(err, &is)
	return is.status
}

func codeOf(err error) string {
	var is refused
	_ = errors.As(err, &is)
	return is.code
}

// answered reports whether Batch has refused a request, which then had no effect. Of its own failures nobody knows.
func answered(err error) bool {
	status := httpStatus(err)
	return status != 0 && status < http.StatusInternalServerError && status != http.StatusRequestTimeout
}

// explain wraps an error of the SDK with the request that failed and the action that helps. An object that is missing, other than the pool, is an
// error of the kind not-found. A task that Batch can never accept is an error of the kind invalid-input.
func explain(what string, err error) error {
	var answer *azcore.ResponseError
	var login *azidentity.AuthenticationFailedError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &login):
		return fmt.Errorf("%s: %w", what, azlogin.ExplainLogin(login))
	case !errors.As(err, &answer):
		return azlogin.Unreached(fmt.Errorf("%s: %w", what, err))
	}
	text, code := fmt.Sprintf("%s: Batch answers %d %s", what, answer.StatusCode, answer.ErrorCode), answer.ErrorCode
	var header http.Header
	var method string
	if r := answer.RawResponse; r != nil {
		header = r.Header
		if r.Request != nil {
			method = r.Request.Method
		}
		var said struct {
			Message struct{ Value string }
			Values  []struct{ Key, Value string }
		}
		if data, readErr := runtime.Payload(r); readErr == nil && json.Unmarshal(data, &said) == nil {
			text += ": " + azlogin.Line(said.Message.Value)
			for _, v := range said.Values {
				text += azlogin.Line(": " + v.Key + " " + v.Value)
			}
		}
	}
	if do := advice[code]; do != "" {
		text += ": " + do
	}
	if off := azlogin.Apart(header, time.Now()); answer.StatusCode == http.StatusUnauthorized && off != 0 {
		text += fmt.Sprintf(": the clock of this machine is %s off that of Azure: set it", off)
	}
	var out error = refused{errors.New(text), answer.StatusCode, code}
	switch {
	case answer.StatusCode == http.StatusNotFound && (code == "TaskNotFound" || code == "JobNotFound"):
		out = errdefs.AsNotFound(out)
	case method == http.MethodPost && slices.Contains(final, code):
		out = errdefs.AsInvalidInput(out)
	}
	if after := azlogin.RetryAfter(answer.RawResponse); after > 0 {
		out = errdefs.RetryAfter(out, after)
	}
	return out
}
