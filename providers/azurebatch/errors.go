// SPDX-License-Identifier: Apache-2.0

package azurebatch

import (
	"encoding/json"
	"net/http"
	"slices"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/azlogin"
)

// advice is the advice for errors of Batch, by error code. See "Batch Error Codes" of the REST reference,
// 2026-11-28.
var advice = map[string]string{
	"AuthenticationFailed":             "look at the clock of this machine, and at cloud.scope",
	"AuthorizationFailure":             "give the identity of this provider the role of its README",
	"AuthorizationPermissionMismatch":  "give the identity of this provider the role of its README, and wait some minutes",
	"PoolNotFound":                     "make the pool, or correct pool",
	"ActiveJobAndScheduleQuotaReached": "raise the quota of active jobs of the Batch account, or remove jobs of others",
	"JobBeingDeleted":                  "wait until the job is deleted: it is made again then",
	"JobBeingTerminated":               "the job of this node has ended: delete it, and this node makes it again",
	"JobCompleted":                     "the job of this node has ended: delete it, and this node makes it again",
	"JobDisabled":                      "somebody has disabled the job of this node: enable it",
	"InsufficientPermissions":          "give the identity of this provider the role of its README",
	"UnsupportedRequestVersion":        "the service of endpoint is too old",
	"InvalidAuthenticationInfo":        "look at cloud.scope and at the clock of this machine",
	"InvalidRequestPoolNotFound":       "make the pool, or correct pool",
}

// final are the error codes of a create for a task that Batch will never accept.
var final = []string{"InvalidPropertyValue", "RequestBodyTooLarge", "PropertyValueTooLarge", "OutOfRangeInput"}

// batch explains errors of Batch. A missing object, other than the pool, is an error of the kind not-found. A
// task that Batch can never accept is an error of the kind invalid-input.
var batch = azlogin.Errors{
	Service: "Batch", Advice: advice,
	Said: func(body []byte) (code, message string) {
		var said struct {
			Code    string
			Message struct{ Value string }
			Values  []struct{ Key, Value string }
		}
		_ = json.Unmarshal(body, &said) // a body other than JSON has no code
		for _, v := range said.Values {
			said.Message.Value += ": " + v.Key + " " + v.Value
		}
		return said.Code, said.Message.Value
	},
	Kind: func(answer *http.Response, code string, err error) error {
		switch {
		case answer.StatusCode == http.StatusNotFound && (code == "TaskNotFound" || code == "JobNotFound"):
			return errdefs.AsNotFound(err)
		case answer.Request != nil && answer.Request.Method == http.MethodPost && slices.Contains(final, code):
			return errdefs.AsInvalidInput(err)
		}
		return err
	},
}
